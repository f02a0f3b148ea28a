/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * large_pool_test.c - named volumes of a pool that has more servers than a volume may have.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/limits.h"
#include "include/rdmabox/named_volume.h"
#include "tests/lib/tenant.h"

#define SERVERS (RBX_MEMBERS_MAX + 1)
#define SLAB_BYTES 65536u
#define SIZE ((uint64_t)4 * SLAB_BYTES)

static struct rbx_server *servers[SERVERS];
static char pool[SERVERS * 32]; /* their addresses, as a list */

static struct rbx_server *start(uint32_t slabs_count)
{
	struct rbx_server_options options;
	struct rbx_server *server;

	tenant_server_options(&options);
	options.slab_bytes = SLAB_BYTES;
	options.memory_bytes = slabs_count * SLAB_BYTES;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	return server;
}

/* The first one has least memory. */
static int pool_start(void **state)
{
	uint32_t i;

	(void)state;
	pool[0] = '\0';
	for (i = 0; i < SERVERS; i++) {
		servers[i] = start(i ? 8 : 4);
		strcat(pool, i ? "," : "");
		strcat(pool, rbx_server_address(servers[i]));
	}
	return 0;
}

static int pool_stop(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < SERVERS; i++)
		rbx_server_stop(servers[i]);
	return 0;
}

static void make(struct rbx_context *ctx, const char *at, uint32_t reserve)
{
	struct rbx_volume_create_options options;

	rbx_volume_create_options_defaults(&options);
	options.replicas = strchr(at, ',') ? 2 : 1;
	options.reserve = reserve;
	if (rbx_volume_create(ctx, at, "db", SIZE, &options))
		fail_msg("%s", rbx_last_error());
}

static uint32_t list(struct rbx_context *ctx, struct rbx_volume_info *info)
{
	int count = rbx_volume_list(ctx, pool, info, 1);

	assert_true(count >= 0);
	return (uint32_t)count;
}

static void open_and_use(struct rbx_context *ctx)
{
	static uint8_t in[SIZE], out[SIZE];
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	if (rbx_volume_open(ctx, &volume, pool, 0, &options))
		fail_msg("%s", rbx_last_error());
	tenant_fill(in, SIZE, 1);
	assert_int_equal(rbx_write(volume, in, SIZE, 0), 0);
	assert_int_equal(rbx_read(volume, out, SIZE, 0), 0);
	assert_memory_equal(in, out, SIZE);
	assert_int_equal(rbx_volume_close(volume), 0);
}

/* ---- Tests -----------------------------------------------------------------------*/

static void volume_is_made_on_those_that_have_most_free(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_server_stats stats;
	struct rbx_volume_info info;

	(void)state;
	make(ctx, pool, true);
	assert_int_equal(list(ctx, &info), 1);
	assert_int_equal(info.servers, RBX_MEMBERS_MAX);
	assert_int_equal(info.servers_there, RBX_MEMBERS_MAX);
	open_and_use(ctx);
	assert_int_equal(rbx_volume_grow(ctx, pool, "db", 2 * SIZE), 0);
	rbx_server_stats_get(servers[0], &stats);
	assert_int_equal(stats.slabs_lent, 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	assert_int_equal(list(ctx, &info), 0);
	rbx_close(ctx);
}

/* Also by a server that the new volume would not be made on. */
static void name_that_any_server_knows_is_refused(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_info info;

	(void)state;
	make(ctx, rbx_server_address(servers[0]), false);
	assert_int_equal(rbx_volume_create(ctx, pool, "db", SIZE, NULL), -EEXIST);
	assert_int_equal(list(ctx, &info), 1);
	open_and_use(ctx);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

/* It would help nobody whose only server is away, or whose pool cannot be read. */
static void others_are_named_only_if_there_are_others(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	char two[64];

	(void)state;
	snprintf(two, sizeof(two), "127.0.0.1:1,%s", rbx_server_address(servers[0]));
	assert_int_equal(rbx_volume_create(ctx, two, "db", SIZE, NULL), -ECONNREFUSED);
	assert_non_null(strstr(rbx_last_error(), "name the others"));
	assert_int_equal(rbx_volume_create(ctx, "127.0.0.1:1", "db", SIZE, NULL), -ECONNREFUSED);
	assert_null(strstr(rbx_last_error(), "name the others"));
	assert_true(rbx_volume_create(ctx, "etcd://127.0.0.1:1/p", "db", SIZE, NULL) < 0);
	assert_null(strstr(rbx_last_error(), "name the others"));
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_is_made_on_those_that_have_most_free),
		cmocka_unit_test(name_that_any_server_knows_is_refused),
		cmocka_unit_test(others_are_named_only_if_there_are_others),
	};

	return cmocka_run_group_tests(tests, pool_start, pool_stop);
}
