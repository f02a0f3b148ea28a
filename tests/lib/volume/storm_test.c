/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * storm_test.c - several threads submit to a volume whose servers fail,
 * want memory back, die and are added, all at random: every request ends once,
 * and every read is one that the writes allow (tests/core/history.h).
 *
 * Each submitter keeps a few requests outstanding, and sends the next from the
 * completion of the last.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/random.h"
#include "tests/core/history.h"
#include "tests/lib/fake_peer.h"

#define SLAB_BYTES (64u << 10)
#define VOLUME_BYTES (3u * SLAB_BYTES)
#define REQUEST_BYTES_MAX 40960u /* six cells, and sometimes two slabs */
#define SUBMITTERS 3u
#define DEPTH 12u
#define REQUESTS_EACH 250u /* of a slot of the depth: no more writes than the
			      history counts */

static uint64_t seeds_count = 12;

struct storm {
	struct rbx_volume *volume;
	bool checksums;
	pthread_mutex_t lock; /* guards all below */
	struct history history;
	struct rbx_random random;
	uint32_t running_count; /* slots with requests to send */
	uint32_t failed_count;
	uint32_t illegal_count;
	uint32_t servers_down_count; /* that the upkeep thread has seen to */
};

struct slot {
	struct storm *storm;
	struct rbx_request request;
	uint32_t left_count;
	uint32_t write_number;
	uint64_t floors[REQUEST_BYTES_MAX / HISTORY_UNIT_BYTES];
	uint8_t buf[REQUEST_BYTES_MAX] __attribute__((aligned(8)));
};

/* storm->lock is held. */
static void slot_prepare(struct slot *slot)
{
	struct storm *storm = slot->storm;
	struct rbx_random *random = &storm->random;
	uint32_t unit = storm->checksums ? RBX_PAGE_BYTES : HISTORY_UNIT_BYTES;
	uint32_t size = rbx_random_below(random, 4) ? 8192 : REQUEST_BYTES_MAX;
	uint32_t length = unit * (1 + rbx_random_below(random, size / unit));
	/* Half of them meet in one place. */
	uint32_t range = rbx_random_below(random, 2) ? VOLUME_BYTES :
						       2 * REQUEST_BYTES_MAX;
	uint64_t offset =
		unit * (uint64_t)rbx_random_below(random,
						  (range - length) / unit + 1);

	slot->request.op = rbx_random_below(random, 2) ? RBX_READ : RBX_WRITE;
	slot->request.flags =
		rbx_random_below(random, 50) ? 0 : (uint8_t)RBX_FENCE;
	slot->request.length_bytes = length;
	slot->request.offset = offset;
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
	struct rbx_request *request = &slot->request;

	storm->failed_count += request->status != 0;
	if (request->op == RBX_WRITE)
		history_write_end(&storm->history, slot->write_number,
				  request->status == 0);
	else if (!request->status &&
		 !history_read_is_legal(&storm->history, request->offset,
					request->length_bytes, slot->floors,
					slot->buf))
		storm->illegal_count++;
}

static void slot_submit(struct slot *slot)
{
	struct rbx_request *request = &slot->request;

	pthread_mutex_lock(&slot->storm->lock);
	slot_prepare(slot);
	pthread_mutex_unlock(&slot->storm->lock);
	assert_int_equal(rbx_submit(slot->storm->volume, &request, 1), 0);
}

static void slot_done(struct rbx_request *request)
{
	struct slot *slot = request->user;
	bool more;

	pthread_mutex_lock(&slot->storm->lock);
	slot_judge(slot);
	more = --slot->left_count > 0;
	slot->storm->running_count -= !more;
	pthread_mutex_unlock(&slot->storm->lock);
	if (more)
		slot_submit(slot);
}

struct submitter {
	pthread_t thread;
	struct slot slots[DEPTH];
};

static void *submitter_main(void *arg)
{
	struct submitter *submitter = arg;
	uint32_t i;

	for (i = 0; i < DEPTH; i++)
		slot_submit(&submitter->slots[i]);
	return NULL;
}

static void storm_event(struct rbx_volume *volume,
			const struct rbx_event *event, void *user)
{
	struct storm *storm = user;

	(void)volume;
	pthread_mutex_lock(&storm->lock);
	storm->servers_down_count += event->kind == RBX_EVENT_SERVER_DOWN;
	pthread_mutex_unlock(&storm->lock);
}

