/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_file_test.c - a server that is started again with its memory file is the same one, for
 * named volumes; everything else that it lent is gone, with its contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "server/state.h"
#include "tests/server/memory_file_world.h"

/* The server stops in order, and another one is there; nobody has a session. */
static void start_again(struct world *world)
{
	struct rbx_server_options options = world->options;

	world_stop(world);
	memset(world, 0, sizeof(*world));
	world->options = options;
	world_start(world);
}

/* ---- Tests -----------------------------------------------------------------------------*/

static void volume_is_there_again(void **state)
{
	struct rbx_wire_message words = {
		.type = RBX_WIRE_INTENTS,
		.intents = { 1, { { .word = 5, .behind = 6 } } },
	};
	struct rbx_wire_volume before, after;
	struct rbx_wire_labels labels;
	struct rbx_session *session;
	struct rbx_loan loan, found;
	uint64_t incarnation;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	begin(&world);
	incarnation = rbx_server_incarnation(world.server);
	session = named_make(&world, &qp, &loan);
	words.intents.intents[0].slab_id = loan.slab_id;
	words.intents.intents[0].epoch = loan.epoch;
	assert_int_equal(rbx_session_talk(session, &words), 0);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, &before), 0);
	leave(&world, session, qp);
	start_again(&world);
	assert_int_equal(rbx_server_incarnation(world.server), incarnation);
	assert_int_equal(world_stats(&world).slabs_lent, 1);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, &after), 0);
	assert_memory_equal(&before.record, &after.record, sizeof(before.record));
	assert_int_equal(after.promised_epoch, 1);
	assert_string_equal(after.holder, "a test");
	assert_int_equal(after.is_open, 0);
	/* What was promised is not promised to another one. */
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 1, NULL), -ESTALE);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	labels = named_labels(session, 0);
	assert_int_equal(labels.count, 1);
	assert_int_equal(labels.labels[0].label, 3);
	assert_int_equal(labels.labels[0].is_complete, 1);
	assert_int_equal(labels.labels[0].intent, 5);
	assert_int_equal(labels.labels[0].behind, 6);
	found = named_loan_of(&labels.labels[0]);
	assert_int_equal(found.slab_id, loan.slab_id);
	assert_int_equal(found.epoch, loan.epoch);
	qp = world_qp(&world, session);
	named_expect(&world, qp, &found);
	leave(&world, session, qp);
	start_again(&world); /* after an open alone */
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), -ESTALE);
	rbx_session_close(session);
	end(&world);
}

static void loan_after_the_start_has_a_newer_epoch(void **state)
{
	struct rbx_loan first, second;
	struct rbx_session *session;
	struct world world;

	(void)state;
	begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &first), 0);
	rbx_session_close(session);
	start_again(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 0);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &second), 0);
	assert_true(second.epoch > first.epoch);
	rbx_session_close(session);
	end(&world);
}

/* All slabs, one after another: none shows what another client wrote. */
static void what_others_wrote_is_gone(void **state)
{
	static const uint8_t zeros[WORLD_SLAB_BYTES];
	struct rbx_session *session;
	struct rbx_loan loans[4];
	struct world world;
	struct rbx_qp *qp;
	int round, i;

	(void)state;
	begin(&world);
	for (round = 0; round < 3; round++) {
		session = world_session(&world);
		qp = world_qp(&world, session);
		for (i = 0; i < 4; i++) {
			assert_int_equal(rbx_session_map(session, &loans[i]), 0);
			assert_int_equal(world_transfer(&world, qp, RBX_OP_READ, &loans[i]), 0);
			assert_memory_equal(world.memory, zeros, sizeof(zeros));
		}
		memset(world.memory, 0xee, WORLD_SLAB_BYTES);
		for (i = 0; i < 4; i++)
			assert_int_equal(world_transfer(&world, qp, RBX_OP_WRITE, &loans[i]), 0);
		leave(&world, session, qp);
		if (round)
			start_again(&world);
	}
	end(&world);
}

/* A client borrows a slab with a tail for a volume that has none, and writes it. */
static void tail_of_a_volume_without_checksums_is_gone(void **state)
{
	const struct rbx_wire_map map = { .label = 4, .is_complete = 1, .has_tail = 1 };
	const uint64_t tail_bytes = rbx_wire_tail_bytes(WORLD_SLAB_BYTES);
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	uint64_t at_bytes;
	struct rbx_qp *qp;
	uint8_t *tail;
	size_t i;
	int fd;

	(void)state;
	begin(&world);
	session = named_make(&world, &qp, &loan);
	assert_int_equal(rbx_session_map_for(session, &map, &loan), 0);
	leave(&world, session, qp);
	at_bytes = rbx_remembered_at(&world.server->remembered, loan.slab_id) + WORLD_SLAB_BYTES;
	fd = open(world.options.memory_file, O_RDWR);
	assert_true(fd >= 0);
	tail = malloc(tail_bytes);
	memset(tail, 0xee, tail_bytes);
	assert_int_equal(pwrite(fd, tail, tail_bytes, (off_t)at_bytes), tail_bytes);
	start_again(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 2);
	assert_int_equal(pread(fd, tail, tail_bytes, (off_t)at_bytes), tail_bytes);
	for (i = 0; i < tail_bytes; i++)
		assert_int_equal(tail[i], 0);
	free(tail);
	close(fd);
	end(&world);
}

