/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_anew_test.c - a server of a named volume that was OUT, and is taken in again: it gives up
 * what it has, and makes the volume anew.
 */
#include <errno.h>
#include <string.h>

#include "include/rdmabox/server.h"
#include "tests/server/named_volume.h"

static bool nothing_is_lent(struct world *world)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(world->server, &stats);
	return stats.slabs_lent == 0;
}

static int begin_anew(struct rbx_session *session, uint64_t epoch, struct rbx_wire_volume *volume)
{
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), 0);
	return named_open(session, RBX_WIRE_OPEN_ANEW, "db", epoch, volume);
}

/* The writer has lost sight of the server, and comes with another session. */
static void writer_has_a_server_begin_anew_in_its_own_epoch(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_session *third;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(begin_anew(two.other, 1, &volume), 0);
	assert_int_equal(volume.record.epoch, 0);
	assert_int_equal(volume.promised_epoch, 1);
	assert_int_equal(volume.record.volume_id, NAMED_ID);
	/* Nothing of the session before comes late, and nothing is left of what it had. */
	assert_int_not_equal(world_transfer(&two.world, two.qp, RBX_OP_WRITE, &two.loan), 0);
	assert_int_equal(rbx_session_resume(two.writer, rbx_now_ns() + 5000000000ull), -ESTALE);
	assert_int_equal(named_labels(two.other, 0).count, 0);
	world_wait(&two.world, nothing_is_lent);
	/* It has no vote before it has accepted a record. */
	third = world_session(&two.world);
	assert_int_equal(named_open(third, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), -ENOENT);
	accept = named_accept_of(&volume, 1, 5);
	assert_int_equal(rbx_session_talk(two.other, &accept), 0);
	assert_int_equal(named_open(third, RBX_WIRE_OPEN_WRITE, "db", 2, &volume), 0);
	assert_int_equal(volume.record.version, 5);
	rbx_session_close(third);
	named_two_end(&two);
}

static void later_writer_has_a_server_begin_anew(void **state)
{
	struct rbx_wire_volume volume;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(begin_anew(two.other, 7, &volume), 0);
	assert_int_equal(volume.record.epoch, 0);
	assert_int_equal(volume.promised_epoch, 7);
	named_two_end(&two);
}

static void writer_that_is_shut_out_takes_nothing_away(void **state)
{
	struct named_two two;
	struct rbx_session *former;
	struct rbx_wire_labels labels;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	former = world_session(&two.world);
	assert_int_equal(begin_anew(former, 1, NULL), -ESTALE);
	labels = named_labels(two.other, 0);
	assert_int_equal(labels.count, 1);
	assert_true(labels.labels[0].is_complete);
	rbx_session_close(former);
	named_two_end(&two);
}

/* The writer could not reach the server, which has something that nobody else has. */
static void writer_opens_a_server_again_with_all_that_it_has(void **state)
{
	struct rbx_wire_volume volume;
	struct rbx_wire_labels labels;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_AGAIN, "db", 2, NULL), -ESTALE);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_AGAIN, "db", 1, &volume), 0);
	assert_int_equal(volume.promised_epoch, 1);
	assert_int_not_equal(volume.record.epoch, 0);
	labels = named_labels(two.other, 0);
	assert_int_equal(labels.count, 1);
	assert_true(labels.labels[0].is_complete);
	assert_int_equal(labels.labels[0].slab_id, two.loan.slab_id);
	assert_int_equal(labels.labels[0].epoch, two.loan.epoch);
	/* Nothing of the session before comes late. */
	assert_int_not_equal(world_transfer(&two.world, two.qp, RBX_OP_WRITE, &two.loan), 0);
	assert_int_equal(rbx_session_resume(two.writer, rbx_now_ns() + 5000000000ull), -ESTALE);
	named_two_end(&two);
}

