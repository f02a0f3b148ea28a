/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pcie.h - the bus between a NIC and its host.
 *
 * It has two directions, each with its bandwidth. A write of the NIC, or of a core, consists
 * of packets of at most pcie_payload_bytes, each with a header, that take pcie_write_ns to
 * arrive. A read is requests one way and packets of data the other way, pcie_read_ns for the
 * round trip. Any number of reads may be under way, except those that fill a cache: of these
 * only fills_at_once. This is what slows down a NIC that thrashes.
 */
#ifndef RBX_SIM_NIC_PCIE_H
#define RBX_SIM_NIC_PCIE_H

#include "sim/nic/params.h"
#include "sim/nic/pipe.h"

struct rbx_nic_pcie {
	const struct rbx_nic_params *params;
	struct rbx_nic_pipe to_host;
	struct rbx_nic_pipe to_nic;
	uint64_t fill_free_ps[RBX_NIC_FILLS_MAX]; /* of those in use */
	uint64_t fills; /* counters */
	uint64_t fill_wait_ps;
};

void rbx_nic_pcie_init(struct rbx_nic_pcie *pcie,
		       const struct rbx_nic_params *params);

/* A core writes to the NIC; returns when it is there. */
uint64_t rbx_nic_pcie_ring(struct rbx_nic_pcie *pcie, uint64_t at_ps,
			   uint32_t bytes);

/* The NIC writes to memory; returns when it is there. */
struct rbx_nic_span rbx_nic_pcie_write(struct rbx_nic_pcie *pcie,
				       struct rbx_nic_span span,
				       uint32_t bytes);

/* The NIC reads memory; returns when it has it. */
struct rbx_nic_span rbx_nic_pcie_read(struct rbx_nic_pcie *pcie,
				      struct rbx_nic_span span, uint32_t bytes);

/* Fills a cache; returns when it is filled. */
uint64_t rbx_nic_pcie_fill(struct rbx_nic_pcie *pcie, uint64_t at_ps,
			   uint32_t bytes);

#endif
