// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The requests of one job.
 *
 * Each unit of fio (struct io_u) has a request of the library for as long as the job
 * lives. queue() fills it in and puts it off. commit() submits all requests that were put
 * off in one rbx_submit(). So a batch of fio (iodepth_batch) is what is merged and
 * chained. A completion callback runs on a thread of the library: it stores the result in
 * the unit and puts the unit into `done`, from which the job's thread takes it.
 *
 * Only the job's thread uses `waiting` and `events`. The lock guards what it shares with
 * the library's threads.
 *
 * The library takes a whole batch or nothing. If the library is full, the batch waits for
 * room and is tried again with half of it. If a batch is refused because of one bad
 * request, its requests are submitted one by one, so that only the bad one fails.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <fio.h>

#include "requests.h"

/* The most requests of one rbx_submit(). */
#define BATCH_MAX 1024u

struct unit {
	struct rbx_request request;
	struct requests *owner;
	struct io_u *io_u;
};

struct requests {
	struct requests_target target;
	unsigned int depth;
	struct unit *units;
	unsigned int attached;
	struct rbx_request **waiting; /* put off */
	unsigned int waiting_count;
	struct io_u **events; /* the units that the last reap took */
	struct rbx_region *region; /* of the buffers; NULL: none */
	char *region_begin, *region_end;

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t ended; /* something came into `done` */
	struct io_u **done;
	unsigned int done_count;
	unsigned int outstanding; /* queued, and not in `done` */
};

