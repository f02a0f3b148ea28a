/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * last_copies.h - what a volume has nowhere else than at a server that is silent.
 *
 * A server that has not answered for the peer timeout may be dead, and then all that
 * waits for it is to go on elsewhere. Or it is this machine that is cut off, with all
 * of its servers beyond the cut, and to give them up would lose for nothing what they
 * hold for the whole lease. Nobody can tell which; but where a slab has a copy at a
 * server that is up, the silent one is not needed, and where it has none, giving up
 * gains nothing. So the copies of a silent server are let go slab by slab: those that
 * are elsewhere too at once, and the others when half of the lease is over
 * (peer_state.h says when). Until then requests of these slabs wait. A server is kept
 * likewise while no other one is up, since nobody else can lend then.
 */
#ifndef RBX_LAST_COPIES_H
#define RBX_LAST_COPIES_H

#include "core/flow.h"

/* Whether a server is up, and has been for a while; called with a slab's lock held. */
typedef bool rbx_server_is_up(struct rbx_flow *flow, uint32_t server);

/*
 * Loses the replicas of a silent server whose slabs have all that was acknowledged
 * at a server that is up, too, and wakes the upkeep thread if there were any.
 * Returns whether some stay, which have not, or no other server is up. Goes over
 * all slabs.
 */
bool rbx_last_copies_hold(struct rbx_flow *flow, uint32_t server,
			  rbx_server_is_up *is_up);

/* Whether a part, of a piece under way, waits for a replica that is still one. */
bool rbx_last_copies_wait(const struct rbx_fragment *fragment);

#endif
