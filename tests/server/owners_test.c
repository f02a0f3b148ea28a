/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * owners_test.c - the named volumes of several owners at one server: how many each may have, and
 * what an admin may do with those of others.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Whoever holds this lets no slab be emptied. */
static pthread_mutex_t emptying = PTHREAD_MUTEX_INITIALIZER;

/* In the place of the C library's. */
int fallocate(int fd, int mode, off_t offset, off_t length)
{
	if (mode & FALLOC_FL_PUNCH_HOLE) {
		pthread_mutex_lock(&emptying);
		pthread_mutex_unlock(&emptying);
	}
	return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

/* Makes a volume with a slab, and removes it. 0 or -errno. */
static int make_and_remove(struct world *world)
{
	const struct rbx_wire_map map = { .label = 1 };
	struct rbx_session *session = world_session_as(world, "one", SECRET);
	struct rbx_wire_message accept, remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	int err = named_open(session, RBX_WIRE_OPEN_CREATE, "again", 1, &volume);

	if (!err) {
		accept = named_accept_of(&volume, 1, 1);
		assert_int_equal(rbx_session_talk(session, &accept), 0);
		assert_int_equal(rbx_session_map_for(session, &map, &loan), 0);
		assert_int_equal(rbx_session_talk(session, &remove), 0);
	}
	rbx_session_close(session);
	return err;
}

/* Each that is being emptied needs a place of the table, of which there are so many for all. */
static void volumes_that_are_being_emptied_are_limited_too(void **state)
{
	struct world world;
	uint32_t i;
	int err;

	(void)state;
	start(&world, "one:" SECRET "\n", 1);
	pthread_mutex_lock(&emptying);
	for (i = 0; i < 2; i++)
		assert_int_equal(make_and_remove(&world), 0);
	assert_int_equal(make_and_remove(&world), -EDQUOT);
	pthread_mutex_unlock(&emptying);
	do
		err = make_and_remove(&world);
	while (err == -EDQUOT);
	assert_int_equal(err, 0);
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

/* ---- Those of others -----------------------------------------------------------------*/

#define LINES "one:" SECRET "\nother:" OTHER "\n"
#define ADMIN "ops,admin:" ADMIN_SECRET "\n"
#define ADMIN_SECRET "battery correct staple horse"

/* "db" of one, with a slab that is written; and its session, which has it open. */
static struct rbx_session *open_of_one(struct world *world, struct rbx_qp **qp,
				       struct rbx_loan *loan)
{
	struct rbx_session *session = world_session_as(world, "one", SECRET);

	named_fill(world, session, qp, loan);
	return session;
}

static uint32_t names_listed(struct rbx_session *session, const char *owner)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_LIST };
	uint32_t count = 0;

	while (!rbx_session_talk(session, &m)) {
		count += !strcmp(m.volume.record.owner, owner);
		m = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME_LIST,
					       .cursor = m.volume.next };
	}
	return count;
}

static bool nothing_is_lent(struct world *world)
{
	return !world_stats(world).lent_bytes;
}

static void admin_lists_and_removes_volumes_of_others(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_session *one, *other, *ops;
	struct rbx_wire_volume volume;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	start(&world, LINES ADMIN, 0);
	one = open_of_one(&world, &qp, &loan);
	assert_int_equal(make(&world, "other", OTHER, "more"), 0);
	other = world_session_as(&world, "other", OTHER);
	assert_int_equal(names_listed(other, "one"), 0);
	assert_int_equal(named_open(other, RBX_WIRE_OPEN_LOOK, "db", 0, NULL), -EACCES);
	assert_int_equal(named_open(other, RBX_WIRE_OPEN_REMOVE, "db", 2, NULL), -EACCES);
	assert_int_equal(named_open(other, RBX_WIRE_OPEN_ANEW, "db", 2, NULL), -EACCES);
	ops = world_session_as(&world, "ops", ADMIN_SECRET);
	assert_int_equal(names_listed(ops, "one"), 1);
	assert_int_equal(names_listed(ops, "other"), 1);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_LOOK, "db", 0, &volume), 0);
	assert_string_equal(volume.record.owner, "one");
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_WRITE, "db", 2, NULL), -EACCES);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_ANEW, "db", 2, NULL), -EACCES);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_CREATE, "db", 2, NULL), -EEXIST);
	named_expect(&world, qp, &loan); /* so far nobody is shut out */
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", 2, NULL), 0);
	assert_int_not_equal(world_transfer(&world, qp, RBX_OP_READ, &loan), 0);
	assert_int_equal(rbx_session_talk(ops, &remove), 0);
	assert_int_equal(names_listed(ops, "one"), 0);
	world_wait(&world, nothing_is_lent);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(one);
	rbx_session_close(other);
	rbx_session_close(ops);
	world_stop(&world);
}

/* What a session asks that has opened "db" of one to remove it. */
static int ask_as_remover(struct world *world, uint64_t epoch, struct rbx_wire_message *message)
{
	struct rbx_session *ops = world_session_as(world, "ops", ADMIN_SECRET);
	struct rbx_wire_volume volume;
	int err;

	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", epoch, &volume), 0);
	if (message->type == RBX_WIRE_VOLUME_ACCEPT)
		*message = named_accept_of(&volume, epoch, volume.record.version + 1);
	err = rbx_session_talk(ops, message);
	rbx_session_close(ops);
	return err;
}

