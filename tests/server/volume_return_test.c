/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_return_test.c - a server of a named volume that was OUT, and returns: it keeps what it
 * has, and calls nothing of it complete any more. And one that drains, for which volumes it waits.
 */
#include <errno.h>

#include "tests/server/memory_file_world.h"

static int open_to_return(struct rbx_session *session, uint64_t epoch)
{
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), 0);
	return named_open(session, RBX_WIRE_OPEN_RETURN, "db", epoch, NULL);
}

static int say_behind(struct rbx_session *session)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_BEHIND };

	return rbx_session_talk(session, &m);
}

static int say_complete(struct rbx_session *session, const struct rbx_loan *loan)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_SLAB_COMPLETE,
				      .slab_id = loan->slab_id,
				      .epoch = loan->epoch };

	return rbx_session_talk(session, &m);
}

static int note(struct rbx_session *session, const struct rbx_loan *loan, uint64_t behind)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_INTENTS,
		.intents = { 1, { { loan->slab_id, loan->epoch, 1, behind } } },
	};

	return rbx_session_talk(session, &m);
}

static struct rbx_wire_label only_label(struct rbx_session *session)
{
	struct rbx_wire_labels labels = named_labels(session, 0);

	assert_int_equal(labels.count, 1);
	return labels.labels[0];
}

static void what_it_has_stays_and_is_not_complete(uint64_t epoch)
{
	struct rbx_wire_label label;
	struct rbx_wire_volume volume;
	struct named_two two;
	struct rbx_qp *qp;

	named_two_begin(&two);
	assert_int_equal(note(two.writer, &two.loan, 0x70), 0);
	assert_int_equal(open_to_return(two.other, epoch), 0);
	/* Nothing of the session before comes late. */
	assert_int_not_equal(world_transfer(&two.world, two.qp, RBX_OP_WRITE, &two.loan), 0);
	assert_int_equal(rbx_session_resume(two.writer, rbx_now_ns() + 5000000000ull), -ESTALE);
	label = only_label(two.other);
	assert_int_equal(label.is_complete, 1);
	assert_int_equal(label.intent, 1);
	assert_int_equal(label.behind, 0x70);
	assert_int_equal(say_behind(two.other), 0);
	label = only_label(two.other);
	assert_int_equal(label.is_complete, 0);
	assert_int_equal(label.slab_id, two.loan.slab_id);
	assert_int_equal(label.epoch, two.loan.epoch);
	qp = world_qp(&two.world, two.other);
	named_expect(&two.world, qp, &two.loan);
	two.world.choice.ops->destroy_qp(qp);
	/* It has its record and a vote as before. */
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.record.epoch, 1);
	assert_int_equal(volume.promised_epoch, epoch);
	/* What is complete again may have been written anywhere. */
	assert_int_equal(say_complete(two.other, &two.loan), 0);
	label = only_label(two.other);
	assert_int_equal(label.is_complete, 1);
	assert_true(label.intent == UINT64_MAX);
	named_two_end(&two);
}

static void server_that_returns_keeps_what_it_has(void **state)
{
	(void)state;
	what_it_has_stays_and_is_not_complete(1);
	what_it_has_stays_and_is_not_complete(7);
}

static void writer_that_is_shut_out_has_nothing_return(void **state)
{
	struct rbx_session *former;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	former = world_session(&two.world);
	assert_int_equal(open_to_return(former, 1), -ESTALE);
	rbx_session_close(former);
	former = world_session(&two.world);
	assert_int_not_equal(say_behind(former), 0); /* it is bound to no volume */
	rbx_session_close(former);
	assert_int_equal(only_label(two.other).is_complete, 1);
	named_two_end(&two);
}

/* The network was cut after it had looked, and another session has brought the server back. */
static void late_request_is_refused(enum rbx_wire_open_mode mode)
{
	struct rbx_session *late;
	struct named_two two;

	named_two_begin(&two);
	late = world_session(&two.world);
	assert_int_equal(named_open(late, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), 0);
	assert_int_equal(open_to_return(two.other, 1), 0);
	assert_int_equal(say_behind(two.other), 0);
	assert_int_equal(say_complete(two.other, &two.loan), 0);
	assert_int_equal(named_open(late, mode, "db", 1, NULL), -EPROTO);
	rbx_session_close(late);
	assert_int_equal(only_label(two.other).is_complete, 1);
	named_two_end(&two);
}

