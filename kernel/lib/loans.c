/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans.c - the memory that servers lend a volume: borrowed, given back, and
 * looked after.
 *
 * All of it asks servers and may block, so a slab's lock is never held meanwhile:
 * a step of the slab before says what is to be asked, a step after what came of
 * it. What cannot be given back because the server is out of reach is owed.
 */
#include "kernel/lib/volume.h"

/* The server to ask, by what the servers say is free now. */
static int place(struct rbx_volume *volume, uint64_t not_servers)
{
	struct rbx_volume_map *map = volume->map;
	uint32_t i;
	int server;

	spin_lock(&volume->servers_lock);
	for (i = 0; i < map->server_count; i++)
		map->free_bytes[i] =
			READ_ONCE(volume->servers[i].peer->session->free_bytes);
	server = rbx_volume_map_place(map, not_servers);
	spin_unlock(&volume->servers_lock);
	return server;
}

static int borrow_from(struct rbx_volume *volume, struct rbx_slab *slab,
		       uint32_t server, enum rbx_replica_state state)
{
	struct rbx_loan loan;
	uint32_t slot;
	int err;

	rbx_volume_lock(volume, slab);
	slot = rbx_slab_borrow(slab, server);
	rbx_volume_unlock(volume, slab);

	err = rbx_session_map(volume->servers[server].peer->session, &loan);

	rbx_volume_lock(volume, slab);
	if (err)
		rbx_slab_refused(slab, slot);
	else
		rbx_slab_lent(slab, slot, &loan, state);
	rbx_volume_unlock(volume, slab);
	return err;
}

int rbx_volume_borrow(struct rbx_volume *volume, struct rbx_slab *slab,
		      enum rbx_replica_state state)
{
	uint64_t not_servers;
	int server, err = 0;

	rbx_volume_lock(volume, slab);
	not_servers = rbx_slab_servers(slab);
	rbx_volume_unlock(volume, slab);
	/* Bounded: each turn excludes one more server. */
	while ((server = place(volume, not_servers)) >= 0) {
		err = borrow_from(volume, slab, (uint32_t)server, state);
		if (!err)
			return 0;
		not_servers |= 1ull << server;
	}
	/* What the last server said is the best reason there is. */
	return err ? err : -ENOSPC;
}

/* Returns whether it is still owed: the server has not heard of it. Where it
 * refuses, it has ended the loan by itself. */
static bool pay(struct rbx_volume *volume, const struct rbx_volume_owed *owed)
{
	struct rbx_volume_server *server = &volume->servers[owed->server];
	int err;

	if (RBX_LOAD_ACQUIRE(&server->is_down))
		return false;
	err = rbx_session_unmap(server->peer->session, &owed->loan);
	return err == -ENOTCONN || err == -ETIMEDOUT;
}

bool rbx_volume_pay_owed(struct rbx_volume *volume)
{
	uint32_t kept_count = 0, i;

	for (i = 0; i < volume->owed_count; i++)
		if (pay(volume, &volume->owed[i]))
			volume->owed[kept_count++] = volume->owed[i];
	volume->owed_count = kept_count;
	return kept_count > 0;
}

void rbx_volume_give_back(struct rbx_volume *volume, struct rbx_slab *slab)
{
	struct rbx_volume_owed owed;

	rbx_volume_lock(volume, slab);
	rbx_slab_give_back(slab, &owed.server, &owed.loan);
	rbx_volume_unlock(volume, slab);
	if (pay(volume, &owed) && volume->owed_count < RBX_VOLUME_OWED_MAX)
		volume->owed[volume->owed_count++] = owed;
}

/*
 * A replica that should leave and cannot may have been revoked since; without a
 * request nothing would tell, and its server not be asked for another.
 */
void rbx_volume_check_leaving(struct rbx_volume *volume, struct rbx_slab *slab)
{
	struct rbx_loan loan;
	uint32_t server;
	bool is_leaving;
	int err;

	rbx_volume_lock(volume, slab);
	is_leaving = rbx_slab_leaving(slab, &server, &loan);
	rbx_volume_unlock(volume, slab);
	if (!is_leaving)
		return;
	err = rbx_session_check(volume->servers[server].peer->session, &loan);
	if (err != -ESTALE && err != -EPERM)
		return;
	rbx_volume_lock(volume, slab);
	rbx_slab_revoked(slab, server, &loan);
	rbx_volume_unlock(volume, slab);
}
