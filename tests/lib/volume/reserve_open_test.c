/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reserve_open_test.c - a reserved volume becomes larger while it is open, with all the memory for
 * that or not at all.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/session.h"
#include "lib/volume/volume.h"
#include "tests/lib/volume/third_server.h"

#define SLAB ((uint64_t)TENANT_SLAB_BYTES)
#define SLABS 2u
#define MORE 5u
#define MOST (SERVERS * TENANT_SLABS / 2)
#define CHILDREN 3

static struct rbx_volume *make(struct rbx_context *ctx, const char *name, uint32_t replicas,
			       uint64_t slabs)
{
	struct rbx_volume_create_options create;
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_create_options_defaults(&create);
	create.replicas = replicas;
	create.reserve = 1;
	assert_int_equal(rbx_volume_create(ctx, pool, name, slabs * SLAB, &create), 0);
	rbx_volume_options_defaults(&options);
	options.name = name;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	return volume;
}

static void all_is_there(struct rbx_volume *volume, uint64_t size, uint32_t replicas)
{
	uint64_t slabs = (size + SLAB - 1) / SLAB;
	struct rbx_volume_status status;

	assert_int_equal(rbx_volume_size(volume), size);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs, slabs);
	assert_int_equal(status.slabs_whole, slabs);
	assert_int_equal(status.slabs_blank, 0);
	assert_int_equal(lent_slabs(), slabs * replicas);
}

static void zeros_are_at(struct rbx_volume *volume, uint64_t offset)
{
	uint8_t page[PAGE], zeros[PAGE] = { 0 };

	assert_int_equal(rbx_read(volume, page, PAGE, offset), 0);
	assert_memory_equal(page, zeros, PAGE);
}

static void end(struct rbx_context *ctx, struct rbx_volume *volume, const char *name)
{
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, name, 0), 0);
	while (lent_slabs())
		usleep(1000); /* they are emptied */
	rbx_close(ctx);
}

static void grows_with_its_memory(uint32_t replicas)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume = make(ctx, "db", replicas, SLABS);
	uint64_t size = MORE * SLAB - PAGE;

	write_page(volume, PAGE);
	assert_int_equal(rbx_volume_extend(volume, SLABS * SLAB + PAGE), 0);
	all_is_there(volume, SLABS * SLAB + PAGE, replicas);
	assert_int_equal(rbx_volume_extend(volume, size), 0);
	all_is_there(volume, size, replicas);
	zeros_are_at(volume, SLABS * SLAB);
	write_page(volume, size - PAGE);
	expect_page(volume, PAGE);
	assert_int_equal(rbx_volume_extend(volume, MORE * SLAB), 0); /* within a slab */
	all_is_there(volume, MORE * SLAB, replicas);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	all_is_there(volume, MORE * SLAB, replicas);
	expect_page(volume, size - PAGE);
	zeros_are_at(volume, size);
	end(ctx, volume, "db");
}

static void volume_with_replicas_grows_with_its_memory(void **state)
{
	(void)state;
	grows_with_its_memory(2);
}

static void volume_with_one_replica_grows_with_its_memory(void **state)
{
	(void)state;
	grows_with_its_memory(1);
}

static void growth_for_which_there_is_no_room_gives_all_back(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume = make(ctx, "db", 2, SLABS);

	(void)state;
	assert_int_equal(rbx_volume_extend(volume, (MOST + 2) * SLAB), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "missing: 16 MiB")); /* two slabs, two copies */
	all_is_there(volume, SLABS * SLAB, 2);
	assert_int_equal(rbx_volume_extend(volume, MOST * SLAB), 0);
	all_is_there(volume, MOST * SLAB, 2);
	end(ctx, volume, "db");
}

/* By the plan there is room: what servers have free is known from their last heartbeat. Or that has
 * come in time, and nothing is borrowed. */
static void server_that_refuses_on_the_way_has_all_given_back(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=20000");
	struct rbx_volume *volume = make(ctx, "db", 2, SLABS);
	struct rbx_volume *other = make(ctx, "faster", 2, MOST - SLABS - 2);
	int err;

	(void)state;
	assert_int_equal(rbx_volume_extend(volume, (SLABS + 3) * SLAB), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "missing: "));
	assert_int_equal(rbx_volume_size(volume), SLABS * SLAB);
	assert_int_equal(lent_slabs(), 2 * (MOST - 2));
	/* What was given back is free as soon as servers say so. */
	while ((err = rbx_volume_extend(volume, (SLABS + 2) * SLAB)) == -ENOSPC)
		usleep(1000);
	assert_int_equal(err, 0);
	assert_int_equal(lent_slabs(), 2 * MOST);
	assert_int_equal(rbx_volume_close(other), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "faster", 0), 0);
	end(ctx, volume, "db");
}

