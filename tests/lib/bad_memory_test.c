/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bad_memory_test.c - a program that writes from memory that is none: it is told so,
 * and nothing else comes to harm.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/tenant.h"

#define PAGE 4096u
#define PAGES 64u
#define BAD_BYTES ((PAGES + 1) * PAGE)
#define ROUNDS 12u /* more failures than one request is sent again */

static struct rbx_server *servers[2];
static struct rbx_context *ctx;
static struct rbx_volume *volume;
static uint8_t *bad; /* a page that may be read, and those after it may not */

static int volume_make(void **state)
{
	struct rbx_volume_options options;
	char list[160];

	(void)state;
	servers[0] = tenant_server();
	servers[1] = tenant_server();
	ctx = tenant_context("");
	rbx_volume_options_defaults(&options);
	options.replicas = 2;
	snprintf(list, sizeof(list), "%s,%s", rbx_server_address(servers[0]),
		 rbx_server_address(servers[1]));
	assert_int_equal(rbx_volume_open(ctx, &volume, list,
					 2 * TENANT_SLAB_BYTES, &options),
			 0);
	bad = mmap(NULL, BAD_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mprotect(bad + PAGE, BAD_BYTES - PAGE, PROT_NONE), 0);
	return 0;
}

static int volume_free(void **state)
{
	(void)state;
	rbx_volume_close(volume);
	rbx_close(ctx);
	rbx_server_stop(servers[0]);
	rbx_server_stop(servers[1]);
	munmap(bad, BAD_BYTES);
	return 0;
}

/* All replicas are there, and none was made anew elsewhere. */
static void expect_nothing_lost(void)
{
	struct rbx_volume_status status;
	uint32_t ms = 0;

	do {
		rbx_volume_status(volume, &status);
		usleep(1000);
	} while (status.slabs_whole != 2 && ++ms < TENANT_WAIT_MS);
	assert_int_equal(status.slabs_whole, 2);
	assert_int_equal(status.servers_up, 2);
}

static void bad_pointer_is_efault_and_the_old_page_stays(void **state)
{
	static uint8_t page[PAGE], found[PAGE];
	uint32_t round, i;

	(void)state;
	tenant_fill(page, PAGE, 1);
	assert_int_equal(rbx_write(volume, page, PAGE, 5 * PAGE), 0);
	for (round = 0; round < ROUNDS; round++) {
		assert_int_equal(rbx_write(volume, bad + PAGE, PAGE, 5 * PAGE),
				 -EFAULT);
		for (i = 0; i < 4; i++) {
			assert_int_equal(
				rbx_read(volume, found, PAGE, 5 * PAGE), 0);
			assert_memory_equal(found, page, PAGE);
		}
	}
	expect_nothing_lost();
}

/* What can be read of it may be there, on all replicas or on none. */
static void memory_that_ends_within_a_write_leaves_replicas_alike(void **state)
{
	static uint8_t pages[2 * PAGE], found[2 * PAGE], again[2 * PAGE];
	uint32_t i;

	(void)state;
	tenant_fill(pages, 2 * PAGE, 1);
	assert_int_equal(rbx_write(volume, pages, 2 * PAGE, 0), 0);
	memset(bad, 0x5a, PAGE);
	assert_int_equal(rbx_write(volume, bad, 2 * PAGE, 0), -EFAULT);
	expect_nothing_lost();
	assert_int_equal(rbx_read(volume, found, 2 * PAGE, 0), 0);
	for (i = 0; i < 2 * PAGE; i++)
		assert_true(found[i] == pages[i] || (i < PAGE && found[i] == 0x5a));
	/* One of them alone has the same. */
	rbx_server_stop(servers[0]);
	servers[0] = tenant_server();
	assert_int_equal(rbx_read(volume, again, 2 * PAGE, 0), 0);
	assert_memory_equal(found, again, 2 * PAGE);
}

/* Merged with neighbours, and between others in one chain: these succeed. */
static void others_beside_a_bad_pointer_succeed(void **state)
{
	static uint8_t pages[PAGES][PAGE], found[PAGE];
	static struct rbx_request requests[PAGES];
	struct rbx_request *list[PAGES];
	uint32_t round, i;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < PAGES; i++) {
			tenant_fill(pages[i], PAGE, round * PAGES + i);
			requests[i] = (struct rbx_request){
				.op = RBX_WRITE,
				.length_bytes = PAGE,
				/* Runs of eight neighbours. */
				.offset = (uint64_t)(i + i / 8) * PAGE,
				.buf = i == 31 + round ? bad + PAGE : pages[i],
			};
			list[i] = &requests[i];
		}
		assert_int_equal(rbx_submit(volume, list, PAGES), 0);
		for (i = 0; i < PAGES;) {
			struct rbx_request *ended[PAGES];

			i += (uint32_t)rbx_reap(ctx, ended, PAGES, 1000);
		}
		for (i = 0; i < PAGES; i++)
			assert_int_equal(requests[i].status,
					 i == 31 + round ? -EFAULT : 0);
	}
	for (i = 0; i < PAGES; i++) {
		if (i == 31 + round - 1)
			continue;
		assert_int_equal(rbx_read(volume, found, PAGE,
					  requests[i].offset), 0);
		assert_memory_equal(found, pages[i], PAGE);
	}
	expect_nothing_lost();
}

/* A write so short that its data goes inline, and a read that the system places. */
static void short_writes_and_long_reads_are_efault(void **state)
{
	static uint8_t pages[PAGES * PAGE], found[PAGES * PAGE];
	uint32_t round;

	(void)state;
	tenant_fill(pages, sizeof(pages), 1);
	assert_int_equal(rbx_write(volume, pages, sizeof(pages), 0), 0);
	for (round = 0; round < ROUNDS; round++) {
		assert_int_equal(rbx_write(volume, bad + PAGE, 64, 512), -EFAULT);
		assert_int_equal(rbx_read(volume, bad + PAGE, sizeof(pages), 0),
				 -EFAULT);
		assert_int_equal(rbx_read(volume, found, sizeof(found), 0), 0);
		assert_memory_equal(found, pages, sizeof(pages));
	}
	expect_nothing_lost();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			bad_pointer_is_efault_and_the_old_page_stays,
			volume_make, volume_free),
		cmocka_unit_test_setup_teardown(
			memory_that_ends_within_a_write_leaves_replicas_alike,
			volume_make, volume_free),
		cmocka_unit_test_setup_teardown(
			others_beside_a_bad_pointer_succeed, volume_make,
			volume_free),
		cmocka_unit_test_setup_teardown(
			short_writes_and_long_reads_are_efault, volume_make,
			volume_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
