/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * restart_test.c - servers with memory files are killed at any moment under a program that writes
 * to a named volume, and started again: the next open finds all that was acknowledged.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"
#include "include/rdmabox/volumes.h"
#include "tests/lib/server_process.h"
#include "tests/lib/tenant.h"

#define SERVERS 2
#define ROUNDS 6
#define OPEN_TRIES 20
#define PAGE 4096u
#define PAGES (4u * TENANT_SLAB_BYTES / PAGE)
#define WORDS (PAGE / sizeof(uint32_t))
#define WRITES_MAX 3000u /* before a kill */

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
static struct rbx_volume *volume_open(struct rbx_context *ctx)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	int tries = 0;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	while (rbx_volume_open(ctx, &volume, pool, 0, &options))
		if (++tries == OPEN_TRIES)
			fail_msg("%s", rbx_last_error());
	return volume;
}

static void volume_make(uint32_t replicas)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
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

static void run(uint32_t replicas, bool both)
{
	unsigned int seed = 7;
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	int round;

	volume_make(replicas);
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
	run(1, false);
}

static void one_replica_is_there_after_all_are_killed(void **state)
{
	(void)state;
	run(1, true);
}

static void replicas_are_there_after_all_are_killed(void **state)
{
	(void)state;
	run(2, true);
}

/* While nobody has the volume open nobody is put out, whatever is killed. */
static void closed_volume_does_not_notice(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	int round, i;

	(void)state;
	volume_make(2);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, all_start, all_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_replica_is_there_after_a_kill),
		TEST(one_replica_is_there_after_all_are_killed),
		TEST(replicas_are_there_after_all_are_killed),
		TEST(closed_volume_does_not_notice),
		TEST(what_sessions_had_is_gone_after_a_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
