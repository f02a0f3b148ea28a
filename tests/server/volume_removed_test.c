/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_removed_test.c - what a server knows of volumes that were removed.
 */
#include <errno.h>
#include <string.h>

#include "tests/server/named_volume.h"

#define SECRET "correct horse battery staple"
#define OTHER "staple battery horse correct"

static const struct rbx_wire_message remove_it = { .type = RBX_WIRE_VOLUME_REMOVE };

static int open_id(struct rbx_session *session, enum rbx_wire_open_mode mode, const char *name,
		   uint64_t id, uint64_t epoch, struct rbx_wire_volume *volume)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .mode = mode, .volume_id = id, .writer_epoch = epoch },
	};
	int err;

	strcpy(m.volume_open.name, name);
	if (mode != RBX_WIRE_OPEN_LOOK)
		strcpy(m.volume_open.holder, "a test");
	err = rbx_session_talk(session, &m);
	if (!err && volume)
		*volume = m.volume;
	return err;
}

static int talk(struct rbx_session *session, struct rbx_wire_message m)
{
	return rbx_session_talk(session, &m);
}

/* Makes it in epoch 1, and has it removed in epoch 2. */
static void make_and_remove(struct rbx_session *session, const char *name, uint64_t id)
{
	struct rbx_wire_volume volume;

	assert_int_equal(open_id(session, RBX_WIRE_OPEN_CREATE, name, id, 1, &volume), 0);
	assert_int_equal(talk(session, named_accept_of(&volume, 1, 1)), 0);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_REMOVE, name, id, 2, NULL), 0);
	assert_int_equal(talk(session, remove_it), 0);
}

static void removed_volume_is_told_by_its_id_alone(void **state)
{
	struct rbx_wire_message list = { .type = RBX_WIRE_VOLUME_LIST };
	struct rbx_wire_volume volume = { 0 };
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	make_and_remove(session, "db", 77);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 0, 0, NULL), -ENOENT);
	assert_int_equal(talk(session, list), -ENOENT);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 77, 0, &volume), 0);
	assert_true(volume.record.flags & RBX_WIRE_REMOVED);
	assert_int_equal(volume.record.epoch, 2);
	assert_int_equal(volume.record.version, 2);
	assert_int_equal(volume.promised_epoch, 2);
	assert_false(volume.is_open);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_WRITE, "db", 77, 3, NULL), -ENOENT);
	/* The name is that of another one now. */
	make_and_remove(session, "db", 78);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 77, 0, &volume), 0);
	rbx_session_close(session);
	world_stop(&world);
}

/* A writer of before the removal gives the volume to the server once more; or one that came later,
 * and has never heard of it. */
static void removed_volume_is_made_again_by_later_writers_alone(void **state)
{
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	make_and_remove(session, "db", 77);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_CREATE, "db", 77, 2, NULL), -ESTALE);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_CREATE, "db", 77, 3, &volume), 0);
	assert_int_equal(talk(session, named_accept_of(&volume, 3, 5)), 0);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 77, 0, &volume), 0);
	assert_false(volume.record.flags & RBX_WIRE_REMOVED);
	/* It leaves the volume, which lives on elsewhere. */
	assert_int_equal(talk(session, remove_it), 0);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 77, 0, NULL), -ENOENT);
	rbx_session_close(session);
	world_stop(&world);
}

static void client_cannot_say_that_a_volume_was_removed(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_CREATE, "db", 77, 1, &volume), 0);
	accept = named_accept_of(&volume, 1, 1);
	accept.record.flags |= RBX_WIRE_REMOVED;
	assert_int_not_equal(talk(session, accept), 0);
	rbx_session_close(session);
	world_stop(&world);
}

/* The table is full of them: the oldest one makes room. */
static void removed_volumes_are_forgotten_before_others_are_refused(void **state)
{
	struct rbx_session *session;
	struct world world;
	uint32_t i;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	for (i = 0; i < RBX_KEPT_VOLUMES_MAX + 3; i++)
		make_and_remove(session, "db", 1000 + i);
	for (i = 0; i < 3; i++)
		assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 1000 + i, 0, NULL),
				 -ENOENT);
	assert_int_equal(open_id(session, RBX_WIRE_OPEN_LOOK, "db", 1003, 0, NULL), 0);
	rbx_session_close(session);
	world_stop(&world);
}

