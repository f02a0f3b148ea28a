/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hands.h - in whose hands memory is that peers may reach.
 *
 * Kept beside the device, which could be wrong itself: at every registration
 * with remote rights nobody else may have the memory, and no byte of who had it
 * before may be left in it.
 */
#ifndef RBX_SIM_HANDS_H
#define RBX_SIM_HANDS_H

#include "fabric/fabric.h"

/* At registration and deregistration, whatever the rights. */
void rbx_sim_hands_give(uint32_t node, const struct rbx_mr *mr,
			const struct rbx_domain *domain, uint32_t rights);
void rbx_sim_hands_take(const struct rbx_mr *mr);
/* Memory is given back to the system, which may hand it to anybody: nobody may
 * reach it any more. */
void rbx_sim_hands_freed(const void *addr, size_t length_bytes);
/* A node has stopped: nobody has its memory. */
void rbx_sim_hands_stop(uint32_t node);
/* Ranges that peers may reach now. */
uint32_t rbx_sim_hands_count(uint32_t node);

#endif
