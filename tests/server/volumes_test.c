/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes_test.c - a named volume outlives its clients, and one of them at a time can
 * reach it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "server/volume_state.h"
#include "tests/server/named_volume.h"
#include "tests/server/raw_client.h"

static uint32_t slabs_lent(struct world *world)
{
	return (uint32_t)world_stats(world).slabs_lent;
}

static bool nothing_is_lent(struct world *world)
{
	struct rbx_lender_counts counts;

	pthread_mutex_lock(&world->server->lock);
	rbx_lender_counts(world->server->lender, &counts);
	pthread_mutex_unlock(&world->server->lock);
	return !counts.slabs_lent && !counts.slabs_ending;
}

static void contents_outlive_a_client(void **state)
{
	struct rbx_session *session;
	struct rbx_wire_volume volume;
	struct rbx_wire_labels labels;
	struct rbx_loan loan, found;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = named_make(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	assert_int_equal(slabs_lent(&world), 1);

	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_int_equal(volume.promised_epoch, 1);
	assert_false(volume.is_open);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 2, &volume), 0);
	assert_int_equal(volume.record.volume_id, NAMED_ID);
	assert_int_equal(volume.record.size_bytes, 8 * WORLD_SLAB_BYTES);
	assert_int_equal(volume.record.version, 1);
	assert_string_equal(volume.holder, "a test");
	labels = named_labels(session, 0);
	assert_int_equal(labels.count, 1);
	assert_int_equal(labels.next, 0);
	assert_int_equal(labels.labels[0].label, 3);
	assert_int_equal(labels.labels[0].is_complete, 1);
	found = named_loan_of(&labels.labels[0]);
	assert_int_equal(found.epoch, loan.epoch);
	qp = world_qp(&world, session);
	named_expect(&world, qp, &found);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

/* The former writer is not dead: it was only slow. */
static void former_writer_is_shut_out_before_the_next_one_is_in(void **state)
{
	struct rbx_session *former, *next;
	struct rbx_qp *former_qp, *next_qp;
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_loan loan, more;
	struct world world;

	(void)state;
	world_begin(&world);
	former = named_make(&world, &former_qp, &loan);
	next = world_session(&world);
	assert_int_equal(named_open(next, RBX_WIRE_OPEN_WRITE, "db", 2, &volume), 0);
	memset(world.memory, 0xee, WORLD_SLAB_BYTES);
	assert_int_not_equal(world_transfer(&world, former_qp, RBX_OP_WRITE, &loan), 0);
	assert_int_not_equal(world_transfer(&world, former_qp, RBX_OP_READ, &loan), 0);
	assert_int_not_equal(rbx_session_map_for(former, &(struct rbx_wire_map){ 4, 1, 0 }, &more),
			     0);
	accept = named_accept_of(&volume, 1, 2);
	assert_int_not_equal(rbx_session_talk(former, &accept), 0);
	assert_int_equal(rbx_session_resume(former, rbx_now_ns() + 5000000000ull), -ESTALE);
	next_qp = world_qp(&world, next);
	named_expect(&world, next_qp, &loan);
	world.choice.ops->destroy_qp(former_qp);
	world.choice.ops->destroy_qp(next_qp);
	rbx_session_close(former);
	rbx_session_close(next);
	assert_int_equal(slabs_lent(&world), 1);
	world_stop(&world);
}

static void volume_that_was_never_complete_is_forgotten(void **state)
{
	struct rbx_wire_map map = { .label = 1 };
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	assert_int_equal(rbx_session_map_for(session, &map, &loan), 0);
	rbx_session_close(session);
	world_wait(&world, nothing_is_lent);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -ENOENT);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), 0);
	rbx_session_close(session);
	world_stop(&world);
}

static void removed_volume_gives_its_memory_back(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = named_make(&world, &qp, &loan);
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	assert_int_not_equal(world_transfer(&world, qp, RBX_OP_READ, &loan), 0);
	world.choice.ops->destroy_qp(qp);
	world_wait(&world, nothing_is_lent);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -ENOENT);
	rbx_session_close(session);
	world_stop(&world);
}

static void volume_ends_when_its_time_is_over(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_session *session;
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = named_make(&world, &qp, &loan);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	accept = named_accept_of(&volume, 1, 2);
	accept.record.keep_s = 0;
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	usleep(1200000); /* as long as it is open it stays */
	named_expect(&world, qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_wait(&world, nothing_is_lent);
	world_stop(&world);
}

/* What was lent before the open is not taken back, although the session was never told. */
static void resume_keeps_what_was_there_before(void **state)
{
	struct rbx_session *session;
	struct rbx_wire_labels labels;
	struct rbx_loan loan, found;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = named_make(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	assert_int_equal(rbx_session_resume(session, rbx_now_ns() + 5000000000ull), 0);
	labels = named_labels(session, 0);
	assert_int_equal(labels.count, 1);
	found = named_loan_of(&labels.labels[0]);
	qp = world_qp(&world, session);
	named_expect(&world, qp, &found);
	assert_int_equal(rbx_session_unmap(session, &found), 0);
	assert_int_equal(named_labels(session, 0).count, 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	world_stop(&world);
}

static void silent_writer_loses_its_session_and_not_the_volume(void **state)
{
	struct rbx_session *session;
	struct raw_client raw;
	struct world world;
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .holder = "silent", .writer_epoch = 2,
				 .volume_id = NAMED_ID, .mode = RBX_WIRE_OPEN_WRITE },
	};
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct rbx_qp *qp;

	(void)state;
	world_options(&world);
	world.options.lease_ms = 300;
	world_start(&world);
	session = named_make(&world, &qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	raw_client_arrive(&raw, &world);
	raw_client_enter(&raw);
	raw_client_send(&raw, &m);
	assert_true(raw_client_hear(&raw, &m));
	assert_int_equal(m.type, RBX_WIRE_VOLUME);
	session = world_session(&world);
	do
		assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	while (volume.is_open);
	assert_string_equal(volume.holder, "silent");
	assert_int_equal(slabs_lent(&world), 1);
	rbx_session_close(session);
	raw_client_leave(&raw);
	world_stop(&world);
}

/* The server may close a volume after it has read the clock, and look at it then. */
static void volume_is_not_over_before_it_is_closed(void **state)
{
	static const char name[RBX_WIRE_VOLUME_NAME_BYTES] = "db";
	struct rbx_kept_volume *kept;
	struct rbx_wire_message accept;
	struct rbx_session *session;
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	world_begin(&world);
	session = named_make(&world, &qp, &loan);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	accept = named_accept_of(&volume, 1, 2);
	accept.record.keep_s = 3600;
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(session);
	pthread_mutex_lock(&world.server->lock);
	kept = rbx_volume_find(world.server, name);
	world.server->volumes.checked_ns = 0;
	rbx_volumes_tick(world.server, kept->closed_ns - 1);
	pthread_mutex_unlock(&world.server->lock);
	assert_int_equal(slabs_lent(&world), 1);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contents_outlive_a_client),
		cmocka_unit_test(former_writer_is_shut_out_before_the_next_one_is_in),
		cmocka_unit_test(volume_that_was_never_complete_is_forgotten),
		cmocka_unit_test(removed_volume_gives_its_memory_back),
		cmocka_unit_test(volume_ends_when_its_time_is_over),
		cmocka_unit_test(volume_is_not_over_before_it_is_closed),
		cmocka_unit_test(resume_keeps_what_was_there_before),
		cmocka_unit_test(silent_writer_loses_its_session_and_not_the_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
