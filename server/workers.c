/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * workers.c - the threads that make and empty the memory of slabs.
 *
 * Zeroing a slab, registering it, ending its key and emptying it may take longer than a
 * client waits for a sign of life. So the control thread orders it and goes on. A worker
 * does it step by step (slab_memory.c), and wakes the control thread by its eventfd when
 * the slab is finished.
 *
 *	rbx_workers_prepare() ---> the queue ---> a worker ---> rbx_workers_next()
 *	rbx_workers_end()     --/
 *
 * While a slab is in work its memory belongs to the worker, and no other thread looks at
 * it. If a slab is to end while it is being prepared it stays with its worker, which
 * starts to end it after the current step. Ending is never undone.
 *
 * core/slab_queue.h decides whose slab is next. The lock here is not the server's: a
 * control thread that is always busy would never release that one.
 *
 * When a server stops, each worker ends after its step; the server then does the rest
 * itself (server.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "server/state.h"

#define NO_SLAB RBX_SLAB_QUEUE_EMPTY

/* ---- The workers ------------------------------------------------------------*/

/* Logs that slabs cannot be made, once until one was made. As long as there are none,
 * clients ask again every second. */
static void outcome_tell(struct rbx_server *s, bool has_failed)
{
	struct rbx_workers *w = &s->workers;
	bool had_failed;

	pthread_mutex_lock(&w->lock);
	had_failed = w->has_failed;
	w->has_failed = has_failed;
	pthread_mutex_unlock(&w->lock);
	if (has_failed && !had_failed)
		rbx_log(&s->log, "a slab cannot be lent: %s (logged once, until one can)",
			rbx_last_error());
}

/* Does one step of the work on a slab. Returns whether more are left. */
static bool step(struct rbx_server *s, struct rbx_slab_memory *slab,
		 enum rbx_slab_work work)
{
	if (work == RBX_SLAB_END)
		return rbx_slab_end_step(s, slab);
	slab->status = rbx_slab_prepare_step(s, slab);
	if (slab->status <= 0)
		outcome_tell(s, slab->status < 0);
	return slab->status > 0;
}

static void done_put(struct rbx_workers *w, uint32_t index)
{
	w->slabs[index].next_done = NO_SLAB;
	if (w->done_first == NO_SLAB)
		w->done_first = index;
	else
		w->slabs[w->done_last].next_done = index;
	w->done_last = index;
}

/* Works on a slab. Called with the lock, which is released during each step. */
static void slab_work(struct rbx_server *s, uint32_t index)
{
	struct rbx_workers *w = &s->workers;
	struct rbx_slab_memory *slab = &w->slabs[index];
	enum rbx_slab_work work;
	bool more = true;

	while (more && !w->stopping) {
		work = slab->work;
		pthread_mutex_unlock(&w->lock);
		more = step(s, slab, work);
		pthread_mutex_lock(&w->lock);
		/* Meanwhile the slab may have been ordered to end. */
		more |= slab->work != work;
	}
	done_put(w, index);
}

static void *worker(void *server)
{
	struct rbx_server *s = server;
	struct rbx_workers *w = &s->workers;
	uint32_t index;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		index = rbx_slab_queue_take(w->queue);
		if (index == NO_SLAB) {
			pthread_cond_wait(&w->wanted, &w->lock);
			continue;
		}
		slab_work(s, index);
		pthread_mutex_unlock(&w->lock);
		rbx_control_thread_wake(s);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- Called by the control thread ---------------------------------------------*/

static void slab_put(struct rbx_workers *w, uint32_t index, uint32_t owner)
{
	w->slabs[index].in_work = true;
	rbx_slab_queue_put(w->queue, index, owner);
	pthread_cond_signal(&w->wanted);
}

void rbx_workers_prepare(struct rbx_server *s, uint32_t index, uint32_t owner)
{
	struct rbx_workers *w = &s->workers;
	struct rbx_slab_memory *slab = &w->slabs[index];

	pthread_mutex_lock(&w->lock);
	RBX_ASSERT(!slab->in_work && !slab->addr);
	slab->work = RBX_SLAB_PREPARE;
	slab_put(w, index, owner);
	pthread_mutex_unlock(&w->lock);
}

void rbx_workers_end(struct rbx_server *s, uint32_t index, uint32_t owner)
{
	struct rbx_workers *w = &s->workers;
	struct rbx_slab_memory *slab = &w->slabs[index];

	pthread_mutex_lock(&w->lock);
	RBX_ASSERT(slab->work == RBX_SLAB_PREPARE);
	slab->work = RBX_SLAB_END;
	if (!slab->in_work)
		slab_put(w, index, owner);
	pthread_mutex_unlock(&w->lock);
}

bool rbx_workers_next(struct rbx_server *s, uint32_t *index,
		      enum rbx_slab_work *work)
{
	struct rbx_workers *w = &s->workers;
	struct rbx_slab_memory *slab;

	pthread_mutex_lock(&w->lock);
	*index = w->done_first;
	if (*index != NO_SLAB) {
		slab = &w->slabs[*index];
		w->done_first = slab->next_done;
		*work = slab->work;
		slab->in_work = false;
		/* It was ready before the order to end it came. */
		if (slab->work == RBX_SLAB_END && slab->addr) {
			slab_put(w, *index, rbx_owner_nobody(s));
			*work = RBX_SLAB_NONE;
		} else if (slab->work == RBX_SLAB_END) {
			slab->work = RBX_SLAB_NONE;
		}
	}
	pthread_mutex_unlock(&w->lock);
	return *index != NO_SLAB;
}

/* ---- Beginning and end -----------------------------------------------------*/

int rbx_workers_init(struct rbx_server *s)
{
	const uint32_t owners_count = rbx_owner_nobody(s) + 1;
	struct rbx_workers *w = &s->workers;
	void *memory;

	w->done_first = NO_SLAB;
	w->slabs = calloc(RBX_LENT_SLABS_MAX, sizeof(*w->slabs));
	memory = malloc(rbx_slab_queue_size(RBX_LENT_SLABS_MAX, owners_count));
	if (!w->slabs || !memory) {
		free(memory);
		return rbx_error(-ENOMEM, "no memory for the table of slabs");
	}
	w->queue = rbx_slab_queue_init(memory, RBX_LENT_SLABS_MAX,
				       owners_count);
	return 0;
}

int rbx_workers_start(struct rbx_server *s)
{
	struct rbx_workers *w = &s->workers;
	int err;

	for (; w->count < RBX_WORKERS_MAX; w->count++) {
		err = -pthread_create(&w->threads[w->count], NULL, worker, s);
		if (err)
			return rbx_error(err, "cannot start a thread: %s",
					 strerror(-err));
	}
	return 0;
}

void rbx_workers_stop(struct rbx_server *s)
{
	struct rbx_workers *w = &s->workers;

	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->wanted);
	pthread_mutex_unlock(&w->lock);
	while (w->count > 0)
		pthread_join(w->threads[--w->count], NULL);
}

void rbx_workers_destroy(struct rbx_server *s)
{
	struct rbx_workers *w = &s->workers;
	uint32_t i;

	RBX_ASSERT(!w->count);
	for (i = 0; w->slabs && i < rbx_lender_slabs_used(s->lender); i++) {
		if (rbx_slab_is_remembered(s, i + 1))
			rbx_slab_detach(s, &w->slabs[i]);
		while (rbx_slab_end_step(s, &w->slabs[i]))
			;
	}
	free(w->queue);
	free(w->slabs);
}
