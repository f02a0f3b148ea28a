/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recovery_test.c - connections that break under load and are restored.
 *
 * Between client and server lies a cable that is cut, held and disturbed. What
 * must hold: every request ends once; what was acknowledged is there; and a
 * write that is sent again never undoes a newer one.
 *
 * The load makes that visible. Each slot is a page with a chain of writes, one
 * outstanding at a time, each with the next number all over the page; its
 * neighbours, half of which are the program's neighbours too, merge with it.
 * An old attempt that arrives late leaves an older number behind, at once or in
 * one of the reads between the writes.
 */
#include "tests/lib/cabled_site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/port.h"
#include "core/random.h"
#include "lib/clock.h"

#define PAGE 4096u
#define WORDS (PAGE / sizeof(uint64_t))
#define SLOTS 64u

/* ---- The load --------------------------------------------------------------*/

struct load {
	struct rbx_remote *remote;
	bool stop; /* atomic */
	uint32_t running_count; /* atomic */
	uint32_t failed_count; /* atomic: requests that ended with an error */
	uint32_t wrong_count; /* atomic: reads of something else */
	uint32_t requests_count; /* atomic */
};

struct slot {
	struct load *load;
	struct rbx_request request;
	uint64_t number; /* of the last write that was acknowledged */
	uint64_t page[WORDS];
};

static void fill(struct slot *slot, uint64_t number)
{
	for (uint32_t i = 0; i < WORDS; i++)
		slot->page[i] = number;
}

static bool holds(const struct slot *slot, uint64_t number)
{
	for (uint32_t i = 0; i < WORDS; i++)
		if (slot->page[i] != number)
			return false;
	return true;
}

/* Two writes, then a read of what they have left. */
static void slot_next(struct slot *slot)
{
	struct rbx_request *list[] = { &slot->request };

	if (slot->number % 3 == 2 && slot->request.op == RBX_WRITE) {
		slot->request.op = RBX_READ;
		fill(slot, UINT64_MAX);
	} else {
		slot->request.op = RBX_WRITE;
		fill(slot, slot->number + 1);
	}
	if (rbx_remote_submit(slot->load->remote, list, 1)) {
		RBX_FETCH_ADD(&slot->load->failed_count, 1);
		RBX_FETCH_ADD(&slot->load->running_count, -1);
	}
}

static void slot_done(struct rbx_request *request)
{
	struct slot *slot = request->user;
	struct load *load = slot->load;

	RBX_FETCH_ADD(&load->requests_count, 1);
	if (request->status)
		RBX_FETCH_ADD(&load->failed_count, 1);
	else if (request->op == RBX_WRITE)
		slot->number++;
	else if (!holds(slot, slot->number))
		RBX_FETCH_ADD(&load->wrong_count, 1);
	if (request->status || RBX_LOAD_RELAXED(&load->stop))
		RBX_FETCH_ADD(&load->running_count, -1);
	else
		slot_next(slot);
}

static struct slot *load_start(struct load *load, struct rbx_remote *remote)
{
	struct slot *slots = calloc(SLOTS, sizeof(*slots));

	assert_non_null(slots);
	*load = (struct load){ .remote = remote, .running_count = SLOTS };
	for (uint32_t i = 0; i < SLOTS; i++) {
		slots[i].load = load;
		slots[i].request = (struct rbx_request){
			.length_bytes = PAGE,
			.offset = i * PAGE,
			.buf = slots[i].page,
			.complete = slot_done,
			.user = &slots[i],
		};
		slot_next(&slots[i]);
	}
	return slots;
}

static void wait_while(const uint32_t *counter, const char *what)
{
	uint64_t end_ns = rbx_now_ns() + TENANT_WAIT_MS * 1000000ull;

	while (RBX_LOAD_ACQUIRE(counter) != 0) {
		usleep(200);
		if (rbx_now_ns() > end_ns)
			fail_msg("%s: %u left after %d ms", what,
				 RBX_LOAD_ACQUIRE(counter), TENANT_WAIT_MS);
	}
}

/* Waits until the load has done `count` more requests. */
static void load_go_on(struct load *load, uint32_t count)
{
	uint32_t now = RBX_LOAD_ACQUIRE(&load->requests_count);

	if (RBX_LOAD_ACQUIRE(&load->running_count) == 0)
		fail_msg("all requests have failed");
	tenant_wait(NULL, &load->requests_count, now + count, false);
}

static void load_stop(struct load *load)
{
	RBX_STORE_RELAXED(&load->stop, true);
	wait_while(&load->running_count, "slots");
}

/* The last acknowledged write of each slot is what is there. */
static void assert_kept(struct tenant *tenant, struct slot *slots)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		assert_int_equal(tenant_transfer(tenant, RBX_READ,
						 slots[i].page, PAGE,
						 i * PAGE),
				 0);
		assert_true(holds(&slots[i], slots[i].number));
	}
}

/* Under cuts at random moments, as often as `cuts` says. */
static void storm(const char *settings, uint32_t cuts, bool newest_only)
{
	struct rbx_random random;
	struct rbx_stats stats;
	struct slot *slots;
	struct site site;
	struct load load;

	rbx_random_seed(&random, 1);
	site_open(&site, settings);
	slots = load_start(&load, site.tenant.remote);
	for (uint32_t i = 0; i < cuts; i++) {
		usleep(rbx_random_below(&random, 8000));
		if (i % 4 == 0) /* not in the repair of the one before */
			load_go_on(&load, 100);
		if (newest_only || i % 3 == 2)
			cable_cut_newest(site.cable);
		else
			cable_cut(site.cable);
	}
	load_go_on(&load, 100);
	load_stop(&load);
	assert_int_equal(load.failed_count, 0);
	assert_int_equal(load.wrong_count, 0);
	stats = tenant_stats(site.tenant.ctx);
	assert_true(stats.retries > 0);
	assert_int_equal(stats.inflight_bytes, 0);
	assert_int_equal(stats.requests, load.requests_count);
	assert_kept(&site.tenant, slots);
	free(slots);
	site_close(&site);
}

