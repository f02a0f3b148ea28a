/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * native.h - the C part of the Python package: queues, operations, notices.
 *
 * No Python code runs on a thread of the library. Such a thread would wait for the
 * interpreter's lock while requests wait for the thread, and an interpreter that ends
 * would end the thread too. The callbacks of librdmabox are the functions here. Each puts
 * an item on a queue and returns; Python takes it from there.
 *
 *	queue      many threads put, one takes; a descriptor is readable meanwhile
 *	operation  a read or write of any length: one or more requests and their sum
 *	notice     an event of a volume, or a line of a server's log, copied
 *
 * rbx_reap() is not used: it gives a request to whichever thread asks first. Here each
 * operation names its queue, so event loops and threads cannot take what belongs to
 * another.
 */
#ifndef RBXPY_NATIVE_H
#define RBXPY_NATIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>
#include <rdmabox/named_volume.h>

/* ---- Queues ------------------------------------------------------------------*/

struct rbxpy_item {
	struct rbxpy_item *next;
};

struct rbxpy_queue;

/* NULL: no memory or no descriptor, see errno. */
struct rbxpy_queue *rbxpy_queue_new(void);

/* Waits for threads that are still inside of rbxpy_queue_put(). All items must have been
 * taken. */
void rbxpy_queue_free(struct rbxpy_queue *queue);

/* A descriptor that is readable while there may be items. */
int rbxpy_queue_fd(const struct rbxpy_queue *queue);

/* Any thread; does not block. */
void rbxpy_queue_put(struct rbxpy_queue *queue, struct rbxpy_item *item);

/* Makes the descriptor readable without an item. */
void rbxpy_queue_wake(struct rbxpy_queue *queue);

/* Blocks until the descriptor is readable; -1: for ever. */
void rbxpy_queue_wait(const struct rbxpy_queue *queue, int timeout_ms);

/* The oldest item, or NULL. One thread at a time. */
struct rbxpy_item *rbxpy_queue_take(struct rbxpy_queue *queue);

/* ---- Fences ------------------------------------------------------------------*/

/* Counts the operations of a volume, so that a thread can wait for earlier ones. */
struct rbxpy_fence;

struct rbxpy_fence *rbxpy_fence_new(void);
void rbxpy_fence_free(struct rbxpy_fence *fence);

/* Waits until all operations have ended that were submitted before. One at a time. */
void rbxpy_fence_wait(struct rbxpy_fence *fence);

/* How many have not ended. */
long rbxpy_fence_outstanding(struct rbxpy_fence *fence);

/* Called by operations. Returns the side, which leave() needs. */
unsigned int rbxpy_fence_enter(struct rbxpy_fence *fence);
void rbxpy_fence_leave(struct rbxpy_fence *fence, unsigned int side);

/* ---- Operations --------------------------------------------------------------*/

struct rbxpy_operation;

struct rbxpy_wanted {
	uint64_t id; /* comes back from rbxpy_operations_take() */
	int write; /* 0: read */
	int flags; /* enum rbx_request_flags */
	void *buf; /* borrowed until the operation was taken */
	uint64_t length_bytes; /* at least 1 */
	uint64_t offset;
	struct rbx_region *region; /* that holds buf; NULL: none */
};

/* Where the requests of a volume are split. */
struct rbxpy_limits {
	uint64_t fragment_bytes;
	uint32_t fragments_max; /* of one submit */
};

/* NULL: no memory. After it was submitted, rbxpy_operations_take() frees it. */
struct rbxpy_operation *rbxpy_operation_new(struct rbxpy_queue *queue,
					    struct rbxpy_fence *fence,
					    const struct rbxpy_wanted *wanted,
					    const struct rbxpy_limits *limits);
void rbxpy_operation_free(struct rbxpy_operation *operation);

/*
 * Submits operations, several requests in each rbx_submit(). Does not wait. @taken: how
 * many operations were submitted wholly; it goes on from an earlier call.
 *
 * Returns 0: all. -EAGAIN: call again with the same arguments once there is room. Another
 * -errno: the operation at @taken was refused, and belongs to the caller again. An
 * operation is not refused if a part was sent: it ends with that error.
 */
int rbxpy_operations_submit(struct rbx_volume *volume,
			    struct rbxpy_operation *const operations[],
			    unsigned int count, const struct rbxpy_limits *limits,
			    unsigned int *taken);

/* Sends no more of an operation that was not submitted wholly. 0: nothing of it was sent,
 * and it belongs to the caller again. 1: it ends with the status. */
int rbxpy_operation_cancel(struct rbxpy_operation *operation, int status);

/* The operations that were taken. They stay here until each was handled, so that a thread
 * that is interrupted can go on. */
struct rbxpy_ended {
	unsigned int next; /* the first that was not handled */
	unsigned int count;
	uint64_t ids[256];
	int32_t statuses[256];
};

/* Takes and frees the operations that have ended. Those of the last call must have been
 * handled. Returns how many. */
unsigned int rbxpy_operations_take(struct rbxpy_queue *queue,
				   struct rbxpy_ended *ended);

/* ---- Notices -----------------------------------------------------------------*/

#define RBXPY_NOTICES_MAX 1024 /* waiting; later ones are counted and dropped */

struct rbxpy_notice {
	struct rbxpy_item item;
	int kind; /* enum rbx_event_kind; -1: a line of a log */
	uint32_t slab_count;
	uint64_t dropped_count; /* before this one */
	char server[128];
	char text[512];
};

/* What the callbacks get as `user`; borrowed until the volume or server is closed. */
struct rbxpy_notices;

struct rbxpy_notices *rbxpy_notices_new(struct rbxpy_queue *queue);
void rbxpy_notices_free(struct rbxpy_notices *notices);

/* The caller frees it with rbxpy_notice_free(). NULL: none. */
struct rbxpy_notice *rbxpy_notices_take(struct rbxpy_notices *notices);
void rbxpy_notice_free(struct rbxpy_notice *notice);

/* Callbacks for struct rbx_volume_options and struct rbx_server_options. */
void rbxpy_volume_event(struct rbx_volume *volume, const struct rbx_event *event,
			void *user);
void rbxpy_server_log(const char *line, void *user);

#endif
