/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loans.c - the loans of a volume: borrowed, given back, and checked.
 *
 * asks.c sends the requests; this file handles the answers. A slab's lock is never held while
 * a server is asked: a step of the slab before it says what to ask, and a step afterwards
 * takes the result. A loan to give back is owed until its server has been told.
 * loans_open.c borrows what a volume needs that is opened.
 */
#include "core/loans.h"

#include "core/borrow.h"
#include "core/held.h"
#include "core/labels.h"
#include "core/slab_spare.h"
#include "core/status.h"
#include "core/upkeep_slab.h"

/* ---- Twins ----------------------------------------------------------------*/

/* The server has lent memory again that it had lent us before. So the older loan is over,
 * though we were not told. Returns whether something is still under way to it. */
static bool twin_end(struct rbx_volume_map *map, uint32_t number)
{
	struct rbx_slab *slab = rbx_slab_at(
		&map->shape, rbx_replica_slab(&map->shape, number));
	uint32_t slot;
	bool is_in_use;

	rbx_slab_lock(slab);
	slot = rbx_replica_slot(slab, number);
	rbx_slab_lose(slab, slot);
	is_in_use = rbx_replica_flights(rbx_slab_replica(slab, slot)) > 0;
	(void)rbx_attention_note(&map->attention, slab);
	rbx_slab_unlock(slab);
	return is_in_use;
}

/* Ends older loans that share something with a new one. False: one could not end at once.
 * Then the new loan must not be used, as a late write would land in it. */
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

static uint64_t label_of(const struct rbx_slab *slab)
{
	return rbx_slab_shape(slab)->is_named ? 1 + (uint64_t)rbx_slab_index(slab) : 0;
}

uint32_t rbx_loans_reserve(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server)
{
	uint32_t slot;

	rbx_slab_lock(slab);
	slot = rbx_slab_borrow(slab, server);
	rbx_slab_unlock(slab);
	upkeep->servers[server].replicas_count++;
	return slot;
}

void rbx_loans_unreserve(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server,
			 uint32_t slot)
{
	upkeep->servers[server].replicas_count--;
	rbx_slab_lock(slab);
	rbx_slab_refused(slab, slot);
	rbx_slab_unlock(slab);
}

struct rbx_asked *rbx_loans_send(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				 uint32_t server, uint32_t slot)
{
	struct rbx_asked *asked =
		rbx_asks_send(upkeep, server, RBX_CALL_MAP, NULL, label_of(slab));

	asked->slab = slab;
	asked->slot = slot;
	return asked;
}

struct rbx_asked *rbx_loans_ask(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
				uint32_t server)
{
	return rbx_loans_send(upkeep, slab, server, rbx_loans_reserve(upkeep, slab, server));
}

/* False: there is no room. */
static bool owe(struct rbx_upkeep *upkeep, uint32_t server, const struct rbx_loan *loan,
		struct rbx_slab *slab)
{
	if (upkeep->owed_count == RBX_OWED_MAX)
		return false;
	upkeep->owed[upkeep->owed_count++] = (struct rbx_owed){
		.server = server,
		.loan = *loan,
		.slab = slab,
	};
	return true;
}

static void is_lent(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		    const struct rbx_loan *loan)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_slab *slab = asked->slab;
	uint32_t number;

	rbx_slab_lock(slab);
	rbx_slab_lent(slab, asked->slot, loan,
		      asked->borrowing ? asked->borrowing->state :
					 RBX_REPLICA_LIVE);
	number = rbx_replica_number(slab, asked->slot);
	rbx_slab_unlock(slab);
	rbx_loan_index_add(&map->loans, number);
	if (asked->borrowing)
		asked->borrowing->lent_count++;
	else
		rbx_attention_relist(&map->attention, slab, RBX_PARK_NOT);
}

static void is_refused(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		       int err)
{
	struct rbx_slab *slab = asked->slab;

	if (!slab) {
		upkeep->servers[asked->server].replicas_count--;
		return;
	}
	rbx_loans_unreserve(upkeep, slab, asked->server, asked->slot);
	if (asked->borrowing) {
		rbx_borrow_refused(asked->borrowing, err);
		if (rbx_status_is_away(err))
			rbx_server_set_add(&asked->borrowing->away, asked->server);
		/* The text of this error is still available. */
		if (asked->borrowing->err == err &&
		    asked->borrowing->state == RBX_REPLICA_REBUILDING)
			upkeep->ops->refused(upkeep);
		return;
	}
	rbx_server_set_add(&upkeep->open_refused, asked->server);
	upkeep->open_next = RBX_MIN(upkeep->open_next, rbx_slab_index(slab));
	upkeep->open_err = err;
}

/* 0, or why the new loan is of no use. */
static int judge(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		 const struct rbx_loan *loan)
{
	bool is_over = twins_end(upkeep, asked->server, loan);
	bool is_down = rbx_upkeep_server_is_down(upkeep, asked->server);

	if (!is_down && is_over && asked->slab)
		return 0;
	if (!is_down)
		(void)owe(upkeep, asked->server, loan, NULL);
	return -ENOTCONN;
}

