/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange.c - operations and offers that find each other by tag, see exchange.h.
 *
 * Three tables of at most 64 entries, which are searched from end to end: a search is a few
 * cache lines, and there is none if nothing is in the table. What is left to do is counted,
 * so a host that asks in each poll is answered by a comparison.
 */
#include "core/exchange.h"

enum operation_state {
	OPERATION_FREE,
	OPERATION_WAITING, /* for the offer */
	OPERATION_MATCHED, /* it has a key, and is to be posted */
	OPERATION_POSTED, /* the device has it */
	OPERATION_OVER, /* the program is to be told */
};

struct operation {
	enum operation_state state;
	struct rbx_exchange_wish wish;
	uint32_t kept; /* the offer it has taken */
	int status;
};

enum offer_state {
	OFFER_FREE,
	OFFER_UNSENT, /* OFFER is to be sent */
	OFFER_OUT, /* the peer has the key */
	OFFER_CLOSING, /* its key is to be ended */
	OFFER_OVER, /* the program is to be told */
	OFFER_UNHEARD, /* it was told, but the peer has not answered: the id is in use */
};

struct offer {
	enum offer_state state;
	bool is_known; /* to the peer, which has to answer */
	bool must_withdraw, is_withdrawn; /* the second: after WITHDRAW was sent */
	struct rbx_exchange_wish wish; /* its deadline is that of the grace once withdrawn */
	uint64_t id;
	int status;
	uint32_t done_bytes;
};

/* An offer of the peer. */
enum kept_state {
	KEPT_FREE,
	KEPT_WAITING, /* for an operation of ours */
	KEPT_TAKEN, /* by an operation */
	KEPT_ANSWER, /* END is to be sent */
};

struct kept {
	enum kept_state state;
	struct rbx_wire_exchange offer;
	uint32_t operation; /* that has taken it */
	uint16_t end;
	uint32_t done_bytes;
};

struct rbx_exchange {
	uint32_t count; /* of operations, and of our offers */
	bool is_ordered;
	int broken; /* why the connection is over; 0: it is not */
	uint64_t last_id;
	/* What there is to do. */
	uint32_t matched_count, unsent_count, withdraws_count, answers_count;
	uint32_t closing_count, over_count;
	uint32_t waiting_count; /* of the peer's offers: for which nobody has asked */
	uint32_t next_kept, next_offer; /* where the search for what is to be sent goes on */
	struct kept kept[RBX_WIRE_OFFERS_MAX];
	struct operation *operations;
	struct offer *offers;
};

/* The low byte of an id is the index. */
#define ID_INDEX_BITS 8
RBX_STATIC_ASSERT(RBX_EXCHANGE_MAX <= 1u << ID_INDEX_BITS, "an index has room in an id");
RBX_STATIC_ASSERT(RBX_EXCHANGE_MAX <= RBX_WIRE_OFFERS_MAX, "the peer has room for our offers");

size_t rbx_exchange_size(uint32_t count)
{
	return sizeof(struct rbx_exchange) +
	       count * (sizeof(struct operation) + sizeof(struct offer));
}

void rbx_exchange_init(struct rbx_exchange *exchange, uint32_t count, bool is_ordered)
{
	RBX_ASSERT(count > 0 && count <= RBX_EXCHANGE_MAX);
	rbx_port_fill(exchange, 0, rbx_exchange_size(count));
	exchange->count = count;
	exchange->is_ordered = is_ordered;
	exchange->operations = (struct operation *)(exchange + 1);
	exchange->offers = (struct offer *)(exchange->operations + count);
}

/* ---- States -----------------------------------------------------------------------*/

static void operation_move(struct rbx_exchange *exchange, struct operation *operation,
			   enum operation_state state)
{
	RBX_ASSERT(state == OPERATION_WAITING || operation->state != OPERATION_FREE);
	exchange->matched_count -= operation->state == OPERATION_MATCHED;
	exchange->over_count -= operation->state == OPERATION_OVER;
	operation->state = state;
	exchange->matched_count += state == OPERATION_MATCHED;
	exchange->over_count += state == OPERATION_OVER;
}

static void operation_end(struct rbx_exchange *exchange, struct operation *operation, int status)
{
	operation->status = status;
	operation_move(exchange, operation, OPERATION_OVER);
}

static void offer_move(struct rbx_exchange *exchange, struct offer *offer, enum offer_state state)
{
	exchange->unsent_count -= offer->state == OFFER_UNSENT;
	exchange->closing_count -= offer->state == OFFER_CLOSING;
	exchange->over_count -= offer->state == OFFER_OVER;
	offer->state = state;
	exchange->unsent_count += state == OFFER_UNSENT;
	exchange->closing_count += state == OFFER_CLOSING;
	exchange->over_count += state == OFFER_OVER;
}

