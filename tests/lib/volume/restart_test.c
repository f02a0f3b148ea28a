/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * restart_test.c - servers with memory files are killed at any moment under a program that writes
 * to a named volume, and started again: the next open finds all that was acknowledged.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/port.h"
#include "include/rdmabox/named_volume.h"
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#define SERVERS 2
#ifdef __SANITIZE_THREAD__ /* it looks at each word of each page, ten times as slowly */
#define ROUNDS 2
#else
#define ROUNDS 6
#endif
#define OPEN_TRIES 20
#define PAGE 4096u
#define PAGES (4u * TENANT_SLAB_BYTES / PAGE)
#define WORDS (PAGE / sizeof(uint32_t))
#define WRITES_MAX 3000u /* before a kill */
#define LABEL_US 50000 /* usually a slab that was lent is labelled by then */

static struct server_process servers[SERVERS];
static char files[SERVERS][64], pool[160];

/* What each page may hold: the number that was acknowledged last, or was tried last. */
static uint32_t acked[PAGES], tried[PAGES];
static uint32_t writes_count; /* atomic */
static uint32_t number; /* of the last write */

static void server_start(int i)
{
	char option[96], address[64];

	snprintf(option, sizeof(option), "--memory-file=%s", files[i]);
	strcpy(address, servers[i].address);
	server_process_start(&servers[i], *address ? address : "127.0.0.1:0", option);
}

static int all_start(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < SERVERS; i++) {
		snprintf(files[i], sizeof(files[i]), "/dev/shm/rdmabox-restart-%d-%d", (int)getpid(), i);
		memset(&servers[i], 0, sizeof(servers[i]));
		server_start(i);
	}
	snprintf(pool, sizeof(pool), "%s,%s", servers[0].address, servers[1].address);
	memset(acked, 0, sizeof(acked));
	memset(tried, 0, sizeof(tried));
	return 0;
}

static int all_stop(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < SERVERS; i++) {
		server_process_kill(&servers[i]);
		unlink(files[i]);
	}
	return 0;
}

/* On a busy machine a server may answer later than a second: then it is tried again. */
static uint32_t stopped_count, goes_on_count; /* atomic: events */

static void note(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	(void)volume;
	(void)user;
	if (event->kind == RBX_EVENT_STOPPED)
		__atomic_add_fetch(&stopped_count, 1, __ATOMIC_RELEASE);
	if (event->kind == RBX_EVENT_GOES_ON)
		__atomic_add_fetch(&goes_on_count, 1, __ATOMIC_RELEASE);
}

static struct rbx_volume *volume_open(struct rbx_context *ctx)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	int tries = 0;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	options.event = note;
	while (rbx_volume_open(ctx, &volume, pool, 0, &options))
		if (++tries == OPEN_TRIES)
			fail_msg("%s", rbx_last_error());
	return volume;
}

static void volume_make(uint32_t replicas, uint32_t checksums)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
	options.checksums = checksums;
	if (rbx_volume_create(ctx, pool, "db", (uint64_t)PAGES * PAGE, &options))
		fail_msg("%s", rbx_last_error());
	rbx_close(ctx);
}

/* Until a write fails. */
static void *write_on(void *volume)
{
	uint32_t words[WORDS], page, i;
	unsigned int seed = number;

	for (;;) {
		page = (uint32_t)rand_r(&seed) % PAGES;
		number++;
		for (i = 0; i < WORDS; i++)
			words[i] = number;
		tried[page] = number;
		if (rbx_write(volume, words, PAGE, (uint64_t)page * PAGE))
			return NULL;
		acked[page] = number;
		RBX_FETCH_ADD(&writes_count, 1);
	}
}

/* A write that failed may have got there in part. From now on the page holds the former one. */
static void mend(struct rbx_volume *volume, uint32_t page)
{
	uint32_t words[WORDS], i;

	for (i = 0; i < WORDS; i++)
		words[i] = acked[page];
	assert_int_equal(rbx_write(volume, words, PAGE, (uint64_t)page * PAGE), 0);
	tried[page] = acked[page];
}

static void expect_what_was_acknowledged(struct rbx_volume *volume)
{
	uint32_t words[WORDS], page, i;

	for (page = 0; page < PAGES; page++) {
		if (rbx_read(volume, words, PAGE, (uint64_t)page * PAGE))
			fail_msg("page %u cannot be read", page);
		for (i = 0; i < WORDS; i++)
			if (words[i] != acked[page] && words[i] != tried[page])
				fail_msg("page %u holds write %u, and not %u or %u", page,
					 words[i], acked[page], tried[page]);
		if (acked[page] != tried[page])
			mend(volume, page);
	}
}

