/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_silence_test.c - when a borrower counts a silent server as lost.
 */
#include <stdlib.h>

#include "tests/core/borrower_pair.h"

static void heartbeat_keeps_the_session_up(void **state)
{
	struct pair *p = pair_up();
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++) {
		p->now_ns += SILENCE_NS / 4;
		rbx_borrower_tick(&p->b, p->now_ns);
		pair_pump(p);
		assert_int_equal(p->sent.type, RBX_WIRE_HEARTBEAT);
		pair_say(p, &(struct rbx_wire_message){
				    .type = RBX_WIRE_HEARTBEAT_REPLY,
				    .request_id = p->sent.request_id,
				    .heartbeat_reply.free_bytes = i });
		assert_int_equal(rbx_borrower_news(&p->b),
				 RBX_BORROWER_NO_NEWS);
		assert_int_equal(p->b.free_bytes, i);
	}
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

static void silence_is_doubted_once(void **state)
{
	struct pair *p = pair_up();
	uint64_t due_ns;

	(void)state;
	p->now_ns += SILENCE_NS / 4;
	rbx_borrower_tick(&p->b, p->now_ns);
	pair_pump(p);
	p->now_ns += SILENCE_NS;
	due_ns = rbx_borrower_tick(&p->b, p->now_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	assert_true(due_ns > p->now_ns && due_ns <= p->now_ns + 20 * MS);
	rbx_borrower_tick(&p->b, due_ns - 1); /* it is not said twice for once */
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	rbx_borrower_tick(&p->b, due_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	free(p);
}

static void answer_in_the_queue_ends_the_doubt(void **state)
{
	struct pair *p = pair_up();
	uint64_t due_ns;

	(void)state;
	p->now_ns += SILENCE_NS / 4;
	rbx_borrower_tick(&p->b, p->now_ns);
	pair_pump(p);
	p->now_ns += SILENCE_NS;
	due_ns = rbx_borrower_tick(&p->b, p->now_ns);
	pair_say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_HEARTBEAT_REPLY,
						.request_id = p->sent.request_id });
	rbx_borrower_tick(&p->b, due_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

/* The server may have heard of us as early as we said it. */
static void lease_counts_from_what_was_sent(void **state)
{
	struct pair *p = pair_up();
	uint64_t sent_ns, over_ns;

	(void)state;
	p->b.lease.timeout_ns = 10 * LEASE_MS * MS;
	p->now_ns += 100 * MS;
	sent_ns = p->now_ns;
	pair_call(p, RBX_CALL_MAP, NULL);
	p->now_ns += DEADLINE_NS - 1;
	pair_lend(p, 3, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	over_ns = sent_ns + LEASE_MS * MS / 2;
	rbx_borrower_tick(&p->b, over_ns - 1);
	assert_false(p->b.doubt_until_ns);
	rbx_borrower_tick(&p->b, over_ns);
	assert_true(p->b.doubt_until_ns);
	rbx_borrower_tick(&p->b, over_ns + 20 * MS);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heartbeat_keeps_the_session_up),
		cmocka_unit_test(silence_is_doubted_once),
		cmocka_unit_test(answer_in_the_queue_ends_the_doubt),
		cmocka_unit_test(lease_counts_from_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