static void wait_server_down(struct storm *storm)
{
	bool seen = false;
	uint32_t ms;

	for (ms = 0; ms < 60000 && !seen; ms++) {
		pthread_mutex_lock(&storm->lock);
		seen = storm->servers_down_count > 0;
		pthread_mutex_unlock(&storm->lock);
		usleep(1000);
	}
	assert_true(seen);
}

static uint32_t running_count(struct storm *storm)
{
	uint32_t count;

	pthread_mutex_lock(&storm->lock);
	count = storm->running_count;
	pthread_mutex_unlock(&storm->lock);
	return count;
}

/* Reads the whole volume and compares; nothing is outstanding. */
static void final_judgement(struct storm *storm)
{
	static uint64_t floors[VOLUME_BYTES / HISTORY_UNIT_BYTES];
	static uint8_t buf[VOLUME_BYTES] __attribute__((aligned(8)));

	history_read_begin(&storm->history, 0, VOLUME_BYTES, floors);
	assert_int_equal(rbx_read(storm->volume, buf, VOLUME_BYTES, 0), 0);
	assert_true(history_read_is_legal(&storm->history, 0, VOLUME_BYTES,
					  floors, buf));
}

static void wait_whole(struct storm *storm)
{
	struct rbx_volume_status status;
	uint32_t ms;

	for (ms = 0; ms < 60000; ms++) {
		rbx_volume_status(storm->volume, &status);
		if (status.slabs_whole == status.slabs)
			return;
		usleep(1000);
	}
	fail_msg("slabs stay without replicas");
}

/* What happens to the servers meanwhile: one of five fails at a time. */
static void trouble(struct storm *storm, struct fake_server **servers,
		    uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < 3 && running_count(storm); i++) {
		fake_server_evict(servers[(seed + i) % 4]);
		usleep(1000);
		fake_server_set_fail(servers[0], 100);
		usleep(1000);
		fake_server_set_fail(servers[0], 0);
		wait_whole(storm);
	}
	fake_server_kill(servers[1]);
	wait_server_down(storm);
	wait_whole(storm);
	assert_int_equal(rbx_volume_add_server(storm->volume, "e:1"), 0);
	fake_server_revoke(servers[2]);
	wait_whole(storm);
}

static void storm_run(uint64_t seed)
{
	static const char *const addresses[] = { "a:1", "b:1", "c:1", "d:1",
						 "e:1" };
	struct submitter *submitters = calloc(SUBMITTERS, sizeof(*submitters));
	struct rbx_context *ctx = fake_context_open(2, seed);
	struct rbx_volume_options options;
	struct fake_server *servers[5];
	struct storm storm = { .lock = PTHREAD_MUTEX_INITIALIZER };
	uint32_t i, k;

	for (i = 0; i < 5; i++)
		servers[i] = fake_server_start(addresses[i], SLAB_BYTES, 12);
	rbx_volume_options_defaults(&options);
	options.replicas = 2 + (uint32_t)seed % 2;
	options.checksums = seed / 2 % 2;
	options.event = storm_event;
	options.user = &storm;
	storm.checksums = options.checksums;
	storm.running_count = SUBMITTERS * DEPTH;
	rbx_random_seed(&storm.random, seed);
	history_init(&storm.history, VOLUME_BYTES);
	assert_int_equal(rbx_volume_open(ctx, &storm.volume, "a:1,b:1,c:1,d:1",
					 VOLUME_BYTES, &options),
			 0);
	for (i = 0; i < SUBMITTERS; i++) {
		for (k = 0; k < DEPTH; k++) {
			struct slot *slot = &submitters[i].slots[k];

			slot->storm = &storm;
			slot->left_count = REQUESTS_EACH;
			slot->request.buf = slot->buf;
			slot->request.complete = slot_done;
			slot->request.user = slot;
		}
		pthread_create(&submitters[i].thread, NULL, submitter_main,
			       &submitters[i]);
	}
	trouble(&storm, servers, seed);
	for (i = 0; i < SUBMITTERS; i++)
		pthread_join(submitters[i].thread, NULL);
	while (running_count(&storm))
		usleep(1000);
	assert_int_equal(storm.failed_count, 0);
	assert_int_equal(storm.illegal_count, 0);
	final_judgement(&storm);
	rbx_volume_close(storm.volume);
	for (i = 0; i < 5; i++)
		if (!servers[i]->down)
			assert_int_equal(fake_server_lent_count(servers[i]), 0);
	fake_context_close(ctx);
	history_free(&storm.history);
	free(submitters);
}

static void storm_of_requests_and_faults_reads_are_legal(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < seeds_count; seed++)
		storm_run(seed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storm_of_requests_and_faults_reads_are_legal),
	};

	if (argc > 1)
		seeds_count = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
