/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans.c - the memory that servers lend a volume: borrowed, given back, and
 * looked after.
 *
 * All of it asks servers and may block, so a slab's lock is never held meanwhile:
 * a step of the slab before says what is to be asked, a step after what came of
 * it. What cannot be given back because the server is out of reach is owed.
 *
 * To borrow takes a server some time, so several are asked before the first answer is
 * waited for: those of all replicas of a slab, and when a volume is opened those of one
 * slab after another, until a server is to be asked that has not answered yet.
 */
#include "core/upkeep.h"

#include "core/status.h"

/* The server to ask, by what it and another one say is free now; or -ENOSPC. */
static int place(struct rbx_upkeep *upkeep,
		 const struct rbx_server_set *not_servers)
{
	const struct rbx_upkeep_ops *ops = upkeep->ops;
	uint32_t drawn[2], count;

	rbx_lock(&upkeep->servers_lock);
	count = rbx_volume_map_draw(upkeep->flow->map, not_servers, drawn);
	rbx_unlock(&upkeep->servers_lock);
	if (!count)
		return -ENOSPC;
	if (count == 1)
		return (int)drawn[0];
	return (int)drawn[rbx_placement_better(
		ops->free_bytes(upkeep, drawn[0]),
		ops->free_bytes(upkeep, drawn[1]))];
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

/* ---- Borrowing ------------------------------------------------------------*/

/* As ops->answer(); -ENOTCONN also where the loan cannot be used yet. */
static int answer(struct rbx_upkeep *upkeep, uint32_t server,
		  struct rbx_loan *loan)
{
	struct rbx_owed owed = { .server = server };
	int err = upkeep->ops->answer(upkeep, server, loan);

	if (err || twins_end(upkeep, server, loan))
		return err;
	owed.loan = *loan;
	pay_or_owe(upkeep, &owed);
	return -ENOTCONN;
}

static void is_lent(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		    const struct rbx_loan *loan)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_slab *slab = asked->slab;

	rbx_slab_lock(slab);
	rbx_slab_lent(slab, asked->slot, loan, asked->state);
	rbx_slab_unlock(slab);
	rbx_loan_index_add(&map->loans,
			   slab->index * map->shape.slots + asked->slot);
}

static void is_refused(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		       int err)
{
	struct rbx_slab *slab = asked->slab;

	rbx_slab_lock(slab);
	rbx_slab_refused(slab, asked->slot);
	rbx_slab_unlock(slab);
	upkeep->servers[asked->server].replicas_count--;
	upkeep->refusals_count++;
	/* What the last one said is the best reason there is, but for one that could
	 * not be asked, and may yet lend. */
	if (!rbx_status_is_away(upkeep->refusal))
		upkeep->refusal = err;
}

/* Waits for the answer to what was asked at this place of the list. */
static void answer_take(struct rbx_upkeep *upkeep, uint32_t index)
{
	struct rbx_asked asked = upkeep->asked[index];
	struct rbx_loan loan;
	int err;

	upkeep->asked[index] = upkeep->asked[--upkeep->asked_count];
	err = answer(upkeep, asked.server, &loan);
	if (err)
		is_refused(upkeep, &asked, err);
	else
		is_lent(upkeep, &asked, &loan);
}

static void answers_take(struct rbx_upkeep *upkeep)
{
	while (upkeep->asked_count)
		answer_take(upkeep, upkeep->asked_count - 1);
}

/* A server is asked for one thing at a time, and so many are asked at once. */
static void room_make(struct rbx_upkeep *upkeep, uint32_t server)
{
	uint32_t i;

	for (i = 0; i < upkeep->asked_count; i++)
		if (upkeep->asked[i].server == server) {
			answer_take(upkeep, i);
			return;
		}
	if (upkeep->asked_count == RBX_ASKS_MAX)
		answer_take(upkeep, 0);
}

