/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_state.h - the state of an exchange. Two files use it: exchange.c has what is asked
 * for and what the peer says, exchange_steps.c what there is to do, and the time.
 *
 * Three tables of at most 64 entries, which are searched from end to end: a search is a few
 * cache lines, and there is none if nothing is in the table. What is left to do is counted,
 * so a host that asks in each poll is answered by a comparison.
 */
#ifndef RBX_EXCHANGE_STATE_H
#define RBX_EXCHANGE_STATE_H

#include "core/exchange.h"

enum rbx_exchange_op_state {
	OPERATION_FREE,
	OPERATION_WAITING, /* for the offer */
	OPERATION_MATCHED, /* it has a key, and is to be posted */
	OPERATION_POSTED, /* the device has it */
	OPERATION_OVER, /* the program is to be told */
};

struct rbx_exchange_op {
	enum rbx_exchange_op_state state;
	struct rbx_exchange_wish wish;
	uint32_t kept; /* the offer it has taken */
	int status;
};

enum rbx_our_offer_state {
	OFFER_FREE,
	OFFER_UNSENT, /* OFFER is to be sent */
	OFFER_OUT, /* the peer has the key */
	OFFER_CLOSING, /* its key is to be ended */
	OFFER_OVER, /* the program is to be told */
	OFFER_UNHEARD, /* it was told, but the peer has not answered: the id is in use */
};

struct rbx_our_offer {
	enum rbx_our_offer_state state;
	bool is_known; /* to the peer, which has to answer */
	bool must_withdraw, is_withdrawn; /* the second: after WITHDRAW was sent */
	struct rbx_exchange_wish wish; /* its deadline is that of the grace once withdrawn */
	uint64_t id;
	int status;
	uint32_t done_bytes;
};

/* An offer of the peer. */
enum rbx_kept_offer_state {
	KEPT_FREE,
	KEPT_WAITING, /* for an operation of ours */
	KEPT_TAKEN, /* by an operation */
	KEPT_ANSWER, /* END is to be sent */
};

struct rbx_kept_offer {
	enum rbx_kept_offer_state state;
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
	struct rbx_kept_offer kept[RBX_WIRE_OFFERS_MAX];
	struct rbx_exchange_op *operations;
	struct rbx_our_offer *offers;
};

/* Change a state, and what there is to do. */
void rbx_exchange_op_move(struct rbx_exchange *exchange, struct rbx_exchange_op *operation,
			  enum rbx_exchange_op_state state);
void rbx_exchange_op_end(struct rbx_exchange *exchange, struct rbx_exchange_op *operation,
			 int status);
void rbx_our_offer_move(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
			enum rbx_our_offer_state state);
void rbx_our_offer_withdraw(struct rbx_exchange *exchange, struct rbx_our_offer *offer,
			    bool must);
/* The key of it is to be ended next. */
void rbx_our_offer_end(struct rbx_exchange *exchange, struct rbx_our_offer *offer, int status);
void rbx_kept_offer_move(struct rbx_exchange *exchange, struct rbx_kept_offer *kept,
			 enum rbx_kept_offer_state state);
/* END is to be sent. */
void rbx_kept_offer_answer(struct rbx_exchange *exchange, struct rbx_kept_offer *kept,
			   enum rbx_wire_offer_end end, uint32_t done_bytes);

#endif