void rbx_loans_borrowed(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err,
			const struct rbx_loan *loan)
{
	struct rbx_borrowing *borrowing = asked->borrowing;

	if (err)
		is_refused(upkeep, asked, err);
	else
		is_lent(upkeep, asked, loan);
	if (!borrowing)
		return;
	borrowing->asks_count--;
	if (rbx_borrow_go_on(upkeep, borrowing))
		rbx_upkeep_borrowed(upkeep, borrowing);
}

static void map_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		     int err, const struct rbx_loan *loan)
{
	const struct rbx_borrowing *borrowing = asked->borrowing;

	if (!err)
		err = judge(upkeep, asked, loan);
	if (!err && upkeep->flow->map->shape.is_named && borrowing &&
	    borrowing->state == RBX_REPLICA_LIVE)
		rbx_labels_ask(upkeep, asked, loan);
	else
		rbx_loans_borrowed(upkeep, asked, err, loan);
}

/* ---- Giving back ----------------------------------------------------------*/

/* It is of use to nobody until the next client asks the servers. */
static void give_up(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	rbx_slab_lock(slab);
	slab->blank = false;
	slab->attention = true;
	(void)rbx_attention_note(&upkeep->flow->map->attention, slab);
	rbx_slab_unlock(slab);
}

/* If the server refuses, it has ended the loan by itself. A label has to be known to be gone: the
 * session may be over instead, and another client be about to ask for labels (-ESTALE). */
static void unmap_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		       int err)
{
	struct rbx_owed *owed = upkeep->owed;

	/* Bounded: it is in the table. */
	while (!owed->is_asked || owed->server != asked->server)
		owed++;
	if (owed->slab && err == -ESTALE)
		give_up(upkeep, owed->slab);
	else if (owed->slab ? err && err != -EPERM : rbx_status_is_away(err)) {
		owed->is_asked = false;
		owed->not_before_ns =
			upkeep->now_ns + RBX_UPKEEP_RETRY_MS * 1000000ull;
		return;
	}
	*owed = upkeep->owed[--upkeep->owed_count];
}

static void pay(struct rbx_upkeep *upkeep, struct rbx_owed *owed)
{
	owed->is_asked = true;
	upkeep->pays_count++;
	(void)rbx_asks_send(upkeep, owed->server, RBX_CALL_UNMAP, &owed->loan, 0);
}

/* One that has FAILED answers when it is there again, in another place. */
static bool may_pay(struct rbx_upkeep *upkeep, const struct rbx_owed *owed)
{
	return !owed->is_asked && upkeep->now_ns >= owed->not_before_ns &&
	       upkeep->pays_count < RBX_UPKEEP_RETURNS_MAX &&
	       upkeep->asked_count < RBX_ASKS_MAX &&
	       !rbx_server_set_has(&upkeep->busy, owed->server) &&
	       !(owed->slab && rbx_held_has_failed(&upkeep->flow->held, owed->server));
}

void rbx_loans_pay_owed(struct rbx_upkeep *upkeep)
{
	uint32_t i;

	for (i = upkeep->owed_count; i-- > 0;) {
		struct rbx_owed *owed = &upkeep->owed[i];

		if (!owed->is_asked &&
		    rbx_upkeep_server_is_down(upkeep, owed->server))
			*owed = upkeep->owed[--upkeep->owed_count];
		else if (may_pay(upkeep, owed))
			pay(upkeep, owed);
	}
}

bool rbx_loans_owe_label(struct rbx_upkeep *upkeep, struct rbx_slab *slab, uint32_t server,
			 const struct rbx_loan *loan)
{
	return rbx_upkeep_server_is_down(upkeep, server) || owe(upkeep, server, loan, slab);
}

int rbx_loans_label_owed(struct rbx_upkeep *upkeep, const struct rbx_slab *slab)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < upkeep->owed_count && err != -EIO; i++) {
		const struct rbx_owed *owed = &upkeep->owed[i];

		if (owed->slab != slab)
			continue;
		err = rbx_held_has_failed(&upkeep->flow->held, owed->server) ? -EIO : -EBUSY;
	}
	return err;
}

int rbx_loans_owed_again(struct rbx_upkeep *upkeep, uint32_t former, uint32_t server,
			 const struct rbx_loan *loan)
{
	uint32_t i;

	for (i = 0; i < upkeep->owed_count; i++) {
		struct rbx_owed *owed = &upkeep->owed[i];

		if (!owed->slab || owed->server != former ||
		    owed->loan.slab_id != loan->slab_id || owed->loan.epoch != loan->epoch)
			continue;
		if (owed->is_asked)
			return -EAGAIN;
		owed->server = server;
		owed->loan = *loan;
		owed->not_before_ns = 0;
		return 0;
	}
	return -ENOENT;
}

/* It may be so until half of the lease is over (slab_away.h). */
static bool is_silent(const struct rbx_upkeep *upkeep, uint32_t server)
{
	return RBX_LOAD_RELAXED(&upkeep->servers[server].is_silent);
}

