/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joins_draining_test.c - servers of a pool that drain are not tried, but for those of a named
 * volume that have FAILED, and those that are OUT and may not know it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/keeper.h"
#include "lib/volume/named.h"

#define OUT 7u /* the incarnation of one that is OUT */
#define FAILED "failed:1" /* the address of one that has FAILED */

/* ---- The pool, which is looked at once, in place of pool/pool.c and pool/worker.c ----------- */

static struct rbx_pool_member pool[2];
static size_t pool_count;
static uint32_t looks_left;

size_t rbx_pool_members_get(struct rbx_pool *of, struct rbx_pool_member *members, size_t max)
{
	(void)of;
	assert_true(pool_count <= max);
	memcpy(members, pool, pool_count * sizeof(*members));
	return pool_count;
}

int rbx_pool_event_fd(struct rbx_pool *of)
{
	(void)of;
	return 0;
}

int rbx_pool_trouble(struct rbx_pool *of, char *text, size_t text_bytes)
{
	(void)of;
	assert_true(text_bytes > 0);
	text[0] = '\0';
	return 0;
}

int rbx_pool_close(struct rbx_pool *of)
{
	(void)of;
	return 0;
}

int rbx_pool_worker_open(struct rbx_pool_worker *worker)
{
	(void)worker;
	return 0;
}

int rbx_pool_worker_start(struct rbx_pool_worker *worker, void *(*run)(void *user), void *user)
{
	(void)worker;
	assert_null(run(user));
	return 0;
}

void rbx_pool_worker_close(struct rbx_pool_worker *worker)
{
	(void)worker;
}

bool rbx_pool_worker_wait(const struct rbx_pool_worker *worker, int fd, int timeout_ms)
{
	(void)worker;
	(void)timeout_ms;
	return fd < 0 || looks_left--;
}

/* ---- The volume ------------------------------------------------------------------------------ */

static char tried[128]; /* addresses, each followed by a space */
static uint32_t told_count;

int rbx_volume_server_add(struct rbx_volume *volume, const char *address, const char *labels,
			  bool returns)
{
	(void)volume;
	(void)labels;
	(void)returns;
	strcat(strcat(tried, address), " ");
	return -EHOSTUNREACH;
}

void rbx_events_put(struct rbx_events *events, const struct rbx_event *event)
{
	(void)events;
	(void)event;
	told_count++;
}

bool rbx_joining_is_used(const struct rbx_volume_control *control, const char *address)
{
	(void)control;
	(void)address;
	return false;
}

int rbx_joining_failed_at(const struct rbx_volume_control *control, const char *address)
{
	(void)control;
	return strcmp(address, FAILED) ? -1 : 0;
}

const char *rbx_joining_failed_address(const struct rbx_volume_control *control, uint32_t index)
{
	(void)control;
	return index == 0 ? FAILED : NULL;
}

bool rbx_keeper_is_out(struct rbx_named *named, uint64_t incarnation)
{
	(void)named;
	return incarnation == OUT;
}

bool rbx_volume_named_may_return(struct rbx_volume *volume)
{
	(void)volume;
	return true;
}

/* One that drains is in the pool, and another one that does not. Of the servers of the volume so
 * many have FAILED. */
static void looks(const char *address, uint64_t incarnation, uint32_t failed_count)
{
	struct rbx_volume *volume = calloc(1, sizeof(*volume));
	struct rbx_named named = { .name = "db" };

	pool[0] = (struct rbx_pool_member){ .incarnation = incarnation, .draining = 1 };
	strcpy(pool[0].address, address);
	pool[1] = (struct rbx_pool_member){ .address = "new:1", .incarnation = 5 };
	pool_count = 2;
	looks_left = 1;
	told_count = 0;
	tried[0] = '\0';
	pthread_mutex_init(&volume->add_lock, NULL);
	volume->control.named = &named;
	volume->control.server_count = failed_count;
	volume->joins.pool = (struct rbx_pool *)pool;
	assert_int_equal(rbx_volume_joins_start(volume), 0);
	rbx_volume_joins_stop(volume);
	pthread_mutex_destroy(&volume->add_lock);
	free(volume);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void server_that_drains_is_not_tried(void **state)
{
	(void)state;
	looks("drains:1", 6, 0);
	assert_string_equal(tried, "new:1 ");
}

/* It has what no other one has. */
static void server_that_has_failed_is_tried_though_it_drains(void **state)
{
	(void)state;
	looks(FAILED, 6, 1);
	assert_string_equal(tried, FAILED " new:1 ");
	/* Or is not in the pool any more. */
	looks("drains:1", 6, 1);
	assert_string_equal(tried, "new:1 " FAILED " ");
}

/* It waits for the volume until it hears that. Nobody is told if that fails. */
static void server_that_is_out_is_tried_though_it_drains(void **state)
{
	(void)state;
	looks("out:1", OUT, 0);
	assert_string_equal(tried, "out:1 new:1 ");
	assert_int_equal(told_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_drains_is_not_tried),
		cmocka_unit_test(server_that_has_failed_is_tried_though_it_drains),
		cmocka_unit_test(server_that_is_out_is_tried_though_it_drains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
