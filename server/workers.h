/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * workers.h - the memory of slabs, and the threads that make and empty it.
 *
 * This takes as long as the host needs to find pages and the device needs to register
 * them. So the control thread never does it. A worker does it in steps.
 */
#ifndef RBX_SERVER_WORKERS_H
#define RBX_SERVER_WORKERS_H

#include <pthread.h>

#include "core/slab_queue.h"
#include "fabric/fabric.h"
#include "server/bounds.h"

struct rbx_server;

enum rbx_slab_work {
	RBX_SLAB_NONE, /* there is no memory and nothing to do */
	RBX_SLAB_PREPARE, /* its memory is to be made, or was made */
	RBX_SLAB_END, /* its memory is to be given back */
};

/* The memory of a slab. While in_work is set it is a worker's, otherwise the control
 * thread's. */
struct rbx_slab_memory {
	/* Guarded by the workers' lock. */
	enum rbx_slab_work work;
	bool in_work; /* it waits for a worker, has one, or the control thread has to be told */
	uint32_t next_done;

	int status; /* 0: it is ready; -errno: it cannot be made */
	void *addr; /* NULL: there is none */
	int fd;
	uint64_t at_bytes; /* where it begins in that file */
	bool is_huge; /* on huge pages */
	uint64_t done_bytes; /* bytes that have pages */
	bool is_kept; /* of a named volume */
	uint64_t lent_bytes; /* the slab, and its tail if it has one (wire/terms.h) */
	struct rbx_domain *domain; /* the keys of this domain give access */
	struct rbx_mr *mr; /* NULL: no peer has access */
};

/* The threads that make and empty slabs. */
struct rbx_workers {
	pthread_mutex_t lock; /* guards all below; taken after the server's */
	pthread_cond_t wanted;
	bool stopping;
	struct rbx_slab_queue *queue;
	uint32_t done_first; /* list of slabs that the control thread has to look at */
	uint32_t done_last;
	struct rbx_slab_memory *slabs; /* RBX_LENT_SLABS_MAX, by slab_id - 1 */
	bool has_failed; /* set once the failure was logged, until a slab was made */
	pthread_t threads[RBX_WORKERS_MAX];
	uint32_t count;
};

/* slab_memory.c: called without the lock, by the thread that has the slab in work. */
/* Makes memory to which only keys of slab->domain give access, in steps. 1: more steps
 * are left; 0: it is ready; -errno with rbx_last_error(). */
int rbx_slab_prepare_step(const struct rbx_server *s,
			  struct rbx_slab_memory *slab);
/* Ends what was begun, its keys first, in steps. Returns whether more steps are left. */
bool rbx_slab_end_step(const struct rbx_server *s,
		       struct rbx_slab_memory *slab);

/* Maps memory that is in the memory file, and makes keys to it. 0 or -errno with
 * rbx_last_error(). */
int rbx_slab_attach(const struct rbx_server *s, struct rbx_slab_memory *slab);
/* Ends its keys and its mapping; what is in it stays in the file. */
void rbx_slab_detach(const struct rbx_server *s, struct rbx_slab_memory *slab);

/* workers.c */
int rbx_workers_init(struct rbx_server *s);
int rbx_workers_start(struct rbx_server *s);
/* Stops the workers, after the step that each is doing. The control thread has ended
 * before. */
void rbx_workers_stop(struct rbx_server *s);
/* Ends all memory that is left. */
void rbx_workers_destroy(struct rbx_server *s);
/* Order a worker to make the memory of a slab for an owner, or to end it, made or not. */
void rbx_workers_prepare(struct rbx_server *s, uint32_t index, uint32_t owner);
void rbx_workers_end(struct rbx_server *s, uint32_t index, uint32_t owner);
/* Takes a slab that a worker has finished. *work: PREPARE (see its status), END, or NONE
 * if the slab was put back to be ended. False: there is none now. */
bool rbx_workers_next(struct rbx_server *s, uint32_t *index,
		      enum rbx_slab_work *work);

#endif
