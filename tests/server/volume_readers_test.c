/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_readers_test.c - sessions that only read a named volume: what they are served and told,
 * what is refused to them, and that nothing waits for them.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/bounds.h"
#include "tests/server/named_volume.h"

#define SECRET "first secret of this test"
#define OTHER "other secret of this test"

static int ask(struct rbx_session *session, uint64_t id, struct rbx_wire_volume_reading *reading)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_READ, .volume_id = id };
	int err = rbx_session_talk(session, &m);

	if (!err && reading)
		*reading = m.reading;
	return err;
}

static int talk_of_slab(struct rbx_session *session, uint16_t type, const struct rbx_loan *loan)
{
	struct rbx_wire_message m = {
		.type = type,
		.epoch = loan->epoch,
		.slab_id = loan->slab_id,
	};

	return rbx_session_talk(session, &m);
}

/* ---- Tests -----------------------------------------------------------------------*/

static void reader_reads_beside_the_writer(void **state)
{
	struct rbx_wire_labels labels;
	struct named_two two;
	struct rbx_qp *qp;
	struct rbx_loan loan;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	labels = named_labels(two.other, 0);
	assert_int_equal(labels.count, 1);
	loan = named_loan_of(&labels.labels[0]);
	qp = world_qp(&two.world, two.other);
	named_expect(&two.world, qp, &loan);
	named_expect(&two.world, two.qp, &two.loan); /* nobody was shut out */
	two.world.choice.ops->destroy_qp(qp);
	rbx_session_close(two.other);
	named_expect(&two.world, two.qp, &two.loan);
	two.other = world_session(&two.world);
	named_two_end(&two);
}

static void changes_and_losses_are_counted(void **state)
{
	struct rbx_wire_volume_reading first, now;
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(ask(two.other, NAMED_ID, &first), 0);
	assert_int_equal(ask(two.other, NAMED_ID, &now), 0);
	assert_int_equal(now.changes_count, first.changes_count);
	assert_int_equal(now.losses_count, first.losses_count);
	assert_int_equal(talk_of_slab(two.writer, RBX_WIRE_SLAB_INCOMPLETE, &two.loan), 0);
	assert_int_equal(ask(two.other, NAMED_ID, &now), 0);
	assert_int_not_equal(now.changes_count, first.changes_count);
	assert_int_not_equal(now.losses_count, first.losses_count);
	first = now;
	assert_int_equal(talk_of_slab(two.writer, RBX_WIRE_SLAB_COMPLETE, &two.loan), 0);
	assert_int_equal(ask(two.other, NAMED_ID, &now), 0);
	assert_int_not_equal(now.changes_count, first.changes_count);
	assert_int_equal(now.losses_count, first.losses_count);
	first = now;
	assert_int_equal(rbx_session_unmap(two.writer, &two.loan), 0);
	assert_int_equal(ask(two.other, NAMED_ID, &now), 0);
	assert_int_not_equal(now.changes_count, first.changes_count);
	assert_int_not_equal(now.losses_count, first.losses_count);
	named_two_end(&two);
}

static void reader_may_do_nothing_else(void **state)
{
	static const uint16_t types[] = {
		RBX_WIRE_SLAB_UNMAP, RBX_WIRE_SLAB_QUERY, RBX_WIRE_SLAB_COMPLETE,
		RBX_WIRE_SLAB_INCOMPLETE,
	};
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct named_two two;
	struct rbx_loan loan;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(ask(two.other, NAMED_ID + 1, NULL), -ENOENT);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
		assert_int_not_equal(talk_of_slab(two.other, types[i], &two.loan), 0);
		rbx_session_close(two.other);
		two.other = world_session(&two.world);
	}
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	assert_int_not_equal(rbx_session_talk(two.other, &remove), 0);
	rbx_session_close(two.other);
	two.other = world_session(&two.world);
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	assert_int_not_equal(rbx_session_map(two.other, &loan), 0);
	rbx_session_close(two.other);
	two.other = world_session(&two.world);
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	assert_int_equal(named_open(two.other, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), -EPROTO);
	named_expect(&two.world, two.qp, &two.loan);
	named_two_end(&two);
}

