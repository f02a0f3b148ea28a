/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* leave_test.c - what a named volume has at a server that is in use moves to the others. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/volume/third_server.h"

#define PAGE 4096u
#define SLABS 6u
#define SIZE ((uint64_t)SLABS * TENANT_SLAB_BYTES)
#define POLL_US 10000u

static void write_all(struct rbx_volume *volume, uint8_t byte)
{
	uint8_t page[PAGE];
	uint32_t i;

	memset(page, byte, PAGE);
	for (i = 0; i < SLABS; i++)
		assert_int_equal(rbx_write(volume, page, PAGE, i * (uint64_t)TENANT_SLAB_BYTES), 0);
}

static void read_all(struct rbx_volume *volume, uint8_t byte)
{
	uint8_t page[PAGE], expected[PAGE];
	uint32_t i;

	memset(expected, byte, PAGE);
	for (i = 0; i < SLABS; i++) {
		assert_int_equal(rbx_read(volume, page, PAGE, i * (uint64_t)TENANT_SLAB_BYTES), 0);
		assert_memory_equal(page, expected, PAGE);
	}
}

/* With so many replicas, written to. */
static void make(struct rbx_context *ctx, const char *at, uint32_t replicas,
		 struct rbx_volume **volume)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = replicas;
	assert_int_equal(rbx_volume_create(ctx, at, "db", SIZE, &options), 0);
	assert_int_equal(open_at(ctx, volume, at), 0);
	write_all(*volume, 1);
}

static uint64_t lent_by_third(void)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(servers[2], &stats);
	return stats.slabs_lent;
}

static void slabs_move_while_they_are_written(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	uint8_t byte = 1;
	int left;

	(void)state;
	make(ctx, pool, 2, &volume);
	assert_true(lent_by_third() > 0);
	while ((left = rbx_volume_move_off(volume, third)) > 0) {
		write_all(volume, ++byte);
		usleep(POLL_US);
	}
	assert_int_equal(left, 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), 0);
	assert_int_equal(lent_by_third(), 0);
	assert_int_equal(open_at(ctx, &volume, two), 0);
	read_all(volume, byte);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, two, "db", 0), 0);
	rbx_close(ctx);
}

/* It is open again before all has moved, and nothing is missing. */
static void move_that_was_left_off_goes_on(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	int round;

	(void)state;
	make(ctx, pool, 2, &volume);
	for (round = 0; round < 4; round++) {
		assert_true(rbx_volume_move_off(volume, third) >= 0);
		assert_int_equal(rbx_volume_close(volume), 0);
		assert_int_equal(open_at(ctx, &volume, pool), 0);
		read_all(volume, 1);
	}
	while (rbx_volume_move_off(volume, third) > 0)
		usleep(POLL_US);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), 0);
	assert_int_equal(rbx_volume_remove(ctx, two, "db", 0), 0);
	rbx_close(ctx);
}

static void move_that_cannot_be_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;

	(void)state;
	make(ctx, pool, 3, &volume);
	assert_int_equal(rbx_volume_move_off(volume, third), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "2 servers for 3 replicas"));
	assert_int_equal(rbx_volume_move_off(volume, "127.0.0.1:1"), -ENODEV);
	assert_int_equal(rbx_volume_move_off(volume, ""), -EINVAL);
	assert_int_equal(rbx_volume_move_off(volume, "0123456789abcdef"), -ENODEV);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), -EADDRINUSE);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);

	make(ctx, pool, 1, &volume);
	assert_int_equal(rbx_volume_move_off(volume, third), -EOPNOTSUPP);
	assert_non_null(strstr(rbx_last_error(), "one replica"));
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);

	assert_int_equal(rbx_volume_open(ctx, &volume, pool, SIZE, NULL), 0);
	assert_int_equal(rbx_volume_move_off(volume, third), -EOPNOTSUPP);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

/* A server that slabs leave takes none of another one. */
static void servers_that_are_left_do_not_count(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume *volume;
	int left;

	(void)state;
	make(ctx, pool, 2, &volume);
	left = rbx_volume_move_off(volume, third);
	assert_true(left > 0);
	assert_int_equal(rbx_volume_move_off(volume, strchr(two, ',') + 1), -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "moved off already"));
	assert_non_null(strstr(rbx_last_error(), "1 server for 2 replicas"));
	while (left > 0) {
		usleep(POLL_US);
		left = rbx_volume_move_off(volume, third);
	}
	assert_int_equal(left, 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* It is in the failure domain of another one, which is that of the other one alone now. */
static void leaver_does_not_count_in_its_domain(void **state)
{
	static const char *const labels[SERVERS] = { "rack=1", "rack=2", "rack=1" };
	struct rbx_context *ctx = tenant_context("");
	struct rbx_server_options options;
	struct rbx_server *racks[SERVERS];
	struct rbx_volume *volume;
	char list[512] = "";
	int i, left;

	(void)state;
	for (i = 0; i < SERVERS; i++) {
		tenant_server_options(&options);
		strcpy(options.labels, labels[i]);
		assert_int_equal(rbx_server_start(&racks[i], &options), 0);
		strcat(strcat(list, i ? "," : ""), rbx_server_address(racks[i]));
	}
	make(ctx, list, 2, &volume);
	while ((left = rbx_volume_move_off(volume, rbx_server_address(racks[0]))) > 0)
		usleep(POLL_US);
	assert_int_equal(left, 0);
	read_all(volume, 1);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
	for (i = 0; i < SERVERS; i++)
		rbx_server_stop(racks[i]);
}

/* Nothing was had from it; but of two replicas there are always two servers. */
static void server_that_has_nothing_is_removed(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_create_options options;

	(void)state;
	rbx_volume_create_options_defaults(&options);
	options.replicas = 2;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, &options), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, pool, "db", third), 0);
	assert_int_equal(rbx_volume_members_remove(ctx, two, "db", strchr(two, ',') + 1), -ENOSPC);
	assert_int_equal(rbx_volume_remove(ctx, two, "db", 0), 0);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slabs_move_while_they_are_written),
		cmocka_unit_test(move_that_was_left_off_goes_on),
		cmocka_unit_test(move_that_cannot_be_is_refused),
		cmocka_unit_test(servers_that_are_left_do_not_count),
		cmocka_unit_test(leaver_does_not_count_in_its_domain),
		cmocka_unit_test(server_that_has_nothing_is_removed),
	};

	return cmocka_run_group_tests(tests, third_server_start, servers_stop);
}