static int init_waiting(struct requests *requests)
{
	pthread_condattr_t attributes;
	int err;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	err = pthread_cond_init(&requests->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	if (!err)
		err = pthread_mutex_init(&requests->lock, NULL);
	return err;
}

struct requests *requests_create(const struct requests_target *target,
				 unsigned int depth)
{
	struct requests *requests = calloc(1, sizeof(*requests));

	if (!requests)
		return NULL;
	requests->target = *target;
	requests->depth = depth;
	requests->units = calloc(depth, sizeof(*requests->units));
	requests->waiting = calloc(depth, sizeof(struct rbx_request *));
	requests->events = calloc(depth, sizeof(struct io_u *));
	requests->done = calloc(depth, sizeof(struct io_u *));
	if (requests->units && requests->waiting && requests->events &&
	    requests->done && !init_waiting(requests))
		return requests;
	requests_destroy(requests);
	return NULL;
}

void requests_destroy(struct requests *requests)
{
	if (!requests)
		return;
	requests_release(requests);
	free(requests->done);
	free(requests->events);
	free(requests->waiting);
	free(requests->units);
	free(requests);
}

int requests_register(struct requests *requests, void *addr, size_t length)
{
	int err = rbx_region_register(requests->target.ctx, addr, length,
				      &requests->region);

	if (err) {
		requests->region = NULL;
		return err;
	}
	requests->region_begin = addr;
	requests->region_end = requests->region_begin + length;
	return 0;
}

void requests_release(struct requests *requests)
{
	if (requests->region)
		rbx_region_release(requests->region);
	requests->region = NULL;
}

void requests_attach(struct requests *requests, struct io_u *io_u)
{
	struct unit *unit = &requests->units[requests->attached++];

	unit->owner = requests;
	unit->io_u = io_u;
	io_u->engine_data = unit;
}

/* The unit has ended. With the lock. */
static void end_locked(struct requests *requests, struct io_u *io_u, int status)
{
	io_u->error = (unsigned int)-status;
	io_u->resid = status ? io_u->xfer_buflen : 0;
	requests->done[requests->done_count++] = io_u;
	requests->outstanding--;
	pthread_cond_signal(&requests->ended);
}

/* Called on a thread of the library. */
static void complete(struct rbx_request *request)
{
	struct unit *unit = request->user;
	struct requests *requests = unit->owner;

	pthread_mutex_lock(&requests->lock);
	end_locked(requests, unit->io_u, request->status);
	pthread_mutex_unlock(&requests->lock);
}

static bool is_registered(const struct requests *requests, const char *begin,
			  size_t length)
{
	return requests->region && begin >= requests->region_begin &&
	       begin + length <= requests->region_end;
}

void requests_queue(struct requests *requests, struct io_u *io_u)
{
	struct unit *unit = io_u->engine_data;
	struct rbx_request *request = &unit->request;
	bool is_read = io_u->ddir == DDIR_READ;

	request->op = is_read ? RBX_READ : RBX_WRITE;
	request->flags = is_read ? requests->target.read_flags : 0;
	request->length_bytes = (uint32_t)io_u->xfer_buflen;
	request->offset = io_u->offset;
	request->buf = io_u->xfer_buf;
	request->region = is_registered(requests, io_u->xfer_buf, io_u->xfer_buflen) ?
				  requests->region : NULL;
	request->complete = complete;
	request->user = unit;
	requests->waiting[requests->waiting_count++] = request;
	pthread_mutex_lock(&requests->lock);
	requests->outstanding++;
	pthread_mutex_unlock(&requests->lock);
}

unsigned int requests_queued(const struct requests *requests)
{
	return requests->waiting_count;
}

/* How many requests from `at` on make a batch: at least one. */
static unsigned int batch_count(const struct requests *requests, unsigned int at,
				unsigned int most)
{
	uint64_t fragments = 0, fragment = requests->target.fragment_bytes;
	unsigned int count = 0;

	while (at + count < requests->waiting_count && count < most) {
		/* One more for a request that begins within a fragment. */
		fragments += requests->waiting[at + count]->length_bytes / fragment + 2;
		if (count && fragments > requests->target.fragments_max)
			break;
		count++;
	}
	return count;
}

/* The library refuses the request itself, and would always do so. */
static void refuse(struct requests *requests, struct rbx_request *request, int err)
{
	struct unit *unit = request->user;

	log_err("rdmabox: %s\n", rbx_last_error());
	pthread_mutex_lock(&requests->lock);
	end_locked(requests, unit->io_u, err);
	pthread_mutex_unlock(&requests->lock);
}

static struct io_u *unit_of(const struct rbx_request *request)
{
	return ((struct unit *)request->user)->io_u;
}

void requests_submit(struct requests *requests, struct thread_data *td,
		     void (*told)(struct thread_data *td, struct io_u *io_u))
{
	unsigned int at = 0, each, count, most = BATCH_MAX;
	int err;

	while (at < requests->waiting_count) {
		count = batch_count(requests, at, most);
		err = rbx_submit(requests->target.volume, requests->waiting + at, count);
		if (err == -EAGAIN) {
			most = count > 1 ? count / 2 : 1;
			rbx_wait_room(requests->target.ctx, -1);
			continue;
		}
		if (err && count > 1) {
			most = 1;
			continue;
		}
		if (err)
			refuse(requests, requests->waiting[at], err);
		/* Only this thread takes units from `done`. */
		for (each = 0; each < count; each++)
			told(td, unit_of(requests->waiting[at + each]));
		at += count;
	}
	requests->waiting_count = 0;
}

void requests_fence(struct requests *requests)
{
	pthread_mutex_lock(&requests->lock);
	while (requests->outstanding)
		pthread_cond_wait(&requests->ended, &requests->lock);
	pthread_mutex_unlock(&requests->lock);
}

static void deadline_after(struct timespec *deadline, const struct timespec *timeout)
{
	clock_gettime(CLOCK_MONOTONIC, deadline);
	deadline->tv_sec += timeout->tv_sec;
	deadline->tv_nsec += timeout->tv_nsec;
	if (deadline->tv_nsec >= 1000000000) {
		deadline->tv_nsec -= 1000000000;
		deadline->tv_sec++;
	}
}

unsigned int requests_reap(struct requests *requests, unsigned int min,
			   unsigned int max, const struct timespec *timeout)
{
	struct timespec deadline;
	unsigned int at, count;
	int late = 0;

	if (timeout)
		deadline_after(&deadline, timeout);
	pthread_mutex_lock(&requests->lock);
	while (requests->done_count < min && !late)
		late = timeout ? pthread_cond_timedwait(&requests->ended, &requests->lock,
							&deadline) :
				 pthread_cond_wait(&requests->ended, &requests->lock);
	count = requests->done_count < max ? requests->done_count : max;
	/* In the order in which they ended. */
	for (at = 0; at < count; at++)
		requests->events[at] = requests->done[at];
	requests->done_count -= count;
	for (at = 0; at < requests->done_count; at++)
		requests->done[at] = requests->done[at + count];
	pthread_mutex_unlock(&requests->lock);
	return count;
}

struct io_u *requests_event(const struct requests *requests, unsigned int at)
{
	return requests->events[at];
}
