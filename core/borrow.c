/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrow.c - asks servers for the memory of a slab, see upkeep.h.
 *
 * All replicas that the slab needs are asked for at once, each from another server. If one
 * refuses, another server is asked. The slab is left alone until no request is out for it any
 * more (rbx_slab_task()). If no server has lent by then, but a busy one may, the slab waits
 * for that one like a slab whose turn has not come.
 *
 * It does not wait for a late server if it has some memory already, or if another server can
 * be asked that has not refused recently. Then its slot is free again, and what the late
 * server lends in the end is given back. If only late servers are left it waits: large slabs
 * take long everywhere.
 */
#include "core/borrow.h"

#include "core/loans.h"
#include "core/status.h"
#include "core/upkeep_slab.h"

static struct rbx_borrowing *borrowing_find(struct rbx_upkeep *upkeep)
{
	uint32_t i;

	/* The caller has looked for room. */
	for (i = 0; i < RBX_ASKS_MAX; i++)
		if (!upkeep->borrowings[i].slab)
			return &upkeep->borrowings[i];
	RBX_ASSERT(false);
	return NULL;
}

/* The servers from which it does not want another replica. */
static void servers_have(struct rbx_slab *slab, struct rbx_server_set *servers)
{
	rbx_slab_lock(slab);
	(void)rbx_slab_servers(slab, servers);
	rbx_slab_unlock(slab);
}

/* Those of them with which another replica should not be lost. */
static struct rbx_server_set holders_of(const struct rbx_upkeep *upkeep,
					struct rbx_slab *slab)
{
	struct rbx_server_set holders = { 0 };

	if (!rbx_domains_are_any(&upkeep->flow->domains))
		return holders; /* nobody asks */
	rbx_slab_lock(slab);
	rbx_slab_holders(slab, &holders);
	rbx_slab_unlock(slab);
	return holders;
}

/* No write waits for a rebuild, so it may wait. */
static bool is_patient(const struct rbx_borrowing *borrowing)
{
	return borrowing->state == RBX_REPLICA_REBUILDING;
}

/* Whether a rebuild waits for a server that is away rather than take one that is lost together
 * with another replica. Until then it counts as stuck, and is tried again. */
static bool waits_for_away(struct rbx_upkeep *upkeep, const struct rbx_borrowing *borrowing,
			   const struct rbx_server_set *holders, int server)
{
	struct rbx_server_set together;
	uint32_t nth, count;

	if (server < 0 || !is_patient(borrowing) ||
	    !rbx_domains_are_any(&upkeep->flow->domains))
		return false;
	together = (struct rbx_server_set){ 0 };
	(void)rbx_asks_join_domains(upkeep, holders, &together);
	if (!rbx_server_set_has(&together, (uint32_t)server))
		return false;
	count = rbx_server_set_count(&borrowing->away);
	for (nth = 0; nth < count; nth++) {
		uint32_t away = rbx_server_set_member(&borrowing->away, nth);

		if (!rbx_server_set_has(&together, away) &&
		    !rbx_upkeep_server_is_down(upkeep, away))
			return true;
	}
	return false;
}

static void ask(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing,
		uint32_t server)
{
	struct rbx_asked *asked;

	rbx_server_set_add(&borrowing->not_servers, server);
	borrowing->asks_count++;
	asked = rbx_loans_ask(upkeep, borrowing->slab, server);
	asked->borrowing = borrowing;
}

bool rbx_borrow_go_on(struct rbx_upkeep *upkeep,
		      struct rbx_borrowing *borrowing)
{
	struct rbx_server_set holders;
	int server = -ENOSPC;

	/* Bounded: each pass excludes one more server. */
	while (borrowing->lent_count + borrowing->asks_count <
	       borrowing->wanted_count) {
		holders = holders_of(upkeep, borrowing->slab);
		server = rbx_asks_place(upkeep, &borrowing->not_servers, &holders,
					is_patient(borrowing));
		if (server < 0 || waits_for_away(upkeep, borrowing, &holders, server))
			break;
		ask(upkeep, borrowing, (uint32_t)server);
	}
	if (borrowing->asks_count)
		return false;
	/* A busy server may lend when it has answered, so first writes wait. */
	if ((server == -EAGAIN || server == -ETIMEDOUT) &&
	    borrowing->state == RBX_REPLICA_LIVE)
		rbx_borrow_refused(borrowing, -ETIMEDOUT);
	return true;
}

