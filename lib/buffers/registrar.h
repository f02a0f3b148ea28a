/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * registrar.h - registrations that live as long as one request (dynMR).
 *
 * Registering and deregistering are system calls that take microseconds to milliseconds.
 * The thread that submits pays for the first. The second is due when a completion has
 * come, on the thread that polls; but all requests wait for that thread. So it only puts
 * the registration on a list (retire), and a thread of the registrar deregisters several
 * at a time. If that thread falls behind, a caller that needs room for another
 * registration helps it.
 *
 * Nothing uses a retired registration: only the work requests of one request knew its
 * key, and they have all completed. The memory may be unmapped or reused meanwhile; it
 * only stays pinned a moment longer.
 */
#ifndef RBX_LIB_REGISTRAR_H
#define RBX_LIB_REGISTRAR_H

#include <pthread.h>

#include "core/limits.h"
#include "fabric/fabric.h"

/* Registrations alive at once, with the retired ones. Devices offer some thousands or
 * more, and one call may submit RBX_SUBMIT_MAX requests, some of them with segments. */
#define RBX_REGISTRATIONS_MAX 4096u
RBX_STATIC_ASSERT((RBX_REGISTRATIONS_MAX & (RBX_REGISTRATIONS_MAX - 1)) == 0,
		  "the ring goes on where its counter wraps");
/* The segments of all requests of one call. */
#define RBX_SUBMIT_SEGMENTS_MAX 2048u
RBX_STATIC_ASSERT(RBX_REGISTRATIONS_MAX >=
			  RBX_SUBMIT_MAX + RBX_SUBMIT_SEGMENTS_MAX,
		  "what one call submits can be registered");

struct rbx_registrar {
	struct rbx_device *device;
	uint32_t alive_count; /* atomic */
	/* Called by the thread that deregisters: `count` more can be made now. */
	void (*made_room)(void *user, uint32_t count);
	void *user;
	pthread_t thread;
	bool has_thread;

	/* Locks in order of precedence. */
	pthread_mutex_t work_lock; /* held while deregistering: one thread at a time */
	pthread_mutex_t lock; /* guards all below; never held while blocking */
	pthread_cond_t changed;
	bool stop;
	uint32_t retired_first; /* index in the ring of the oldest, which goes first */
	uint32_t retired_count;
	struct rbx_mr *retired[RBX_REGISTRATIONS_MAX];
};

/* Starts the thread; 0 or -errno with rbx_last_error(). */
int rbx_registrar_open(struct rbx_registrar **registrar,
		       struct rbx_device *device,
		       void (*made_room)(void *user, uint32_t count),
		       void *user);
/* Every registration must have been retired before. NULL: does nothing. */
void rbx_registrar_close(struct rbx_registrar *registrar);

/*
 * Registers memory. May block for a system call. 0; -EAGAIN: too many are alive; else
 * -errno with the device's text in error.
 */
int rbx_registrar_register(struct rbx_registrar *registrar, void *addr,
			   size_t length_bytes, uint32_t rights,
			   struct rbx_mr **mr, char *error);

/* Takes a registration that nothing uses any more. Any thread; never blocks. */
void rbx_registrar_retire(struct rbx_registrar *registrar, struct rbx_mr *mr);

#endif