static void withdraw_set(struct rbx_exchange *exchange, struct offer *offer, bool must)
{
	exchange->withdraws_count += must;
	exchange->withdraws_count -= offer->must_withdraw;
	offer->must_withdraw = must;
}

static void offer_end(struct rbx_exchange *exchange, struct offer *offer, int status)
{
	RBX_ASSERT(offer->state == OFFER_UNSENT || offer->state == OFFER_OUT);
	withdraw_set(exchange, offer, false);
	offer->status = status;
	offer_move(exchange, offer, OFFER_CLOSING);
}

static void kept_move(struct rbx_exchange *exchange, struct kept *kept, enum kept_state state)
{
	exchange->waiting_count -= kept->state == KEPT_WAITING;
	exchange->answers_count -= kept->state == KEPT_ANSWER;
	kept->state = state;
	exchange->waiting_count += state == KEPT_WAITING;
	exchange->answers_count += state == KEPT_ANSWER;
}

static void kept_answer(struct rbx_exchange *exchange, struct kept *kept,
			enum rbx_wire_offer_end end, uint32_t done_bytes)
{
	kept->end = (uint16_t)end;
	kept->done_bytes = done_bytes;
	kept_move(exchange, kept, KEPT_ANSWER);
}

/* ---- Matching ---------------------------------------------------------------------*/

/* Returns 0, or why they do not go together. */
static int fit(const struct operation *operation, const struct kept *kept,
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
static int match(struct rbx_exchange *exchange, struct operation *operation, struct kept *kept)
{
	enum rbx_wire_offer_end end;
	int err = fit(operation, kept, &end);

	if (err) {
		kept_answer(exchange, kept, end, 0);
		return err;
	}
	operation->kept = (uint32_t)(kept - exchange->kept);
	kept->operation = (uint32_t)(operation - exchange->operations);
	operation_move(exchange, operation, OPERATION_MATCHED);
	kept_move(exchange, kept, KEPT_TAKEN);
	return 0;
}

/* An operation that was not posted leaves its offer to another one. */
static void part(struct rbx_exchange *exchange, struct operation *operation)
{
	if (operation->state == OPERATION_MATCHED)
		kept_move(exchange, &exchange->kept[operation->kept], KEPT_WAITING);
}

static struct kept *waiting_of(struct rbx_exchange *exchange, uint64_t tag)
{
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX && exchange->waiting_count; i++)
		if (exchange->kept[i].state == KEPT_WAITING && exchange->kept[i].offer.tag == tag)
			return &exchange->kept[i];
	return NULL;
}

int rbx_exchange_operate(struct rbx_exchange *exchange, const struct rbx_exchange_wish *wish)
{
	struct operation *operation = NULL;
	struct kept *kept;
	uint32_t i;
	int err = 0;

	RBX_ASSERT(wish->length_bytes && wish->access < RBX_WIRE_OFFER_ACCESS_END);
	if (exchange->broken)
		return exchange->broken;
	for (i = 0; i < exchange->count; i++) {
		struct operation *other = &exchange->operations[i];

		if (other->state == OPERATION_FREE)
			operation = operation ? operation : other;
		else if (other->state != OPERATION_OVER && other->wish.tag == wish->tag)
			return -EEXIST;
	}
	if (!operation)
		return -EAGAIN;
	operation->wish = *wish;
	operation_move(exchange, operation, OPERATION_WAITING);
	kept = waiting_of(exchange, wish->tag);
	if (kept)
		err = match(exchange, operation, kept);
	if (err) {
		operation_move(exchange, operation, OPERATION_FREE);
		return err;
	}
	return (int)(operation - exchange->operations);
}

int rbx_exchange_offer(struct rbx_exchange *exchange, const struct rbx_exchange_wish *wish)
{
	struct offer *offer = NULL;
	uint32_t i;

	RBX_ASSERT(wish->length_bytes && wish->access < RBX_WIRE_OFFER_ACCESS_END);
	if (exchange->broken)
		return exchange->broken;
	for (i = 0; i < exchange->count; i++) {
		struct offer *other = &exchange->offers[i];

		if (other->state == OFFER_FREE)
			offer = offer ? offer : other;
		else if ((other->state == OFFER_UNSENT || other->state == OFFER_OUT) &&
			 other->wish.tag == wish->tag)
			return -EEXIST;
	}
	if (!offer)
		return -EAGAIN;
	*offer = (struct offer){ .wish = *wish };
	i = (uint32_t)(offer - exchange->offers);
	offer->id = ++exchange->last_id << ID_INDEX_BITS | i;
	offer_move(exchange, offer, OFFER_UNSENT);
	return (int)i;
}

