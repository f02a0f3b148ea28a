/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens to one slot, whatever the pace.
 *
 * A slot asks the source for the next request and is submitted. It comes back in its
 * completion callback, which counts it and hands it to the pace. It retires when time is
 * over or the source has nothing left.
 *
 * Two things are not done in a callback. One is to wait if the library has no room
 * (-EAGAIN). The other is to go on after a failure: a request that cannot go anywhere may
 * complete inside of rbx_submit(), which would call the callback from within itself. In
 * both cases the slot is parked, and the worker's thread, which otherwise sleeps, submits
 * it.
 *
 * A request that fails is counted and its slot goes on, since other parts of the volume
 * may work. BENCH_ERRORS_MAX failures end the run.
 *
 * The path of a request allocates nothing. It takes no lock except that of an open
 * worker's free slots, and reads the clock only if the latency is measured.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/load.h"

#define ROOM_WAIT_MS 100

void bench_worker_reset(struct bench_worker *worker)
{
	worker->busy_count = worker->load->shape.depth;
	worker->parked = NULL;
	worker->idle = NULL;
	worker->is_due = false;
}

void bench_slot_retire(struct bench_slot *slot)
{
	struct bench_worker *worker = slot->worker;

	pthread_mutex_lock(&worker->lock);
	if (!--worker->busy_count)
		pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

void bench_slot_park(struct bench_slot *slot, bool is_refused)
{
	struct bench_worker *worker = slot->worker;

	slot->is_refused = is_refused;
	pthread_mutex_lock(&worker->lock);
	slot->next = worker->parked;
	worker->parked = slot;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

/* strerror() would blame the network: "No route to host", "Connection timed out". */
static const char *status_text(int status)
{
	return status == -EHOSTUNREACH ? "the server ended, or the connection to it is lost" :
	       status == -ETIMEDOUT    ? "the server has not answered in time" :
	       status == -EIO	       ? "no good copy of the data is left" :
					 strerror(-status);
}

static void note_error(struct bench_load *load,
		       const struct rbx_request *request, const char *why)
{
	uint64_t before = atomic_fetch_add(&load->errors, 1);

	if (!before)
		snprintf(load->first_error, sizeof(load->first_error),
			 "%s of %" PRIu32 " bytes at offset %" PRIu64 ": %s",
			 request->op == RBX_READ ? "read" : "write",
			 request->length_bytes, request->offset,
			 why ? why : status_text(request->status));
	if (before + 1 >= BENCH_ERRORS_MAX)
		atomic_store(&load->stop, true);
}

static void note_latency(struct bench_slot *slot)
{
	if (slot->due_ns)
		bench_latency_add(&slot->load->latency_of_op[slot->request.op],
				  bench_now_ns() - slot->due_ns);
	slot->due_ns = 0;
}

/* The request has completed, or was not accepted. why: the reason of a failure; NULL: its
 * status tells. */
static void slot_end(struct bench_slot *slot, const char *why)
{
	struct bench_load *load = slot->load;
	uint64_t done_count = atomic_load_explicit(&slot->done_count,
						   memory_order_relaxed);

	atomic_store_explicit(&slot->done_count, done_count + 1,
			      memory_order_relaxed);
	note_latency(slot);
	if (slot->request.status)
		note_error(load, &slot->request, why);
	if (load->source->done)
		load->source->done(load->source, slot);
}

void bench_slot_submit(struct bench_slot *slot)
{
	struct rbx_request *request = &slot->request;
	int err;

	/* Set only once, so that the time spent waiting for room counts. */
	if (slot->is_timed && !slot->due_ns)
		slot->due_ns = bench_now_ns();
	err = rbx_submit(slot->load->volume, &request, 1);
	if (!err)
		return;
	if (err == -EAGAIN) {
		bench_slot_park(slot, true);
		return;
	}
	/* As if it had failed after the submit. */
	request->status = err;
	slot_end(slot, rbx_last_error());
	slot->load->pace->back(slot);
}

void bench_slot_retry(struct bench_slot *slot)
{
	rbx_wait_room(slot->load->ctx, ROOM_WAIT_MS);
	bench_slot_submit(slot);
}

bool bench_slot_fill(struct bench_slot *slot)
{
	struct bench_load *load = slot->load;

	return !atomic_load_explicit(&load->stop, memory_order_relaxed) &&
	       load->source->next(load->source, slot);
}

void bench_slot_go(struct bench_slot *slot)
{
	if (bench_slot_fill(slot))
		bench_slot_submit(slot);
	else
		bench_slot_retire(slot);
}

void bench_slot_complete(struct rbx_request *request)
{
	struct bench_slot *slot = request->user;

	slot_end(slot, NULL);
	slot->load->pace->back(slot);
}
