/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * last_copies.h - keeps data of a volume that only a silent server has.
 *
 * A server that has not answered for the peer timeout may be dead. Then all that waits for it
 * should go on elsewhere. Or this machine is cut off from all its servers. Then giving them
 * up would lose data that they keep for the whole lease. This machine cannot tell which is
 * true. But if a slab has a copy at a server that is up, the silent server is not needed. If
 * it has none, giving up gains nothing. So the copies of a silent server are given up slab by
 * slab: at once if the slab has another copy, and the others when half of the lease is over
 * (peer_state.h decides when). Until then requests to these slabs wait. In the same way a
 * server is kept while no other one is up, since no other could lend then; and while it may come
 * back with replicas that are done without meanwhile (slab_away.h).
 *
 * A server of a named volume is given up as a whole, and by the record (held.h): nothing of it
 * is given up here.
 */
#ifndef RBX_LAST_COPIES_H
#define RBX_LAST_COPIES_H

#include "core/flow.h"

/* Whether a server is up and has been for a while. Called with a slab's lock held. */
typedef bool rbx_server_is_up(struct rbx_flow *flow, uint32_t server);

/* Adds those of the servers that cannot all be given up: they have copies of a slab that no
 * other server has. Looks at all slabs. */
void rbx_last_copies_needed(struct rbx_flow *flow, const struct rbx_server_set *servers,
			    struct rbx_server_set *needed);

/*
 * Gives up the replicas of a silent server whose slabs have all acknowledged data at a server
 * that is up, and wakes the upkeep thread if there were any. Returns whether the server is not
 * to be given up: some replicas stay because there is no other copy, or are AWAY; or no other
 * server is up. Looks at all slabs.
 */
bool rbx_last_copies_hold(struct rbx_flow *flow, uint32_t server,
			  rbx_server_is_up *is_up);

/* Whether a part of a piece under way waits for a replica that was not given up. */
bool rbx_last_copies_wait(const struct rbx_fragment *fragment);

#endif
