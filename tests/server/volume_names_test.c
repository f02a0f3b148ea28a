/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_names_test.c - a server and the names of its volumes: a record may bring another one, and
 * no two volumes have one name, or are kept for it.
 */
#include <errno.h>
#include <string.h>

#include "tests/server/named_volume.h"

/* A session that has the volume open, in epoch 1, with a record of version 1. */
static struct rbx_session *make(struct world *world, const char *name,
				struct rbx_wire_volume *volume)
{
	struct rbx_session *session = world_session(world);
	struct rbx_wire_message accept;

	assert_int_equal(named_open(session, RBX_WIRE_OPEN_CREATE, name, 1, volume), 0);
	accept = named_accept_of(volume, 1, 1);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	return session;
}

static int reserve(struct rbx_session *session, const char *name)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_RESERVE };

	strcpy(m.name, name);
	return rbx_session_talk(session, &m);
}

/* Has the server accept a record of this version with this name. */
static int rename_to(struct rbx_session *session, const struct rbx_wire_volume *volume,
		     uint64_t version, const char *name)
{
	struct rbx_wire_message accept = named_accept_of(volume, 1, version);

	memset(accept.record.name, 0, sizeof(accept.record.name));
	strcpy(accept.record.name, name);
	return rbx_session_talk(session, &accept);
}

static int look(struct world *world, const char *name)
{
	struct rbx_session *session = world_session(world);
	int err = named_open(session, RBX_WIRE_OPEN_LOOK, name, 0, NULL);

	rbx_session_close(session);
	return err;
}

/* Whether nobody can make a volume of this name. */
static bool is_kept(struct world *world, const char *name)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .mode = RBX_WIRE_OPEN_CREATE, .holder = "a test",
				 .writer_epoch = 1, .volume_id = NAMED_ID + 1 },
	};
	struct rbx_session *session = world_session(world);
	int err;

	strcpy(m.volume_open.name, name);
	err = rbx_session_talk(session, &m);
	assert_true(!err || err == -EEXIST);
	rbx_session_close(session); /* without a record it is forgotten */
	return err == -EEXIST;
}

/* ---- Tests -------------------------------------------------------------------------*/

static void record_brings_another_name(void **state)
{
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = make(&world, "old", &volume);
	assert_int_equal(rename_to(session, &volume, 2, "new"), 0);
	assert_int_equal(look(&world, "new"), 0);
	assert_int_equal(look(&world, "old"), -ENOENT);
	/* An older record comes late, and brings nothing back. */
	assert_int_equal(rename_to(session, &volume, 1, "old"), 0);
	assert_int_equal(look(&world, "new"), 0);
	rbx_session_close(session);
	world_stop(&world);
}

/* The other servers of the volume may not have heard of it. */
static void former_name_is_kept_until_a_record_leaves_the_name_alone(void **state)
{
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = make(&world, "old", &volume);
	assert_int_equal(rename_to(session, &volume, 2, "new"), 0);
	assert_true(is_kept(&world, "old"));
	assert_true(is_kept(&world, "new"));
	rbx_session_close(session); /* as if it had died */
	assert_true(is_kept(&world, "old"));
	session = world_session(&world);
	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, "old", 2, &volume), 0);
	assert_string_equal(volume.record.name, "new"); /* it was found by its id */
	accept = named_accept_of(&volume, 2, 3);
	assert_int_equal(rbx_session_talk(session, &accept), 0);
	assert_false(is_kept(&world, "old"));
	assert_true(is_kept(&world, "new"));
	rbx_session_close(session);
	world_stop(&world);
}

static void reserved_name_is_nobody_elses(void **state)
{
	struct rbx_wire_volume volume, others;
	struct rbx_session *session, *other;
	struct world world;

	(void)state;
	world_begin(&world);
	session = make(&world, "one", &volume);
	other = make(&world, "other", &others);
	assert_int_equal(reserve(session, "new"), 0);
	assert_int_equal(look(&world, "new"), -ENOENT); /* it has not got it yet */
	assert_true(is_kept(&world, "new"));
	assert_int_equal(reserve(other, "new"), -EEXIST);
	assert_int_equal(reserve(other, "one"), -EEXIST);
	assert_int_equal(rename_to(other, &others, 2, "new"), -EEXIST);
	assert_int_equal(rename_to(other, &others, 2, "one"), -EEXIST);
	assert_int_equal(look(&world, "other"), 0); /* nothing has changed */
	assert_int_equal(reserve(session, "newer"), 0); /* in place of the one before */
	assert_false(is_kept(&world, "new"));
	assert_int_equal(reserve(session, ""), 0);
	assert_false(is_kept(&world, "newer"));
	assert_int_equal(reserve(session, "new"), 0);
	rbx_session_close(session);
	assert_true(is_kept(&world, "new")); /* whoever comes next may have to finish it */
	assert_int_equal(rename_to(other, &others, 2, "free"), 0);
	assert_int_equal(look(&world, "free"), 0);
	rbx_session_close(other);
	world_stop(&world);
}

static void removed_volume_keeps_no_name(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = make(&world, "old", &volume);
	assert_int_equal(reserve(session, "new"), 0);
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	assert_false(is_kept(&world, "old"));
	assert_false(is_kept(&world, "new"));
	rbx_session_close(session);
	world_stop(&world);
}

static void volume_is_found_by_its_id(void **state)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "whatever", .mode = RBX_WIRE_OPEN_LOOK },
	};
	struct rbx_wire_message create = m;
	struct rbx_wire_volume volume;
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = make(&world, "db", &volume);
	m.volume_open.volume_id = NAMED_ID;
	assert_int_equal(rbx_session_talk(session, &m), 0);
	assert_string_equal(m.volume.record.name, "db");
	m = (struct rbx_wire_message){
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = { .name = "db", .mode = RBX_WIRE_OPEN_LOOK,
				 .volume_id = NAMED_ID + 1 },
	};
	assert_int_equal(rbx_session_talk(session, &m), -ENOENT);
	rbx_session_close(session);
	/* No two have one. */
	session = world_session(&world);
	create.volume_open.mode = RBX_WIRE_OPEN_CREATE;
	create.volume_open.volume_id = NAMED_ID;
	create.volume_open.writer_epoch = 1;
	strcpy(create.volume_open.holder, "a test");
	assert_int_equal(rbx_session_talk(session, &create), -EEXIST);
	rbx_session_close(session);
	world_stop(&world);
}

static void reserving_needs_the_volume(void **state)
{
	struct rbx_session *session;
	struct world world;

	(void)state;
	world_begin(&world);
	session = world_session(&world);
	assert_int_equal(reserve(session, "new"), -EPROTO);
	rbx_session_close(session);
	assert_false(is_kept(&world, "new"));
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_brings_another_name),
		cmocka_unit_test(former_name_is_kept_until_a_record_leaves_the_name_alone),
		cmocka_unit_test(reserved_name_is_nobody_elses),
		cmocka_unit_test(removed_volume_keeps_no_name),
		cmocka_unit_test(volume_is_found_by_its_id),
		cmocka_unit_test(reserving_needs_the_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
