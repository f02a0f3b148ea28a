/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exchange_storm_test.c - threads that exchange as fast as they can, over one connection, in
 * both directions and in any order; each buffer holds at the end what its round wrote. Once
 * the connection is cut in the middle of it: all ends, and nothing is left registered.
 *
 * Each side has a thread that polls, and threads that submit and wait for their own.
 */
#include <pthread.h>
#include <unistd.h>

#include "tests/lib/exchanges.h"

#define THREADS 4u
#define ROUNDS 150u
#define AREA_BYTES (64 * KIB)

struct storm {
	struct endpoints e;
	bool stop; /* atomic: for the threads that poll */
};

/* One thread of one side. Of two that belong together one operates and one offers. */
struct worker {
	struct storm *storm;
	struct side *side;
	uint32_t number;
	bool offers;
	int completed; /* atomic: 1 + -status of its last; 0: it is outstanding */
	uint32_t length_bytes; /* written before completed */
	uint32_t done_count, failed_count;
};

static void completed(const struct rbx_completion *completion)
{
	struct worker *worker = completion->user;

	worker->length_bytes = completion->length_bytes;
	RBX_STORE_RELEASE(&worker->completed, 1 - completion->status);
}

static void *poll_thread(void *user)
{
	struct worker *worker = user;

	while (!RBX_LOAD_ACQUIRE(&worker->storm->stop))
		assert_true(rbx_queue_run(worker->side->queue, 20) >= 0);
	return NULL;
}

static uint32_t length_of(uint32_t round)
{
	return 1 + round * 7919 % AREA_BYTES;
}

static bool round_reads(const struct worker *worker, uint32_t round)
{
	return (worker->number + round) % 3 == 0;
}

static int begin(struct worker *worker, uint32_t round)
{
	const size_t at = worker->number * AREA_BYTES;
	const struct rbx_segment buffer = { worker->side->of_device + at, length_of(round), NULL };
	bool reads = round_reads(worker, round);

	/* Who gives the data writes them first. */
	if (worker->offers == reads)
		memset(worker->side->memory + at, (int)(round + worker->number), length_of(round));
	if (worker->offers)
		return rbx_offer(worker->side->endpoint, worker->number,
				 worker->side->of_device + at, length_of(round),
				 reads ? RBX_OFFER_TO_READ : RBX_OFFER_TO_WRITE, LONG_MS,
				 worker);
	if (reads)
		return rbx_conditional_read(worker->side->endpoint, worker->number, &buffer,
					    LONG_MS, worker);
	return rbx_conditional_write(worker->side->endpoint, worker->number, &buffer, LONG_MS,
				     worker);
}

static void contents_check(const struct worker *worker, uint32_t round)
{
	const uint8_t *bytes = worker->side->memory + worker->number * AREA_BYTES;

	for (uint32_t i = 0; i < length_of(round); i++)
		assert_int_equal(bytes[i], (uint8_t)(round + worker->number));
}

static void *work_thread(void *user)
{
	struct worker *worker = user;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		int status;

		RBX_STORE_RELEASE(&worker->completed, 0);
		status = begin(worker, round);
		while (!status && !RBX_LOAD_ACQUIRE(&worker->completed))
			usleep(20);
		if (!status)
			status = 1 - worker->completed;
		if (status) {
			worker->failed_count++;
			break; /* the connection is over */
		}
		worker->done_count++;
		assert_int_equal(worker->length_bytes, length_of(round));
		if (worker->offers != round_reads(worker, round))
			contents_check(worker, round);
	}
	return NULL;
}

static void storm(bool is_cut)
{
	struct storm storm = { .stop = false };
	struct worker workers[2 * THREADS], pollers[2];
	pthread_t threads[2 * THREADS + 2];
	uint64_t alive[2];

	endpoint_options.completed = completed;
	open_exchanging(&storm.e, THREADS);
	endpoint_options.completed = NULL;
	alive[0] = alive_of(&storm.e.a);
	alive[1] = alive_of(&storm.e.b);
	for (uint32_t i = 0; i < 2; i++) {
		pollers[i] = (struct worker){ .storm = &storm,
					      .side = i ? &storm.e.b : &storm.e.a };
		pthread_create(&threads[2 * THREADS + i], NULL, poll_thread, &pollers[i]);
	}
	for (uint32_t i = 0; i < 2 * THREADS; i++) {
		workers[i] = (struct worker){
			.storm = &storm,
			.side = i % 2 ? &storm.e.b : &storm.e.a,
			.number = i / 2,
			.offers = (i + i / 2) % 2,
		};
		pthread_create(&threads[i], NULL, work_thread, &workers[i]);
	}
	if (is_cut) {
		usleep(20000);
		rbx_endpoint_disconnect(storm.e.b.endpoint);
	}
	for (uint32_t i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	RBX_STORE_RELEASE(&storm.stop, true);
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[2 * THREADS + i], NULL);
	for (uint32_t i = 0; i < 2 * THREADS && !is_cut; i++)
		assert_int_equal(workers[i].done_count, ROUNDS);
	assert_int_equal(alive_of(&storm.e.a), alive[0]);
	assert_int_equal(alive_of(&storm.e.b), alive[1]);
	endpoints_close(&storm.e);
}

static void all_threads_get_what_was_written(void **state)
{
	(void)state;
	storm(false);
}

static void all_threads_hear_of_the_end(void **state)
{
	(void)state;
	storm(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_get_what_was_written),
		cmocka_unit_test(all_threads_hear_of_the_end),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
