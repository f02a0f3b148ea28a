/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_network.h - the memory servers of volume_world.h, and the network to them:
 * what the host in volume_world.c needs of these two.
 */
#ifndef RBX_TEST_VOLUME_NETWORK_H
#define RBX_TEST_VOLUME_NETWORK_H

#include "tests/core/volume_world.h"

/* True for so many of 1000. */
bool world_chance(struct world *world, uint32_t permille);
/* Lends a zeroed slab of this server; -ENOSPC: it has none, or is down. */
int world_server_lend(struct world *world, uint32_t index,
		      struct rbx_loan *loan);
void world_server_take_back(struct world *world, uint32_t index,
			    const struct rbx_loan *loan);
/* A read or write of the server's memory; late ones must not exist. */
int32_t world_carry_out(struct world *world, const struct rbx_part *part);

#endif
