/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hands.h - records who holds memory that peers may reach.
 *
 * It is kept besides the device, which could be wrong itself. At every registration with
 * remote rights no other holder may have the memory, and no byte of an earlier holder may be
 * left in it.
 */
#ifndef RBX_SIM_HANDS_H
#define RBX_SIM_HANDS_H

#include "fabric/fabric.h"

/* From here on no memory is looked at, and slabs get no pages (host/memory.c): the world only
 * measures, and has more memory than this machine. */
void rbx_sim_hands_ignore(void);
bool rbx_sim_hands_are_ignored(void);

/* Called at registration and deregistration, whatever the rights. */
void rbx_sim_hands_give(uint32_t node, const struct rbx_mr *mr,
			const struct rbx_domain *domain, uint32_t rights);
/* The next memory of the node that is registered is what its holder had before the server there
 * restarted. */
void rbx_sim_hands_give_again(uint32_t node);
void rbx_sim_hands_take(const struct rbx_mr *mr);
/* Memory goes back to the system, which may give it to anyone: it must not be reachable any
 * more. */
void rbx_sim_hands_freed(const void *addr, size_t length_bytes);
/* A node has stopped: it holds no memory. */
void rbx_sim_hands_stop(uint32_t node);
/* Ranges that peers may reach now. */
uint32_t rbx_sim_hands_count(uint32_t node);

#endif
