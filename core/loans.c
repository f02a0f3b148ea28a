/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans.c - the memory that servers lend a volume: borrowed, given back, and
 * looked after.
 *
 * All of it asks servers and may block, so a slab's lock is never held meanwhile:
 * a step of the slab before says what is to be asked, a step after what came of
 * it. What cannot be given back because the server is out of reach is owed.
 */
#include "core/upkeep.h"

#include "core/status.h"

/* The server to ask, by what the servers say is free now; or -ENOSPC. */
static int place(struct rbx_upkeep *upkeep, uint64_t not_servers)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint64_t free_bytes[RBX_SERVERS_MAX];
	uint32_t i, server_count;
	int server;

	rbx_lock(&upkeep->servers_lock);
	server_count = map->server_count;
	rbx_unlock(&upkeep->servers_lock);
	for (i = 0; i < server_count; i++)
		free_bytes[i] = upkeep->ops->free_bytes(upkeep, i);
	rbx_lock(&upkeep->servers_lock);
	rbx_port_copy(map->free_bytes, free_bytes,
		      server_count * sizeof(*free_bytes));
	server = rbx_volume_map_place(map, not_servers);
	rbx_unlock(&upkeep->servers_lock);
	return server;
}

/* Returns whether it is still owed: the server has not heard of it. Where it
 * refuses, it has ended the loan by itself. */
static bool pay(struct rbx_upkeep *upkeep, const struct rbx_owed *owed)
{
	if (rbx_upkeep_server_is_down(upkeep, owed->server))
		return false;
	return rbx_status_is_away(
		upkeep->ops->unmap(upkeep, owed->server, &owed->loan));
}

static void pay_or_owe(struct rbx_upkeep *upkeep, const struct rbx_owed *owed)
{
	if (pay(upkeep, owed) && upkeep->owed_count < RBX_OWED_MAX)
		upkeep->owed[upkeep->owed_count++] = *owed;
}

/* The server has lent what it had lent us before, so that is over, though we did not
 * know. Returns whether something is still under way to it. */
static bool twin_end(struct rbx_volume_map *map, uint32_t number)
{
	struct rbx_slab *slab = rbx_slab_at(&map->shape, number / map->shape.slots);
	uint32_t slot = number % map->shape.slots;
	bool is_in_use;

	rbx_slab_lock(slab);
	rbx_slab_lose(slab, slot);
	is_in_use = slab->replicas[slot].flight_count > 0;
	(void)rbx_attention_note(&map->attention, slab);
	rbx_slab_unlock(slab);
	return is_in_use;
}

/* Older loans that share something with a new one end. False: not at once, and then
 * the new one must not be used, as a late write would come into it. */
static bool twins_end(struct rbx_upkeep *upkeep, uint32_t server,
		      const struct rbx_loan *loan)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t numbers[RBX_TWINS_MAX];
	uint32_t i, count = rbx_loan_index_twins(&map->loans, server, loan,
						 numbers, RBX_TWINS_MAX);
	bool is_in_use = count > RBX_TWINS_MAX;

	for (i = 0; i < RBX_MIN(count, RBX_TWINS_MAX); i++)
		is_in_use |= twin_end(map, numbers[i]);
	if (count)
		upkeep->flow->ops->wake(upkeep->flow);
	return !is_in_use;
}

/* As ops->map(); -ENOTCONN also where the loan cannot be used yet. */
static int map(struct rbx_upkeep *upkeep, uint32_t server,
	       struct rbx_loan *loan)
{
	struct rbx_owed owed = { .server = server };
	int err = upkeep->ops->map(upkeep, server, loan);

	if (err || twins_end(upkeep, server, loan))
		return err;
	owed.loan = *loan;
	pay_or_owe(upkeep, &owed);
	return -ENOTCONN;
}

static void is_lent(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		    uint32_t slot, const struct rbx_loan *loan,
		    enum rbx_replica_state state)
{
	struct rbx_volume_map *map = upkeep->flow->map;

	rbx_slab_lock(slab);
	rbx_slab_lent(slab, slot, loan, state);
	rbx_slab_unlock(slab);
	rbx_loan_index_add(&map->loans, slab->index * map->shape.slots + slot);
}

static int borrow_from(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		       uint32_t server, enum rbx_replica_state state)
{
	struct rbx_loan loan;
	uint32_t slot;
	int err;

	rbx_slab_lock(slab);
	slot = rbx_slab_borrow(slab, server);
	rbx_slab_unlock(slab);

	err = map(upkeep, server, &loan);
	if (!err) {
		is_lent(upkeep, slab, slot, &loan, state);
		return 0;
	}
	rbx_slab_lock(slab);
	rbx_slab_refused(slab, slot);
	rbx_slab_unlock(slab);
	return err;
}

int rbx_loans_borrow(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_replica_state state)
{
	uint64_t not_servers;
	int server, err, reason = -ENODEV;

	rbx_slab_lock(slab);
	not_servers = rbx_slab_servers(slab);
	rbx_slab_unlock(slab);
	/* Bounded: each turn excludes one more server. */
	while ((server = place(upkeep, not_servers)) >= 0) {
		err = borrow_from(upkeep, slab, (uint32_t)server, state);
		if (!err)
			return 0;
		/* What the last one said is the best reason there is, but for
		 * one that could not be asked, and may yet lend. */
		if (!rbx_status_is_away(reason))
			reason = err;
		not_servers |= (uint64_t)1 << server;
	}
	return reason;
}

bool rbx_loans_pay_owed(struct rbx_upkeep *upkeep)
{
	uint32_t kept_count = 0, i;
	bool was_paid;

	for (i = 0; i < upkeep->owed_count; i++)
		if (pay(upkeep, &upkeep->owed[i]))
			upkeep->owed[kept_count++] = upkeep->owed[i];
	was_paid = kept_count < upkeep->owed_count;
	upkeep->owed_count = kept_count;
	return was_paid;
}

void rbx_loans_give_back(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_owed owed;
	uint32_t slot;

	rbx_slab_lock(slab);
	slot = rbx_slab_give_back(slab, &owed.server, &owed.loan);
	rbx_slab_unlock(slab);
	rbx_loan_index_remove(&map->loans,
			      slab->index * map->shape.slots + slot);
	upkeep->returns_count +=
		!rbx_upkeep_server_is_down(upkeep, owed.server);
	pay_or_owe(upkeep, &owed);
}

/*
 * A replica that should leave and cannot may have been revoked since; without a
 * request nothing would tell, and its server not be asked for another.
 */
void rbx_loans_check_leaving(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_loan loan;
	uint32_t server;
	bool is_leaving;
	int err;

	rbx_slab_lock(slab);
	is_leaving = rbx_slab_leaving(slab, &server, &loan);
	rbx_slab_unlock(slab);
	if (!is_leaving)
		return;
	err = upkeep->ops->check(upkeep, server, &loan);
	if (err != -ESTALE && err != -EPERM)
		return;
	rbx_slab_lock(slab);
	rbx_slab_revoked(slab, server, &loan);
	rbx_slab_unlock(slab);
}
