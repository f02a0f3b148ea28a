/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * threads.c - POSIX threads, as fibers.
 *
 * The linker puts these functions in the place of the C library's for the simulated code
 * (--wrap). A mutex and a condition use the memory of the C library's own, whose initial
 * value is zeros for both.
 *
 * A mutex goes to the first thread that comes once it is free, as in the C library. Neither
 * promises fairness, so the library must not rely on it.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/host/wrap.h"

/* What a try to lock a mutex takes that another thread holds. */
#define TRY_NS 100u

struct mutex {
	struct rbx_sim_fiber *owner; /* NULL: the mutex is free */
	struct rbx_sim_waiters waiters;
};

struct condition {
	struct rbx_sim_waiters waiters;
};

RBX_STATIC_ASSERT(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "it fits");
RBX_STATIC_ASSERT(sizeof(struct condition) <= sizeof(pthread_cond_t),
		  "it fits");

int __wrap_pthread_mutex_init(pthread_mutex_t *posix,
			      const pthread_mutexattr_t *attributes)
{
	(void)attributes;
	*(struct mutex *)posix = (struct mutex){ 0 };
	return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *posix)
{
	struct mutex *mutex = (struct mutex *)posix;

	if (mutex->owner || mutex->waiters.first)
		rbx_sim_fail("mutex", "a mutex is destroyed while it is held");
	return 0;
}

static void take(struct mutex *mutex)
{
	if (mutex->owner == rbx_sim_self())
		rbx_sim_fail("mutex", "a thread waits for a mutex it holds");
	while (mutex->owner)
		(void)rbx_sim_wait(&mutex->waiters, RBX_SIM_FOREVER);
	mutex->owner = rbx_sim_self();
}

static void give(struct mutex *mutex)
{
	if (mutex->owner != rbx_sim_self())
		rbx_sim_fail("mutex", "a mutex is unlocked by another thread");
	mutex->owner = NULL;
	rbx_sim_wake_one(&mutex->waiters);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *posix)
{
	rbx_port_atomic_begins();
	take((struct mutex *)posix);
	return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *posix)
{
	struct mutex *mutex = (struct mutex *)posix;

	rbx_port_atomic_begins();
	if (mutex->owner) {
		/* A thread that tries again and again lets some time pass. */
		rbx_sim_sleep(TRY_NS);
		return EBUSY;
	}
	mutex->owner = rbx_sim_self();
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *posix)
{
	give((struct mutex *)posix);
	rbx_port_atomic_begins();
	return 0;
}

int __wrap_pthread_cond_init(pthread_cond_t *posix,
			     const pthread_condattr_t *attributes)
{
	(void)attributes;
	*(struct condition *)posix = (struct condition){ 0 };
	return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *posix)
{
	struct condition *condition = (struct condition *)posix;

	if (condition->waiters.first)
		rbx_sim_fail("mutex",
			     "a condition is destroyed while one waits for it");
	return 0;
}

static int wait_until(pthread_cond_t *posix, pthread_mutex_t *posix_mutex,
		      uint64_t until_ns)
{
	struct condition *condition = (struct condition *)posix;
	bool was_woken;

	give((struct mutex *)posix_mutex);
	was_woken = rbx_sim_wait(&condition->waiters, until_ns);
	take((struct mutex *)posix_mutex);
	return was_woken ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *posix, pthread_mutex_t *mutex)
{
	return wait_until(posix, mutex, RBX_SIM_FOREVER);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *posix, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	uint64_t clock_ns = (uint64_t)until->tv_sec * 1000000000u +
			    (uint64_t)until->tv_nsec;

	return wait_until(posix, mutex,
			  rbx_sim_node_time(rbx_sim_node(), clock_ns));
}

int __wrap_pthread_cond_signal(pthread_cond_t *posix)
{
	rbx_sim_wake_one(&((struct condition *)posix)->waiters);
	return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *posix)
{
	rbx_sim_wake_all(&((struct condition *)posix)->waiters);
	return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*main)(void *), void *arg)
{
	(void)attributes;
	*thread = (pthread_t)rbx_sim_spawn(rbx_sim_node(), main, arg);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	void *value = rbx_sim_join((struct rbx_sim_fiber *)thread);

	if (result)
		*result = value;
	return 0;
}

pthread_t __wrap_pthread_self(void)
{
	return (pthread_t)rbx_sim_self();
}
