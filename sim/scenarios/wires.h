/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wires.h - machines with NICs, and connections between them, for scenarios that measure:
 * they exist when the scenario begins, and cost nothing.
 */
#ifndef RBX_SIM_WIRES_H
#define RBX_SIM_WIRES_H

#include "sim/nic/device.h"
#include "sim/scenarios/cores.h"

/* Starts at time 0, without faults and machines. */
void rbx_sim_wires_begin(const struct rbx_nic_params *params);

/* A machine's NIC. */
struct rbx_device *rbx_sim_wires_device(uint32_t node);

/* Memory of a machine, zeroed and registered with all rights. Freed by
 * rbx_sim_wires_end(). */
struct rbx_mr *rbx_sim_wires_memory(struct rbx_device *device, size_t bytes);

struct rbx_cq *rbx_sim_wires_cq(struct rbx_device *device,
				uint32_t depth_count);

/* Both ends of a connection. */
void rbx_sim_wires_connect(struct rbx_device *one,
			   const struct rbx_qp_init *one_init,
			   struct rbx_qp **one_qp, struct rbx_device *other,
			   const struct rbx_qp_init *other_init,
			   struct rbx_qp **other_qp);

/* Ends all. */
void rbx_sim_wires_end(void);

/* Totals of all that were ended since the process began. */
struct rbx_sim_wires_totals {
	uint64_t events;
	uint64_t virtual_ns;
	uint64_t work_requests;
};

const struct rbx_sim_wires_totals *rbx_sim_wires_totals(void);

/* calloc() that ends the run if it fails. */
void *rbx_sim_take(size_t count, size_t bytes);

#endif
