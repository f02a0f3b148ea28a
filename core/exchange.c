/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.c - operations and offers that find each other by tag, see exchange.h: what a
 * program asks for, and what the peer says.
 */
#include "core/exchange_state.h"

/* The low byte of an id is the index. */
#define ID_INDEX_BITS 8
RBX_STATIC_ASSERT(RBX_EXCHANGE_MAX <= 1u << ID_INDEX_BITS, "an index has room in an id");
RBX_STATIC_ASSERT(RBX_EXCHANGE_MAX <= RBX_WIRE_OFFERS_MAX, "the peer has room for our offers");

size_t rbx_exchange_size(uint32_t count)
{
	return sizeof(struct rbx_exchange) +
	       count * (sizeof(struct rbx_exchange_op) + sizeof(struct rbx_our_offer));
}

void rbx_exchange_init(struct rbx_exchange *exchange, uint32_t count, bool is_ordered)
{
	RBX_ASSERT(count > 0 && count <= RBX_EXCHANGE_MAX);
	rbx_port_fill(exchange, 0, rbx_exchange_size(count));
	exchange->count = count;
	exchange->is_ordered = is_ordered;
	exchange->operations = (struct rbx_exchange_op *)(exchange + 1);
	exchange->offers = (struct rbx_our_offer *)(exchange->operations + count);
}

/* ---- States -----------------------------------------------------------------------*/

void rbx_exchange_op_move(struct rbx_exchange *exchange, struct rbx_exchange_op *operation,
			  enum rbx_exchange_op_state state)
{
	RBX_ASSERT(state == OPERATION_WAITING || operation->state != OPERATION_FREE);
	exchange->matched_count -= operation->state == OPERATION_MATCHED;
	exchange->over_count -= operation->state == OPERATION_OVER;
	operation->state = state;
	exchange->matched_count += state == OPERATION_MATCHED;
	exchange->over_count += state == OPERATION_OVER;
}

void rbx_exchange_op_end(struct rbx_exchange *exchange, struct rbx_exchange_op *operation,
			 int status)
{
	operation->status = status;
	rbx_exchange_op_move(exchange, operation, OPERATION_OVER);
}

void rbx_our_offer_move(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
			enum rbx_our_offer_state state)
{
	exchange->unsent_count -= offer->state == OFFER_UNSENT;
	exchange->closing_count -= offer->state == OFFER_CLOSING;
	exchange->over_count -= offer->state == OFFER_OVER;
	offer->state = state;
	exchange->unsent_count += state == OFFER_UNSENT;
	exchange->closing_count += state == OFFER_CLOSING;
	exchange->over_count += state == OFFER_OVER;
}

void rbx_our_offer_withdraw(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
			    bool must)
{
	exchange->withdraws_count += must;
	exchange->withdraws_count -= offer->must_withdraw;
	offer->must_withdraw = must;
}

void rbx_our_offer_end(struct rbx_exchange *exchange, struct rbx_our_offer *offer, int status)
{
	RBX_ASSERT(offer->state == OFFER_UNSENT || offer->state == OFFER_OUT);
	offer->status = status;
	rbx_our_offer_move(exchange, offer, OFFER_CLOSING);
}

void rbx_kept_offer_move(struct rbx_exchange *exchange, struct rbx_kept_offer *kept,
			 enum rbx_kept_offer_state state)
{
	exchange->waiting_count -= kept->state == KEPT_WAITING;
	exchange->answers_count -= kept->state == KEPT_ANSWER;
	kept->state = state;
	exchange->waiting_count += state == KEPT_WAITING;
	exchange->answers_count += state == KEPT_ANSWER;
}

void rbx_kept_offer_answer(struct rbx_exchange *exchange, struct rbx_kept_offer *kept,
			   enum rbx_wire_offer_end end, uint32_t done_bytes)
{
	kept->end = (uint16_t)end;
	kept->done_bytes = done_bytes;
	rbx_kept_offer_move(exchange, kept, KEPT_ANSWER);
}

/* ---- Matching ---------------------------------------------------------------------*/

/* Returns 0, or why they do not go together. */
static int fit(const struct rbx_exchange_op *operation, const struct rbx_kept_offer *kept,
	       enum rbx_wire_offer_end *end)
{
	if (operation->wish.access != kept->offer.access) {
		*end = RBX_WIRE_OFFER_WRONG_ACCESS;
		return -EPROTOTYPE;
	}
	if (operation->wish.length_bytes > kept->offer.length_bytes) {
		*end = RBX_WIRE_OFFER_TOO_SHORT;
		return -EMSGSIZE;
	}
	return 0;
}

