/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* balance_test.c - a server comes to a volume that is open, and gets its share of what is there. */
#include <string.h>
#include <unistd.h>

#include "tests/lib/volume/third_server.h"

#define SLABS 6u
#define REPLICAS 2u
#define SIZE ((uint64_t)SLABS * TENANT_SLAB_BYTES)
#define PATIENCE_US 60000000u
#define POLL_US 10000u

static uint64_t lent_by(uint32_t server)
{
	struct rbx_server_stats stats;

	rbx_server_stats_get(servers[server], &stats);
	return stats.slabs_lent;
}

static bool is_even(void)
{
	uint32_t i;

	for (i = 0; i < SERVERS; i++)
		if (lent_by(i) != SLABS * REPLICAS / SERVERS)
			return false;
	return true;
}

/* Pages are written and read all the time. */
static void wait_even(struct rbx_volume *volume)
{
	struct rbx_volume_status status;
	uint32_t us;

	for (us = 0; us < PATIENCE_US; us += POLL_US) {
		uint64_t at = us / POLL_US % SLABS * TENANT_SLAB_BYTES;

		write_page(volume, at);
		expect_page(volume, at);
		rbx_volume_status(volume, &status);
		if (status.slabs_whole == SLABS && is_even())
			break;
		usleep(POLL_US);
	}
	assert_true(is_even());
	assert_true(status.replicas_moved >= SLABS * REPLICAS / SERVERS);
}

static void write_all(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < SLABS; i++)
		write_page(volume, i * (uint64_t)TENANT_SLAB_BYTES);
}

static void read_all(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < SLABS; i++)
		expect_page(volume, i * (uint64_t)TENANT_SLAB_BYTES);
}

static void server_comes_to_a_named_volume(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_create_options options;
	struct rbx_volume *volume;

	(void)state;
	rbx_volume_create_options_defaults(&options);
	options.replicas = REPLICAS;
	assert_int_equal(rbx_volume_create(ctx, two, "db", SIZE, &options), 0);
	assert_int_equal(open_at(ctx, &volume, two), 0);
	write_all(volume);
	assert_int_equal(lent_by(0), SLABS);
	assert_int_equal(rbx_volume_add_server(volume, third), 0);
	wait_even(volume);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	read_all(volume);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static void server_comes_to_a_volume_without_a_name(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	(void)state;
	rbx_volume_options_defaults(&options);
	options.replicas = REPLICAS;
	assert_int_equal(rbx_volume_open(ctx, &volume, two, SIZE, &options), 0);
	write_all(volume);
	assert_int_equal(rbx_volume_add_server(volume, third), 0);
	wait_even(volume);
	read_all(volume);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(server_comes_to_a_named_volume, third_server_start,
						servers_stop),
		cmocka_unit_test_setup_teardown(server_comes_to_a_volume_without_a_name,
						third_server_start, servers_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
