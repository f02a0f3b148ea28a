/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events_test.c - the order of events, beside a plain sorted list, and the sites
 * of faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/events.h"
#include "sim/random.h"
#include "sim/sites.h"
#include "sim/trace.h"

#define EVENTS 300u

struct thing {
	struct rbx_sim_event event;
	uint32_t number;
	uint64_t at_ns;
	uint64_t sequence;
	bool is_queued;
};

static struct thing things[EVENTS];
static uint32_t ran[EVENTS * 100], ran_count;

static void note(struct rbx_sim_event *event)
{
	struct thing *thing = RBX_CONTAINER_OF(event, struct thing, event);

	assert_int_equal(rbx_sim_now(), thing->at_ns);
	thing->is_queued = false;
	ran[ran_count++] = thing->number;
}

static void begin(void)
{
	rbx_sim_events_reset();
	ran_count = 0;
	for (uint32_t i = 0; i < EVENTS; i++)
		things[i] = (struct thing){ .event.run = note, .number = i };
}

static void queue(uint32_t number, uint64_t at_ns)
{
	static uint64_t sequence;

	things[number].at_ns = at_ns;
	things[number].sequence = ++sequence;
	things[number].is_queued = true;
	rbx_sim_at(&things[number].event, at_ns);
}

static void events_run_in_order_of_time_then_of_asking(void **state)
{
	(void)state;
	begin();
	queue(0, 20);
	queue(1, 10);
	queue(2, 20);
	queue(3, 10);
	while (rbx_sim_step())
		;
	assert_int_equal(ran_count, 4);
	assert_int_equal(ran[0], 1);
	assert_int_equal(ran[1], 3);
	assert_int_equal(ran[2], 0);
	assert_int_equal(ran[3], 2);
	assert_int_equal(rbx_sim_now(), 20);
	assert_int_equal(rbx_sim_events_run(), 4);
}

/* Those of one moment, asked for from far and from near. */
static void far_events_keep_their_place(void **state)
{
	(void)state;
	begin();
	queue(0, 3000000);
	queue(1, 3000000);
	queue(2, 2999000);
	queue(3, 2999000);
	assert_true(rbx_sim_step());
	queue(4, 3000000);
	queue(5, 2999000);
	while (rbx_sim_step())
		;
	assert_int_equal(ran_count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		static const uint32_t wanted[] = { 2, 3, 5, 0, 1, 4 };

		assert_int_equal(ran[i], wanted[i]);
	}
}

static void event_of_the_past_runs_now(void **state)
{
	(void)state;
	begin();
	queue(0, 50);
	assert_true(rbx_sim_step());
	things[1].at_ns = 50;
	rbx_sim_at(&things[1].event, 10);
	assert_true(rbx_sim_step());
	assert_int_equal(rbx_sim_now(), 50);
	assert_int_equal(ran[1], 1);
}

/* The one that is to run next, by looking at all. */
static struct thing *earliest(void)
{
	struct thing *best = NULL;

	for (uint32_t i = 0; i < EVENTS; i++) {
		struct thing *thing = &things[i];

		if (thing->is_queued &&
		    (!best || thing->at_ns < best->at_ns ||
		     (thing->at_ns == best->at_ns &&
		      thing->sequence < best->sequence)))
			best = thing;
	}
	return best;
}

static void random_events_run_as_from_a_plain_list(void **state)
{
	struct rbx_random random;

	(void)state;
	begin();
	rbx_random_seed(&random, 7);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t number = rbx_random_below(&random, EVENTS);
		struct thing *next = earliest();

		switch (rbx_random_below(&random, 4)) {
		case 0:
			rbx_sim_cancel(&things[number].event);
			things[number].is_queued = false;
			break;
		case 1:
			assert_int_equal(rbx_sim_step(), next != NULL);
			if (next)
				assert_int_equal(ran[ran_count - 1],
						 next->number);
			break;
		default: /* queued anew, or moved */
			/* Near mostly, and as far as a second now and then. */
			queue(number,
			      rbx_sim_now() +
				      (rbx_random_next(&random) >>
				       (58 - 4 * rbx_random_below(&random, 3) *
						     (i % 64 == 0 ? 3 : 1))));
		}
		assert_int_equal(rbx_sim_is_queued(&things[number].event),
				 things[number].is_queued);
	}
}