/* Some time later a server dies under the writer, or both do. */
static void kill_under_writer(struct rbx_volume *volume, unsigned int *seed, bool both)
{
	uint32_t wanted = (uint32_t)rand_r(seed) % WRITES_MAX, first = (uint32_t)rand_r(seed) % 2;
	pthread_t thread;

	RBX_STORE_RELEASE(&writes_count, 0);
	assert_int_equal(pthread_create(&thread, NULL, write_on, volume), 0);
	while (RBX_LOAD_ACQUIRE(&writes_count) < wanted)
		usleep(100);
	server_process_kill(&servers[first]);
	if (both)
		server_process_kill(&servers[!first]);
	pthread_join(thread, NULL);
	server_start((int)first);
	if (both)
		server_start(!first);
}

static void run(uint32_t replicas, uint32_t checksums, bool both)
{
	unsigned int seed = 7;
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	int round;

	volume_make(replicas, checksums);
	for (round = 0; round < ROUNDS; round++) {
		ctx = tenant_context("peer_timeout_ms=1000");
		volume = volume_open(ctx);
		expect_what_was_acknowledged(volume);
		kill_under_writer(volume, &seed, both);
		(void)rbx_volume_close(volume);
		rbx_close(ctx);
	}
	ctx = tenant_context("");
	volume = volume_open(ctx);
	expect_what_was_acknowledged(volume);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* ---- Tests -----------------------------------------------------------------------------*/

static void one_replica_is_there_after_a_kill(void **state)
{
	(void)state;
	run(1, 0, false);
}

static void one_replica_is_there_after_all_are_killed(void **state)
{
	(void)state;
	run(1, 0, true);
}

static void replicas_are_there_after_all_are_killed(void **state)
{
	(void)state;
	run(2, 0, true);
}

static void checksums_are_there_after_all_are_killed(void **state)
{
	(void)state;
	run(2, 1, true);
}

/* Each page can be read and written again, within the time that a test has. */
static void wait_for_all(struct rbx_volume *volume)
{
	uint32_t words[WORDS], page;

	for (page = 0; page < PAGES; page++)
		while (rbx_read(volume, words, PAGE, (uint64_t)page * PAGE) ||
		       rbx_write(volume, words, PAGE, (uint64_t)page * PAGE))
			usleep(20000);
}

/* The first servers are in the file of a pool from now on. */
static void pool_write(const char *path, int count)
{
	char other[90];
	FILE *file;
	int i;

	snprintf(other, sizeof(other), "%s.new", path);
	file = fopen(other, "w");
	assert_non_null(file);
	for (i = 0; i < count; i++)
		fprintf(file, "%s\n", servers[i].address);
	fclose(file);
	assert_int_equal(rename(other, path), 0);
}

/* It has neither closed nor opened the volume: what it reads, and what the next one does, is what
 * was acknowledged. */
static void program_goes_on(uint32_t checksums)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume;
	unsigned int seed = 11;
	int round;

	stopped_count = goes_on_count = 0;
	volume_make(2, checksums);
	volume = volume_open(ctx);
	expect_what_was_acknowledged(volume);
	for (round = 0; round < 2; round++) {
		kill_under_writer(volume, &seed, true);
		wait_for_all(volume);
		expect_what_was_acknowledged(volume);
	}
	assert_int_equal(rbx_volume_close(volume), 0); /* all events have been told */
	assert_int_equal(goes_on_count > 0, stopped_count > 0);
	volume = volume_open(ctx);
	expect_what_was_acknowledged(volume);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

static void program_goes_on_when_all_servers_are_there_again(void **state)
{
	(void)state;
	program_goes_on(0);
}

/* The entry of one has run out, or its line was taken off: it still has what it had. */
static void server_that_left_the_pool_comes_again(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume;
	char path[80];
	unsigned int seed = 13;

	(void)state;
	volume_make(2, 0);
	snprintf(path, sizeof(path), "/tmp/rdmabox-restart-%d", (int)getpid());
	pool_write(path, 2);
	snprintf(pool, sizeof(pool), "file:%s", path);
	volume = volume_open(ctx);
	expect_what_was_acknowledged(volume);
	pool_write(path, 1);
	kill_under_writer(volume, &seed, true);
	wait_for_all(volume);
	expect_what_was_acknowledged(volume);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
	unlink(path);
}

static void program_goes_on_with_checksums(void **state)
{
	(void)state;
	program_goes_on(1);
}

/* While nobody has the volume open nobody is put out, whatever is killed. */
static void closed_volume_does_not_notice(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	int round, i;

	(void)state;
	volume_make(2, 0);
	volume = volume_open(ctx);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4; i++) {
			uint32_t page = (uint32_t)i * PAGES / 4, words[WORDS];

			memset(words, round + 1, PAGE);
			assert_int_equal(rbx_write(volume, words, PAGE, (uint64_t)page * PAGE), 0);
			acked[page] = tried[page] = words[0];
		}
		assert_int_equal(rbx_volume_close(volume), 0);
		for (i = 0; i < SERVERS; i++) {
			server_process_kill(&servers[i]);
			server_start(i);
		}
		volume = volume_open(ctx);
		rbx_volume_status(volume, &status);
		assert_int_equal(status.slabs_rebuilding, 0);
		assert_int_equal(status.rebuilt_bytes, 0);
		expect_what_was_acknowledged(volume);
	}
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