static void admin_comes_not_near_the_contents(void **state)
{
	const struct rbx_wire_map map = { .label = 4, .is_complete = 1 };
	const struct rbx_qp_init init = { .send_depth_count = 8, .recv_depth_count = 1,
					  .max_sge = 1 };
	struct rbx_wire_message labels = { .type = RBX_WIRE_LABELS };
	struct rbx_wire_message accept = { .type = RBX_WIRE_VOLUME_ACCEPT };
	struct rbx_wire_message complete = { .type = RBX_WIRE_SLAB_COMPLETE };
	struct rbx_session *one, *ops;
	struct rbx_qp_init with_cq = init;
	struct rbx_wire_volume volume;
	struct rbx_loan loan, more;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	start(&world, LINES ADMIN, 0);
	one = open_of_one(&world, &qp, &loan);
	complete.slab_id = loan.slab_id;
	complete.epoch = loan.epoch;
	assert_int_equal(ask_as_remover(&world, 2, &labels), -EPROTO);
	assert_int_equal(ask_as_remover(&world, 3, &accept), -EPROTO);
	assert_int_equal(ask_as_remover(&world, 4, &complete), -EPROTO);
	world.choice.ops->destroy_qp(qp);

	ops = world_session_as(&world, "ops", ADMIN_SECRET);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", 5, NULL), 0);
	with_cq.send_cq = with_cq.recv_cq = world.cq;
	assert_int_not_equal(rbx_session_connect_qp(ops, &with_cq, &qp), 0);
	/* Not even by first opening it to remove it. */
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_WRITE, "db", 6, NULL), -EACCES);
	assert_int_not_equal(rbx_session_map_for(ops, &map, &more), 0);
	rbx_session_close(ops);
	ops = world_session_as(&world, "ops", ADMIN_SECRET);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", 6, NULL), 0);
	assert_int_not_equal(rbx_session_check(ops, &loan), 0);
	rbx_session_close(ops);
	ops = world_session_as(&world, "ops", ADMIN_SECRET);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", 7, NULL), 0);
	assert_int_not_equal(rbx_session_unmap(ops, &loan), 0);
	rbx_session_close(ops);

	/* All is as it was, for the owner. */
	rbx_session_close(one);
	one = world_session_as(&world, "one", SECRET);
	assert_int_equal(named_open(one, RBX_WIRE_OPEN_REMOVE, "db", 8, NULL), 0);
	assert_int_equal(named_open(one, RBX_WIRE_OPEN_WRITE, "db", 9, &volume), 0);
	assert_int_equal(volume.record.version, 1);
	assert_int_equal(named_labels(one, 0).count, 1);
	qp = world_qp(&world, one);
	named_expect(&world, qp, &loan);
	world.choice.ops->destroy_qp(qp);
	rbx_session_close(one);
	world_stop(&world);
}

/* Of a session that is there, too; and what was made with a credential that is gone can be
 * removed. */
static void reload_gives_and_takes_the_right(void **state)
{
	struct rbx_wire_message remove = { .type = RBX_WIRE_VOLUME_REMOVE };
	struct rbx_wire_message refused = remove;
	struct rbx_session *ops;
	struct world world;

	(void)state;
	start(&world, LINES "ops:" ADMIN_SECRET "\n", 0);
	assert_int_equal(make(&world, "one", SECRET, "db"), 0);
	ops = world_session_as(&world, "ops", ADMIN_SECRET);
	assert_int_equal(names_listed(ops, "one"), 0);
	world_secrets_file(ADMIN); /* one is gone */
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(names_listed(ops, "one"), 1);
	world_secrets_file("ops:" ADMIN_SECRET "\n");
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", 2, NULL), -EACCES);
	world_secrets_file(ADMIN);
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(named_open(ops, RBX_WIRE_OPEN_REMOVE, "db", 2, NULL), 0);
	/* Also from one that has opened it for that already. */
	world_secrets_file("ops:" ADMIN_SECRET "\n");
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(rbx_session_talk(ops, &refused), -EACCES);
	world_secrets_file(ADMIN);
	assert_int_equal(rbx_server_reload(world.server, &world.options), 0);
	assert_int_equal(rbx_session_talk(ops, &remove), 0);
	assert_int_equal(names_listed(ops, "one"), 0);
	rbx_session_close(ops);
	world_stop(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_owner_has_so_many_volumes),
		cmocka_unit_test(reload_changes_how_many),
		cmocka_unit_test(volumes_that_are_being_emptied_are_limited_too),
		cmocka_unit_test(preset_leaves_room_for_others),
		cmocka_unit_test(owner_alone_has_all),
		cmocka_unit_test(admin_lists_and_removes_volumes_of_others),
		cmocka_unit_test(admin_comes_not_near_the_contents),
		cmocka_unit_test(reload_gives_and_takes_the_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
