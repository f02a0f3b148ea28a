/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_pair.h - two exchanges, the wire between them, and a device that holds keys.
 *
 * The test does what a host would, one step at a time: posts, sends, ends keys.
 */
#ifndef RBX_TESTS_EXCHANGE_PAIR_H
#define RBX_TESTS_EXCHANGE_PAIR_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/exchange.h"

#define PAIR_COUNT 4u
#define PAIR_WIRE_MAX 512u
#define SECOND_NS 1000000000ull
#define NEVER_NS UINT64_MAX

struct end {
	struct rbx_exchange *exchange;
	/* What is on its way to the other side, oldest first. */
	struct rbx_wire_exchange wire[PAIR_WIRE_MAX];
	uint32_t wire_count;
	/* Keys that its device holds. */
	bool is_open[PAIR_COUNT];
};

struct pair {
	struct end a, b;
	uint64_t now_ns;
};

static inline struct pair *pair_make(bool is_ordered)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	pair->now_ns = SECOND_NS;
	pair->a.exchange = malloc(rbx_exchange_size(PAIR_COUNT));
	pair->b.exchange = malloc(rbx_exchange_size(PAIR_COUNT));
	rbx_exchange_init(pair->a.exchange, PAIR_COUNT, is_ordered);
	rbx_exchange_init(pair->b.exchange, PAIR_COUNT, is_ordered);
	return pair;
}

static inline void pair_free(struct pair *pair)
{
	free(pair->a.exchange);
	free(pair->b.exchange);
	free(pair);
}

static inline struct rbx_exchange_wish wish_of(uint64_t tag, uint32_t length_bytes, uint16_t access,
					       uint64_t deadline_ns)
{
	return (struct rbx_exchange_wish){ tag, deadline_ns, length_bytes, access, 4096 * tag,
					   (uint32_t)tag + 100 };
}

static inline int operate(struct end *end, uint64_t tag, uint32_t length_bytes, uint16_t access,
			  uint64_t deadline_ns)
{
	struct rbx_exchange_wish wish = wish_of(tag, length_bytes, access, deadline_ns);

	return rbx_exchange_operate(end->exchange, &wish);
}

static inline int make_offer(struct end *end, uint64_t tag, uint32_t length_bytes, uint16_t access,
			     uint64_t deadline_ns)
{
	struct rbx_exchange_wish wish = wish_of(tag, length_bytes, access, deadline_ns);
	int index = rbx_exchange_offer(end->exchange, &wish);

	if (index >= 0) {
		assert_false(end->is_open[index]);
		end->is_open[index] = true;
	}
	return index;
}

/* Sends all that it has to say. */
static inline void say(struct end *end)
{
	struct rbx_wire_exchange message;

	while (rbx_exchange_next_message(end->exchange, &message)) {
		assert_in_range(end->wire_count, 0, PAIR_WIRE_MAX - 1);
		end->wire[end->wire_count++] = message;
	}
}

static inline struct rbx_wire_exchange wire_take(struct end *end)
{
	struct rbx_wire_exchange first = end->wire[0];

	assert_true(end->wire_count);
	memmove(end->wire, end->wire + 1, --end->wire_count * sizeof(first));
	return first;
}

/* All that `from` has said arrives. */
static inline void carry(struct end *from, struct end *to)
{
	say(from);
	while (from->wire_count) {
		struct rbx_wire_exchange message = wire_take(from);

		assert_int_equal(rbx_exchange_hear(to->exchange, &message), 0);
	}
}

static inline void keys_end(struct end *end)
{
	uint32_t index;

	while (rbx_exchange_next_key(end->exchange, &index)) {
		assert_true(end->is_open[index]);
		end->is_open[index] = false;
		rbx_exchange_key_ended(end->exchange, index);
	}
}

static inline bool end_take(struct end *end, struct rbx_exchange_end *what)
{
	keys_end(end);
	return rbx_exchange_next_end(end->exchange, what);
}

static inline void expect_end(struct end *end, bool is_offer, int index, int status,
			      uint32_t length_bytes)
{
	struct rbx_exchange_end what;

	assert_true(end_take(end, &what));
	assert_int_equal(what.is_offer, is_offer);
	assert_int_equal(what.index, index);
	assert_int_equal(what.status, status);
	assert_int_equal(what.length_bytes, length_bytes);
}

static inline void expect_nothing(struct end *end)
{
	struct rbx_exchange_end what;

	assert_false(end_take(end, &what));
}

/* Posts the operation that has its key. */
static inline struct rbx_exchange_post post_one(struct end *end)
{
	struct rbx_exchange_post post;

	assert_true(rbx_exchange_next_post(end->exchange, &post));
	rbx_exchange_posted(end->exchange, post.index);
	return post;
}

#endif