static void late_request_changes_nothing(void **state)
{
	(void)state;
	late_request_is_refused(RBX_WIRE_OPEN_RETURN);
	late_request_is_refused(RBX_WIRE_OPEN_ANEW);
}

static void who_has_not_looked_has_nothing_return(void **state)
{
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_RETURN, "db", 1, NULL), -EPROTO);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_RETURN, "none", 1, NULL), -ENOENT);
	assert_int_equal(only_label(two.writer).is_complete, 1);
	named_two_end(&two);
}

static struct rbx_wire_message in_of_two_members(const struct world *world,
						 const struct rbx_wire_volume *volume,
						 uint64_t version, uint32_t copies)
{
	struct rbx_wire_message accept = named_accept_of(volume, 1, version);

	accept.record.replicas = 2;
	accept.record.copies = copies;
	accept.record.members_count = 2;
	accept.record.incarnations[1] = rbx_server_incarnation(world->server);
	return accept;
}

/* By its own record it is IN, of a volume that has one copy, and it lends a slab of that. */
static void drain_ends_when_a_writer_says_that_the_server_is_out(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	accept = in_of_two_members(&two.world, &volume, 2, 1);
	assert_int_equal(rbx_session_talk(two.writer, &accept), 0);
	assert_int_equal(rbx_server_drain(two.world.server, 1), -ETIMEDOUT);
	assert_int_equal(open_to_return(two.other, 1), 0);
	assert_int_equal(rbx_server_drain(two.world.server, 1), 0);
	assert_int_equal(only_label(two.other).is_complete, 1);
	/* It is IN again. */
	accept = in_of_two_members(&two.world, &volume, 3, 1);
	assert_int_equal(rbx_session_talk(two.other, &accept), 0);
	assert_int_equal(rbx_server_drain(two.world.server, 1), -ETIMEDOUT);
	named_two_end(&two);
}

static bool nobody_is_there(struct world *world)
{
	return world_stats(world).clients == 0;
}

/* It lends nothing to that volume, which has all its copies. */
static int drained_with(uint32_t flags)
{
	struct rbx_session *session;
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct world world;
	int err;

	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	accept = in_of_two_members(&world, &volume, 1, 2);
	accept.record.flags = flags;
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	rbx_session_close(session);
	world_wait(&world, nobody_is_there);
	err = rbx_server_drain(world.server, 1);
	world_stop(&world);
	return err;
}

static void drain_waits_for_a_volume_that_was_not_closed(void **state)
{
	(void)state;
	assert_int_equal(drained_with(0), -ETIMEDOUT);
	assert_int_equal(drained_with(RBX_WIRE_EVEN), 0);
}

/* It remembers the volume, but a writer that is there can do without it. */
static void drain_of_a_server_that_remembers_waits_for_a_volume_that_is_open(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_session *session;
	struct rbx_wire_volume volume;
	struct world world;

	(void)state;
	begin(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	accept = in_of_two_members(&world, &volume, 1, 2);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	assert_int_equal(rbx_server_drain(world.server, 1), -ETIMEDOUT);
	rbx_session_close(session);
	world_wait(&world, nobody_is_there);
	assert_int_equal(rbx_server_drain(world.server, 1), 0);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_returns_keeps_what_it_has),
		cmocka_unit_test(writer_that_is_shut_out_has_nothing_return),
		cmocka_unit_test(late_request_changes_nothing),
		cmocka_unit_test(who_has_not_looked_has_nothing_return),
		cmocka_unit_test(drain_ends_when_a_writer_says_that_the_server_is_out),
		cmocka_unit_test(drain_waits_for_a_volume_that_was_not_closed),
		cmocka_unit_test(
			drain_of_a_server_that_remembers_waits_for_a_volume_that_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
