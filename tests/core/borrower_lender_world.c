/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* borrower_lender_world.c - see borrower_lender_world.h. */
#include "tests/core/borrower_lender_world.h"

struct world w;

uint32_t below(uint32_t bound)
{
	return rbx_random_below(&w.random, bound);
}

void queue_put(struct queue *q, struct rbx_seal *seal, const struct rbx_wire_message *m)
{
	struct bytes *slot = &q->messages[(q->first + q->count++) % QUEUE_MAX];

	assert_true(q->count <= QUEUE_MAX);
	slot->length_bytes = rbx_seal_encode(seal, m, slot->bytes);
}

struct bytes *queue_take(struct queue *q)
{
	struct bytes *taken = &q->messages[q->first];

	q->first = (q->first + 1) % QUEUE_MAX;
	q->count--;
	return taken;
}

static bool is_held(const struct client *c, const struct rbx_loan *loan)
{
	const struct rbx_lender_loan lent = { loan->slab_id, loan->epoch };

	return !rbx_lender_check(w.lender, c->b.welcome.session_id, &lent);
}

uint32_t held_count(const struct client *c)
{
	uint32_t i, count = 0;

	for (i = 0; i < c->known_count; i++)
		count += is_held(c, &c->known[i]);
	return count;
}