/* The first slab is lent again to the first client. */
static void what_sessions_had_is_gone_after_a_kill(void **state)
{
	uint32_t words[WORDS], zeros[WORDS] = { 0 };
	struct tenant tenant;

	(void)state;
	memset(words, 0xee, PAGE);
	tenant_open_at(&tenant, servers[0].address, "peer_timeout_ms=1000");
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, words, PAGE, 0), 0);
	server_process_kill(&servers[0]);
	tenant_close(&tenant);
	server_start(0);
	tenant_open_at(&tenant, servers[0].address, "");
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, words, PAGE, 0), 0);
	assert_memory_equal(words, zeros, PAGE);
	tenant_close(&tenant);
}

/* ---- A program that is killed while a slab is lent -------------------------------------------*/

/* A program of its own: it reads the addresses of the servers, opens the volume, says so, and waits
 * for a word. Then it writes. */
static pid_t writer_start(int ends[2])
{
	int to[2], from[2];
	uint32_t words[WORDS] = { 0 };
	struct rbx_volume *volume;
	pid_t pid;

	assert_int_equal(pipe(to) | pipe(from), 0);
	pid = fork();
	assert_true(pid >= 0);
	ends[0] = from[0];
	ends[1] = to[1];
	if (pid)
		return pid;
	if (read(to[0], pool, sizeof(pool)) != sizeof(pool))
		_exit(1);
	volume = volume_open(tenant_context(""));
	if (write(from[1], "o", 1) != 1 || read(to[0], pool, 1) != 1)
		_exit(1);
	(void)rbx_write(volume, words, PAGE, 0);
	_exit(1);
}

/* One of two servers had lent, and labelled the slab, when the program was killed; the other one is
 * full now. So what is written there from now on has one copy, and the record says so. */
static void slab_that_one_server_has_is_one_copy(void **state)
{
	struct rbx_volume_info info = { .name = "" };
	struct rbx_server_stats stats;
	struct rbx_volume *other, *volume;
	struct rbx_context *ctx;
	struct rbx_server *alone;
	int ends[2];
	char byte;
	pid_t pid;

	(void)state;
	pid = writer_start(ends);
	alone = tenant_server();
	snprintf(pool, sizeof(pool), "%s,%s", rbx_server_address(alone), servers[1].address);
	volume_make(2, 0);
	assert_int_equal(write(ends[1], pool, sizeof(pool)), sizeof(pool));
	assert_int_equal(read(ends[0], &byte, 1), 1);
	server_process_signal(&servers[1], SIGSTOP);
	assert_int_equal(write(ends[1], "w", 1), 1);
	do {
		usleep(1000);
		rbx_server_stats_get(alone, &stats);
	} while (!stats.slabs_lent);
	usleep(LABEL_US);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	server_process_kill(&servers[1]);
	server_start(1);

	ctx = tenant_context("");
	assert_int_equal(rbx_volume_open(ctx, &other, servers[1].address,
					 (uint64_t)TENANT_SLABS * TENANT_SLAB_BYTES, NULL),
			 0);
	volume = volume_open(ctx);
	assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 1);
	rbx_server_stats_get(alone, &stats);
	/* Without its label it was given back. */
	assert_int_equal(info.copies, stats.slabs_unmapped ? 2 : 1);
	assert_int_equal(rbx_volume_close(volume) | rbx_volume_close(other), 0);
	rbx_close(ctx);
	rbx_server_stop(alone);
	close(ends[0]);
	close(ends[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, all_start, all_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_replica_is_there_after_a_kill),
		TEST(one_replica_is_there_after_all_are_killed),
		TEST(replicas_are_there_after_all_are_killed),
		TEST(checksums_are_there_after_all_are_killed),
		TEST(program_goes_on_when_all_servers_are_there_again),
		TEST(program_goes_on_with_checksums),
		TEST(server_that_left_the_pool_comes_again),
		TEST(closed_volume_does_not_notice),
		TEST(what_sessions_had_is_gone_after_a_kill),
		TEST(slab_that_one_server_has_is_one_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