/* An operation and an offer with the same tag. Returns 0, or why both have ended; the
 * caller ends the operation. */
static int match(struct rbx_exchange *exchange, struct rbx_exchange_op *operation,
		 struct rbx_kept_offer *kept)
{
	enum rbx_wire_offer_end end;
	int err = fit(operation, kept, &end);

	if (err) {
		rbx_kept_offer_answer(exchange, kept, end, 0);
		return err;
	}
	operation->kept = (uint32_t)(kept - exchange->kept);
	kept->operation = (uint32_t)(operation - exchange->operations);
	rbx_exchange_op_move(exchange, operation, OPERATION_MATCHED);
	rbx_kept_offer_move(exchange, kept, KEPT_TAKEN);
	return 0;
}

static struct rbx_kept_offer *waiting_of(struct rbx_exchange *exchange, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX && exchange->waiting_count; i++)
		if (exchange->kept[i].state == KEPT_WAITING && exchange->kept[i].offer.tag == tag)
			return &exchange->kept[i];
	return NULL;
}

int rbx_exchange_operate(struct rbx_exchange *exchange, const struct rbx_exchange_wish *wish)
{
	struct rbx_exchange_op *operation = NULL;
	struct rbx_kept_offer *kept;
	uint32_t i;
	int err = 0;

	RBX_ASSERT(wish->length_bytes && wish->access < RBX_WIRE_OFFER_ACCESS_END);
	if (exchange->broken)
		return exchange->broken;
	for (i = 0; i < exchange->count; i++) {
		struct rbx_exchange_op *other = &exchange->operations[i];

		if (other->state == OPERATION_FREE)
			operation = operation ? operation : other;
		else if (other->state != OPERATION_OVER && other->wish.tag == wish->tag)
			return -EEXIST;
	}
	if (!operation)
		return -EAGAIN;
	operation->wish = *wish;
	rbx_exchange_op_move(exchange, operation, OPERATION_WAITING);
	kept = waiting_of(exchange, wish->tag);
	if (kept)
		err = match(exchange, operation, kept);
	if (err) {
		rbx_exchange_op_move(exchange, operation, OPERATION_FREE);
		return err;
	}
	return (int)(operation - exchange->operations);
}

int rbx_exchange_offer(struct rbx_exchange *exchange, const struct rbx_exchange_wish *wish)
{
	struct rbx_our_offer *offer = NULL;
	uint32_t i;

	RBX_ASSERT(wish->length_bytes && wish->access < RBX_WIRE_OFFER_ACCESS_END);
	if (exchange->broken)
		return exchange->broken;
	for (i = 0; i < exchange->count; i++) {
		struct rbx_our_offer *other = &exchange->offers[i];

		if (other->state == OFFER_FREE)
			offer = offer ? offer : other;
		else if ((other->state == OFFER_UNSENT || other->state == OFFER_OUT) &&
			 other->wish.tag == wish->tag)
			return -EEXIST;
	}
	if (!offer)
		return -EAGAIN;
	*offer = (struct rbx_our_offer){ .wish = *wish };
	i = (uint32_t)(offer - exchange->offers);
	offer->id = ++exchange->last_id << ID_INDEX_BITS | i;
	rbx_our_offer_move(exchange, offer, OFFER_UNSENT);
	return (int)i;
}

/* ---- What the peer says -----------------------------------------------------------*/

/* A place for an offer of the peer. NULL: it has too many out, or has used an id twice. */
static struct rbx_kept_offer *place_for(struct rbx_exchange *exchange, uint64_t id)
{
	struct rbx_kept_offer *place = NULL;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++) {
		struct rbx_kept_offer *kept = &exchange->kept[i];

		if (kept->state == KEPT_FREE)
			place = place ? place : kept;
		else if (kept->offer.id == id)
			return NULL;
	}
	return place;
}

static bool is_here_already(const struct rbx_exchange *exchange, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++) {
		const struct rbx_kept_offer *kept = &exchange->kept[i];

		if ((kept->state == KEPT_WAITING || kept->state == KEPT_TAKEN) &&
		    kept->offer.tag == tag)
			return true;
	}
	return false;
}