/* ---- What the peer says -----------------------------------------------------------*/

/* A place for an offer of the peer. NULL: it has too many out, or has used an id twice. */
static struct kept *place_for(struct rbx_exchange *exchange, uint64_t id)
{
	struct kept *place = NULL;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++) {
		struct kept *kept = &exchange->kept[i];

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
		const struct kept *kept = &exchange->kept[i];

		if ((kept->state == KEPT_WAITING || kept->state == KEPT_TAKEN) &&
		    kept->offer.tag == tag)
			return true;
	}
	return false;
}

static struct operation *operation_of(struct rbx_exchange *exchange, uint64_t tag)
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
	struct kept *kept = place_for(exchange, message->id);
	struct operation *operation;
	bool is_twice = is_here_already(exchange, message->tag);
	int err;

	if (!kept)
		return -EPROTO;
	kept->offer = *message;
	if (is_twice) {
		kept_answer(exchange, kept, RBX_WIRE_OFFER_TWICE, 0);
		return 0;
	}
	operation = operation_of(exchange, message->tag);
	if (operation) {
		err = match(exchange, operation, kept);
		if (err)
			operation_end(exchange, operation, err);
	} else if (exchange->waiting_count < exchange->count) {
		kept_move(exchange, kept, KEPT_WAITING);
	} else {
		kept_answer(exchange, kept, RBX_WIRE_OFFER_NO_ROOM, 0);
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
	struct offer *offer;

	if (index >= exchange->count)
		return -EPROTO;
	offer = &exchange->offers[index];
	if (!offer->is_known || offer->id != message->id ||
	    message->length_bytes > offer->wish.length_bytes ||
	    (message->end == RBX_WIRE_OFFER_WITHDRAWN && !offer->is_withdrawn))
		return -EPROTO;
	offer->is_known = false;
	if (offer->state == OFFER_OUT) {
		offer->done_bytes = message->length_bytes;
		offer_end(exchange, offer, status_of(message->end));
	} else if (offer->state == OFFER_UNHEARD) {
		offer_move(exchange, offer, OFFER_FREE);
	}
	return 0;
}

/* What the peer has withdrawn is answered, unless it was used: then it hears of that. */
static void hear_withdraw(struct rbx_exchange *exchange, const struct rbx_wire_exchange *message)
{
	struct operation *operation;
	struct kept *kept;
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++) {
		kept = &exchange->kept[i];
		if (kept->state == KEPT_FREE || kept->offer.id != message->id)
			continue;
		if (kept->state == KEPT_TAKEN) {
			operation = &exchange->operations[kept->operation];
			if (operation->state != OPERATION_MATCHED)
				return;
			operation_move(exchange, operation, OPERATION_WAITING);
		}
		if (kept->state != KEPT_ANSWER)
			kept_answer(exchange, kept, RBX_WIRE_OFFER_WITHDRAWN, 0);
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

/* ---- Time, and the end ------------------------------------------------------------*/

static bool operation_has_deadline(const struct operation *operation)
{
	return operation->state == OPERATION_WAITING || operation->state == OPERATION_MATCHED;
}

static bool offer_has_deadline(const struct offer *offer)
{
	return (offer->state == OFFER_UNSENT || offer->state == OFFER_OUT) &&
	       !offer->must_withdraw;
}

static void offer_is_late(struct rbx_exchange *exchange, struct offer *offer)
{
	if (offer->state == OFFER_UNSENT || offer->is_withdrawn)
		offer_end(exchange, offer, -ETIMEDOUT);
	else
		withdraw_set(exchange, offer, true);
}

void rbx_exchange_tick(struct rbx_exchange *exchange, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < exchange->count; i++) {
		struct operation *operation = &exchange->operations[i];
		struct offer *offer = &exchange->offers[i];

		if (operation_has_deadline(operation) && now_ns >= operation->wish.deadline_ns) {
			part(exchange, operation);
			operation_end(exchange, operation, -ETIMEDOUT);
		}
		if (!offer_has_deadline(offer) || now_ns < offer->wish.deadline_ns)
			continue;
		offer_is_late(exchange, offer);
		offer->wish.deadline_ns = now_ns + RBX_EXCHANGE_GRACE_NS;
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
		struct operation *operation = &exchange->operations[i];
		struct offer *offer = &exchange->offers[i];

		if (operation_has_deadline(operation)) {
			part(exchange, operation);
			operation_end(exchange, operation, status);
		}
		offer->is_known = false;
		if (offer->state == OFFER_UNSENT || offer->state == OFFER_OUT)
			offer_end(exchange, offer, status);
		else if (offer->state == OFFER_UNHEARD)
			offer_move(exchange, offer, OFFER_FREE);
	}
	/* Those that operations use are freed with them. */
	for (i = 0; i < RBX_WIRE_OFFERS_MAX; i++)
		if (exchange->kept[i].state != KEPT_TAKEN)
			kept_move(exchange, &exchange->kept[i], KEPT_FREE);
}