/* ---- Of several owners ------------------------------------------------------------*/

/* "other" may have one volume. */
static void begin_with_owners(struct world *world, struct rbx_session **one,
			      struct rbx_session **other)
{
	world_options(world);
	strcpy(world->options.secrets_file,
	       world_secrets_file("one:" SECRET "\nother,volumes=1:" OTHER "\n"));
	world_start(world);
	*one = world_session_as(world, "one", SECRET);
	*other = world_session_as(world, "other", OTHER);
	assert_true(*one && *other);
}

static bool is_known(struct rbx_session *session, uint64_t id)
{
	struct rbx_wire_volume volume;

	return !open_id(session, RBX_WIRE_OPEN_LOOK, "db", id, 0, &volume) &&
	       volume.record.flags & RBX_WIRE_REMOVED;
}

static void owner_drives_out_removals_of_its_own(void **state)
{
	struct rbx_session *one, *other;
	struct world world;
	uint32_t i;

	(void)state;
	begin_with_owners(&world, &one, &other);
	make_and_remove(one, "db", 77);
	for (i = 0; i < RBX_KEPT_VOLUMES_MAX; i++)
		make_and_remove(other, "theirs", 1000 + i);
	assert_true(is_known(one, 77));
	assert_false(is_known(other, 1000));
	assert_true(is_known(other, 1001));
	/* Who has none takes one of the owner of most. */
	assert_int_equal(open_id(one, RBX_WIRE_OPEN_CREATE, "db", 77, 3, NULL), 0);
	assert_int_equal(talk(one, remove_it), 0);
	assert_int_equal(open_id(one, RBX_WIRE_OPEN_CREATE, "db", 78, 1, NULL), 0);
	assert_true(is_known(other, 1002));
	rbx_session_close(one);
	rbx_session_close(other);
	world_stop(&world);
}

static void refused_volume_drives_out_nothing(void **state)
{
	struct rbx_session *one, *other;
	struct rbx_wire_volume volume;
	struct world world;
	uint32_t i;

	(void)state;
	begin_with_owners(&world, &one, &other);
	assert_int_equal(open_id(other, RBX_WIRE_OPEN_CREATE, "theirs", 5, 1, &volume), 0);
	assert_int_equal(talk(other, named_accept_of(&volume, 1, 1)), 0);
	rbx_session_close(other);
	for (i = 0; i < RBX_KEPT_VOLUMES_MAX - 1; i++)
		make_and_remove(one, "db", 1000 + i);
	other = world_session_as(&world, "other", OTHER);
	assert_int_not_equal(open_id(other, RBX_WIRE_OPEN_CREATE, "more", 6, 1, NULL), 0);
	assert_true(is_known(one, 1000));
	rbx_session_close(one);
	rbx_session_close(other);
	world_stop(&world);
}

static void removal_is_undone_by_its_owner_alone(void **state)
{
	struct rbx_session *one, *other;
	struct world world;

	(void)state;
	begin_with_owners(&world, &one, &other);
	make_and_remove(one, "db", 77);
	assert_int_equal(open_id(other, RBX_WIRE_OPEN_CREATE, "db", 77, 9, NULL), -EACCES);
	assert_true(is_known(one, 77));
	assert_int_equal(open_id(one, RBX_WIRE_OPEN_CREATE, "db", 77, 9, NULL), 0);
	assert_false(is_known(one, 77));
	rbx_session_close(one);
	rbx_session_close(other);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_volume_is_told_by_its_id_alone),
		cmocka_unit_test(removed_volume_is_made_again_by_later_writers_alone),
		cmocka_unit_test(client_cannot_say_that_a_volume_was_removed),
		cmocka_unit_test(removed_volumes_are_forgotten_before_others_are_refused),
		cmocka_unit_test(owner_drives_out_removals_of_its_own),
		cmocka_unit_test(refused_volume_drives_out_nothing),
		cmocka_unit_test(removal_is_undone_by_its_owner_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
