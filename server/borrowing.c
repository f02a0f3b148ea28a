/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrowing.c - from SLAB_MAP to SLAB_LOAN, and from SLAB_UNMAP to SLAB_UNMAPPED.
 *
 * Making and emptying memory takes time, so both requests are answered later. Until then
 * a request keeps its receive and its send buffer, as a late answer of its connection. A
 * SLAB_MAP goes through these steps:
 *
 *	it waits for a slab that is still being emptied, if none is free: a second at most
 *	its slab is being prepared
 *	SLAB_LOAN is sent
 *
 * It may be refused in each of the first two. If its connection ends it is forgotten, and
 * its slab ends unlent: the client will never know of it.
 *
 * A slab remembers its holder until its memory has ended, because of the domain: a
 * protection domain can only end after the keys in it.
 */
#include <errno.h>

#include "server/state.h"

/* ---- Late answers. ----------------------------------------------------------*/

static struct rbx_late_answer *late_begin(struct rbx_connection *c,
					  enum rbx_late_kind kind,
					  const struct rbx_wire_message *request)
{
	uint32_t slot = rbx_connection_answer_later(c);
	struct rbx_late_answer *late = &c->late[slot];

	RBX_ASSERT(late->kind == RBX_LATE_NONE);
	*late = (struct rbx_late_answer){
		.kind = kind,
		.connection = c,
		.slot = slot,
		.request_id = request->request_id,
		.since_ns = rbx_now_ns(),
	};
	return late;
}

static void waiting_put(struct rbx_server *s, struct rbx_late_answer *late)
{
	late->next = NULL;
	if (!s->waiting_first)
		s->waiting_first = late;
	else
		s->waiting_last->next = late;
	s->waiting_last = late;
}

/* The list is bounded: RBX_CONTROL_RECEIVES_MAX for each connection. */
static void waiting_remove(struct rbx_server *s, struct rbx_late_answer *late)
{
	struct rbx_late_answer **link = &s->waiting_first;
	struct rbx_late_answer *before = NULL;

	while (*link != late) {
		before = *link;
		link = &before->next;
	}
	*link = late->next;
	if (s->waiting_last == late)
		s->waiting_last = before;
}

/* It was answered, or never will be. */
static void late_end(struct rbx_server *s, struct rbx_late_answer *late)
{
	if (late->slab)
		late->slab->asker = NULL;
	else
		waiting_remove(s, late);
	late->slab = NULL;
	late->kind = RBX_LATE_NONE;
}

static void late_send(struct rbx_server *s, struct rbx_late_answer *late,
		      struct rbx_wire_message *answer)
{
	struct rbx_connection *c = late->connection;

	answer->request_id = late->request_id;
	late_end(s, late);
	rbx_connection_send_late(s, c, late->slot, answer);
}

static void late_refuse(struct rbx_server *s, struct rbx_late_answer *late,
			uint32_t reason)
{
	struct rbx_wire_message answer = {
		.type = RBX_WIRE_ERROR,
		.status = reason,
	};

	rbx_refusal_note(s, reason);
	late_send(s, late, &answer);
}

void rbx_late_answers_forget(struct rbx_server *s, struct rbx_connection *c)
{
	uint32_t slot;

	for (slot = 0; slot < RBX_CONTROL_RECEIVES_MAX; slot++) {
		struct rbx_late_answer *late = &c->late[slot];
		struct rbx_slab *slab = late->slab;

		if (late->kind == RBX_LATE_NONE)
			continue;
		if (late->kind == RBX_LATE_LOAN && slab)
			rbx_lender_unprepared(s->lender,
					      rbx_slab_id(s, slab));
		late_end(s, late);
	}
}

/* ---- Borrowing --------------------------------------------------------------*/

static void loan_fill(struct rbx_server *s, const struct rbx_lender_loan *loan,
		      struct rbx_wire_message *answer)
{
	const struct rbx_slab_memory *memory =
		&s->workers.slabs[loan->slab_id - 1];

