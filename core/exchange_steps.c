/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_steps.c - deadlines, the end of the connection, and what there is to do for an
 * exchange, see exchange.h.
 */
#include "core/exchange_state.h"

/* An operation that was not posted leaves its offer to another one. */
static void part(struct rbx_exchange *exchange, struct rbx_exchange_op *operation)
{
	if (operation->state == OPERATION_MATCHED)
		rbx_kept_offer_move(exchange, &exchange->kept[operation->kept], KEPT_WAITING);
}

/* ---- Time, and the end ------------------------------------------------------------*/

static bool operation_has_deadline(const struct rbx_exchange_op *operation)
{
	return operation->state == OPERATION_WAITING || operation->state == OPERATION_MATCHED;
}

static bool offer_has_deadline(const struct rbx_our_offer *offer)
{
	return offer->state == OFFER_UNSENT || offer->state == OFFER_OUT;
}

/* Once more: the grace is over. A peer that takes nothing has not got WITHDRAW, and still gets it:
 * without its answer the id stays in use. */
static void offer_is_late(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
			  uint64_t now_ns)
{
	if (offer->state == OFFER_UNSENT || offer->must_withdraw || offer->is_withdrawn) {
		rbx_our_offer_end(exchange, offer, -ETIMEDOUT);
		return;
	}
	rbx_our_offer_withdraw(exchange, offer, true);
	offer->wish.deadline_ns = now_ns + RBX_EXCHANGE_GRACE_NS +
				  offer->wish.length_bytes * RBX_EXCHANGE_GRACE_BYTE_NS;
}

void rbx_exchange_tick(struct rbx_exchange *exchange, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < exchange->count; i++) {
		struct rbx_exchange_op *operation = &exchange->operations[i];
		struct rbx_our_offer *offer = &exchange->offers[i];

		if (operation_has_deadline(operation) && now_ns >= operation->wish.deadline_ns) {
			part(exchange, operation);
			rbx_exchange_op_end(exchange, operation, -ETIMEDOUT);
		}
		if (offer_has_deadline(offer) && now_ns >= offer->wish.deadline_ns)
			offer_is_late(exchange, offer, now_ns);
	}
}

uint64_t rbx_exchange_due_ns(const struct rbx_exchange *exchange)
{
	uint64_t due_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < exchange->count; i++) {
		if (operation_has_deadline(&exchange->operations[i]))
			due_ns = RBX_MIN(due_ns, exchange->operations[i].wish.deadline_ns);
		if (offer_has_deadline(&exchange->offers[i]))
			due_ns = RBX_MIN(due_ns, exchange->offers[i].wish.deadline_ns);
	}
	return due_ns;
}

void rbx_exchange_break(struct rbx_exchange *exchange, int status)
{
	uint32_t i;

	RBX_ASSERT(status < 0);
	if (exchange->broken)
		return;
	exchange->broken = status;
	for (i = 0; i < exchange->count; i++) {
		struct rbx_exchange_op *operation = &exchange->operations[i];
		struct rbx_our_offer *offer = &exchange->offers[i];

		if (operation_has_deadline(operation)) {
			part(exchange, operation);
			rbx_exchange_op_end(exchange, operation, status);
		}
		offer->is_known = false;
		if (offer->state == OFFER_UNSENT || offer->state == OFFER_OUT)
			rbx_our_offer_end(exchange, offer, status);
		else if (offer->state == OFFER_UNHEARD)
			rbx_our_offer_move(exchange, offer, OFFER_FREE);
	}
	/* Those that operations use are freed with them. */
	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++)
		if (exchange->kept[i].state != KEPT_TAKEN)
			rbx_kept_offer_move(exchange, &exchange->kept[i], KEPT_FREE);
}

int rbx_exchange_broken(const struct rbx_exchange *exchange)
{
	return exchange->broken;
}

/* ---- What there is to do ------------------------------------------------------------*/

bool rbx_exchange_next_post(const struct rbx_exchange *exchange, struct rbx_exchange_post *post)
{
	uint32_t i;

	for (i = 0; i < exchange->count && exchange->matched_count; i++) {
		const struct rbx_exchange_op *operation = &exchange->operations[i];
		const struct rbx_wire_exchange *offer;

		if (operation->state != OPERATION_MATCHED)
			continue;
		offer = &exchange->kept[operation->kept].offer;
		*post = (struct rbx_exchange_post){
			.index = i,
			.length_bytes = operation->wish.length_bytes,
			.access = operation->wish.access,
			.key = offer->key,
			.address = offer->address,
		};
		return true;
	}
	return false;
}

/* The peer's offer is used up. */
static void kept_done(struct rbx_exchange *exchange, const struct rbx_exchange_op *operation)
{
	struct rbx_kept_offer *kept = &exchange->kept[operation->kept];

	RBX_ASSERT(kept->state == KEPT_TAKEN);
	if (exchange->broken)
		rbx_kept_offer_move(exchange, kept, KEPT_FREE);
	else
		rbx_kept_offer_answer(exchange, kept, RBX_WIRE_OFFER_DONE,
				      operation->wish.length_bytes);
}

static bool answers_early(const struct rbx_exchange *exchange,
			  const struct rbx_exchange_op *operation)
{
	return exchange->is_ordered && operation->wish.access == RBX_WIRE_OFFER_TO_WRITE;
}

