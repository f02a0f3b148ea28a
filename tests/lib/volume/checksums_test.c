/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checksums_test.c - a named volume whose servers keep the checksums of its pages: what comes back
 * is what was written, or an error.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/volume/checked.h"
#include "tests/lib/volume/strayed.h"

#define WRITES 500u /* before a writer is killed */

/* ---- Tests -----------------------------------------------------------------------------*/

static void one_replica_has_no_checksums(void **state)
{
	struct rbx_volume_create_options options = checked();
	struct rbx_context *ctx = tenant_context("");

	(void)state;
	options.replicas = 1;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "2 replicas"));
	rbx_close(ctx);
}

static void volume_says_that_it_has_checksums(void **state)
{
	struct rbx_volume_info info = { .name = "" };
	struct rbx_volume_status status;
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	uint8_t byte = 0;

	(void)state;
	volume_make();
	ctx = context_of_volume(&volume);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.checksums, 1);
	assert_int_equal(rbx_volume_list(ctx, pool, &info, 1), 1);
	assert_int_equal(info.checksums, 1);
	assert_int_equal(rbx_write(volume, &byte, 1, 0), -EINVAL);
	close_all(ctx, volume);
	volume_remove();
}

/* Which replica is read depends on the place. So of all places some are read where they are
 * damaged, and these are repaired. */
static void page_that_is_damaged_at_one_server_is_repaired(void **state)
{
	uint32_t i, repaired_count[REPLICAS] = { 0 };
	struct rbx_volume *volume;
	struct rbx_context *ctx;

	(void)state;
	volume_make();
	ctx = context_of_volume(&volume);
	for (i = 0; i < PLACES; i++)
		write_page(volume, i * SLAB / PLACES);
	close_all(ctx, volume);
	for (i = 0; i < PLACES; i++)
		flip(i * SLAB / PLACES, i % REPLICAS, i);
	ctx = context_of_volume(&volume);
	for (i = 0; i < PLACES; i++) {
		uint64_t repairs_count = tenant_stats(ctx).checksum_repairs;

		expect_page(volume, i * SLAB / PLACES);
		if (tenant_stats(ctx).checksum_repairs == repairs_count)
			continue;
		expect_equal_copies(i * SLAB / PLACES);
		repaired_count[i % REPLICAS]++;
	}
	for (i = 0; i < REPLICAS; i++)
		assert_true(repaired_count[i]);
	close_all(ctx, volume);
	volume_remove();
}

static void page_that_is_damaged_everywhere_is_an_error(void **state)
{
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	uint8_t page[PAGE];

	(void)state;
	volume_make();
	ctx = context_of_volume(&volume);
	write_page(volume, 0);
	write_page(volume, PAGE);
	close_all(ctx, volume);
	flip(0, 0, 0);
	flip(0, 1, 1);
	*checksum_of(0, 1) ^= 1; /* so the open has a look */
	ctx = context_of_volume(&volume);
	assert_int_equal(rbx_read(volume, page, PAGE, 0), -EIO);
	expect_page(volume, PAGE);
	/* Written again, it is good again. */
	write_page(volume, 0);
	expect_page(volume, 0);
	expect_equal_copies(0);
	close_all(ctx, volume);
	volume_remove();
}

static void checksum_that_was_damaged_is_that_of_the_other_replica(void **state)
{
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	uint32_t i;

	(void)state;
	volume_make();
	ctx = context_of_volume(&volume);
	write_page(volume, 5 * PAGE);
	close_all(ctx, volume);
	for (i = 0; i < REPLICAS; i++) {
		*checksum_of(5 * PAGE, i) ^= 1;
		*checksum_of(9 * PAGE, i) ^= 1; /* of zeros */
		ctx = context_of_volume(&volume);
		expect_page(volume, 5 * PAGE);
		expect_equal_copies(5 * PAGE);
		expect_equal_copies(9 * PAGE);
		close_all(ctx, volume);
	}
	volume_remove();
}

/* The checksums of all replicas are of the write that failed, or of none, and the pages are those
 * of before. Three servers have one of them, and one of these is damaged. */
