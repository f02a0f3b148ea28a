/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* drain_test.c - a server drains that has, or had, something of a named volume. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/volume/third_server.h"

#define PAGE 4096u
#define SLABS TENANT_SLABS
#define SIZE ((uint64_t)SLABS * TENANT_SLAB_BYTES)
#define POLL_US 10000u
#define SHORT "peer_timeout_ms=1000"

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

static void make(struct rbx_context *ctx, const char *at)
{
	struct rbx_volume_create_options options;
	struct rbx_volume *volume;

	rbx_volume_create_options_defaults(&options);
	options.replicas = 2;
	assert_int_equal(rbx_volume_create(ctx, at, "db", SIZE, &options), 0);
	assert_int_equal(open_at(ctx, &volume, at), 0);
	write_all(volume, 1);
	assert_int_equal(rbx_volume_close(volume), 0);
}

/* ---- The third server drains ----------------------------------------------------------- */

static pthread_t drain;
static int drain_err;
static bool drain_is_over;

static void *drain_main(void *unused)
{
	drain_err = rbx_server_drain(servers[2], TENANT_WAIT_MS);
	__atomic_store_n(&drain_is_over, true, __ATOMIC_RELEASE);
	return unused;
}

static void drain_begin(void)
{
	struct rbx_server_stats stats;

	drain_is_over = false;
	assert_int_equal(pthread_create(&drain, NULL, drain_main, NULL), 0);
	do {
		usleep(POLL_US);
		rbx_server_stats_get(servers[2], &stats);
	} while (!stats.draining);
}

/* It has ended, since nobody needs it any more. */
static void drain_end(void)
{
	assert_int_equal(pthread_join(drain, NULL), 0);
	assert_int_equal(drain_err, 0);
	assert_int_equal(rbx_server_stop(servers[2]), 0);
	servers[2] = NULL;
}

/* Another program has the volume from now on. */
static void taken_over_at(const char *at, uint8_t byte)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = true;
	assert_int_equal(rbx_volume_open(ctx, &volume, at, 0, &options), 0);
	read_all(volume, byte);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

static void slabs_leave_a_server_that_drained_before_the_open(void **state)
{
	struct rbx_context *ctx = tenant_context(SHORT);
	struct rbx_volume *volume;

	(void)state;
	make(ctx, pool);
	drain_begin();
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	write_all(volume, 2);
	drain_end();
	taken_over_at(two, 2);
	(void)rbx_volume_close(volume);
	rbx_close(ctx);
}

/* One of two replicas is lost, and nobody lends another one. What is left needs the server that
 * drains and has nothing, as long as the record says that it is IN. */
static void server_that_drains_is_let_go_while_slabs_have_one_copy(void **state)
{
	struct rbx_context *ctx = tenant_context(SHORT);
	const char *second = strchr(two, ',') + 1, *rest = strchr(pool, ',') + 1;
	struct rbx_volume *volume, *hog;

	(void)state;
	make(ctx, two);
	assert_int_equal(rbx_volume_members_add(ctx, two, "db", third), 0);
	assert_int_equal(rbx_volume_open(ctx, &hog, third, SIZE, NULL), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	assert_int_equal(rbx_server_stop(servers[0]), 0);
	servers[0] = NULL;
	write_all(volume, 2);
	assert_int_equal(rbx_volume_close(volume), 0);
	drain_begin();
	assert_int_equal(rbx_volume_close(hog), 0);
	usleep(10 * POLL_US);
	assert_false(__atomic_load_n(&drain_is_over, __ATOMIC_ACQUIRE));
	assert_int_equal(open_at(ctx, &volume, rest), 0);
	drain_end();
	taken_over_at(second, 2);
	(void)rbx_volume_close(volume);
	rbx_close(ctx);
}

/* It is OUT, and another open does not take it in. */
static void server_that_is_out_and_drains_is_left_out(void **state)
{
	struct rbx_context *ctx = tenant_context(SHORT);
	struct rbx_server_stats stats;
	struct rbx_volume *volume;

	(void)state;
	make(ctx, pool);
	drain_begin();
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	assert_int_equal(pthread_join(drain, NULL), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(open_at(ctx, &volume, pool), 0);
	rbx_server_stats_get(servers[2], &stats);
	assert_int_equal(stats.clients, 0);
	write_all(volume, 3);
	/* Nothing has to be done for it to end. */
	assert_int_equal(rbx_server_drain(servers[2], 0), 0);
	assert_int_equal(rbx_volume_close(volume), 0);
	rbx_close(ctx);
}

struct down {
	int count; /* atomic */
	uint32_t slabs_count;
	char reason[256];
};

static void down_note(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	struct down *down = user;

	(void)volume;
	if (event->kind != RBX_EVENT_SERVER_DOWN)
		return;
	down->slabs_count = event->slab_count;
	snprintf(down->reason, sizeof(down->reason), "%s", event->reason);
	__atomic_add_fetch(&down->count, 1, __ATOMIC_RELEASE);
}

static void server_that_drained_is_told_with_the_reason(void **state)
{
	struct rbx_context *ctx = tenant_context(SHORT);
	struct rbx_volume_options options;
	struct down down = { 0 };
	struct rbx_volume *volume;

	(void)state;
	make(ctx, pool);
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.event = down_note;
	options.user = &down;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	drain_begin();
	drain_end();
	while (!__atomic_load_n(&down.count, __ATOMIC_ACQUIRE))
		usleep(POLL_US);
	assert_int_equal(down.slabs_count, 0);
	assert_string_equal(down.reason, "it drains, and has nothing of the volume any more");
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(down.count, 1);
	rbx_close(ctx);
}

#define DRAIN_TEST(name) cmocka_unit_test_setup_teardown(name, third_server_start, servers_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DRAIN_TEST(slabs_leave_a_server_that_drained_before_the_open),
		DRAIN_TEST(server_that_drains_is_let_go_while_slabs_have_one_copy),
		DRAIN_TEST(server_that_is_out_and_drains_is_left_out),
		DRAIN_TEST(server_that_drained_is_told_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
