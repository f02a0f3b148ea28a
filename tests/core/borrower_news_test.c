/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_news_test.c - what comes unasked, and what a borrower tells of it: user
 * messages, evictions, bytes that are no message, and the end.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/core/borrower_pair.h"

static void message_is_told_then_taken(void **state)
{
	struct pair *p = pair_up();
	uint32_t sent_count;

	(void)state;
	assert_int_equal(rbx_borrower_listen(&p->b), 0);
	assert_int_equal(rbx_borrower_listen(&p->b), -EBUSY);
	pair_say_user_message(p, 1);
	sent_count = p->sent_count;
	pair_pump(p);
	assert_int_equal(p->sent_count, sent_count); /* nobody has had it */
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_HEAR);
	assert_int_equal(p->b.user_message.bytes[0], 'x');
	rbx_borrower_user_message_heard(&p->b);
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_USER_MESSAGE_TAKEN);
	assert_int_equal(p->sent.user_message_taken.sequence, 1);
	assert_int_equal(p->sent.user_message_taken.refused, 0);
	pair_say_user_message(p, 1); /* again: not told, but taken */
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	sent_count = p->sent_count;
	pair_pump(p);
	assert_int_equal(p->sent_count, sent_count + 1);
	pair_say_user_message(p, 3);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void message_that_nobody_hears_is_refused(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	pair_say_user_message(p, 1);
	pair_pump(p);
	assert_int_equal(p->sent.user_message_taken.refused, 1);
	assert_int_equal(rbx_borrower_listen(&p->b), -EBUSY);
	free(p);
}

static void count_end(int status, void *user)
{
	int *statuses = user;

	statuses[0]++;
	statuses[1] = status;
}

static void messages_survive_a_cut_and_end_once(void **state)
{
	struct pair *p = pair_up();
	int ended[2] = { 0 };

	(void)state;
	rbx_borrower_user_message_put(&p->b, "a", 1, count_end, ended);
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_USER_MESSAGE);
	rbx_borrower_drop(&p->b);
	pair_resume(p);
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_USER_MESSAGE);
	assert_int_equal(p->sent.user_message.sequence, 1);
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_USER_MESSAGE_TAKEN,
			    .user_message_taken.sequence = 1 });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_ENDS);
	rbx_user_message_ends_tell(&p->b.ends);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	rbx_borrower_user_message_put(&p->b, "b", 1, count_end, ended);
	rbx_borrower_user_messages_stop(&p->b, -ECANCELED);
	rbx_borrower_user_messages_stop(&p->b, -EHOSTUNREACH);
	assert_int_equal(rbx_borrower_user_message_put(&p->b, "c", 1, NULL,
						       NULL),
			 -ECANCELED);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_ENDS);
	rbx_user_message_ends_tell(&p->b.ends);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	assert_int_equal(ended[0], 2);
	assert_int_equal(ended[1], -ECANCELED);
	free(p);
}

static void eviction_names_its_epoch(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_SLAB_EVICT,
			    .epoch = 31,
			    .evict = { .slab_id = 3, .grace_ms = 250 } });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_EVICT);
	assert_int_equal(p->b.eviction.slab_id, 3);
	assert_int_equal(p->b.eviction.epoch, 31);
	assert_int_equal(p->b.eviction.until_ns, p->now_ns + 250 * MS);
	free(p);
}

static void heartbeat_answered(struct pair *p, bool drains)
{
	p->now_ns = p->b.lease.heartbeat_ns + rbx_lease_interval_ns(&p->b.lease);
	(void)rbx_borrower_tick(&p->b, p->now_ns);
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_HEARTBEAT);
	pair_say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_HEARTBEAT_REPLY,
						.request_id = p->b.heartbeat_id,
						.heartbeat_reply.draining = drains });
}

static void drain_is_told_once(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	assert_false(p->b.drains);
	heartbeat_answered(p, false);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	heartbeat_answered(p, true);
	assert_true(p->b.drains);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_DRAINS);
	heartbeat_answered(p, true);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	free(p);
}

static void hear_eviction(struct pair *p)
{
	pair_say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_SLAB_EVICT,
						.epoch = 31,
						.evict.slab_id = 3 });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_EVICT);
}

/* So much has left meanwhile, the last of it heartbeats. */
static void heartbeats_leave(struct pair *p, uint32_t count)
{
	uint32_t before = p->sent_count;

	pair_pump(p);
	assert_int_equal(p->sent_count - before, count);
	if (count)
		assert_int_equal(p->sent.type, RBX_WIRE_HEARTBEAT);
}

static void hear_reply(struct pair *p)
{
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_HEARTBEAT_REPLY,
			    .request_id = p->b.heartbeat_id });
}

static void eviction_is_followed_by_a_heartbeat_one_at_a_time(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	pair_pump(p);
	hear_eviction(p);
	heartbeats_leave(p, 1);
	hear_eviction(p);
	heartbeats_leave(p, 0);
	hear_eviction(p);
	hear_reply(p);
	heartbeats_leave(p, 1);
	hear_reply(p);
	heartbeats_leave(p, 0);
	free(p);
}

static void one_who_closes_says_bye_and_hears_nothing(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	rbx_borrower_bye(&p->b);
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_BYE);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL, 0, 0),
			 -ENOTCONN);
	pair_say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_SLAB_EVICT,
						.epoch = 1,
						.evict.slab_id = 3 });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	rbx_borrower_lost(&p->b, "the connection was ended", 0);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	free(p);
}

static void bytes_that_are_no_message_end_the_connection(void **state)
{
	struct pair *p = pair_up();
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX + 1] = { 0 };

	(void)state;
	rbx_borrower_message(&p->b, bytes, sizeof(bytes), p->now_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	pair_resume(p);
	rbx_borrower_message(&p->b, bytes, 64, p->now_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void message_that_was_changed_or_repeated_ends_the_connection(void **state)
{
	const struct rbx_wire_message evict = {
		.type = RBX_WIRE_SLAB_EVICT,
		.epoch = 3,
		.evict = { .slab_id = 5 },
	};
	struct pair *p = pair_up();
	struct rbx_seals before;

	(void)state;
	before = p->seals;
	pair_say(p, &evict);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_EVICT);
	p->seals = before;
	pair_say(p, &evict); /* the same bytes once more */
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	pair_resume(p);
	p->seals.out.is_on = false; /* of somebody who has no key */
	pair_say(p, &evict);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	pair_resume(p);
	pair_say(p, &evict);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_is_told_then_taken),
		cmocka_unit_test(message_that_nobody_hears_is_refused),
		cmocka_unit_test(messages_survive_a_cut_and_end_once),
		cmocka_unit_test(eviction_names_its_epoch),
		cmocka_unit_test(drain_is_told_once),
		cmocka_unit_test(
			eviction_is_followed_by_a_heartbeat_one_at_a_time),
		cmocka_unit_test(one_who_closes_says_bye_and_hears_nothing),
		cmocka_unit_test(bytes_that_are_no_message_end_the_connection),
		cmocka_unit_test(message_that_was_changed_or_repeated_ends_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