static void writer_that_is_shut_out_opens_nothing_again(void **state)
{
	struct rbx_session *former;
	struct rbx_wire_volume volume;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	former = world_session(&two.world);
	assert_int_equal(named_open(former, RBX_WIRE_OPEN_AGAIN, "db", 1, NULL), -ESTALE);
	assert_int_equal(named_open(former, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.is_open, 1);
	assert_int_equal(named_open(former, RBX_WIRE_OPEN_AGAIN, "none", 1, NULL), -ENOENT);
	rbx_session_close(former);
	named_two_end(&two);
}

/* The network was cut after it had looked, and its request comes when another session of the same
 * writer has brought the server back: in the same epoch, or in the one that it came with. */
static void late_request_finds_it_anew(uint64_t epoch)
{
	const struct rbx_wire_map map = { .label = 5, .is_complete = 1 };
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_session *late;
	struct named_two two;
	struct rbx_loan loan;

	named_two_begin(&two);
	late = world_session(&two.world);
	assert_int_equal(named_open(late, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), 0);
	assert_int_equal(begin_anew(two.other, epoch, &volume), 0);
	accept = named_accept_of(&volume, epoch, 5);
	assert_int_equal(rbx_session_talk(two.other, &accept), 0);
	assert_int_equal(rbx_session_map_for(two.other, &map, &loan), 0);
	assert_int_equal(named_open(late, RBX_WIRE_OPEN_ANEW, "db", epoch, NULL), -EPROTO);
	rbx_session_close(late);
	assert_int_equal(named_labels(two.other, 0).count, 1);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.record.version, 5);
	assert_int_equal(volume.is_open, 1);
	named_two_end(&two);
}

static void late_request_takes_nothing_away(void **state)
{
	(void)state;
	late_request_finds_it_anew(1);
	late_request_finds_it_anew(7);
}

static void who_has_not_looked_takes_nothing_away(void **state)
{
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_ANEW, "db", 1, NULL), -EPROTO);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_ANEW, "db", 7, NULL), -EPROTO);
	named_expect(&two.world, two.qp, &two.loan);
	assert_int_equal(named_labels(two.writer, 0).count, 1);
	assert_int_equal(begin_anew(two.other, 1, NULL), 0);
	named_two_end(&two);
}

/* If the session ends before a record was accepted. */
static void what_was_begun_anew_is_forgotten_with_its_session(void **state)
{
	struct named_two two;
	struct rbx_session *next;

	(void)state;
	named_two_begin(&two);
	next = world_session(&two.world);
	assert_int_equal(begin_anew(next, 1, NULL), 0);
	rbx_session_close(next);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -ENOENT);
	named_two_end(&two);
}

static void what_cannot_be_begun_anew_is_left_as_it_is(void **state)
{
	struct rbx_wire_message other_name = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "taken", .holder = "a test", .writer_epoch = 1,
				 .volume_id = NAMED_ID, .mode = RBX_WIRE_OPEN_ANEW },
	};
	struct rbx_session *maker;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_ANEW, "none", 1, NULL), -ENOENT);
	maker = world_session(&two.world);
	assert_int_equal(named_open(maker, RBX_WIRE_OPEN_CREATE, "taken", 1, NULL), 0);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_ANEW, "taken", 1, NULL), -ENOENT);
	assert_int_equal(rbx_session_talk(two.other, &other_name), -EEXIST);
	named_expect(&two.world, two.qp, &two.loan);
	rbx_session_close(maker);
	named_two_end(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writer_has_a_server_begin_anew_in_its_own_epoch),
		cmocka_unit_test(later_writer_has_a_server_begin_anew),
		cmocka_unit_test(writer_that_is_shut_out_takes_nothing_away),
		cmocka_unit_test(writer_opens_a_server_again_with_all_that_it_has),
		cmocka_unit_test(writer_that_is_shut_out_opens_nothing_again),
		cmocka_unit_test(late_request_takes_nothing_away),
		cmocka_unit_test(who_has_not_looked_takes_nothing_away),
		cmocka_unit_test(what_was_begun_anew_is_forgotten_with_its_session),
		cmocka_unit_test(what_cannot_be_begun_anew_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