static void trace_differs_by_time_and_value(void **state)
{
	uint64_t hashes[4];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		begin();
		rbx_sim_trace_reset();
		queue(0, i == 1 ? 6 : 5);
		rbx_sim_step();
		RBX_SIM_TRACE(1, "test", "a", i == 2 ? 4 : 3, "b", 9);
		hashes[i] = rbx_sim_trace_hash();
	}
	assert_int_equal(hashes[0], hashes[3]);
	assert_int_not_equal(hashes[0], hashes[1]);
	assert_int_not_equal(hashes[0], hashes[2]);
}

static void site_fires_by_its_chance_within_its_budget(void **state)
{
	uint32_t fired = 0;

	(void)state;
	rbx_sim_sites_reset(1);
	rbx_sim_site_force(RBX_SIM_SITE_qp_error, RBX_SIM_MILLION / 2);
	for (uint32_t i = 0; i < 1000; i++) {
		fired += rbx_sim_site(RBX_SIM_SITE_qp_error);
		assert_false(rbx_sim_site(RBX_SIM_SITE_stale_key));
	}
	assert_int_equal(fired, 16);
	assert_int_equal(rbx_sim_site_fired(RBX_SIM_SITE_qp_error), 16);
}

static void sites_of_a_run_are_drawn_from_its_seed(void **state)
{
	uint32_t on[RBX_SIM_SITES_COUNT] = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 400; seed++) {
		rbx_sim_sites_reset(seed);
		rbx_sim_site_allow(RBX_SIM_SITE_qp_error, false);
		rbx_sim_site_allow(RBX_SIM_SITE_partition, false);
		rbx_sim_site_allow(RBX_SIM_SITE_pressure, true);
		rbx_sim_sites_draw();
		for (int i = 0; i < RBX_SIM_SITES_COUNT; i++)
			on[i] += rbx_sim_site_is_on((enum rbx_sim_site)i);
	}
	assert_in_range(on[RBX_SIM_SITE_qp_error], 60, 140);
	assert_in_range(on[RBX_SIM_SITE_partition], 60, 140);
	assert_int_equal(on[RBX_SIM_SITE_pressure], 400);
	assert_int_equal(on[RBX_SIM_SITE_stale_key], 0);
}

static void site_is_found_by_name_and_silent_once_healed(void **state)
{
	enum rbx_sim_site site;

	(void)state;
	rbx_sim_sites_reset(1);
	assert_true(rbx_sim_site_find("qp-error", &site));
	assert_int_equal(site, RBX_SIM_SITE_qp_error);
	assert_string_equal(rbx_sim_site_name(site), "qp-error");
	assert_true(rbx_sim_site_find("qp-error", &site));
	assert_false(rbx_sim_site_find("qp", &site));
	rbx_sim_site_force(site, RBX_SIM_MILLION);
	assert_true(rbx_sim_site(site));
	rbx_sim_sites_heal();
	assert_false(rbx_sim_site(site));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_run_in_order_of_time_then_of_asking),
		cmocka_unit_test(far_events_keep_their_place),
		cmocka_unit_test(event_of_the_past_runs_now),
		cmocka_unit_test(random_events_run_as_from_a_plain_list),
		cmocka_unit_test(trace_differs_by_time_and_value),
		cmocka_unit_test(site_fires_by_its_chance_within_its_budget),
		cmocka_unit_test(sites_of_a_run_are_drawn_from_its_seed),
		cmocka_unit_test(site_is_found_by_name_and_silent_once_healed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