bool rbx_loans_may_return(const struct rbx_upkeep *upkeep)
{
	uint32_t i, count = 0;

	for (i = 0; i < upkeep->owed_count; i++)
		count += !is_silent(upkeep, upkeep->owed[i].server);
	return count < RBX_OWED_MAX / 2 && upkeep->owed_count < RBX_OWED_MAX;
}

bool rbx_loans_must_wait(const struct rbx_upkeep *upkeep, struct rbx_slab *slab,
			 enum rbx_attention_list list)
{
	uint32_t server;

	if (list == RBX_LIST_LEND ||
	    (list == RBX_LIST_RETURN ? !rbx_loans_owe_much(upkeep) :
				       upkeep->owed_count < RBX_OWED_MAX))
		return false;
	rbx_slab_lock(slab);
	server = rbx_slab_drained_server(slab);
	rbx_slab_unlock(slab);
	return is_silent(upkeep, server);
}

void rbx_loans_give_back(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_volume_map *map = upkeep->flow->map;
	struct rbx_loan loan;
	uint32_t server, number;
	bool is_unfinished, is_unwritten;

	rbx_slab_lock(slab);
	number = rbx_replica_number(slab,
				    rbx_slab_give_back(slab, &server, &loan));
	/* Another replica serves, and the record has not changed for this one (held.h). */
	is_unfinished = map->shape.is_guarded && slab->read_mask;
	is_unwritten = map->shape.is_guarded && slab->blank;
	rbx_slab_unlock(slab);
	rbx_loan_index_remove(&map->loans, number);
	upkeep->servers[server].replicas_count--;
	if (is_unwritten) {
		if (!rbx_loans_owe_label(upkeep, slab, server, &loan))
			give_up(upkeep, slab);
		return;
	}
	/* What a named volume has lost here, its next client may find there; but not a copy
	 * that was not finished. */
	if ((map->shape.is_named && !is_unfinished) ||
	    rbx_upkeep_server_is_down(upkeep, server))
		return;
	upkeep->returns_count++;
	if (!owe(upkeep, server, &loan, NULL))
		return;
	/* At once, so that the next loan may be the same memory. */
	if (may_pay(upkeep, &upkeep->owed[upkeep->owed_count - 1]))
		pay(upkeep, &upkeep->owed[upkeep->owed_count - 1]);
}

/* ---- Checking ------------------------------------------------------------- */

/*
 * A replica that is LEAVING and cannot be replaced may have been revoked since. Without a
 * request nothing would show that, and its server would not be asked for another.
 */
void rbx_loans_check_leaving(struct rbx_upkeep *upkeep, struct rbx_slab *slab)
{
	struct rbx_loan loan;
	uint32_t server;
	bool is_leaving;

	if (!upkeep->may_retry)
		return;
	rbx_slab_lock(slab);
	is_leaving = rbx_slab_leaving(slab, &server, &loan);
	rbx_slab_unlock(slab);
	if (is_leaving && upkeep->asked_count < RBX_ASKS_MAX &&
	    !rbx_server_set_has(&upkeep->busy, server))
		rbx_asks_send(upkeep, server, RBX_CALL_CHECK, &loan, 0)->slab = slab;
}

static void check_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked,
		       int err)
{
	bool wakes;

	if (err != -ESTALE && err != -EPERM)
		return;
	rbx_slab_lock(asked->slab);
	rbx_slab_revoked(asked->slab, asked->server, &asked->loan);
	wakes = rbx_attention_note(&upkeep->flow->map->attention, asked->slab);
	rbx_slab_unlock(asked->slab);
	if (wakes)
		upkeep->flow->ops->wake(upkeep->flow);
}

/* ---- Answers ----------------------------------------------------------------*/

bool rbx_loans_take(struct rbx_upkeep *upkeep)
{
	struct rbx_asked asked;
	struct rbx_loan loan;
	uint32_t index = 0;
	bool any = false;
	int err;

	/* Bounded: each pass takes an entry off the table, and a slab asks a server once. */
	while ((err = rbx_asks_take(upkeep, &index, &asked, &loan)) != -EAGAIN) {
		any = true;
		if (asked.kind == RBX_CALL_MAP)
			map_over(upkeep, &asked, err, &loan);
		else if (asked.kind == RBX_CALL_UNMAP)
			unmap_over(upkeep, &asked, err);
		else if (asked.kind == RBX_CALL_LABEL || asked.kind == RBX_CALL_UNLABEL)
			rbx_labels_over(upkeep, &asked, err);
		else
			check_over(upkeep, &asked, err);
	}
	upkeep->lacks_servers &= !any;
	return any;
}

void rbx_loans_withdraw(struct rbx_upkeep *upkeep)
{
	uint32_t i;

	for (i = 0; i < upkeep->asked_count; i++) {
		struct rbx_asked *asked = &upkeep->asked[i];

		if (!asked->slab || (asked->kind != RBX_CALL_MAP && !asked->borrowing))
			continue;
		rbx_slab_lock(asked->slab);
		rbx_slab_refused(asked->slab, asked->slot);
		rbx_slab_unlock(asked->slab);
		asked->slab = NULL;
		asked->borrowing = NULL;
	}
}
