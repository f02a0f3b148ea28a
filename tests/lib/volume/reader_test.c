/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader_test.c - a named volume is read beside the program that writes it: what was acknowledged
 * RBX_READ_ONLY_LAG_MS before is seen, whatever becomes of the servers and of the writer.
 */
#include <errno.h>
#include <pthread.h>

#include "tests/lib/volume/reader_world.h"

static void expect_zeros(uint64_t offset)
{
	uint8_t page[PAGE];

	memset(page, 0xee, PAGE);
	if (rbx_read(reader, page, PAGE, offset))
		fail_msg("%s", rbx_last_error());
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(page[i], 0);
}

/* ---- Tests -----------------------------------------------------------------------*/

static void reader_sees_what_was_acknowledged(void **state)
{
	(void)state;
	begin_with(2, 0);
	expect_zeros(0);
	put(0, 1);
	put(3 * SLAB, 2);
	lag();
	expect(0, 1);
	expect_zeros(PAGE);
	expect_zeros(SLAB);
	expect(3 * SLAB, 2);
	put(0, 3);
	lag();
	expect(0, 3);
	finish();
}

static void reader_changes_nothing(void **state)
{
	struct rbx_volume *volume;
	uint8_t page[PAGE] = { 1 };

	(void)state;
	begin_with(2, 0);
	put_all(1);
	assert_int_equal(rbx_write(reader, page, PAGE, 0), -EROFS);
	assert_int_equal(rbx_volume_extend(reader, 2 * SIZE), -EROFS);
	assert_int_equal(rbx_volume_discard(reader, 0, SLAB), -EROFS);
	assert_int_equal(rbx_volume_scrub(reader, 0, SIZE), -EROFS);
	assert_int_equal(rbx_volume_add_server(reader, "127.0.0.1:1"), -EROFS);
	assert_int_equal(rbx_volume_move_off(reader, "127.0.0.1:1"), -EROFS);
	assert_int_equal(open_as(other, &volume, 1, 1), -EINVAL);
	assert_int_equal(lent_slabs(), 2 * SLABS);
	assert_int_equal(rbx_volume_close(reader), 0);
	assert_int_equal(lent_slabs(), 2 * SLABS);
	put_all(11);
	assert_int_equal(open_as(other, &reader, 1, 0), 0);
	expect_all(11);
	finish();
}

static void reader_goes_on_without_its_writer(void **state)
{
	struct rbx_context *third = tenant_context("");

	(void)state;
	begin_with(2, 0);
	put_all(1);
	assert_int_equal(rbx_volume_close(writer), 0);
	expect_all_soon(1);
	assert_int_equal(rbx_volume_rename(ctx, pool, "db", "other"), 0);
	assert_int_equal(rbx_volume_rename(ctx, pool, "other", "db"), 0);
	expect_all(1);
	assert_int_equal(open_as(ctx, &writer, 0, 0), 0);
	put_all(11);
	expect_all_soon(11);
	assert_int_equal(rbx_volume_close(writer), 0);
	assert_int_equal(open_as(third, &writer, 0, 1), 0);
	put_all(21);
	assert_int_equal(rbx_volume_extend(writer, SIZE + SLAB), 0);
	put(SIZE, 7);
	expect_all_soon(21);
	while (rbx_volume_size(reader) != SIZE + SLAB)
		usleep(1000);
	lag();
	expect(SIZE, 7);
	finish();
	rbx_close(third);
}

static void removed_volume_is_told(void **state)
{
	uint8_t page[PAGE];
	uint32_t before = __atomic_load_n(&removed_count, __ATOMIC_RELAXED);

	(void)state;
	begin_with(2, 0);
	put_all(1);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 1), 0);
	while (__atomic_load_n(&removed_count, __ATOMIC_RELAXED) == before)
		usleep(1000);
	assert_int_equal(rbx_read(reader, page, PAGE, 0), -ENOENT);
	while (lent_slabs())
		usleep(1000);
	finish();
	assert_int_equal(removed_count, before + 1);
}

static void lost_server_is_read_no_more(void **state)
{
	(void)state;
	begin_with(2, 0);
	put_all(1);
	rbx_server_stop(servers[0]);
	servers[0] = NULL;
	put_all(11);
	lag();
	expect_all(11);
	put_all(21);
	expect_all_soon(21);
	finish();
	servers[0] = tenant_server(); /* to be stopped */
}

static void moved_slab_is_read_where_it_is(void **state)
{
	int left;

	(void)state;
	begin_with(2, 0);
	put_all(1);
	expect_all_soon(1);
	while ((left = rbx_volume_move_off(writer, rbx_server_address(servers[0]))) > 0)
		expect_all(1);
	assert_int_equal(left, 0);
	put_all(11);
	lag();
	expect_all(11);
	finish();
}

static void one_replica_is_read_as_well(void **state)
{
	(void)state;
	begin_with(1, 0);
	expect_zeros(SLAB);
	put_all(1);
	expect_all_soon(1);
	finish();
}

/* A page of one seed, or of another one. */
static void expect_whole(uint64_t offset)
{
	uint8_t page[PAGE], expected[PAGE];
	uint64_t seed;

	if (rbx_read(reader, page, PAGE, offset))
		fail_msg("%s", rbx_last_error());
	memcpy(&seed, page, sizeof(seed));
	tenant_fill(expected, PAGE, offset);
	if (memcmp(page, expected, PAGE) == 0)
		return;
	for (size_t i = 0; i < PAGE; i++)
		assert_int_equal(page[i], page[0]);
}

static void *write_on(void *stop)
{
	uint8_t page[PAGE];
	uint8_t fill = 0;

	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
		memset(page, fill++, PAGE);
		if (rbx_write(writer, page, PAGE, 0))
			break;
	}
	return NULL;
}

static void page_with_a_checksum_is_never_torn(void **state)
{
	bool stop = false;
	pthread_t thread;
	int i;

	(void)state;
	begin_with(2, 1);
	expect_zeros(0);
	pthread_create(&thread, NULL, write_on, &stop);
	for (i = 0; i < 300; i++)
		expect_whole(0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	put_all(1);
	expect_all_soon(1);
	finish();
}

static void reader_waits_when_too_few_servers_answer(void **state)
{
	uint8_t page[PAGE];
	int i;

	(void)state;
	begin_with(2, 0);
	put_all(1);
	expect_all_soon(1);
	for (i = 0; i < 2; i++)
		rbx_server_stop(servers[i]);
	lag();
	/* One of three may be one that the others have put out. */
	assert_int_equal(rbx_read(reader, page, PAGE, 0), -EIO);
	finish();
	for (i = 0; i < 2; i++)
		servers[i] = tenant_server(); /* to be stopped */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reader_sees_what_was_acknowledged, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(reader_changes_nothing, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(reader_goes_on_without_its_writer, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(removed_volume_is_told, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(lost_server_is_read_no_more, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(moved_slab_is_read_where_it_is, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(one_replica_is_read_as_well, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(page_with_a_checksum_is_never_torn, servers_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(reader_waits_when_too_few_servers_answer,
						servers_start, servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