static struct rbx_exchange_op *operation_of(struct rbx_exchange *exchange, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < exchange->count; i++)
		if (exchange->operations[i].state == OPERATION_WAITING &&
		    exchange->operations[i].wish.tag == tag)
			return &exchange->operations[i];
	return NULL;
}

static int hear_offer(struct rbx_exchange *exchange, const struct rbx_wire_exchange *message)
{
	struct rbx_kept_offer *kept = place_for(exchange, message->id);
	struct rbx_exchange_op *operation;
	bool is_twice = is_here_already(exchange, message->tag);
	int err;

	if (!kept)
		return -EPROTO;
	kept->offer = *message;
	if (is_twice) {
		rbx_kept_offer_answer(exchange, kept, RBX_WIRE_OFFER_TWICE, 0);
		return 0;
	}
	operation = operation_of(exchange, message->tag);
	if (operation) {
		err = match(exchange, operation, kept);
		if (err)
			rbx_exchange_op_end(exchange, operation, err);
	} else if (exchange->waiting_count < exchange->count) {
		rbx_kept_offer_move(exchange, kept, KEPT_WAITING);
	} else {
		rbx_kept_offer_answer(exchange, kept, RBX_WIRE_OFFER_NO_ROOM, 0);
	}
	return 0;
}

static int status_of(uint16_t end)
{
	static const int statuses[RBX_WIRE_OFFER_ENDS_END] = {
		[RBX_WIRE_OFFER_DONE] = 0,
		[RBX_WIRE_OFFER_TOO_SHORT] = -EMSGSIZE,
		[RBX_WIRE_OFFER_WRONG_ACCESS] = -EPROTOTYPE,
		[RBX_WIRE_OFFER_TWICE] = -EEXIST,
		[RBX_WIRE_OFFER_NO_ROOM] = -ENOBUFS,
		[RBX_WIRE_OFFER_WITHDRAWN] = -ETIMEDOUT,
	};

	return statuses[end];
}

static int hear_end(struct rbx_exchange *exchange, const struct rbx_wire_exchange *message)
{
	uint64_t index = message->id & ((1u << ID_INDEX_BITS) - 1);
	struct rbx_our_offer *offer;

	if (index >= exchange->count)
		return -EPROTO;
	offer = &exchange->offers[index];
	if (!offer->is_known || offer->id != message->id ||
	    message->length_bytes > offer->wish.length_bytes ||
	    (message->end == RBX_WIRE_OFFER_WITHDRAWN && !offer->is_withdrawn))
		return -EPROTO;
	offer->is_known = false;
	rbx_our_offer_withdraw(exchange, offer, false);
	if (offer->state == OFFER_OUT) {
		offer->done_bytes = message->length_bytes;
		rbx_our_offer_end(exchange, offer, status_of(message->end));
	} else if (offer->state == OFFER_UNHEARD) {
		rbx_our_offer_move(exchange, offer, OFFER_FREE);
	}
	return 0;
}

/* What the peer has withdrawn is answered, unless it was used: then it hears of that. */
static void hear_withdraw(struct rbx_exchange *exchange,
			  const struct rbx_wire_exchange *message)
{
	struct rbx_exchange_op *operation;
	struct rbx_kept_offer *kept;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++) {
		kept = &exchange->kept[i];
		if (kept->state == KEPT_FREE || kept->offer.id != message->id)
			continue;
		if (kept->state == KEPT_TAKEN) {
			operation = &exchange->operations[kept->operation];
			if (operation->state != OPERATION_MATCHED)
				return;
			rbx_exchange_op_move(exchange, operation, OPERATION_WAITING);
		}
		if (kept->state != KEPT_ANSWER)
			rbx_kept_offer_answer(exchange, kept, RBX_WIRE_OFFER_WITHDRAWN, 0);
		return;
	}
	/* Our END is on its way. */
}

int rbx_exchange_hear(struct rbx_exchange *exchange, const struct rbx_wire_exchange *message)
{
	if (exchange->broken)
		return 0;
	if (message->type == RBX_WIRE_OFFER)
		return hear_offer(exchange, message);
	if (message->type == RBX_WIRE_OFFER_END)
		return hear_end(exchange, message);
	RBX_ASSERT(message->type == RBX_WIRE_OFFER_WITHDRAW);
	hear_withdraw(exchange, message);
	return 0;
}
