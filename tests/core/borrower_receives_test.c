/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_receives_test.c - a client's receives are as many as messages may come at once.
 */
#include <stdlib.h>

#include "tests/core/borrower_pair.h"

/* A message takes a receive, and none is posted again meanwhile. */
static void arrive(uint32_t *receives)
{
	if (*receives == 0)
		fail_msg("a message came and found no receive");
	--*receives;
}

/* As many user messages as may be under way; returns how many. */
static uint32_t user_messages_arrive(struct rbx_mailbox *server,
				     uint32_t *receives)
{
	struct rbx_wire_message m;
	uint32_t count = 0;

	for (; rbx_mailbox_next(server, &m); count++) {
		rbx_mailbox_sent(server);
		arrive(receives);
	}
	return count;
}

/* How many messages leave that wait for an answer. */
static uint32_t ask_all(struct pair *p)
{
	uint32_t before, i;

	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL, 60000,
					   p->now_ns),
			 0);
	for (i = 0; i < 2 * RBX_WIRE_USER_MESSAGES_MAX; i++)
		assert_int_equal(rbx_borrower_user_message_put(&p->b, "x", 1,
							       NULL, NULL),
				 0);
	p->now_ns += SILENCE_NS / 2; /* a heartbeat is due */
	rbx_borrower_tick(&p->b, p->now_ns);
	before = p->sent_count;
	pair_pump(p);
	rbx_borrower_bye(&p->b);
	pair_pump(p);
	return p->sent_count - before;
}

/*
 * A server of the protocol, which waits until it may say most, and a client that
 * posts no receive again before it has handled all: four user messages that it has
 * had and said so; then an answer to each request, and all that nobody asked for.
 */
static void receives_are_enough_for_all_that_may_come_at_once(void **state)
{
	struct pair *p = pair_up();
	struct rbx_user_message_ends ends;
	struct rbx_mailbox server = { 0 };
	uint32_t receives = RBX_CLIENT_RECEIVES, unasked, i;

	(void)state;
	rbx_borrower_listen(&p->b);
	for (i = 0; i < 2 * RBX_WIRE_USER_MESSAGES_MAX; i++)
		assert_int_equal(rbx_mailbox_put(&server, "x", 1, NULL, NULL), 0);
	unasked = user_messages_arrive(&server, &receives);
	assert_int_equal(unasked, RBX_WIRE_USER_MESSAGES_MAX);
	for (i = 1; i <= unasked; i++) {
		pair_say_user_message(p, i);
		assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_HEAR);
		rbx_borrower_user_message_heard(&p->b);
	}
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_USER_MESSAGE_TAKEN);
	assert_int_equal(rbx_mailbox_taken(&server, &p->sent.user_message_taken,
					   &ends),
			 0);
	for (i = ask_all(p); i > 0; i--)
		arrive(&receives);
	for (unasked = user_messages_arrive(&server, &receives);
	     unasked < RBX_UNASKED_MAX; unasked++)
		arrive(&receives);
	assert_int_equal(receives, 0); /* nor is there one in vain */
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			receives_are_enough_for_all_that_may_come_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
