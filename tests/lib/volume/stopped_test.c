/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stopped_test.c - a program whose named volume is read and written no more is told why: by an
 * event, and by the text of the next call that fails.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/volume/third_server.h"

#define SLAB ((uint64_t)TENANT_SLAB_BYTES)

/* The last event of each of these kinds. */
static struct diary {
	uint32_t stopped_count, down_count; /* written under the lock; atomic */
	char server[128], reason[512]; /* under the lock */
} diary;
static pthread_mutex_t diary_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	uint32_t *count = event->kind == RBX_EVENT_STOPPED     ? &diary.stopped_count :
			  event->kind == RBX_EVENT_SERVER_DOWN ? &diary.down_count :
								 NULL;

	(void)volume;
	(void)user;
	if (!count)
		return;
	pthread_mutex_lock(&diary_lock);
	snprintf(diary.server, sizeof(diary.server), "%s", event->server);
	snprintf(diary.reason, sizeof(diary.reason), "%s", event->reason);
	__atomic_add_fetch(count, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&diary_lock);
}

static struct rbx_volume *open_watched(struct rbx_context *ctx, uint32_t replicas)
{
	struct rbx_volume_create_options create;
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	diary = (struct diary){ 0 };
	rbx_volume_create_options_defaults(&create);
	create.replicas = replicas;
	assert_int_equal(rbx_volume_create(ctx, pool, "db", 2 * SLAB, &create), 0);
	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.event = note;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	write_page(volume, 0);
	return volume;
}

static struct rbx_volume *take_over(struct rbx_context *ctx)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.name = "db";
	options.take_over = 1;
	assert_int_equal(rbx_volume_open(ctx, &volume, pool, 0, &options), 0);
	return volume;
}

static void text_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" lacks \"%s\"", text, part);
}

static void error_says(struct rbx_volume *volume, const char *why)
{
	uint8_t page[PAGE];

	assert_true(rbx_read(volume, page, PAGE, 0) < 0);
	text_has(rbx_last_error(), "read of 4096 bytes at 0 failed: volume db ");
	text_has(rbx_last_error(), why);
}

/* Waits for an event that says so. */
static struct diary told(const char *why)
{
	struct diary copy;

	do {
		usleep(1000);
		pthread_mutex_lock(&diary_lock);
		copy = diary;
		pthread_mutex_unlock(&diary_lock);
	} while (!strstr(copy.reason, why));
	return copy;
}

/* What servers know that were asked once more. */
static void both_say(struct rbx_volume *volume, const char *why)
{
	struct diary copy = told(why);

	assert_true(*copy.server);
	text_has(pool, copy.server);
	error_says(volume, why);
	text_has(rbx_last_error(), copy.server);
}

static void client_that_has_the_volume_now_is_named(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = open_watched(ctx, 2), *taken = take_over(ctx);
	char holder[64];

	(void)state;
	tenant_wait(ctx, &diary.stopped_count, 1, false);
	error_says(volume, "is read and written no more: ");
	snprintf(holder, sizeof(holder), "process %d", (int)getpid());
	both_say(volume, holder);
	error_says(volume, "another client has opened it: ");
	assert_int_equal(rbx_volume_extend(volume, 3 * SLAB), -ESTALE);
	text_has(rbx_last_error(), holder);
	expect_page(taken, 0);
	(void)rbx_volume_close(volume);
	assert_int_equal(rbx_volume_close(taken), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static void removal_of_the_volume_is_told(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = open_watched(ctx, 2);

	(void)state;
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 1), 0);
	both_say(volume, "it was removed");
	(void)rbx_volume_close(volume);
	rbx_close(ctx);
}

/* Nobody asks its servers once more. But those that are asked to resume know why they do not. */
static void server_of_one_replica_says_why_it_is_lost(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = open_watched(ctx, 1), *taken = take_over(ctx);

	(void)state;
	tenant_wait(ctx, &diary.down_count, SERVERS, false);
	(void)told("another client has opened the volume since");
	error_says(volume, "has lost a server: ");
	(void)rbx_volume_close(volume);
	assert_int_equal(rbx_volume_close(taken), 0);
	assert_int_equal(rbx_volume_remove(ctx, pool, "db", 0), 0);
	rbx_close(ctx);
}

static void volume_without_its_servers_says_so(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=1000");
	struct rbx_volume *volume = open_watched(ctx, 2);

	servers_stop(state);
	(void)told("too few of its servers answer in time");
	error_says(volume, "too few of its servers answer in time");
	(void)rbx_volume_close(volume);
	rbx_close(ctx);
	third_server_start(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_that_has_the_volume_now_is_named),
		cmocka_unit_test(removal_of_the_volume_is_told),
		cmocka_unit_test(server_of_one_replica_says_why_it_is_lost),
		cmocka_unit_test(volume_without_its_servers_says_so),
	};

	return cmocka_run_group_tests(tests, third_server_start, servers_stop);
}
