/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * owners_test.c - the named volumes of several owners at one server: how many each may have.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/state.h"
#include "tests/server/named_volume.h"

#define SECRET "correct horse battery staple"
#define OTHER "staple battery horse correct"

static void start(struct world *world, const char *lines, uint32_t volumes_max)
{
	world_options(world);
	world->options.volumes_max = volumes_max;
	strcpy(world->options.secrets_file, world_secrets_file(lines));
	world_start(world);
}

/* Makes a volume, as this client if it is named. 0 or -errno. */
static int make(struct world *world, const char *credential, const char *secret, const char *name)
{
	struct rbx_session *session = credential ? world_session_as(world, credential, secret) :
						   world_session(world);
	struct rbx_wire_message accept;
	struct rbx_wire_volume volume;
	int err = named_open(session, RBX_WIRE_OPEN_CREATE, name, 1, &volume);

	if (!err) {
		accept = named_accept_of(&volume, 1, 1);
		err = rbx_session_talk(session, &accept);
	}
	rbx_session_close(session);
	return err;
}

static void remove_volume(struct world *world, const char *credential, const char *secret,
			  const char *name)
{
	struct rbx_session *session = world_session_as(world, credential, secret);
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };

	assert_int_equal(named_open(session, RBX_WIRE_OPEN_WRITE, name, 2, NULL), 0);
	assert_int_equal(rbx_session_talk(session, &remove), 0);
	rbx_session_close(session);
}

/* As many as one may have. */
static uint32_t fill(struct world *world, const char *credential, const char *secret, int err)
{
	uint32_t count = 0;
	char name[32];
	int made;

	do {
		snprintf(name, sizeof(name), "%s%u", credential ?: "v", count);
		made = make(world, credential, secret, name);
		count += !made;
	} while (!made);
	assert_int_equal(made, err);
	return count;
}

/* ---- How many --------------------------------------------------------------------*/

/* Also those that are still being made, and not those that were removed. */
static void each_owner_has_so_many_volumes(void **state)
{
	struct rbx_session *maker;
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nother,volumes=3:" OTHER "\nnone,volumes=0:" OTHER "\n", 2);
	assert_int_equal(fill(&world, "one", SECRET, -EDQUOT), 2);
	assert_non_null(strstr(rbx_last_error(), "as many named volumes"));
	assert_non_null(strstr(rbx_last_error(), "limit (volumes)"));
	assert_int_equal(fill(&world, "other", OTHER, -EDQUOT), 3);
	assert_int_equal(fill(&world, "none", OTHER, -EDQUOT), 0);
	remove_volume(&world, "one", SECRET, "one0");
	maker = world_session_as(&world, "one", SECRET);
	assert_int_equal(named_open(maker, RBX_WIRE_OPEN_CREATE, "half", 1, NULL), 0);
	assert_int_equal(make(&world, "one", SECRET, "more"), -EDQUOT);
	rbx_session_close(maker);
	assert_int_equal(make(&world, "one", SECRET, "more"), 0);
	assert_int_equal(make(&world, "one", SECRET, "much-more"), -EDQUOT);
	world_stop(&world);
}

static void reload_changes_how_many(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nother:" OTHER "\n", 2);
	assert_int_equal(fill(&world, "one", SECRET, -EDQUOT), 2);
	world_secrets_file("one:" SECRET "\nother,volumes=1:" OTHER "\n");
	world.options.volumes_max = 3;
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(make(&world, "one", SECRET, "third"), 0);
	assert_int_equal(make(&world, "one", SECRET, "fourth"), -EDQUOT);
	assert_int_equal(fill(&world, "other", OTHER, -EDQUOT), 1);
	/* Less than there are: they stay. */
	world.options.volumes_max = 1;
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	remove_volume(&world, "one", SECRET, "third");
	remove_volume(&world, "one", SECRET, "one1");
	assert_int_equal(make(&world, "one", SECRET, "fourth"), -EDQUOT);
	remove_volume(&world, "one", SECRET, "one0");
	assert_int_equal(make(&world, "one", SECRET, "fourth"), 0);
	world.options.volumes_max = 1025;
	assert_int_equal(rbx_server_reload(world.server, &world.options), -EINVAL);
	world_stop(&world);
}

static void preset_leaves_room_for_others(void **state)
{
	struct world world;

	(void)state;
	start(&world, "one:" SECRET "\nother:" OTHER "\n", 0);
	assert_int_equal(fill(&world, "one", SECRET, -EDQUOT), 64);
	assert_int_equal(make(&world, "other", OTHER, "mine"), 0);
	world_stop(&world);
}

static void owner_alone_has_all(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world);
	assert_int_equal(fill(&world, NULL, NULL, -ENOSPC), 1024);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_owner_has_so_many_volumes),
		cmocka_unit_test(reload_changes_how_many),
		cmocka_unit_test(preset_leaves_room_for_others),
		cmocka_unit_test(owner_alone_has_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
