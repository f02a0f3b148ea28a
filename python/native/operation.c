/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * operation.c - a read or write of any length, made of requests.
 *
 * A request must not be longer than what may be outstanding on its volume, so a long
 * operation has several. It ends when all of them have. If one failed, its status is that
 * of one that failed. Then it goes on its queue.
 *
 * The operation owns its requests. It borrows the buffer, the queue and the fence until
 * it is taken. Python keeps the buffer until then.
 */
#include "native.h"

#include <errno.h>
#include <stdlib.h>

#define REQUEST_BYTES_MAX (16u << 20) /* the same limit as rbx_read() */
#define SUBMIT_MAX 1024u /* as rbx_submit() says */

struct rbxpy_operation {
	struct rbxpy_item item; /* first */
	uint64_t id;
	struct rbxpy_queue *queue;
	struct rbxpy_fence *fence;
	unsigned int fence_side;
	unsigned int count; /* of its requests */
	unsigned int sent; /* submitted; used by the thread that submits */
	atomic_uint left; /* requests that have not ended */
	atomic_int status;
	struct rbx_request requests[];
};

/* Ends `count` of its requests. */
static void end(struct rbxpy_operation *operation, unsigned int count, int status)
{
	int good = 0;

	if (status)
		atomic_compare_exchange_strong(&operation->status, &good, status);
	if (atomic_fetch_sub(&operation->left, count) != count)
		return;
	rbxpy_fence_leave(operation->fence, operation->fence_side);
	rbxpy_queue_put(operation->queue, &operation->item);
}

static void request_done(struct rbx_request *request)
{
	end(request->user, 1, request->status);
}

/* Half of what may be outstanding, so that two can be in flight. */
static uint64_t request_bytes(const struct rbxpy_limits *limits)
{
	uint64_t bytes = limits->fragment_bytes * (limits->fragments_max / 2);

	return bytes < REQUEST_BYTES_MAX ? bytes : REQUEST_BYTES_MAX;
}

struct rbxpy_operation *rbxpy_operation_new(struct rbxpy_queue *queue,
					    struct rbxpy_fence *fence,
					    const struct rbxpy_wanted *wanted,
					    const struct rbxpy_limits *limits)
{
	uint64_t portion = request_bytes(limits), done = 0;
	uint64_t count = (wanted->length_bytes + portion - 1) / portion;
	struct rbxpy_operation *operation;
	unsigned int i;

	if (count > UINT32_MAX)
		return NULL;
	operation = calloc(1, sizeof(*operation) +
				      count * sizeof(operation->requests[0]));
	if (!operation)
		return NULL;
	operation->id = wanted->id;
	operation->queue = queue;
	operation->fence = fence;
	operation->count = (unsigned int)count;
	atomic_init(&operation->left, operation->count);
	for (i = 0; i < count; i++, done += portion) {
		uint64_t rest = wanted->length_bytes - done;

		operation->requests[i] = (struct rbx_request){
			.op = wanted->write ? RBX_WRITE : RBX_READ,
			.flags = (uint8_t)wanted->flags,
			.length_bytes = (uint32_t)(rest < portion ? rest : portion),
			.offset = wanted->offset + done,
			.buf = (char *)wanted->buf + done,
			.region = wanted->region,
			.complete = request_done,
			.user = operation,
		};
	}
	return operation;
}

void rbxpy_operation_free(struct rbxpy_operation *operation)
{
	free(operation);
}

/* ---- Submitting --------------------------------------------------------------*/

struct batch {
	struct rbx_request *requests[SUBMIT_MAX];
	unsigned int count;
	uint64_t fragments; /* the most that its requests can have */
};

/* Adds the part of an operation that was not sent yet. False: the batch is full. */
static bool batch_add(struct batch *batch, struct rbxpy_operation *operation,
		      const struct rbxpy_limits *limits)
{
	while (operation->sent < operation->count) {
		struct rbx_request *request = &operation->requests[operation->sent];
		/* One more, as neither end may be at the border of a fragment. */
		uint64_t fragments =
			request->length_bytes / limits->fragment_bytes + 2;

		if (batch->count == SUBMIT_MAX ||
		    (batch->count &&
		     batch->fragments + fragments > limits->fragments_max))
			return false;
		batch->fragments += fragments;
		batch->requests[batch->count++] = request;
		if (!operation->sent++)
			operation->fence_side = rbxpy_fence_enter(operation->fence);
	}
	return true;
}

/* Nothing of the batch was sent. */
static void batch_undo(const struct batch *batch)
{
	for (unsigned int i = batch->count; i--;) {
		struct rbxpy_operation *operation = batch->requests[i]->user;

		if (!--operation->sent)
			rbxpy_fence_leave(operation->fence, operation->fence_side);
	}
}

int rbxpy_operation_cancel(struct rbxpy_operation *operation, int status)
{
	unsigned int rest = operation->count - operation->sent;

	if (!operation->sent)
		return 0;
	if (!rest)
		return 1; /* it ends by itself, or has ended already */
	operation->sent = operation->count;
	end(operation, rest, status);
	return 1;
}

int rbxpy_operations_submit(struct rbx_volume *volume,
			    struct rbxpy_operation *const operations[],
			    unsigned int count, const struct rbxpy_limits *limits,
			    unsigned int *taken)
{
	unsigned int limit = count; /* the most operations of a batch */

	while (*taken < count) {
		struct batch batch = { .count = 0 };
		unsigned int at = *taken;
		int err;

		while (at < count && at - *taken < limit &&
		       batch_add(&batch, operations[at], limits))
			at++;
		err = rbx_submit(volume, batch.requests, batch.count);
		if (!err) {
			*taken = at;
			continue;
		}
		batch_undo(&batch);
		if (err == -EAGAIN)
			return err;
		if (limit > 1) {
			limit = 1; /* to find the bad one */
			continue;
		}
		if (!rbxpy_operation_cancel(operations[*taken], err))
			return err;
		++*taken;
	}
	return 0;
}

unsigned int rbxpy_operations_take(struct rbxpy_queue *queue,
				   struct rbxpy_ended *ended)
{
	const unsigned int max = sizeof(ended->ids) / sizeof(ended->ids[0]);
	struct rbxpy_operation *operation;

	ended->next = 0;
	ended->count = 0;
	while (ended->count < max &&
	       (operation = (struct rbxpy_operation *)rbxpy_queue_take(queue))) {
		ended->ids[ended->count] = operation->id;
		ended->statuses[ended->count] = atomic_load(&operation->status);
		ended->count++;
		free(operation);
	}
	return ended->count;
}