bool rbx_borrow_waits(struct rbx_upkeep *upkeep,
		      const struct rbx_borrowing *borrowing)
{
	struct rbx_server_set not_servers = { 0 }, holders;

	if (borrowing->lent_count || borrowing->is_overdue)
		return false;
	/* Otherwise servers that have just refused would be asked again at once. */
	servers_have(borrowing->slab, &not_servers);
	holders = holders_of(upkeep, borrowing->slab);
	return rbx_asks_place(upkeep, &not_servers, &holders, is_patient(borrowing)) ==
	       -EAGAIN;
}

/* Chooses servers for all that it needs before the first is asked: if only some could be
 * asked, the others would have to be copied to later. Returns how many are in the list, or as
 * place(). */
static int servers_choose(struct rbx_upkeep *upkeep, const struct rbx_borrowing *borrowing,
			  struct rbx_server_set holders, uint32_t *servers)
{
	struct rbx_server_set not_servers = borrowing->not_servers;
	uint32_t count;
	int server;

	for (count = 0; count < borrowing->wanted_count; count++) {
		server = rbx_asks_place(upkeep, &not_servers, &holders, is_patient(borrowing));
		if (server == -EAGAIN || (server < 0 && !count))
			return server;
		if (server < 0)
			break;
		servers[count] = (uint32_t)server;
		rbx_server_set_add(&not_servers, (uint32_t)server);
		rbx_server_set_add(&holders, (uint32_t)server);
	}
	return (int)count;
}

int rbx_borrow_begin(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_replica_state state, uint32_t wanted_count,
		     enum rbx_attention_list list)
{
	struct rbx_borrowing *borrowing;
	uint32_t servers[RBX_REPLICAS_MAX];
	int i, count;

	/* Each has a request out, but for those that are short: they wait for a record. */
	if (upkeep->borrowings_count == RBX_ASKS_MAX)
		return -EAGAIN;
	borrowing = borrowing_find(upkeep);
	*borrowing = (struct rbx_borrowing){
		.state = state,
		.list = list,
		.wanted_count = wanted_count,
		.since_ns = upkeep->now_ns,
		.err = -ENODEV,
	};
	servers_have(slab, &borrowing->not_servers);
	count = servers_choose(upkeep, borrowing, holders_of(upkeep, slab), servers);
	if (!rbx_asks_room(upkeep))
		count = -EAGAIN;
	if (count < 0)
		return count;
	borrowing->slab = slab;
	upkeep->borrowings_count++;
	for (i = 0; i < count; i++)
		ask(upkeep, borrowing, servers[i]);
	return 0;
}

void rbx_borrow_move(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server)
{
	struct rbx_borrowing *borrowing = borrowing_find(upkeep);

	*borrowing = (struct rbx_borrowing){
		.slab = slab,
		.state = RBX_REPLICA_REBUILDING,
		.list = RBX_LIST_LEAVING,
		.wanted_count = 1,
		.since_ns = upkeep->now_ns,
		.err = -ENODEV,
		.moves = true,
		.to = server,
	};
	rbx_port_fill(&borrowing->not_servers, 0xff, sizeof(borrowing->not_servers));
	upkeep->borrowings_count++;
	ask(upkeep, borrowing, server);
}

void rbx_borrow_refused(struct rbx_borrowing *borrowing, int err)
{
	/* The last answer is the best reason, unless that server could not be asked, and may
	 * lend yet. */
	if (!rbx_status_is_away(borrowing->err))
		borrowing->err = err;
}

static void ask_withdraw(struct rbx_asked *asked, int err)
{
	struct rbx_borrowing *borrowing = asked->borrowing;

	rbx_slab_lock(asked->slab);
	rbx_slab_refused(asked->slab, asked->slot);
	rbx_slab_unlock(asked->slab);
	asked->slab = NULL;
	asked->borrowing = NULL;
	borrowing->asks_count--;
	rbx_borrow_refused(borrowing, err);
}

static void withdraw(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing,
		     int err)
{
	uint32_t i;

	for (i = 0; i < upkeep->asked_count; i++)
		if (upkeep->asked[i].borrowing == borrowing)
			ask_withdraw(&upkeep->asked[i], err);
}

/* Adds the servers that are worse than a late one: they would be lost together with another
 * replica, and that one would not. */
