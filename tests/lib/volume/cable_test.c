/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cable_test.c - a volume of real servers at the end of bad cables, with
 * writes that overlap: every read is one that the writes allow
 * (tests/core/history.h), and both replicas hold the same in the end.
 *
 * Requests of all sizes meet in one place, merge with their neighbours, are cut
 * off, sent again, and reach the server twice, the first time last. In the end
 * one server is taken away, and then what the other one holds is judged alone.
 */
#include "tests/lib/cable.h"
#include "tests/lib/tenant.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/port.h"
#include "core/random.h"
#include "tests/core/history.h"

#define VOLUME_BYTES (128u << 10)
#define REQUEST_BYTES_MAX (24u << 10)
#define SLOTS 48u
#define SERVERS 2u
#define CUTS 80u

struct storm {
	struct rbx_volume *volume;
	pthread_mutex_t lock; /* guards all below */
	struct history history;
	struct rbx_random random;
	bool stop;
	uint32_t running_count;
	uint32_t failed_count;
	uint32_t illegal_count;
};

struct slot {
	struct storm *storm;
	struct rbx_request request;
	uint32_t write_number;
	uint64_t floors[REQUEST_BYTES_MAX / HISTORY_UNIT_BYTES];
	uint8_t buf[REQUEST_BYTES_MAX] __attribute__((aligned(8)));
};

/* storm->lock is held. */
static void slot_prepare(struct slot *slot)
{
	struct storm *storm = slot->storm;
	struct rbx_random *random = &storm->random;
	uint32_t units = REQUEST_BYTES_MAX / HISTORY_UNIT_BYTES;
	uint32_t length = HISTORY_UNIT_BYTES *
			  (1 + rbx_random_below(random, units));
	uint64_t offset =
		HISTORY_UNIT_BYTES *
		(uint64_t)rbx_random_below(random, (VOLUME_BYTES - length) /
							   HISTORY_UNIT_BYTES);

	slot->request.op = (uint8_t)rbx_random_below(random, 2);
	slot->request.length_bytes = length;
	slot->request.offset = offset;
	/* The history numbers so many writes, and no more. */
	if (storm->history.write_count == HISTORY_WRITES_MAX - 1)
		slot->request.op = RBX_READ;
	if (slot->request.op == RBX_WRITE)
		slot->write_number = history_write_begin(
			&storm->history, offset, length, slot->buf);
	else
		history_read_begin(&storm->history, offset, length,
				   slot->floors);
}

/* storm->lock is held. */
static void slot_judge(struct slot *slot)
{
	struct storm *storm = slot->storm;
	const struct rbx_request *request = &slot->request;

	storm->failed_count += request->status != 0;
	if (request->op == RBX_WRITE)
		history_write_end(&storm->history, slot->write_number,
				  request->status == 0);
	else if (request->status == 0 &&
		 !history_read_is_legal(&storm->history, request->offset,
					request->length_bytes, slot->floors,
					slot->buf))
		storm->illegal_count++;
}

static void slot_submit(struct slot *slot)
{
	struct rbx_request *list[] = { &slot->request };

	if (rbx_submit(slot->storm->volume, list, 1))
		fail_msg("%s", rbx_last_error());
}

static void slot_done(struct rbx_request *request)
{
	struct slot *slot = request->user;
	bool more;

	pthread_mutex_lock(&slot->storm->lock);
	slot_judge(slot);
	more = !slot->storm->stop;
	if (more)
		slot_prepare(slot);
	else
		slot->storm->running_count--;
	pthread_mutex_unlock(&slot->storm->lock);
	if (more)
		slot_submit(slot);
}

static struct slot *storm_start(struct storm *storm)
{
	struct slot *slots = calloc(SLOTS, sizeof(*slots));

	assert_non_null(slots);
	storm->running_count = SLOTS;
	for (uint32_t i = 0; i < SLOTS; i++) {
		slots[i].storm = storm;
		slots[i].request.buf = slots[i].buf;
		slots[i].request.complete = slot_done;
		slots[i].request.user = &slots[i];
		pthread_mutex_lock(&storm->lock);
		slot_prepare(&slots[i]);
		pthread_mutex_unlock(&storm->lock);
		slot_submit(&slots[i]);
	}
	return slots;
}

static uint32_t running_count(struct storm *storm)
{
	uint32_t count;

	pthread_mutex_lock(&storm->lock);
	storm->stop = true;
	count = storm->running_count;
	pthread_mutex_unlock(&storm->lock);
	return count;
}

static void storm_stop(struct storm *storm)
{
	for (int ms = 0; running_count(storm) != 0; ms++) {
		if (ms == TENANT_WAIT_MS)
			fail_msg("%u requests hang", running_count(storm));
		usleep(1000);
	}
	assert_int_equal(storm->failed_count, 0);
	assert_int_equal(storm->illegal_count, 0);
}