/* ---- What there is to do ------------------------------------------------------------*/

bool rbx_exchange_next_post(const struct rbx_exchange *exchange, struct rbx_exchange_post *post)
{
	uint32_t i;

	for (i = 0; i < exchange->count && exchange->matched_count; i++) {
		const struct operation *operation = &exchange->operations[i];
		const struct rbx_wire_exchange *offer = &exchange->kept[operation->kept].offer;

		if (operation->state != OPERATION_MATCHED)
			continue;
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
static void kept_done(struct rbx_exchange *exchange, const struct operation *operation)
{
	struct kept *kept = &exchange->kept[operation->kept];

	RBX_ASSERT(kept->state == KEPT_TAKEN);
	if (exchange->broken)
		kept_move(exchange, kept, KEPT_FREE);
	else
		kept_answer(exchange, kept, RBX_WIRE_OFFER_DONE, operation->wish.length_bytes);
}

static bool answers_early(const struct rbx_exchange *exchange, const struct operation *operation)
{
	return exchange->is_ordered && operation->wish.access == RBX_WIRE_OFFER_TO_WRITE;
}

void rbx_exchange_posted(struct rbx_exchange *exchange, uint32_t index)
{
	struct operation *operation = &exchange->operations[index];

	RBX_ASSERT(operation->state == OPERATION_MATCHED);
	operation_move(exchange, operation, OPERATION_POSTED);
	if (answers_early(exchange, operation))
		kept_done(exchange, operation);
}

void rbx_exchange_completed(struct rbx_exchange *exchange, uint32_t index, int status)
{
	struct operation *operation = &exchange->operations[index];

	RBX_ASSERT(operation->state == OPERATION_POSTED);
	if (!answers_early(exchange, operation)) {
		/* A failure ends the connection, so there is nobody to answer. */
		if (status && !exchange->broken)
			kept_move(exchange, &exchange->kept[operation->kept], KEPT_FREE);
		else
			kept_done(exchange, operation);
	}
	operation_end(exchange, operation, status);
}

static bool next_answer(struct rbx_exchange *exchange, struct rbx_wire_exchange *message)
{
	uint32_t i;

	for (i = 0; i < RBX_WIRE_OFFERS_MAX && exchange->answers_count; i++) {
		uint32_t at = (exchange->next_kept + i) % RBX_WIRE_OFFERS_MAX;
		struct kept *kept = &exchange->kept[at];

		if (kept->state != KEPT_ANSWER)
			continue;
		*message = (struct rbx_wire_exchange){
			.type = RBX_WIRE_OFFER_END,
			.id = kept->offer.id,
			.end = kept->end,
			.length_bytes = kept->done_bytes,
		};
		kept_move(exchange, kept, KEPT_FREE);
		exchange->next_kept = at + 1;
		return true;
	}
	return false;
}

static void offer_tell(struct rbx_exchange *exchange, struct offer *offer,
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
	offer_move(exchange, offer, OFFER_OUT);
}

static void offer_withdraw(struct rbx_exchange *exchange, struct offer *offer,
			   struct rbx_wire_exchange *message)
{
	*message = (struct rbx_wire_exchange){
		.type = RBX_WIRE_OFFER_WITHDRAW,
		.id = offer->id,
	};
	withdraw_set(exchange, offer, false);
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
		struct offer *offer = &exchange->offers[at];

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
	offer_move(exchange, &exchange->offers[index], OFFER_OVER);
}

static bool next_offer_end(struct rbx_exchange *exchange, uint32_t index,
			   struct rbx_exchange_end *end)
{
	struct offer *offer = &exchange->offers[index];

	if (offer->state != OFFER_OVER)
		return false;
	*end = (struct rbx_exchange_end){ true, index, offer->status, offer->done_bytes };
	offer_move(exchange, offer, offer->is_known ? OFFER_UNHEARD : OFFER_FREE);
	return true;
}

static bool next_operation_end(struct rbx_exchange *exchange, uint32_t index,
			       struct rbx_exchange_end *end)
{
	struct operation *operation = &exchange->operations[index];

	if (operation->state != OPERATION_OVER)
		return false;
	*end = (struct rbx_exchange_end){
		.index = index,
		.status = operation->status,
		.length_bytes = operation->status ? 0 : operation->wish.length_bytes,
	};
	operation_move(exchange, operation, OPERATION_FREE);
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