static void slab_without_a_label_is_given_up(void **state)
{
	const struct rbx_wire_map map = { .label = 4 };
	struct rbx_wire_message complete = { .type = RBX_WIRE_SLAB_COMPLETE };
	struct rbx_loan loan, open_loan;
	struct rbx_wire_labels labels;
	struct rbx_session *session;
	struct world world;
	struct rbx_qp *qp;
	int round;

	(void)state;
	begin(&world);
	session = named_make(&world, &qp, &loan);
	for (round = 0; round < 2; round++) {
		assert_int_equal(rbx_session_map_for(session, &map, &open_loan), 0);
		if (round) {
			complete.slab_id = open_loan.slab_id;
			complete.epoch = open_loan.epoch;
			assert_int_equal(rbx_session_talk(session, &complete), 0);
		}
		leave(&world, session, qp);
		start_again(&world);
		session = world_session(&world);
		assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db",
					    2 + (uint64_t)round, NULL), 0);
		qp = world_qp(&world, session);
		labels = named_labels(session, 0);
		assert_int_equal(labels.count, 1 + round);
	}
	/* Nor is one whose label was taken back; it is lent again. */
	complete.type = RBX_WIRE_SLAB_INCOMPLETE;
	complete.slab_id = labels.labels[1].slab_id;
	complete.epoch = labels.labels[1].epoch;
	assert_int_equal(rbx_session_talk(session, &complete), 0);
	leave(&world, session, qp);
	start_again(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 4, NULL), 0);
	qp = world_qp(&world, session);
	labels = named_labels(session, 0);
	assert_int_equal(labels.count, 1);
	assert_int_equal(rbx_session_map_for(session,
					     &(struct rbx_wire_map){ .label = 5, .is_complete = 1 },
					     &open_loan),
			 0);
	/* One that is given back is not there any more. */
	assert_int_equal(rbx_session_unmap(session, &open_loan), 0);
	leave(&world, session, qp);
	start_again(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 1);
	end(&world);
}

static void removed_volume_and_one_without_a_record_are_gone(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_session *session, *maker;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	begin(&world);
	session = named_make(&world, &qp, &loan);
	maker = world_session(&world);
	assert_int_equal(named_open(maker, RBX_WIRE_OPEN_CREATE, "half", 1, NULL), 0);
	world.choice.ops->destroy_qp(qp);
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	rbx_session_close(session);
	rbx_session_close(maker);
	start_again(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -ENOENT);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_LOOK, "half", 0, NULL), -ENOENT);
	assert_int_equal(world_stats(&world).slabs_lent, 0);
	rbx_session_close(session);
	/* Places of the table that were free are used again. */
	session = named_make(&world, &qp, &loan);
	leave(&world, session, qp);
	end(&world);
}

/* As if a client had counted so far, which takes it hours. */
static void version_set(struct world *world, uint64_t version)
{
	struct rbx_kept_volume *kept = &world->server->volumes.kept[0];

	pthread_mutex_lock(&world->server->lock);
	kept->acceptor.membership.version = kept->record.version = version;
	pthread_mutex_unlock(&world->server->lock);
}

/* A client that counts its versions as high as it can costs nobody the memory file. */
static void highest_version_is_no_damage(void **state)
{
	const uint64_t highest = RBX_KEPT_VERSION_MAX;
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	begin(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, &volume), 0);
	accept = named_accept_of(&volume, 1, 1);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	version_set(&world, highest - 1);
	accept = named_accept_of(&volume, 1, highest);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	accept = named_accept_of(&volume, 1, highest + 1);
	assert_int_not_equal(rbx_session_talk(session, &accept), 0);
	rbx_session_close(session);
	version_set(&world, UINT64_MAX / 2); /* as one of before could */
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_REMOVE, "db", 2, NULL), 0);
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	rbx_session_close(session);
	start_again(&world);
	world_serves_on(&world);
	end(&world);
}

static void owner_has_as_many_volumes_as_before(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_session *session, *other;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	begin(&world);
	session = named_make(&world, &qp, &loan);
	leave(&world, session, qp);
	start_again(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), 0);
	other = world_session(&world); /* the owner stays */
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	rbx_session_close(session);
	assert_int_equal(named_open(other, RBX_WIRE_OPEN_CREATE, "other", 1, NULL), 0);
	rbx_session_close(other);
	end(&world);
}

static void reserved_name_stays_reserved(void **state)
{
	struct rbx_wire_message reserve = { .type = RBX_WIRE_VOLUME_RESERVE, .name = "new" };
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	begin(&world);
	session = named_make(&world, &qp, &loan);
	assert_int_equal(rbx_session_talk(session, &reserve), 0);
	leave(&world, session, qp);
	start_again(&world);
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "new", 1, NULL), -EEXIST);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, "db", 1, NULL), -EEXIST);
	rbx_session_close(session);
	end(&world);
}