/* What a growth leaves that did not come to its end. */
static void leave_beyond(struct rbx_volume *volume, uint64_t slab)
{
	const struct rbx_wire_map map = { .label = slab + 1, .is_complete = 1 };
	struct rbx_loan loan;
	uint32_t i;

	for (i = 0; i < SERVERS; i++)
		assert_int_equal(rbx_session_map_for(
					 rbx_peer_session(volume->control.servers[i].peer), &map,
					 &loan),
				 0);
}

/* A replica too many would be found by the next client, and has nothing of what was written. */
static void what_a_growth_has_left_goes_first(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume = make(ctx, "db", 2, SLABS);

	(void)state;
	leave_beyond(volume, SLABS);
	leave_beyond(volume, MORE);
	assert_int_equal(lent_slabs(), 2 * SLABS + 2 * SERVERS);
	assert_int_equal(rbx_volume_extend(volume, (SLABS + 1) * SLAB), 0);
	all_is_there(volume, (SLABS + 1) * SLAB, 2);
	write_page(volume, SLABS * SLAB);
	leave_beyond(volume, MORE);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	all_is_there(volume, (SLABS + 1) * SLAB, 2);
	expect_page(volume, SLABS * SLAB);
	end(ctx, volume, "db");
}

static void volume_that_was_taken_over_gets_no_memory(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = make(ctx, "db", 2, SLABS), *taken;
	struct rbx_volume_options options;

	(void)state;
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	assert_int_equal(rbx_volume_open(ctx, &taken, pool, 0, &options), 0);
	assert_true(rbx_volume_extend(volume, MORE * SLAB) < 0);
	assert_int_equal(rbx_volume_size(volume), SLABS * SLAB);
	all_is_there(taken, SLABS * SLAB, 2);
	(void)rbx_volume_close(volume);
	end(ctx, taken, "db");
}

/* ---- A program that is killed while its volume grows ---------------------------------- */

static struct child {
	pid_t pid;
	int told[2], tells[2]; /* pipes */
} children[CHILDREN];

static void grow_and_die(const struct child *child)
{
	struct rbx_context *ctx;
	struct rbx_volume *volume;

	close(child->told[1]); /* so it ends if the test does */
	if (read(child->told[0], pool, sizeof(pool)) != sizeof(pool))
		_exit(1);
	ctx = tenant_context("");
	if (open_at(ctx, &volume, pool) || write(child->tells[1], "", 1) != 1)
		_exit(1);
	(void)rbx_volume_extend(volume, MOST * SLAB);
	pause();
	_exit(1);
}

/* They are made before the servers have threads: what is forked then could not start any under a
 * thread sanitizer. */
static int all_start(void **state)
{
	struct child *child;

	for (child = children; child < children + CHILDREN; child++) {
		if (pipe(child->told) || pipe(child->tells))
			return -1;
		child->pid = fork();
		if (!child->pid)
			grow_and_die(child);
	}
	return third_server_start(state);
}

/* At another moment each time. */
static void kill_one(const struct child *child, uint64_t lent_count)
{
	char byte;
	int status;

	assert_int_equal(write(child->told[1], pool, sizeof(pool)), sizeof(pool));
	assert_int_equal(read(child->tells[0], &byte, 1), 1);
	while (lent_slabs() < lent_count)
		;
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_true(WIFSIGNALED(status));
}

static void growth_of_a_killed_program_has_happened_or_not(void **state)
{
	static const uint64_t moments[CHILDREN] = { 1, MOST - 2 * SLABS, 2 * (MOST - SLABS) };
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	uint64_t size;
	int i;

	(void)state;
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	for (i = 0; i < CHILDREN; i++) {
		volume = make(ctx, "db", 2, SLABS);
		assert_int_equal(rbx_volume_close(volume), 0);
		kill_one(&children[i], 2 * SLABS + moments[i]);
		assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
		size = rbx_volume_size(volume);
		assert_true(size == SLABS * SLAB || size == MOST * SLAB);
		all_is_there(volume, size, 2);
		assert_int_equal(rbx_volume_extend(volume, MOST * SLAB), 0);
		all_is_there(volume, MOST * SLAB, 2);
		assert_int_equal(rbx_volume_close(volume), 0);
		assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
		while (lent_slabs())
			usleep(1000); /* they are emptied */
	}
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_of_a_killed_program_has_happened_or_not),
		cmocka_unit_test(volume_with_replicas_grows_with_its_memory),
		cmocka_unit_test(volume_with_one_replica_grows_with_its_memory),
		cmocka_unit_test(growth_for_which_there_is_no_room_gives_all_back),
		cmocka_unit_test(server_that_refuses_on_the_way_has_all_given_back),
		cmocka_unit_test(what_a_growth_has_left_goes_first),
		cmocka_unit_test(volume_that_was_taken_over_gets_no_memory),
	};

	return cmocka_run_group_tests(tests, all_start, servers_stop);
}
