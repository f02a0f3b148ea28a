/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * posix_lock.h - the lock of core/port.h as a mutex of the C library, for every port that has
 * POSIX threads.
 *
 * There is no function to destroy one: such a mutex owns nothing.
 */
#ifndef RBX_PORT_POSIX_LOCK_H
#define RBX_PORT_POSIX_LOCK_H

#include <pthread.h>

struct rbx_lock {
	pthread_mutex_t mutex;
};

static inline void rbx_lock_init(struct rbx_lock *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
}

static inline void rbx_lock(struct rbx_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

static inline void rbx_unlock(struct rbx_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

#endif