	*answer = (struct rbx_wire_message){
		.type = RBX_WIRE_SLAB_LOAN,
		.epoch = loan->epoch,
		.loan = {
			.slab_id = loan->slab_id,
			.remote_addr = (uintptr_t)memory->addr,
			.length_bytes = memory->lent_bytes,
			.free_bytes = rbx_server_free_bytes(s),
			.rkey = memory->mr->rkey,
		},
	};
}

/* Takes a slab for a request and has it prepared. */
static uint32_t slab_begin(struct rbx_server *s, struct rbx_late_answer *late)
{
	struct rbx_holder *holder = rbx_holder_of(late->connection->client);
	struct rbx_lender_loan loan;
	struct rbx_slab *slab;
	uint32_t reason, index;

	if (holder->id != late->holder_id) /* a volume was opened or removed meanwhile */
		return RBX_REASON_OUT_OF_TURN;
	reason = rbx_lender_lend(s->lender, holder->id, &loan);
	if (reason)
		return reason;
	index = (uint32_t)loan.slab_id - 1;
	slab = &s->slabs[index];
	RBX_ASSERT(!slab->holder && !slab->asker);
	slab->holder = holder;
	slab->map = late->map;
	slab->intent = UINT64_MAX; /* until its writer says more */
	slab->behind = 0;
	holder->slabs_held++;
	slab->asker = late;
	late->slab = slab;
	s->workers.slabs[index].domain = holder->domain;
	s->workers.slabs[index].is_kept = holder->is_volume;
	s->workers.slabs[index].lent_bytes =
		rbx_wire_lent_bytes(s->options.slab_bytes, late->map.has_tail);
	rbx_workers_prepare(s, index, holder->number);
	return RBX_REASON_NONE;
}

void rbx_slab_map(struct rbx_server *s, struct rbx_connection *c,
		  const struct rbx_wire_message *message)
{
	struct rbx_late_answer *late;

	/* Either all of a session's slabs are of a named volume, or none. */
	if (!message->map.label != !c->client->volume) {
		rbx_connection_refuse(s, c, message->request_id, RBX_REASON_OUT_OF_TURN);
		return;
	}
	late = late_begin(c, RBX_LATE_LOAN, message);
	late->map = message->map;
	late->holder_id = rbx_holder_of(c->client)->id;
	waiting_put(s, late);
	rbx_borrowing_go_on(s);
}

/* Whether a request in the list has waited long enough; NULL: there is none. */
static bool is_overdue(const struct rbx_late_answer *late)
{
	return late && rbx_now_ns() - late->since_ns >= RBX_MAP_WAIT_NS;
}

/* Those who wait for the slabs of their own owner let the others pass. */
void rbx_borrowing_go_on(struct rbx_server *s)
{
	struct rbx_late_answer *late = s->waiting_first, *next;
	uint32_t reason;

	if (late)
		rbx_lender_set_short(s->lender, !rbx_host_has_room(s));
	while (late) {
		next = late->next;
		reason = slab_begin(s, late);
		if (!reason) {
			waiting_remove(s, late);
			rbx_lender_set_short(s->lender, !rbx_host_has_room(s));
		} else if (reason != RBX_LENDER_LATER && reason != RBX_LENDER_QUOTA_LATER) {
			late_refuse(s, late, reason);
			next = s->waiting_first; /* others of its connection may have gone */
		} else if (is_overdue(late)) {
			late_refuse(s, late, RBX_REASON_LATER);
			next = s->waiting_first;
		} else if (reason == RBX_LENDER_LATER) {
			return;
		}
		late = next;
	}
}

/* Why a slab has no memory. Descriptors may be free again soon, as connections end. */
static uint32_t unready_reason(int status)
{
	return status == -EMFILE || status == -ENFILE ? RBX_REASON_LATER :
							RBX_REASON_FULL;
}