static void old_write_never_undoes_a_newer_one(void **state)
{
	(void)state;
	storm("", 200, false);
}

static void old_write_of_another_queue_pair_undoes_nothing(void **state)
{
	(void)state;
	storm("queue_pairs=4 mode=single", 100, false);
}

static void staged_writes_are_sent_again_as_they_were(void **state)
{
	(void)state;
	storm("buffers=staging pollers=2", 100, false);
}

static void narrow_window_survives_cuts(void **state)
{
	(void)state;
	storm("window=32K fragment_bytes=32K mode=hybrid", 100, false);
	storm("window=aimd fragment_bytes=4K pollers=2", 40, false);
	storm("window=auto window_work_requests=3", 40, false);
}

static void polling_events_only_survives_cuts(void **state)
{
	(void)state;
	storm("polling=event", 100, false);
}

/* The control connection is whole, only the data are cut off. */
static void cut_of_a_data_connection_alone_is_repaired(void **state)
{
	(void)state;
	storm("", 30, true);
}

/*
 * The first attempts of all that is outstanding reach the server when the
 * client has long resumed, sent them again, and gone on.
 */
static void first_attempt_that_comes_late_undoes_nothing(void **state)
{
	struct rbx_random random;
	struct slot *slots;
	struct site site;
	struct load load;

	(void)state;
	rbx_random_seed(&random, 4);
	site_open(&site, "peer_timeout_ms=20000 queue_pairs=2 mode=doorbell");
	slots = load_start(&load, site.tenant.remote);
	for (int i = 0; i < 60; i++) {
		load_go_on(&load, SLOTS);
		cable_hold(site.cable, true);
		usleep(2000); /* much is under way now */
		cable_haunt(site.cable, rbx_random_below(&random, 30));
		cable_hold(site.cable, false);
		load_go_on(&load, 4 * SLOTS);
	}
	load_stop(&load);
	assert_int_equal(load.failed_count, 0);
	assert_int_equal(load.wrong_count, 0);
	assert_true(tenant_stats(site.tenant.ctx).retries > 0);
	assert_kept(&site.tenant, slots);
	free(slots);
	site_close(&site);
}

static void short_hold_delays_and_loses_nothing(void **state)
{
	struct slot *slots;
	struct site site;
	struct load load;

	(void)state;
	site_open(&site, "peer_timeout_ms=20000");
	slots = load_start(&load, site.tenant.remote);
	for (int i = 0; i < 5; i++) {
		load_go_on(&load, 200);
		cable_hold(site.cable, true);
		usleep(100000);
		cable_hold(site.cable, false);
	}
	load_go_on(&load, 200);
	load_stop(&load);
	assert_int_equal(load.failed_count, 0);
	assert_int_equal(load.wrong_count, 0);
	assert_kept(&site.tenant, slots);
	free(slots);
	site_close(&site);
}

/* Nothing is carried any more, and nobody says so. */
static void endless_hold_ends_every_request(void **state)
{
	uint8_t page[PAGE];
	struct slot *slots;
	struct site site;
	struct load load;

	(void)state;
	site_open(&site, "peer_timeout_ms=400");
	slots = load_start(&load, site.tenant.remote);
	load_go_on(&load, 200);
	cable_hold(site.cable, true);
	wait_while(&load.running_count, "slots");
	assert_int_equal(load.failed_count, SLOTS);
	assert_int_equal(load.wrong_count, 0);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(slots[i].request.status == -EHOSTUNREACH ||
			    slots[i].request.status == -ETIMEDOUT);
	/* It stays down, even though the cable is good again. */
	cable_hold(site.cable, false);
	assert_int_equal(tenant_transfer(&site.tenant, RBX_READ, page, PAGE, 0),
			 -EHOSTUNREACH);
	assert_int_equal(tenant_stats(site.tenant.ctx).inflight_bytes, 0);
	free(slots);
	site_close(&site);
}

static void unplugged_cable_ends_every_request(void **state)
{
	struct slot *slots;
	struct site site;
	struct load load;

	(void)state;
	site_open(&site, "peer_timeout_ms=400 queue_pairs=2");
	slots = load_start(&load, site.tenant.remote);
	load_go_on(&load, 200);
	cable_unplug(site.cable, true);
	cable_cut(site.cable);
	wait_while(&load.running_count, "slots");
	assert_int_equal(load.failed_count, SLOTS);
	assert_int_equal(load.wrong_count, 0);
	free(slots);
	site_close(&site);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_write_never_undoes_a_newer_one),
		cmocka_unit_test(old_write_of_another_queue_pair_undoes_nothing),
		cmocka_unit_test(staged_writes_are_sent_again_as_they_were),
		cmocka_unit_test(narrow_window_survives_cuts),
		cmocka_unit_test(polling_events_only_survives_cuts),
		cmocka_unit_test(first_attempt_that_comes_late_undoes_nothing),
		cmocka_unit_test(cut_of_a_data_connection_alone_is_repaired),
		cmocka_unit_test(short_hold_delays_and_loses_nothing),
		cmocka_unit_test(endless_hold_ends_every_request),
		cmocka_unit_test(unplugged_cable_ends_every_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