/* Cut clean, or so that what was under way arrives late. */
static void trouble(struct storm *storm, struct cable *cable, uint32_t kind)
{
	uint32_t delay_ms;

	pthread_mutex_lock(&storm->lock);
	delay_ms = rbx_random_below(&storm->random, 20);
	pthread_mutex_unlock(&storm->lock);
	usleep(delay_ms * 1000);
	if (kind % 3 == 0) {
		cable_cut(cable);
		return;
	}
	cable_hold(cable, true);
	usleep(1000);
	cable_haunt(cable, delay_ms);
	cable_hold(cable, false);
}

/* What is there now, as one read. */
static void assert_legal(struct storm *storm)
{
	static uint64_t floors[VOLUME_BYTES / HISTORY_UNIT_BYTES];
	static uint8_t buf[VOLUME_BYTES] __attribute__((aligned(8)));

	history_read_begin(&storm->history, 0, VOLUME_BYTES, floors);
	assert_int_equal(rbx_read(storm->volume, buf, VOLUME_BYTES, 0), 0);
	assert_true(history_read_is_legal(&storm->history, 0, VOLUME_BYTES,
					  floors, buf));
}

/* Servers of their own, each behind a cable, with a replica each. */
static struct rbx_volume *volume_behind_cables(struct rbx_context *ctx,
					       struct rbx_server *servers[SERVERS],
					       struct cable *cables[SERVERS])
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;
	char list[160];

	for (uint32_t i = 0; i < SERVERS; i++) {
		servers[i] = tenant_server();
		cables[i] = cable_lay(rbx_server_address(servers[i]));
	}
	snprintf(list, sizeof(list), "%s,%s", cable_address(cables[0]),
		 cable_address(cables[1]));
	rbx_volume_options_defaults(&options);
	options.replicas = SERVERS;
	if (rbx_volume_open(ctx, &volume, list, VOLUME_BYTES, &options))
		fail_msg("%s", rbx_last_error());
	return volume;
}

/* survivor: the server whose copy is judged in the end. */
static void run(const char *settings, uint32_t survivor)
{
	struct storm storm = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct rbx_server *servers[SERVERS];
	struct cable *cables[SERVERS];
	struct rbx_context *ctx = tenant_context(settings);
	struct slot *slots;

	storm.volume = volume_behind_cables(ctx, servers, cables);
	history_init(&storm.history, VOLUME_BYTES);
	rbx_random_seed(&storm.random, survivor + 1);
	slots = storm_start(&storm);
	for (uint32_t i = 0; i < CUTS; i++)
		trouble(&storm, cables[i / 3 % SERVERS], i);
	storm_stop(&storm);
	assert_true(tenant_stats(ctx).retries > 0);
	assert_legal(&storm);
	cable_unplug(cables[!survivor], true);
	cable_cut(cables[!survivor]);
	rbx_server_stop(servers[!survivor]);
	assert_legal(&storm);
	rbx_volume_close(storm.volume);
	rbx_close(ctx);
	rbx_server_stop(servers[survivor]);
	for (uint32_t i = 0; i < SERVERS; i++)
		cable_remove(cables[i]);
	history_free(&storm.history);
	free(slots);
}

static void overlapping_writes_survive_bad_cables(void **state)
{
	(void)state;
	run("peer_timeout_ms=8000 pollers=2", 0);
	run("peer_timeout_ms=8000 queue_pairs=3 fragment_bytes=4K", 1);
}

static void cables_unplug(struct cable *const cables[SERVERS], bool unplugged)
{
	for (uint32_t i = 0; i < SERVERS; i++) {
		cable_unplug(cables[i], unplugged);
		if (unplugged)
			cable_cut(cables[i]);
	}
}

/* All servers fall silent at once, for longer than one server is waited for: it is this
 * machine that is cut off, and what they have is waited for. */
static void own_link_down_for_two_timeouts_loses_nothing(void **state)
{
	static uint8_t pages[VOLUME_BYTES], found[VOLUME_BYTES];
	struct rbx_request late = { .op = RBX_WRITE, .length_bytes = 4096,
				    .buf = pages };
	struct rbx_request *request = &late;
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=500");
	struct rbx_server *servers[SERVERS];
	struct rbx_volume_status status;
	struct cable *cables[SERVERS];
	struct rbx_volume *volume;

	(void)state;
	volume = volume_behind_cables(ctx, servers, cables);
	tenant_fill(pages, sizeof(pages), 1);
	assert_int_equal(rbx_write(volume, pages, sizeof(pages), 0), 0);
	cables_unplug(cables, true);
	assert_int_equal(rbx_submit(volume, &request, 1), 0);
	assert_int_equal(rbx_reap(ctx, &request, 1, 1500), 0);
	cables_unplug(cables, false);
	assert_int_equal(rbx_reap(ctx, &request, 1, TENANT_WAIT_MS), 1);
	assert_int_equal(late.status, 0);
	assert_int_equal(rbx_read(volume, found, sizeof(found), 0), 0);
	assert_memory_equal(found, pages, sizeof(found));
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs_lost, 0);
	assert_int_equal(status.servers_up, SERVERS);
	rbx_volume_close(volume);
	rbx_close(ctx);
	for (uint32_t i = 0; i < SERVERS; i++) {
		rbx_server_stop(servers[i]);
		cable_remove(cables[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlapping_writes_survive_bad_cables),
		cmocka_unit_test(own_link_down_for_two_timeouts_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
