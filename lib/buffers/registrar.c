/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * registrar.c - registers memory for requests and deregisters it later, see registrar.h.
 *
 * Normally register() counts and registers. retire() puts the registration into a ring,
 * which has room for all that can be alive. The thread takes batches out of the ring.
 * work_lock is held while a batch is deregistered. So a thread that has taken that lock
 * knows that the batch before is gone.
 *
 * A registration may fail because too much memory is pinned, or because too many are
 * alive. Retired registrations must not be the reason. So register() then deregisters all
 * of them itself, and tries once more.
 */
#include "lib/buffers/registrar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/port.h"
#include "lib/clock.h"
#include "lib/error.h"

/* The most that is deregistered at once: bounds how long work_lock is held. */
#define BATCH 32u

/* How long the thread waits for a full batch. One wakeup for each registration would cost
 * as much as many of them do, and memory may well stay pinned for so much longer. */
#define GATHER_NS 1000000u

/* The place in the ring that is `index` places behind the oldest. */
static struct rbx_mr **place(struct rbx_registrar *registrar, uint32_t index)
{
	return &registrar->retired[(registrar->retired_first + index) %
				   RBX_REGISTRATIONS_MAX];
}

static uint32_t take_retired(struct rbx_registrar *registrar,
			     struct rbx_mr **batch)
{
	uint32_t count, i;

	pthread_mutex_lock(&registrar->lock);
	count = RBX_MIN(registrar->retired_count, BATCH);
	for (i = 0; i < count; i++)
		batch[i] = *place(registrar, i);
	registrar->retired_first += count;
	registrar->retired_count -= count;
	pthread_mutex_unlock(&registrar->lock);
	return count;
}

/* Returns how many it deregistered; 0: nothing was retired. */
static uint32_t deregister_batch(struct rbx_registrar *registrar)
{
	struct rbx_device *device = registrar->device;
	struct rbx_mr *batch[BATCH];
	uint32_t count;

	pthread_mutex_lock(&registrar->work_lock);
	count = take_retired(registrar, batch);
	if (count != 0) {
		device->ops->deregister_memory(device, batch, count);
		/* Only after it, so that never more than the bound are alive. */
		RBX_FETCH_ADD(&registrar->alive_count, -count);
		registrar->made_room(registrar->user, count);
	}
	pthread_mutex_unlock(&registrar->work_lock);
	return count;
}

/* Deregisters all that was retired before the call. */
static void deregister_retired(struct rbx_registrar *registrar)
{
	/* Bounded, as other threads may go on retiring. */
	for (uint32_t done = 0; done < RBX_REGISTRATIONS_MAX;) {
		uint32_t count = deregister_batch(registrar);

		if (count == 0)
			return;
		done += count;
	}
}

static int register_once(struct rbx_registrar *registrar,
			 const struct rbx_mr_init *init, struct rbx_mr **mr,
			 char *error)
{
	struct rbx_device *device = registrar->device;
	int err = -EAGAIN;

	if (RBX_FETCH_ADD(&registrar->alive_count, 1) < RBX_REGISTRATIONS_MAX)
		err = device->ops->register_memory(device, init, 1, mr, error);
	if (err)
		RBX_FETCH_ADD(&registrar->alive_count, (uint32_t)-1);
	return err;
}

int rbx_registrar_register(struct rbx_registrar *registrar, void *addr,
			   size_t length_bytes, uint32_t rights,
			   struct rbx_mr **mr, char *error)
{
	struct rbx_mr_init init = {
		.addr = addr,
		.length_bytes = length_bytes,
		.rights = rights,
		.memory_fd = -1,
	};
	int err = register_once(registrar, &init, mr, error);

	if (!err)
		return 0;
	deregister_retired(registrar);
	return register_once(registrar, &init, mr, error);
}

void rbx_registrar_retire(struct rbx_registrar *registrar, struct rbx_mr *mr)
{
	pthread_mutex_lock(&registrar->lock);
	RBX_ASSERT(registrar->retired_count < RBX_REGISTRATIONS_MAX);
	*place(registrar, registrar->retired_count++) = mr;
	if (registrar->retired_count == 1 || registrar->retired_count == BATCH)
		pthread_cond_signal(&registrar->changed);
	pthread_mutex_unlock(&registrar->lock);
}

/* Waits a little for a full batch. The lock is held. */
static void gather_locked(struct rbx_registrar *registrar)
{
	struct timespec until = rbx_timespec_at(rbx_now_ns() + GATHER_NS);
	int err = 0;

	while (registrar->retired_count < BATCH && !registrar->stop && !err)
		err = pthread_cond_timedwait(&registrar->changed,
					     &registrar->lock, &until);
}

/* Waits until something is retired. Another thread may deregister it meanwhile. False:
 * nothing is left, and the registrar is closing. */
static bool wait_for_work(struct rbx_registrar *registrar)
{
	bool more;

	pthread_mutex_lock(&registrar->lock);
	while (registrar->retired_count == 0 && !registrar->stop)
		pthread_cond_wait(&registrar->changed, &registrar->lock);
	gather_locked(registrar);
	more = registrar->retired_count != 0 || !registrar->stop;
	pthread_mutex_unlock(&registrar->lock);
	return more;
}

/* Timed waits use the clock of rbx_now_ns(). */
static void init_locks(struct rbx_registrar *registrar)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&registrar->work_lock, NULL);
	pthread_mutex_init(&registrar->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&registrar->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void *registrar_main(void *arg)
{
	struct rbx_registrar *registrar = arg;

	while (wait_for_work(registrar))
		(void)deregister_batch(registrar);
	return NULL;
}

int rbx_registrar_open(struct rbx_registrar **out, struct rbx_device *device,
		       void (*made_room)(void *user, uint32_t count),
		       void *user)
{
	struct rbx_registrar *registrar = calloc(1, sizeof(*registrar));
	int err;

	if (!registrar)
		return rbx_error(-ENOMEM, "cannot allocate a registrar");
	registrar->device = device;
	registrar->made_room = made_room;
	registrar->user = user;
	init_locks(registrar);
	err = -pthread_create(&registrar->thread, NULL, registrar_main,
			      registrar);
	registrar->has_thread = !err;
	if (err) {
		rbx_registrar_close(registrar);
		return rbx_error(err, "cannot start a thread: %s",
				 strerror(-err));
	}
	*out = registrar;
	return 0;
}

void rbx_registrar_close(struct rbx_registrar *registrar)
{
	if (!registrar)
		return;
	pthread_mutex_lock(&registrar->lock);
	registrar->stop = true;
	pthread_cond_signal(&registrar->changed);
	pthread_mutex_unlock(&registrar->lock);
	if (registrar->has_thread)
		pthread_join(registrar->thread, NULL);
	RBX_ASSERT(registrar->alive_count == 0);
	pthread_cond_destroy(&registrar->changed);
	pthread_mutex_destroy(&registrar->lock);
	pthread_mutex_destroy(&registrar->work_lock);
	free(registrar);
}