static void slab_is_ready(struct rbx_server *s, struct rbx_slab *slab)
{
	struct rbx_lender_loan loan = { .slab_id = rbx_slab_id(s, slab) };
	int status = s->workers.slabs[slab - s->slabs].status;
	struct rbx_wire_message answer;

	if (status) {
		if (slab->asker)
			late_refuse(s, slab->asker, unready_reason(status));
		rbx_lender_unprepared(s->lender, loan.slab_id);
		return;
	}
	if (!rbx_lender_prepared(s->lender, &loan))
		return; /* it will end soon */
	rbx_volume_labels_changed(slab->holder, false);
	rbx_remember_slab(s, loan.slab_id, loan.epoch);
	loan_fill(s, &loan, &answer);
	late_send(s, slab->asker, &answer);
}

/* ---- Giving back ------------------------------------------------------------*/

void rbx_slab_unmap(struct rbx_server *s, struct rbx_connection *c,
		    const struct rbx_wire_message *message)
{
	const struct rbx_lender_loan loan = { message->slab_id,
					      message->epoch };
	struct rbx_late_answer *late;
	struct rbx_slab *slab;
	uint32_t reason;

	reason = rbx_lender_unmap(s->lender, rbx_holder_of(c->client)->id, &loan);
	if (reason) {
		rbx_connection_answer_error(s, c, message->request_id, reason);
		return;
	}
	slab = &s->slabs[loan.slab_id - 1];
	rbx_volume_labels_changed(slab->holder, true);
	RBX_ASSERT(!slab->asker);
	late = late_begin(c, RBX_LATE_UNMAPPED, message);
	late->slab = slab;
	late->epoch = message->epoch;
	slab->asker = late;
}

void rbx_slab_end(struct rbx_server *s, uint64_t slab_id)
{
	struct rbx_slab *slab = &s->slabs[slab_id - 1];
	struct rbx_holder *holder = slab->holder;

	rbx_volume_labels_changed(holder, true);
	rbx_forget_slab(s, slab_id);
	if (slab->asker && slab->asker->kind == RBX_LATE_LOAN)
		late_refuse(s, slab->asker,
			    rbx_lender_is_draining(s->lender) ?
				    RBX_REASON_DRAINING :
				    RBX_REASON_FULL);
	/* A new client must not wait for the slabs that an old one left. */
	rbx_workers_end(s, (uint32_t)(slab - s->slabs),
			holder->id ? holder->number : rbx_owner_nobody(s));
}

static void slab_has_ended(struct rbx_server *s, struct rbx_slab *slab)
{
	struct rbx_holder *holder = slab->holder;
	struct rbx_wire_message unmapped = { .type = RBX_WIRE_SLAB_UNMAPPED };

	slab->holder = NULL;
	rbx_lender_ended(s->lender, rbx_slab_id(s, slab));
	rbx_holder_slab_ended(s, holder);
	pthread_cond_broadcast(&s->slab_ended);
	if (!slab->asker)
		return;
	unmapped.epoch = slab->asker->epoch;
	unmapped.free_bytes = rbx_server_free_bytes(s);
	late_send(s, slab->asker, &unmapped);
}

bool rbx_workers_serve(struct rbx_server *s)
{
	enum rbx_slab_work work;
	bool any = false;
	uint32_t index;

	while (rbx_workers_next(s, &index, &work)) {
		any = true;
		if (work == RBX_SLAB_PREPARE)
			slab_is_ready(s, &s->slabs[index]);
		else if (work == RBX_SLAB_END)
			slab_has_ended(s, &s->slabs[index]);
	}
	/* A drain ends the waiting too, and so does time. */
	if (any || rbx_lender_is_draining(s->lender) ||
	    is_overdue(s->waiting_first))
		rbx_borrowing_go_on(s);
	return any;
}

/* ---- Asking ----------------------------------------------------------------*/

void rbx_slab_query(struct rbx_server *s, struct rbx_connection *c,
		    const struct rbx_wire_message *message)
{
	const struct rbx_lender_loan loan = { message->slab_id,
					      message->epoch };
	struct rbx_wire_message answer;
	uint32_t reason;

	reason = rbx_lender_check(s->lender, rbx_holder_of(c->client)->id, &loan);
	if (reason) {
		rbx_connection_answer_error(s, c, message->request_id, reason);
		return;
	}
	loan_fill(s, &loan, &answer);
	answer.request_id = message->request_id;
	rbx_connection_answer(s, c, &answer);
}