static void ask(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		uint32_t server, enum rbx_replica_state state)
{
	struct rbx_asked asked = {
		.slab = slab,
		.server = server,
		.state = state,
	};

	room_make(upkeep, server);
	rbx_slab_lock(slab);
	asked.slot = rbx_slab_borrow(slab, server);
	rbx_slab_unlock(slab);
	upkeep->servers[server].replicas_count++;
	upkeep->ops->ask(upkeep, server);
	upkeep->asked[upkeep->asked_count++] = asked;
}

/* Asks so many servers, each for a replica, and none of the set, to which it adds them.
 * Returns how many there were. */
static uint32_t ask_some(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			 enum rbx_replica_state state, uint32_t wanted_count,
			 struct rbx_server_set *not_servers)
{
	uint32_t count = 0;
	int server;

	while (count < wanted_count &&
	       (server = place(upkeep, not_servers)) >= 0) {
		rbx_server_set_add(not_servers, (uint32_t)server);
		ask(upkeep, slab, (uint32_t)server, state);
		count++;
	}
	return count;
}

/* How many replicas have memory or are asked for, and where. */
static uint32_t servers_of(struct rbx_slab *slab, struct rbx_server_set *servers)
{
	uint32_t count;

	*servers = (struct rbx_server_set){ 0 };
	rbx_slab_lock(slab);
	count = rbx_slab_servers(slab, servers);
	rbx_slab_unlock(slab);
	return count;
}

uint32_t rbx_loans_borrow(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			  enum rbx_replica_state state, uint32_t wanted_count,
			  int *reason)
{
	struct rbx_server_set not_servers;
	uint32_t asked_count, lent_count = 0;

	RBX_ASSERT(!upkeep->asked_count);
	(void)servers_of(slab, &not_servers);
	upkeep->refusal = -ENODEV;
	/* Bounded: each turn excludes one more server. */
	while (lent_count < wanted_count) {
		asked_count = ask_some(upkeep, slab, state,
				       wanted_count - lent_count, &not_servers);
		upkeep->refusals_count = 0;
		answers_take(upkeep);
		if (!asked_count)
			break;
		lent_count += asked_count - upkeep->refusals_count;
	}
	*reason = upkeep->refusal;
	return lent_count;
}

/* ---- All at the beginning -------------------------------------------------*/

/* Those of these slabs that some server has refused borrow from another one. 0, or why
 * none lends. */
static int catch_up(struct rbx_upkeep *upkeep, uint32_t first, uint32_t end)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_server_set servers;
	int reason, err = 0;
	uint32_t i;

	answers_take(upkeep);
	upkeep->refusals_count = 0;
	for (i = first; i < end; i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);
		uint32_t missing_count =
			map->shape.replicas - servers_of(slab, &servers);

		if (!err && missing_count &&
		    rbx_loans_borrow(upkeep, slab, RBX_REPLICA_LIVE,
				     missing_count, &reason) < missing_count)
			err = reason;
		rbx_attention_relist(&map->attention, slab, false);
	}
	return err;
}

int rbx_loans_borrow_all(struct rbx_upkeep *upkeep)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	uint32_t i, whole_count = 0, replicas = map->shape.replicas;
	int err = 0;

	upkeep->refusals_count = 0;
	for (i = 0; i < map->slab_count && !err; i++) {
		struct rbx_server_set not_servers = { 0 };
		uint32_t asked_count = ask_some(upkeep, rbx_slab_at(&map->shape, i),
						RBX_REPLICA_LIVE, replicas,
						&not_servers);

		if (asked_count == replicas && !upkeep->refusals_count)
			continue;
		err = catch_up(upkeep, whole_count, i + 1);
		whole_count = i + 1;
	}
	return err ? err : catch_up(upkeep, whole_count, map->slab_count);
}

/* ---- Giving back ----------------------------------------------------------*/

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
	upkeep->servers[owed.server].replicas_count--;
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
