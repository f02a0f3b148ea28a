/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events_test.c - events are told in order, and whoever puts them does not wait for the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/port.h"
#include "lib/guard.h"
#include "lib/volume/events.h"

#define TOLD_MAX (2 * RBX_EVENTS_MAX)

struct diary {
	bool is_held; /* atomic: the callback is held up */
	uint32_t count; /* atomic */
	struct rbx_event told[TOLD_MAX]; /* without their texts */
	char server[32]; /* of the last one */
	char reason[64];
	int wait_err; /* what a call that blocks returns in the callback */
};

static void note(struct rbx_volume *volume, const struct rbx_event *event, void *user)
{
	struct diary *diary = user;

	(void)volume;
	diary->told[diary->count] = *event;
	snprintf(diary->server, sizeof(diary->server), "%s", event->server);
	snprintf(diary->reason, sizeof(diary->reason), "%s", event->reason);
	diary->wait_err = rbx_guard_thread("a call");
	RBX_STORE_RELEASE(&diary->count, diary->count + 1);
	while (RBX_LOAD_ACQUIRE(&diary->is_held))
		usleep(1000);
}

static void put(struct rbx_events *events, uint32_t number)
{
	char server[32], reason[64];
	const struct rbx_event event = {
		.kind = RBX_EVENT_SERVER_DOWN,
		.server = server,
		.slab_count = number,
		.reason = reason,
	};

	snprintf(server, sizeof(server), "s%u:1", number);
	snprintf(reason, sizeof(reason), "reason %u", number);
	rbx_events_put(events, &event);
}

static void wait_told(struct diary *diary, uint32_t count)
{
	while (RBX_LOAD_ACQUIRE(&diary->count) < count)
		usleep(1000);
}

/* ---- Tests -----------------------------------------------------------------------*/

static void events_are_told_in_order_and_before_the_end(void **state)
{
	static struct diary diary;
	struct rbx_events events;
	uint32_t i;

	(void)state;
	assert_int_equal(rbx_events_begin(&events, NULL, note, &diary), 0);
	for (i = 0; i < RBX_EVENTS_MAX - 1; i++)
		put(&events, i);
	rbx_events_end(&events);
	assert_int_equal(diary.count, RBX_EVENTS_MAX - 1);
	for (i = 0; i < diary.count; i++)
		assert_int_equal(diary.told[i].slab_count, i);
	assert_string_equal(diary.server, "s126:1");
	assert_string_equal(diary.reason, "reason 126");
	assert_int_equal(diary.wait_err, -EDEADLK);
	put(&events, 1); /* is not told any more */
	rbx_events_end(&events);
	assert_int_equal(diary.count, RBX_EVENTS_MAX - 1);
}

static void callback_that_is_held_up_holds_nobody_up_and_misses_are_counted(void **state)
{
	static struct diary diary = { .is_held = true };
	struct rbx_events events;
	uint32_t i;

	(void)state;
	assert_int_equal(rbx_events_begin(&events, NULL, note, &diary), 0);
	put(&events, 1000);
	wait_told(&diary, 1);
	for (i = 0; i < RBX_EVENTS_MAX + 10; i++)
		put(&events, i);
	RBX_STORE_RELEASE(&diary.is_held, false);
	wait_told(&diary, RBX_EVENTS_MAX + 1);
	put(&events, 2000);
	rbx_events_end(&events);
	assert_int_equal(diary.count, RBX_EVENTS_MAX + 2);
	for (i = 0; i < RBX_EVENTS_MAX - 1; i++)
		assert_int_equal(diary.told[1 + i].slab_count, i);
	assert_int_equal(diary.told[RBX_EVENTS_MAX].kind, RBX_EVENT_MISSED);
	assert_int_equal(diary.told[RBX_EVENTS_MAX].slab_count, 11);
	assert_int_equal(diary.told[RBX_EVENTS_MAX + 1].slab_count, 2000);
}

static void without_a_callback_nothing_is_done(void **state)
{
	struct rbx_events events;

	(void)state;
	assert_int_equal(rbx_events_begin(&events, NULL, NULL, NULL), 0);
	put(&events, 1);
	rbx_events_end(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_told_in_order_and_before_the_end),
		cmocka_unit_test(
			callback_that_is_held_up_holds_nobody_up_and_misses_are_counted),
		cmocka_unit_test(without_a_callback_nothing_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