static void worse_join(struct rbx_upkeep *upkeep, const struct rbx_borrowing *borrowing,
		       uint32_t late, struct rbx_server_set *servers)
{
	struct rbx_server_set holders = holders_of(upkeep, borrowing->slab), together = { 0 };

	rbx_server_set_remove(&holders, late);
	if (rbx_asks_join_domains(upkeep, &holders, &together) &&
	    !rbx_server_set_has(&together, late))
		rbx_server_set_join(servers, &together);
}

/* Whether it need not wait for a late server. If all others are full, the slow ones are the
 * only ones that lend. */
static bool can_do_without(struct rbx_upkeep *upkeep,
			   const struct rbx_borrowing *borrowing, uint32_t late)
{
	struct rbx_server_set not_servers = borrowing->not_servers;

	if (borrowing->moves || (borrowing->state == RBX_REPLICA_LIVE && borrowing->lent_count))
		return true;
	rbx_asks_join_refused(upkeep, &not_servers);
	worse_join(upkeep, borrowing, late, &not_servers);
	return rbx_asks_place_well(upkeep, &not_servers) >= 0;
}

/* Discarded or lost meanwhile: there is nothing to copy. */
static bool is_in_vain(const struct rbx_borrowing *borrowing)
{
	bool is_readable;

	rbx_slab_lock(borrowing->slab);
	is_readable = borrowing->slab->read_mask != 0;
	rbx_slab_unlock(borrowing->slab);
	return borrowing->state == RBX_REPLICA_REBUILDING && !is_readable;
}

static void late_leave(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing)
{
	uint32_t i;

	for (i = 0; i < upkeep->asked_count; i++) {
		struct rbx_asked *asked = &upkeep->asked[i];

		if (asked->borrowing != borrowing || !asked->is_late ||
		    !can_do_without(upkeep, borrowing, asked->server))
			continue;
		ask_withdraw(asked, -ETIMEDOUT);
		(void)rbx_borrow_go_on(upkeep, borrowing);
	}
}

static uint64_t due_ns(const struct rbx_upkeep *upkeep,
		       const struct rbx_borrowing *borrowing)
{
	/* For a named volume the server is waited for, however long it takes. */
	if (borrowing->state != RBX_REPLICA_LIVE ||
	    rbx_slab_shape(borrowing->slab)->is_named)
		return UINT64_MAX;
	return borrowing->since_ns + rbx_upkeep_lend_ns(upkeep);
}

void rbx_borrowings_tick(struct rbx_upkeep *upkeep)
{
	uint32_t i;

	for (i = 0; i < RBX_ASKS_MAX && upkeep->borrowings_count; i++) {
		struct rbx_borrowing *borrowing = &upkeep->borrowings[i];

		if (!borrowing->slab)
			continue;
		if (rbx_slab_shape(borrowing->slab)->is_named) {
			if (!borrowing->is_short)
				continue; /* the server has it, or has refused, or is dead */
		} else if (is_in_vain(borrowing)) {
			withdraw(upkeep, borrowing, -ENODEV);
		} else if (upkeep->now_ns >= due_ns(upkeep, borrowing)) {
			withdraw(upkeep, borrowing, -ETIMEDOUT);
			borrowing->is_overdue = true;
		} else {
			late_leave(upkeep, borrowing);
		}
		if (!borrowing->asks_count)
			rbx_upkeep_borrowed(upkeep, borrowing);
	}
}

uint64_t rbx_borrowings_due_ns(const struct rbx_upkeep *upkeep)
{
	uint64_t first_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < RBX_ASKS_MAX && upkeep->borrowings_count; i++)
		if (upkeep->borrowings[i].slab)
			first_ns = RBX_MIN(first_ns,
					   due_ns(upkeep, &upkeep->borrowings[i]));
	return first_ns;
}

void rbx_borrow_end(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing)
{
	RBX_ASSERT(!borrowing->asks_count);
	borrowing->slab = NULL;
	upkeep->borrowings_count--;
}

uint32_t rbx_borrowings_of(const struct rbx_upkeep *upkeep,
			   enum rbx_attention_list list)
{
	uint32_t i, count = 0;

	for (i = 0; i < RBX_ASKS_MAX && upkeep->borrowings_count; i++)
		count += upkeep->borrowings[i].slab &&
			 upkeep->borrowings[i].list == list;
	return count;
}