static void volume_of_another_owner_is_not_read(void **state)
{
	struct rbx_session *one, *other;
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct world world;

	(void)state;
	world_options(&world);
	strcpy(world.options.secrets_file,
	       world_secrets_file("one:" SECRET "\nother:" OTHER "\n"));
	world_start(&world);
	one = world_session_as(&world, "one", SECRET);
	other = world_session_as(&world, "other", OTHER);
	assert_true(one && other);
	assert_int_equal(named_open(one, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	assert_int_equal(ask(one, NAMED_ID, NULL), -ENOENT); /* it is still being made */
	accept = named_accept_of(&volume, 1, 1);
	assert_int_equal(rbx_session_talk(one, &accept), 0);
	assert_int_equal(ask(other, NAMED_ID, NULL), -EACCES);
	rbx_session_close(other);
	rbx_session_close(one);
	world_stop(&world);
}

static void writer_is_no_reader(void **state)
{
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_not_equal(ask(two.writer, NAMED_ID, NULL), 0);
	named_two_end(&two);
}

static void removal_waits_for_no_reader(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct named_two two;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	assert_int_equal(rbx_session_talk(two.writer, &remove), 0);
	assert_int_not_equal(ask(two.other, NAMED_ID, NULL), 0); /* its session has ended */
	rbx_session_close(two.other);
	two.other = world_session(&two.world);
	/* It has left this server, and may be at others. */
	assert_int_equal(ask(two.other, NAMED_ID, NULL), -ENOENT);
	named_two_end(&two);
}

/* The reader's queue pair ends with the volume, and it is told why. */
static void removed_volume_is_read_no_more(void **state)
{
	struct rbx_session *admin;
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_wire_volume_reading told = { 0 };
	struct rbx_wire_labels labels;
	struct named_two two;
	struct rbx_loan loan;
	struct rbx_qp *qp;

	(void)state;
	named_two_begin(&two);
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	labels = named_labels(two.other, 0);
	loan = named_loan_of(&labels.labels[0]);
	qp = world_qp(&two.world, two.other);
	named_expect(&two.world, qp, &loan);
	admin = world_session(&two.world);
	assert_int_equal(named_open(admin, RBX_WIRE_OPEN_REMOVE, "db", 2, NULL), 0);
	assert_int_equal(rbx_session_talk(admin, &remove), 0);
	assert_int_not_equal(ask(two.other, NAMED_ID, NULL), 0);
	assert_int_not_equal(world_transfer(&two.world, qp, RBX_OP_READ, &loan), 0);
	two.world.choice.ops->destroy_qp(qp);
	assert_int_equal(ask(admin, NAMED_ID, &told), 0);
	assert_true(told.record.flags & RBX_WIRE_REMOVED);
	rbx_session_close(admin);
	named_two_end(&two);
}

static void readers_are_bounded(void **state)
{
	struct rbx_session *readers[RBX_READERS_OF_VOLUME_MAX];
	struct named_two two;
	uint32_t i;

	(void)state;
	named_two_begin(&two);
	for (i = 0; i < RBX_READERS_OF_VOLUME_MAX; i++) {
		readers[i] = world_session(&two.world);
		assert_int_equal(ask(readers[i], NAMED_ID, NULL), 0);
	}
	assert_int_equal(ask(two.other, NAMED_ID, NULL), -EBUSY);
	for (i = 0; i < RBX_READERS_OF_VOLUME_MAX; i++)
		rbx_session_close(readers[i]);
	rbx_session_close(two.other);
	two.other = world_session(&two.world);
	assert_int_equal(ask(two.other, NAMED_ID, NULL), 0);
	named_two_end(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_reads_beside_the_writer),
		cmocka_unit_test(changes_and_losses_are_counted),
		cmocka_unit_test(reader_may_do_nothing_else),
		cmocka_unit_test(volume_of_another_owner_is_not_read),
		cmocka_unit_test(writer_is_no_reader),
		cmocka_unit_test(removal_waits_for_no_reader),
		cmocka_unit_test(removed_volume_is_read_no_more),
		cmocka_unit_test(readers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