static void write_that_failed_leaves_the_page_of_before(void **state)
{
	struct rbx_volume_create_options options = checked();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	uint32_t bad, i;

	(void)state;
	options.replicas = SERVERS;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), 0);
	rbx_close(ctx);
	for (bad = 0; bad < SERVERS; bad++) {
		ctx = context_of_volume(&volume);
		write_page(volume, 0);
		strayed_write(volume, 0);
		for (i = 0; i < SERVERS; i++)
			*checksum_of(0, i) ^= 5 + i;
		flip(0, bad, 8);
		close_all(ctx, volume);
		ctx = context_of_volume(&volume);
		expect_page(volume, 0);
		for (i = 1; i < SERVERS; i++)
			assert_memory_equal(copy_of(0, 0), copy_of(0, i), PAGE);
		close_all(ctx, volume);
	}
	volume_remove();
}

/* ---- A program that is killed while it writes --------------------------------------------*/

/* Of each page, the write that was acknowledged last, and the one that was tried last. */
struct log {
	uint32_t writes_count; /* atomic */
	uint32_t acked[PAGES], tried[PAGES];
};

static void write_for_ever(struct log *log)
{
	uint32_t words[PAGE / sizeof(uint32_t)], number, i;
	struct rbx_volume *volume;
	unsigned int seed = 1;

	(void)context_of_volume(&volume);
	for (number = 1;; number++) {
		uint32_t page = (uint32_t)rand_r(&seed) % PAGES;

		for (i = 0; i < PAGE / sizeof(uint32_t); i++)
			words[i] = number + i;
		log->tried[page] = number;
		if (rbx_write(volume, words, PAGE, (uint64_t)page * PAGE))
			_exit(1);
		log->acked[page] = number;
		RBX_FETCH_ADD(&log->writes_count, 1);
	}
}

/* A program of its own, forked before this one has threads. It is told the servers. */
static pid_t writer_start(struct log *log, int *tell)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	*tell = ends[1];
	if (pid)
		return pid;
	if (read(ends[0], pool, sizeof(pool)) != sizeof(pool))
		_exit(1);
	write_for_ever(log);
	_exit(1);
}

static void expect_what_was_written(struct rbx_volume *volume, const struct log *log)
{
	uint32_t words[PAGE / sizeof(uint32_t)], page, i;

	for (page = 0; page < PAGES; page++) {
		if (rbx_read(volume, words, PAGE, (uint64_t)page * PAGE))
			fail_msg("page %u cannot be read", page);
		for (i = 0; i < PAGE / sizeof(uint32_t); i++) {
			uint32_t number = words[i] ? words[i] - i : 0;

			if (number != log->acked[page] && number != log->tried[page])
				fail_msg("page %u has write %u, not %u or %u", page, number,
					 log->acked[page], log->tried[page]);
		}
	}
}

/* What was acknowledged is damaged at one server, also where the writer was last. */
static void damage_what_was_acknowledged(const struct log *log)
{
	uint32_t page;

	for (page = 0; page < PAGES; page++)
		if (log->acked[page] && log->acked[page] == log->tried[page])
			flip((uint64_t)page * PAGE, page % REPLICAS, page);
}

static void writer_that_is_killed_leaves_no_page_that_is_bad(void **state)
{
	struct log *log = mmap(NULL, sizeof(*log), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	pid_t pid;
	int tell;

	assert_ptr_not_equal(log, MAP_FAILED);
	pid = writer_start(log, &tell);
	servers_start(state);
	volume_make();
	assert_int_equal(write(tell, pool, sizeof(pool)), sizeof(pool));
	while (RBX_LOAD_ACQUIRE(&log->writes_count) < WRITES)
		usleep(100);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	damage_what_was_acknowledged(log);
	ctx = context_of_volume(&volume);
	expect_what_was_written(volume, log);
	close_all(ctx, volume);
	volume_remove();
	servers_stop(state);
	munmap(log, sizeof(*log));
	close(tell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writer_that_is_killed_leaves_no_page_that_is_bad),
		cmocka_unit_test_setup_teardown(one_replica_has_no_checksums, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(volume_says_that_it_has_checksums, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(page_that_is_damaged_at_one_server_is_repaired,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(page_that_is_damaged_everywhere_is_an_error,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(write_that_failed_leaves_the_page_of_before,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(
			checksum_that_was_damaged_is_that_of_the_other_replica, servers_start,
			servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