static void *drain(void *world)
{
	return rbx_server_drain(((struct world *)world)->server, 2 * WORLD_WAIT_MS) ? world : NULL;
}

static bool is_draining(struct world *world)
{
	return world_stats(world).draining;
}

/* Nobody waits for slabs that stay: neither if the volume is closed meanwhile, nor if it was. */
static void drain_ends_although_a_volume_is_there(void **state)
{
	uint64_t before_ns = rbx_now_ns();
	struct rbx_session *session;
	pthread_t thread;
	void *result;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	begin(&world);
	session = named_make(&world, &qp, &loan);
	assert_int_equal(rbx_server_drain(world.server, 1), -ETIMEDOUT);
	assert_int_equal(pthread_create(&thread, NULL, drain, &world), 0);
	world_wait(&world, is_draining);
	leave(&world, session, qp);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	assert_true(rbx_now_ns() - before_ns < WORLD_WAIT_MS * 1000000ull);
	assert_int_equal(rbx_server_drain(world.server, WORLD_WAIT_MS), 0);
	start_again(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 1);
	end(&world);
}

static void memory_may_grow_and_not_shrink_below_a_slab(void **state)
{
	struct rbx_server_options options;
	struct rbx_session *session, *writer;
	struct rbx_loan loan, more[4];
	struct world world;
	struct rbx_qp *qp;
	int i;

	(void)state;
	begin(&world);
	session = world_session(&world);
	assert_int_equal(rbx_session_map(session, &loan), 0);
	writer = named_make(&world, &qp, &loan); /* its slab is the second one */
	world.choice.ops->destroy_qp(qp);
	options = world.options;
	options.memory_bytes = 6 * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &options), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(rbx_session_map(session, &more[i]), 0);
	rbx_session_close(session);
	rbx_session_close(writer);
	start_again(&world);
	options = world.options;
	world_stop(&world);
	options.memory_bytes = WORLD_SLAB_BYTES;
	refused(&options, -EINVAL, "give --memory 128K or more");
	options.memory_bytes = 8 * WORLD_SLAB_BYTES;
	options.slab_bytes *= 2;
	refused(&options, -EINVAL, "give --slab 64K");
	memset(&world, 0, sizeof(world));
	world.options = options;
	world.options.slab_bytes = WORLD_SLAB_BYTES;
	world.options.memory_bytes = 8 * WORLD_SLAB_BYTES;
	world_start(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 1);
	session = world_session(&world);
	for (i = 0; i < 7; i++)
		assert_int_equal(rbx_session_map(session, &more[0]), 0);
	rbx_session_close(session);
	end(&world);
}

/* As if the process had been killed: the file is as it was at this moment. */
static void kill_server(struct world *world)
{
	static uint8_t bytes[RBX_STATE_BYTES];
	int fd = open(world->options.memory_file, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	world_stop(world);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	close(fd);
}

/* A slab that there is since a reload. */
static void slab_that_was_added_is_found_after_a_crash(void **state)
{
	const struct rbx_wire_map map = { .label = 4, .is_complete = 1 };
	struct rbx_session *session, *writer;
	struct rbx_server_options options;
	struct rbx_loan loan, more[3];
	struct world world;
	struct rbx_qp *qp;
	int i;

	(void)state;
	begin(&world);
	options = world.options;
	writer = named_make(&world, &qp, &loan);
	session = world_session(&world);
	for (i = 0; i < 3; i++)
		assert_int_equal(rbx_session_map(session, &more[i]), 0);
	options.memory_bytes = 6 * WORLD_SLAB_BYTES;
	assert_int_equal(rbx_server_reload(world.server, &options), 0);
	assert_int_equal(rbx_session_map_for(writer, &map, &loan), 0);
	assert_int_equal(loan.slab_id, 5);
	rbx_session_close(session);
	leave(&world, writer, qp);
	options = world.options;
	kill_server(&world);
	refused(&options, -EINVAL, "give --memory 320K or more");
	memset(&world, 0, sizeof(world));
	world.options = options;
	world.options.memory_bytes = 6 * WORLD_SLAB_BYTES;
	world_start(&world);
	assert_int_equal(world_stats(&world).slabs_lent, 2);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_is_there_again),
		cmocka_unit_test(loan_after_the_start_has_a_newer_epoch),
		cmocka_unit_test(what_others_wrote_is_gone),
		cmocka_unit_test(tail_of_a_volume_without_checksums_is_gone),
		cmocka_unit_test(slab_without_a_label_is_given_up),
		cmocka_unit_test(removed_volume_and_one_without_a_record_are_gone),
		cmocka_unit_test(highest_version_is_no_damage),
		cmocka_unit_test(owner_has_as_many_volumes_as_before),
		cmocka_unit_test(reserved_name_stays_reserved),
		cmocka_unit_test(drain_ends_although_a_volume_is_there),
		cmocka_unit_test(memory_may_grow_and_not_shrink_below_a_slab),
		cmocka_unit_test(slab_that_was_added_is_found_after_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
