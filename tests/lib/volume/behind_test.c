/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * behind_test.c - a server of a named volume returns, and gets only what it has missed: while the
 * volume is open, at the next open, and if the program that wrote meanwhile was killed.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/rdmabox/named_volume.h"
#include "lib/volume/volume.h"
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#define SERVERS 2
#define SLABS 6u
#define EXTENT_BYTES (TENANT_SLAB_BYTES / 64)
#define PAGE 4096u

static struct server_process processes[SERVERS];
static char list[160], files[SERVERS][64];
static struct rbx_context *ctx;
static struct rbx_volume *volume;
static uint32_t down_count; /* atomic */

static void server_start(int index, const char *address)
{
	char option[96];

	snprintf(option, sizeof(option), "--memory-file=%s", files[index]);
	server_process_start(&processes[index], address, option);
}

static int begin_with(uint32_t checksums)
{
	const struct rbx_volume_create_options two = { .size_bytes = sizeof(two),
						       .keep_s = UINT64_MAX,
						       .replicas = SERVERS,
						       .checksums = checksums };
	int i;

	for (i = 0; i < SERVERS; i++) {
		snprintf(files[i], sizeof(files[i]), "/dev/shm/rdmabox-behind-%d-%d",
			 (int)getpid(), i);
		server_start(i, "127.0.0.1:0");
	}
	snprintf(list, sizeof(list), "%s,%s", processes[0].address, processes[1].address);
	ctx = tenant_context("peer_timeout_ms=1000");
	if (rbx_volume_create(ctx, list, "db", (uint64_t)SLABS * TENANT_SLAB_BYTES, &two))
		fail_msg("%s", rbx_last_error());
	return 0;
}

static int begin(void **state)
{
	(void)state;
	return begin_with(0);
}

static int begin_checked(void **state)
{
	(void)state;
	return begin_with(1);
}

static int finish(void **state)
{
	int i;

	(void)state;
	rbx_close(ctx);
	for (i = 0; i < SERVERS; i++) {
		server_process_kill(&processes[i]);
		(void)unlink(files[i]);
	}
	return 0;
}

/* ---- The volume ------------------------------------------------------------------------ */

static void note(struct rbx_volume *from, const struct rbx_event *event, void *user)
{
	(void)from;
	(void)user;
	if (event->kind == RBX_EVENT_SERVER_DOWN)
		__atomic_fetch_add(&down_count, 1, __ATOMIC_RELAXED);
}

static void volume_open(struct rbx_context *in, bool take_over)
{
	struct rbx_volume_options options;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.event = note;
	options.take_over = take_over;
	if (rbx_volume_open(in, &volume, list, 0, &options))
		fail_msg("%s", rbx_last_error());
}

static uint64_t offset_of(uint32_t slab, uint32_t extent)
{
	return (uint64_t)slab * TENANT_SLAB_BYTES + (uint64_t)extent * EXTENT_BYTES;
}

static void put(uint32_t slab, uint32_t extent, uint64_t seed)
{
	uint8_t page[PAGE];

	tenant_fill(page, sizeof(page), seed);
	assert_int_equal(rbx_write(volume, page, sizeof(page), offset_of(slab, extent)), 0);
}

static void expect(uint32_t slab, uint32_t extent, uint64_t seed)
{
	uint8_t page[PAGE], expected[PAGE];

	tenant_fill(expected, sizeof(expected), seed);
	assert_int_equal(rbx_read(volume, page, sizeof(page), offset_of(slab, extent)), 0);
	assert_memory_equal(page, expected, sizeof(page));
}

/* A page in each extent of each slab, of this seed. */
static void put_all(uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < SLABS * 64; i++)
		put(i / 64, i % 64, seed + i);
}

static void wait_until_whole(void)
{
	struct rbx_volume_status status;

	do {
		usleep(1000);
		rbx_volume_status(volume, &status);
	} while (status.servers_up < SERVERS || status.slabs_whole < status.slabs);
}

