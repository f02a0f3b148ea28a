/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * payload.h - bytes on their way between two memories.
 *
 * They are copied when the model's DMA reads them and again when it writes them. So a change
 * of the buffer in between is seen or not, as with a NIC. Buffers are kept by size for the
 * next message.
 */
#ifndef RBX_SIM_NIC_PAYLOAD_H
#define RBX_SIM_NIC_PAYLOAD_H

#include "core/sge.h"

struct rbx_nic_payload {
	struct rbx_nic_payload *next; /* while it is free */
	uint32_t class; /* its size: 64 << class */
	uint8_t bytes[];
};

/* NULL if length_bytes is 0. Never fails: without memory the run ends. */
struct rbx_nic_payload *rbx_nic_payload_get(uint32_t length_bytes);
void rbx_nic_payload_put(struct rbx_nic_payload *payload);

/* Copies to it, or from it. */
void rbx_nic_payload_gather(struct rbx_nic_payload *payload,
			    const struct rbx_sge *sges, uint32_t sge_count);
void rbx_nic_payload_scatter(const struct rbx_nic_payload *payload,
			     uint32_t length_bytes, const struct rbx_sge *sges,
			     uint32_t sge_count);

#endif