void rbx_exchange_posted(struct rbx_exchange *exchange, uint32_t index)
{
	struct rbx_exchange_op *operation = &exchange->operations[index];

	RBX_ASSERT(operation->state == OPERATION_MATCHED);
	rbx_exchange_op_move(exchange, operation, OPERATION_POSTED);
	if (answers_early(exchange, operation))
		kept_done(exchange, operation);
}

void rbx_exchange_completed(struct rbx_exchange *exchange, uint32_t index, int status)
{
	struct rbx_exchange_op *operation = &exchange->operations[index];

	RBX_ASSERT(operation->state == OPERATION_POSTED);
	if (!answers_early(exchange, operation)) {
		/* A failure ends the connection, so there is nobody to answer. */
		if (status && !exchange->broken)
			rbx_kept_offer_move(exchange, &exchange->kept[operation->kept], KEPT_FREE);
		else
			kept_done(exchange, operation);
	}
	rbx_exchange_op_end(exchange, operation, status);
}

static bool next_answer(struct rbx_exchange *exchange, struct rbx_wire_exchange *message)
{
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX && exchange->answers_count; i++) {
		uint32_t at = (exchange->next_kept + i) % RBX_WIRE_OFFERS_MAX;
		struct rbx_kept_offer *kept = &exchange->kept[at];

		if (kept->state != KEPT_ANSWER)
			continue;
		*message = (struct rbx_wire_exchange){
			.type = RBX_WIRE_OFFER_END,
			.id = kept->offer.id,
			.end = kept->end,
			.length_bytes = kept->done_bytes,
		};
		rbx_kept_offer_move(exchange, kept, KEPT_FREE);
		exchange->next_kept = at + 1;
		return true;
	}
	return false;
}

static void offer_tell(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
		       struct rbx_wire_exchange *message)
{
	*message = (struct rbx_wire_exchange){
		.type = RBX_WIRE_OFFER,
		.id = offer->id,
		.access = offer->wish.access,
		.tag = offer->wish.tag,
		.address = offer->wish.address,
		.key = offer->wish.key,
		.length_bytes = offer->wish.length_bytes,
	};
	offer->is_known = true;
	rbx_our_offer_move(exchange, offer, OFFER_OUT);
}

static void offer_withdraw(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
			   struct rbx_wire_exchange *message)
{
	*message = (struct rbx_wire_exchange){
		.type = RBX_WIRE_OFFER_WITHDRAW,
		.id = offer->id,
	};
	rbx_our_offer_withdraw(exchange, offer, false);
	offer->is_withdrawn = true;
}

bool rbx_exchange_next_message(struct rbx_exchange *exchange, struct rbx_wire_exchange *message)
{
	uint32_t i;

	if (exchange->broken)
		return false;
	if (next_answer(exchange, message))
		return true;
	for (i = 0; i < exchange->count && exchange->unsent_count + exchange->withdraws_count;
	     i++) {
		uint32_t at = (exchange->next_offer + i) % exchange->count;
		struct rbx_our_offer *offer = &exchange->offers[at];

		if (offer->state != OFFER_UNSENT && !offer->must_withdraw)
			continue;
		exchange->next_offer = at + 1;
		if (offer->must_withdraw)
			offer_withdraw(exchange, offer, message);
		else
			offer_tell(exchange, offer, message);
		return true;
	}
	return false;
}

bool rbx_exchange_next_key(const struct rbx_exchange *exchange, uint32_t *index)
{
	uint32_t i;

	for (i = 0; i < exchange->count && exchange->closing_count; i++) {
		if (exchange->offers[i].state != OFFER_CLOSING)
			continue;
		*index = i;
		return true;
	}
	return false;
}

void rbx_exchange_key_ended(struct rbx_exchange *exchange, uint32_t index)
{
	RBX_ASSERT(exchange->offers[index].state == OFFER_CLOSING);
	rbx_our_offer_move(exchange, &exchange->offers[index], OFFER_OVER);
}

static bool next_offer_end(struct rbx_exchange *exchange, uint32_t index,
			   struct rbx_exchange_end *end)
{
	struct rbx_our_offer *offer = &exchange->offers[index];

	if (offer->state != OFFER_OVER)
		return false;
	*end = (struct rbx_exchange_end){ true, index, offer->status, offer->done_bytes };
	rbx_our_offer_move(exchange, offer, offer->is_known ? OFFER_UNHEARD : OFFER_FREE);
	return true;
}

static bool next_operation_end(struct rbx_exchange *exchange, uint32_t index,
			       struct rbx_exchange_end *end)
{
	struct rbx_exchange_op *operation = &exchange->operations[index];

	if (operation->state != OPERATION_OVER)
		return false;
	*end = (struct rbx_exchange_end){
		.index = index,
		.status = operation->status,
		.length_bytes = operation->status ? 0 : operation->wish.length_bytes,
	};
	rbx_exchange_op_move(exchange, operation, OPERATION_FREE);
	return true;
}

bool rbx_exchange_next_end(struct rbx_exchange *exchange, struct rbx_exchange_end *end)
{
	uint32_t i;

	for (i = 0; i < exchange->count && exchange->over_count; i++)
		if (next_offer_end(exchange, i, end) || next_operation_end(exchange, i, end))
			return true;
	return false;
}
