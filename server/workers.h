/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * workers.h - the memory of slabs, and the threads that make and empty it.
 *
 * It takes as long as a host needs to find pages and a device to register them: so
 * the control thread never does it, and a worker does it by steps.
 */
#ifndef RBX_SERVER_WORKERS_H
#define RBX_SERVER_WORKERS_H

#include <pthread.h>

#include "core/slab_queue.h"
#include "fabric/fabric.h"
#include "server/bounds.h"

struct rbx_server;

enum rbx_slab_work {
	RBX_SLAB_NONE, /* nothing is to be done, there is no memory */
	RBX_SLAB_PREPARE, /* its memory is to be made, or has been */
	RBX_SLAB_END, /* its memory is to be given back */
};

/* The memory of a slab. In work it is a worker's, otherwise the control thread's. */
struct rbx_slab_memory {
	/* Guarded by the workers' lock. */
	enum rbx_slab_work work;
	bool in_work; /* it waits for a worker, has one, or is to be told of */
	uint32_t next_done;

	int status; /* 0: it is ready; -errno: it cannot be made */
	void *addr; /* NULL: there is none */
	int fd;
	bool is_huge; /* on huge pages */
	uint64_t done_bytes; /* that have pages */
	struct rbx_domain *domain; /* whose keys are valid there */
	struct rbx_mr *mr; /* NULL: no peer reaches it */
};

/* The threads that make and empty slabs. */
struct rbx_workers {
	pthread_mutex_t lock; /* guards all below; taken after the server's */
	pthread_cond_t wanted;
	bool stopping;
	struct rbx_slab_queue *queue;
	uint32_t done_first; /* line of slabs that the control thread is to see */
	uint32_t done_last;
	struct rbx_slab_memory *slabs; /* RBX_LENT_SLABS_MAX, by slab_id - 1 */
	bool has_failed; /* none could be made since this was told */
	pthread_t threads[RBX_WORKERS_MAX];
	uint32_t count;
};

/* slab_memory.c; without the lock, by whoever has the slab in work. */
/* Makes memory of which slab->domain has the only keys, by steps: 1 there are more,
 * 0 it is ready, -errno with rbx_last_error(). */
int rbx_slab_prepare_step(const struct rbx_server *s,
			  struct rbx_slab_memory *slab);
/* Ends what was begun, its keys first, by steps. Returns whether there are more. */
bool rbx_slab_end_step(const struct rbx_server *s,
		       struct rbx_slab_memory *slab);

/* workers.c */
int rbx_workers_init(struct rbx_server *s);
int rbx_workers_start(struct rbx_server *s);
/* They end after the step that they are at; the control thread has ended. */
void rbx_workers_stop(struct rbx_server *s);
/* Ends all memory that there still is. */
void rbx_workers_destroy(struct rbx_server *s);
/* Have the memory of a slab made for an owner, and ended, made or not. */
void rbx_workers_prepare(struct rbx_server *s, uint32_t index, uint32_t owner);
void rbx_workers_end(struct rbx_server *s, uint32_t index, uint32_t owner);
/* A slab that is done with: made (or not: its status), or ended, or NONE: it goes
 * on. False: no further one now. */
bool rbx_workers_next(struct rbx_server *s, uint32_t *index,
		      enum rbx_slab_work *work);

#endif
