/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store.h - the store of a pool, in the place of etcd: an engine of pool/store.h.
 *
 * It is one machine that never loses what it has. A call takes effect at one moment between its
 * begin and its end, which are apart. What goes wrong:
 *
 *	store-away	nobody reaches it for a while, or one machine does not
 *	store-reply-lost	it has done what was asked, and the caller hears nothing
 *	store-refuses	it does nothing, and says so
 *	store-forgets	it no longer has the changes that a watch has not heard of
 *
 * A lease runs out while its machine is cut off. While the store itself is away it does not, as in
 * etcd, whose leases begin anew with a new leader; or it does, if only the network is at fault.
 */
#ifndef RBX_SIM_STORE_H
#define RBX_SIM_STORE_H

#include "core/port.h"

/* What a pool's text is in such a world. */
#define RBX_SIM_STORE_POOL "etcd://store:2379/pool"

/* Before a run. */
void rbx_sim_store_init(uint64_t seed);
/* Away for so long. node: for this machine only; 0: for all, and is_down says that it is the store
 * that is at fault. */
void rbx_sim_store_away(uint32_t node, uint64_t for_ns, bool is_down);
bool rbx_sim_store_is_away(uint32_t node);
/* From here on it is there for all. */
void rbx_sim_store_heal(void);
/* Whether it has a key that ends so, of a server that has reached it since it is there for all:
 * the lease of another one may run out first. Each key has a lease. */
bool rbx_sim_store_has(const char *ending);
uint32_t rbx_sim_store_keys_count(void);

#endif