/* What was written last in the tests: one page in two slabs, and all else as put_all(). */
static void expect_what_was_written(void)
{
	uint32_t i;

	for (i = 0; i < SLABS * 64; i++)
		if (i != 64 + 7 && i != 3 * 64 + 63)
			expect(i / 64, i % 64, 100 + i);
	expect(1, 7, 1);
	expect(3, 63, 2);
}

static void put_a_little(void)
{
	put(1, 7, 1);
	put(3, 63, 2);
}

/* Of so many extents. All cells are copied that they are part of, which may be longer. */
static void expect_copied(uint32_t extents)
{
	assert_in_range(tenant_stats(ctx).rebuilt_bytes, extents * EXTENT_BYTES,
			extents * 2 * EXTENT_BYTES);
}

/* The server that has returned has all of it. */
static void expect_alone(int server)
{
	__atomic_store_n(&down_count, 0, __ATOMIC_RELAXED);
	server_process_kill(&processes[!server]);
	tenant_wait(NULL, &down_count, 1, false);
	expect_what_was_written();
}

static void server_lose(int server)
{
	__atomic_store_n(&down_count, 0, __ATOMIC_RELAXED);
	server_process_kill(&processes[server]);
	put(0, 0, 100); /* as it is: it waits until the server is out */
	tenant_wait(NULL, &down_count, 1, false);
}

static void server_again(int server)
{
	char address[sizeof(processes[0].address)];

	strcpy(address, processes[server].address);
	server_start(server, address);
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void server_that_returns_gets_what_it_has_missed(void **state)
{
	(void)state;
	volume_open(ctx, false);
	put_all(100);
	server_lose(0);
	put_a_little();
	rbx_stats_reset(ctx);
	server_again(0);
	wait_until_whole();
	expect_copied(3);
	expect_alone(0);
	assert_int_equal(rbx_volume_close(volume), 0);
}

static void server_that_is_back_at_the_next_open_gets_what_it_has_missed(void **state)
{
	(void)state;
	volume_open(ctx, false);
	put_all(100);
	server_lose(0);
	put(1, 7, 1);
	assert_int_equal(rbx_volume_close(volume), 0);
	volume_open(ctx, false); /* without it */
	put(3, 63, 2);
	assert_int_equal(rbx_volume_close(volume), 0);
	server_again(0);
	rbx_stats_reset(ctx);
	volume_open(ctx, false);
	wait_until_whole();
	expect_copied(3);
	expect_alone(0);
	assert_int_equal(rbx_volume_close(volume), 0);
}

/* A program that writes, also without the server, and is killed. */
static void writer_run(const int ends[2])
{
	ctx = tenant_context("peer_timeout_ms=1000");
	volume_open(ctx, false);
	put_all(100);
	if (write(ends[1], "", 1) != 1)
		_exit(1);
	tenant_wait(NULL, &down_count, 1, false);
	put_a_little();
	if (write(ends[1], "", 1) == 1)
		pause();
	_exit(1);
}

static void what_a_killed_program_has_written_is_copied(void **state)
{
	int ends[2];
	pid_t writer;
	char byte;

	(void)state;
	rbx_close(ctx); /* there are no threads when it is forked */
	assert_int_equal(pipe(ends), 0);
	__atomic_store_n(&down_count, 0, __ATOMIC_RELAXED);
	writer = fork();
	if (!writer)
		writer_run(ends);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	server_process_kill(&processes[0]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	kill(writer, SIGKILL);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	close(ends[0]);
	close(ends[1]);
	server_again(0);
	/* The other one, too, is started again: it has its words in its file. */
	server_process_kill(&processes[1]);
	server_again(1);
	ctx = tenant_context("peer_timeout_ms=1000");
	volume_open(ctx, true);
	wait_until_whole();
	expect_copied(2);
	expect_alone(0);
	assert_int_equal(rbx_volume_close(volume), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(server_that_returns_gets_what_it_has_missed),
		TEST(server_that_is_back_at_the_next_open_gets_what_it_has_missed),
		TEST(what_a_killed_program_has_written_is_copied),
		/* The open has made that equal at the other server already. */
		cmocka_unit_test_setup_teardown(what_a_killed_program_has_written_is_copied,
						begin_checked, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
