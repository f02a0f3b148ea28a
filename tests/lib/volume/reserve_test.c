/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reserve_test.c - a named volume that has all its memory from the beginning, or is not made.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/rdmabox/named_volume.h"
#include "server/state.h"
#include "tests/lib/volume/three_servers.h"

#define SLABS 7
#define REPLICAS 2
#define PAGE 4096u
#define SLAB ((uint64_t)TENANT_SLAB_BYTES)
#define SIZE (SLABS * SLAB)
#define CREATE_TRIES 300

static struct rbx_volume_create_options reserved(void)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = REPLICAS;
	options.reserve = 1;
	return options;
}

static struct rbx_volume *open_named(struct rbx_context *ctx, uint32_t take_over)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = take_over;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	return volume;
}

struct progress {
	uint64_t done_bytes, calls_count;
};

static void progressed(uint64_t done_bytes, uint64_t all_bytes, void *user)
{
	struct progress *progress = user;

	assert_int_equal(all_bytes, SIZE * REPLICAS);
	assert_int_equal(done_bytes, progress->done_bytes + SLAB);
	progress->done_bytes = done_bytes;
	progress->calls_count++;
}

static void volume_has_its_memory_before_it_is_written(void **state)
{
	struct rbx_volume_create_options options = reserved();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_status status;
	struct progress progress = { 0 };
	struct rbx_volume_info info;
	struct rbx_volume *volume;
	uint8_t page[PAGE];

	(void)state;
	options.progress = progressed;
	options.user = &progress;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), 0);
	assert_int_equal(progress.calls_count, SLABS * REPLICAS);
	assert_int_equal(lent_slabs(), SLABS * REPLICAS);
	assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 1);
	assert_int_equal(info.reserved_bytes, SIZE * REPLICAS);
	volume = open_named(ctx, 0);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_blank, 0);
	assert_int_equal(status.slabs_whole, SLABS);
	assert_int_equal(rbx_read(volume, page, PAGE, 3 * SLAB), 0);
	assert_int_equal(page[0] | page[PAGE - 1], 0);
	assert_int_equal(rbx_write(volume, page, PAGE, 5 * SLAB), 0);
	assert_int_equal(lent_slabs(), SLABS * REPLICAS);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

/* Else the next open after a crash would make the replicas of all slabs equal. */
static void servers_know_that_nothing_was_written(void **state)
{
	const struct rbx_volume_create_options options = reserved();
	struct rbx_context *ctx = tenant_context("");
	uint32_t i, j, count = 0;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), 0);
	for (i = 0; i < SERVERS; i++)
		for (j = 0; j < TENANT_SLABS; j++) {
			if (!servers[i]->slabs[j].holder)
				continue;
			assert_int_equal(servers[i]->slabs[j].intent, 0);
			count++;
		}
	assert_int_equal(count, SLABS * REPLICAS);
	rbx_close(ctx);
}

static void volume_for_which_there_is_no_room_is_not_made(void **state)
{
	const struct rbx_volume_create_options options = reserved();
	uint64_t most = SERVERS * TENANT_SLABS / REPLICAS * SLAB;
	struct rbx_context *ctx = tenant_context("");

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", most + PAGE, &options), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "to be reserved: 52 MiB, 2 copies"));
	assert_int_equal(lent_slabs(), 0);
	assert_int_equal(rbx_volume_list(ctx, pool, NULL, 0), 0);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", most, &options), 0);
	assert_int_equal(lent_slabs(), SERVERS * TENANT_SLABS);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", most + PAGE), -ENOSPC);
	assert_int_equal(lent_slabs(), SERVERS * TENANT_SLABS);
	rbx_close(ctx);
}

static void grow_reserves_what_is_new(void **state)
{
	const struct rbx_volume_create_options options = reserved();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_status status;
	struct rbx_volume *volume;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SLAB + PAGE, &options), 0);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 2 * SLAB), 0);
	assert_int_equal(lent_slabs(), 2 * REPLICAS);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", SIZE), 0);
	assert_int_equal(lent_slabs(), SLABS * REPLICAS);
	volume = open_named(ctx, 0);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_whole, SLABS);
	assert_int_equal(status.slabs_blank, 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

/* The one that is not asked may have what a grow has left that died. */
static void grow_needs_all_servers(void **state)
{
	const struct rbx_volume_create_options options = reserved();
	struct rbx_context *ctx = tenant_context("");
	char *last;

	(void)state;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SLAB, &options), 0);
	last = strrchr(pool, ',');
	*last = '\0';
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 2 * SLAB), -EHOSTUNREACH);
	*last = ',';
	assert_int_equal(lent_slabs(), REPLICAS);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 2 * SLAB), 0);
	rbx_close(ctx);
}

static void die(uint64_t done_bytes, uint64_t all_bytes, void *user)
{
	(void)user;
	if (done_bytes > all_bytes / 2)
		raise(SIGKILL); /* an exit would look after the threads that open */
}

static pid_t maker;
static int to_maker[2];

/* A program of its own, which begins when it is told the servers. It is made before these have
 * threads: what is forked then could not start any under a thread sanitizer. */
static int maker_and_servers_start(void **state)
{
	struct rbx_volume_create_options options = reserved();
	struct rbx_context *ctx;

	if (pipe(to_maker))
		return -1;
	maker = fork();
	if (maker)
		return maker < 0 ? -1 : servers_start(state);
	if (read(to_maker[0], pool, sizeof(pool)) != sizeof(pool))
		_exit(1);
	options.progress = die;
	ctx = tenant_context("");
	(void)rbx_volume_create(ctx, pool, "db", SIZE, &options);
	_exit(1);
}

/* The servers do not wait for the lease of the one that died. */
static void maker_that_dies_leaves_nothing(void **state)
{
	struct rbx_volume_create_options options = reserved();
	struct rbx_context *ctx;
	int err, status, tries = 0;

	(void)state;
	assert_int_equal(write(to_maker[1], pool, sizeof(pool)), sizeof(pool));
	assert_int_equal(waitpid(maker, &status, 0), maker);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	ctx = tenant_context("");
	while ((err = rbx_volume_create(ctx, pool, "db", SIZE, &options)) && tries++ < CREATE_TRIES)
		usleep(100000); /* until the servers have seen it */
	assert_int_equal(err, 0);
	assert_int_equal(lent_slabs(), SLABS * REPLICAS);
	rbx_close(ctx);
	close(to_maker[0]);
	close(to_maker[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(volume_has_its_memory_before_it_is_written,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(servers_know_that_nothing_was_written,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(volume_for_which_there_is_no_room_is_not_made,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(grow_reserves_what_is_new, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(grow_needs_all_servers, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(maker_that_dies_leaves_nothing,
						maker_and_servers_start, servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
