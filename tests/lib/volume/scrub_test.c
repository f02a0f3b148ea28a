/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scrub_test.c - what is damaged at one server is found before it is read, and written anew: by a
 * call, and by a thread of a volume that is in use.
 */
#include <unistd.h>

#include "tests/lib/volume/checked.h"

/* Each server has its turn, so nothing depends on the place. */
static void scrub_repairs_what_no_read_has_found(void **state)
{
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	uint32_t i;

	(void)state;
	volume_make();
	ctx = context_of_volume(&volume);
	for (i = 0; i < PLACES; i++)
		write_page(volume, SLAB + i * SLAB / PLACES);
	for (i = 0; i < PLACES; i++)
		flip(SLAB + i * SLAB / PLACES, i / 2 % REPLICAS, i);
	assert_int_equal(rbx_volume_scrub(volume, 0, SIZE), 0);
	for (i = 0; i < PLACES; i++) {
		expect_equal_copies(SLAB + i * SLAB / PLACES);
		expect_page(volume, SLAB + i * SLAB / PLACES);
	}
	assert_int_equal(tenant_stats(ctx).checksum_repairs, PLACES);
	assert_int_equal(rbx_volume_scrub(volume, PAGE, SIZE - PAGE), 0);
	assert_int_equal(tenant_stats(ctx).checksum_repairs, PLACES);

	flip(SLAB, 0, 0);
	flip(SLAB, 1, 1);
	flip(2 * SLAB - SLAB / PLACES, 0, 2);
	assert_int_equal(rbx_volume_scrub(volume, 0, SIZE), -EIO);
	expect_equal_copies(2 * SLAB - SLAB / PLACES);
	assert_int_equal(rbx_volume_scrub(volume, 0, SIZE + PAGE), -EINVAL);
	assert_int_equal(rbx_volume_scrub(volume, 0, PAGE + 1), -EINVAL);
	close_all(ctx, volume);
	volume_remove();
}

/* No server has all pages, and each page is at some server: a read of all of them needs both. */
static void pages_are_repaired_that_are_damaged_at_different_servers(void **state)
{
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	uint8_t two[2 * PAGE];
	uint32_t i;

	(void)state;
	volume_make();
	ctx = context_of_volume(&volume);
	for (i = 0; i < 4; i++)
		write_page(volume, i * PAGE);
	flip(0, 0, 0);
	flip(PAGE, 1, 1);
	assert_int_equal(rbx_read(volume, two, sizeof(two), 0), 0);
	flip(2 * PAGE, 1, 0);
	flip(3 * PAGE, 0, 1);
	assert_int_equal(rbx_volume_scrub(volume, 0, 4 * PAGE), 0);
	for (i = 0; i < 4; i++) {
		expect_equal_copies(i * PAGE);
		expect_page(volume, i * PAGE);
	}
	/* One that is damaged at both costs no other its repair. */
	flip(0, 0, 0);
	flip(0, 1, 1);
	flip(PAGE, 0, 0);
	flip(2 * PAGE, 1, 0);
	assert_int_equal(rbx_volume_scrub(volume, 0, 4 * PAGE), -EIO);
	for (i = 1; i < 4; i++)
		expect_equal_copies(i * PAGE);
	close_all(ctx, volume);
	volume_remove();
}

/* Two passes: the first may have begun before. */
static struct rbx_volume_status passes_wait(struct rbx_volume *volume)
{
	struct rbx_volume_status before, now;

	rbx_volume_status(volume, &before);
	do {
		usleep(1000);
		rbx_volume_status(volume, &now);
	} while (now.scrub_passes < before.scrub_passes + 2);
	return now;
}

static void volume_is_scrubbed_while_it_is_in_use(void **state)
{
	struct rbx_volume *volume;
	struct rbx_context *ctx;
	uint32_t i;

	(void)state;
	volume_make();
	ctx = context_of_scrubbed(&volume, 64 * SIZE);
	for (i = 0; i < PLACES; i++)
		write_page(volume, SLAB + i * SLAB / PLACES);
	for (i = 0; i < PLACES; i++)
		flip(SLAB + i * SLAB / PLACES, i / 2 % REPLICAS, i);
	assert_int_equal(passes_wait(volume).scrub_bad_pages, 0);
	assert_int_equal(tenant_stats(ctx).checksum_repairs, PLACES);
	for (i = 0; i < PLACES; i++) {
		expect_equal_copies(SLAB + i * SLAB / PLACES);
		expect_page(volume, SLAB + i * SLAB / PLACES);
	}
	do
		flip_both(SLAB);
	while (!passes_wait(volume).scrub_bad_pages); /* it was repaired in between */
	assert_int_equal(passes_wait(volume).scrub_bad_pages, 1);
	write_page(volume, SLAB);
	assert_int_equal(passes_wait(volume).scrub_bad_pages, 0);
	close_all(ctx, volume);
	volume_remove();
}

/* Nothing can be read then, and nothing is damaged. */
static void volume_that_was_taken_over_is_not_damaged(void **state)
{
	struct rbx_volume *volume, *next;
	struct rbx_context *ctx, *other;
	struct rbx_volume_status before, now;
	uint32_t i;

	(void)state;
	volume_make();
	ctx = context_of_scrubbed(&volume, 64 * SIZE);
	write_page(volume, 0);
	(void)passes_wait(volume);
	other = context_of_volume(&next);
	rbx_volume_status(volume, &before);
	for (i = 0; i < 100; i++) {
		usleep(1000);
		rbx_volume_status(volume, &now);
		assert_int_equal(now.scrub_bad_pages, 0);
	}
	assert_true(now.scrub_passes <= before.scrub_passes + 1);
	close_all(ctx, volume);
	close_all(other, next);
	volume_remove();
}

static void refuse_to_scrub(const char *options_text, uint64_t scrub_rate, const char *why)
{
	struct rbx_context *ctx = tenant_context(options_text);
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	options.scrub_rate = scrub_rate;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), why));
	rbx_close(ctx);
}

static void scrub_needs_checksums(void **state)
{
	struct rbx_volume_create_options wanted = checked();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;

	(void)state;
	wanted.checksums = 0;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &wanted), 0);
	rbx_close(ctx);
	ctx = context_of_volume(&volume);
	assert_int_equal(rbx_volume_scrub(volume, 0, SIZE), -EOPNOTSUPP);
	close_all(ctx, volume);
	refuse_to_scrub("", SIZE, "has no checksums");
	volume_remove();
	/* Who is refused has taken it from nobody. */
	volume_make();
	ctx = context_of_volume(&volume);
	write_page(volume, 0);
	refuse_to_scrub("", 1000, "at least 1048576 bytes a second");
	refuse_to_scrub("pollers=0", SIZE, "pollers=0");
	write_page(volume, PAGE);
	expect_page(volume, 0);
	close_all(ctx, volume);
	volume_remove();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(scrub_repairs_what_no_read_has_found,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(
			pages_are_repaired_that_are_damaged_at_different_servers, servers_start,
			servers_stop),
		cmocka_unit_test_setup_teardown(volume_is_scrubbed_while_it_is_in_use,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(volume_that_was_taken_over_is_not_damaged,
						servers_start, servers_stop),
		cmocka_unit_test_setup_teardown(scrub_needs_checksums,
						servers_start, servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
