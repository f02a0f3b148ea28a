/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shared_receives.c - shared receives: receives that several endpoints take from.
 *
 * They complete in any order, so each has its own slot, which becomes free when its
 * completion is polled. The fabric knows a receive by the number of its slot.
 *
 * Locks. post_lock: held to post, so that the receives of a call keep their order.
 * slots_lock: guards the free slots, for a short time; it is taken under post_lock and
 * under the lock of a queue.
 */
#include <stdlib.h>

#include "lib/endpoint/domain.h"
#include "lib/endpoint/endpoint.h"
#include "lib/sized.h"

#define NO_SLOT UINT32_MAX

struct slot {
	void *user;
	uint32_t next_free;
};

struct rbx_shared_receives {
	struct rbx_context *ctx;
	struct rbx_queue *queue; /* NULL: it has not taken its room yet */
	struct rbx_protection_domain *domain;
	struct rbx_srq *srq;
	void *user;
	uint32_t segments_max;
	uint32_t endpoints_count; /* atomic */
	pthread_mutex_t post_lock;
	pthread_mutex_t slots_lock; /* guards what follows */
	uint32_t free_first, free_count;
	struct slot slots[]; /* of depth */
};

/* ---- Making -----------------------------------------------------------------------*/

static int options_check(const struct rbx_context *ctx,
			 const struct rbx_shared_receives_options *options)
{
	const struct rbx_device_caps *caps = &ctx->device->caps;

	if (!caps->max_srq_wr)
		return rbx_error(-EOPNOTSUPP, "%s has no shared receives",
				 caps->name);
	if (!options->queue || options->queue->ctx != ctx)
		return rbx_error(-EINVAL, "shared receives need a queue of their context: rbx_queue_create()");
	if (options->depth > caps->max_srq_wr ||
	    options->segments > RBX_MIN(caps->max_srq_sge, RBX_SGE_MAX))
		return rbx_error(-EINVAL, "depth=%u, segments=%u: %s allows %u and %u at most",
				 options->depth, options->segments, caps->name,
				 caps->max_srq_wr,
				 RBX_MIN(caps->max_srq_sge, RBX_SGE_MAX));
	return 0;
}

static struct rbx_shared_receives *allocate(uint32_t depth)
{
	struct rbx_shared_receives *shared =
		calloc(1, sizeof(*shared) + depth * sizeof(shared->slots[0]));

	if (!shared)
		return NULL;
	pthread_mutex_init(&shared->post_lock, NULL);
	pthread_mutex_init(&shared->slots_lock, NULL);
	shared->free_count = depth;
	for (uint32_t i = 0; i < depth; i++)
		shared->slots[i].next_free = i + 1 < depth ? i + 1 : NO_SLOT;
	return shared;
}

static void shared_free(struct rbx_shared_receives *shared, uint32_t depth)
{
	if (shared->queue)
		rbx_queue_give(shared->queue, depth);
	rbx_domain_leave(shared->domain);
	pthread_mutex_destroy(&shared->post_lock);
	pthread_mutex_destroy(&shared->slots_lock);
	free(shared);
}

static int srq_make(struct rbx_shared_receives *shared,
		    const struct rbx_shared_receives_options *options)
{
	struct rbx_device *device = shared->ctx->device;
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_srq_init init = {
		.cq = options->queue->cq,
		.depth_count = options->depth,
		.max_sge = options->segments,
		.user = shared,
	};
	int err = rbx_domain_use(options->domain, shared->ctx, &init.domain);

	if (err)
		return err;
	shared->domain = options->domain;
	err = rbx_queue_take(options->queue, options->depth);
	if (err)
		return err;
	shared->queue = options->queue;
	err = device->ops->create_srq(device, &init, &shared->srq, error);
	return err ? rbx_error(err, "%s", error) : 0;
}

int rbx_shared_receives_create(struct rbx_context *ctx,
			       const struct rbx_shared_receives_options *wanted,
			       struct rbx_shared_receives **out)
{
	struct rbx_shared_receives_options options = { .size_bytes = 0 };
	struct rbx_shared_receives *shared;
	int err;

	if (!ctx || !wanted || !out)
		return rbx_error(-EINVAL, "rbx_shared_receives_create: a context and options must be given");
	err = rbx_guard_use(ctx, "rbx_shared_receives_create");
	if (!err)
		err = rbx_sized_take("rbx_shared_receives_options",
				     sizeof(options), &options, sizeof(options),
				     wanted);
	if (err)
		return err;
	options.depth = options.depth ?: 64;
	options.segments = options.segments ?: 1;
	err = options_check(ctx, &options);
	if (err)
		return err;
	shared = allocate(options.depth);
	if (!shared)
		return rbx_error(-ENOMEM, "cannot allocate shared receives");
	shared->ctx = ctx;
	shared->user = options.user;
	shared->segments_max = options.segments;
	err = srq_make(shared, &options);
	if (err) {
		shared_free(shared, options.depth);
		return err;
	}
	*out = shared;
	return 0;
}

int rbx_shared_receives_destroy(struct rbx_shared_receives *shared)
{
	uint32_t count, depth;
	int err;

	if (!shared)
		return 0;
	err = rbx_guard_use(shared->ctx, "rbx_shared_receives_destroy");
	if (err)
		return err;
	count = RBX_LOAD_ACQUIRE(&shared->endpoints_count);
	if (count)
		return rbx_error(-EBUSY, "rbx_shared_receives_destroy: %u endpoints use it: rbx_endpoint_close() first",
				 count);
	depth = shared->srq->depth_count;
	shared->ctx->device->ops->destroy_srq(shared->srq);
	shared_free(shared, depth);
	return 0;
}

void *rbx_shared_receives_user(const struct rbx_shared_receives *shared)
{
	return shared->user;
}

/* ---- Endpoints --------------------------------------------------------------------*/

int rbx_shared_receives_use(struct rbx_shared_receives *shared,
			    const struct rbx_endpoint_options *options,
			    struct rbx_qp_init *init)
{
	if (shared->queue != options->queue || shared->domain != options->domain)
		return rbx_error(-EINVAL, "the shared receives of an endpoint must have its queue and its domain");
	init->srq = shared->srq;
	RBX_FETCH_ADD(&shared->endpoints_count, 1);
	return 0;
}

void rbx_shared_receives_leave(struct rbx_shared_receives *shared)
{
	RBX_FETCH_ADD(&shared->endpoints_count, (uint32_t)-1);
}

/* ---- Receives -------------------------------------------------------------------*/

static void slot_free_locked(struct rbx_shared_receives *shared, uint32_t number)
{
	shared->slots[number].next_free = shared->free_first;
	shared->free_first = number;
	shared->free_count++;
}

void *rbx_shared_receives_complete(struct rbx_shared_receives *shared,
				   uint32_t number)
{
	void *user;

	pthread_mutex_lock(&shared->slots_lock);
	user = shared->slots[number].user;
	slot_free_locked(shared, number);
	pthread_mutex_unlock(&shared->slots_lock);
	return user;
}

/* Checks that there is room for the whole call. */
static int room_check(struct rbx_shared_receives *shared, unsigned int count)
{
	uint32_t free_count;

	pthread_mutex_lock(&shared->slots_lock);
	free_count = shared->free_count;
	pthread_mutex_unlock(&shared->slots_lock);
	if (count <= free_count)
		return 0;
	return rbx_error(-EAGAIN, "there is room for %u more receives: poll first",
			 free_count);
}

static uint32_t slot_take(struct rbx_shared_receives *shared, void *user)
{
	uint32_t number;

	pthread_mutex_lock(&shared->slots_lock);
	number = shared->free_first;
	shared->free_first = shared->slots[number].next_free;
	shared->free_count--;
	shared->slots[number].user = user;
	pthread_mutex_unlock(&shared->slots_lock);
	return number;
}

static int chain_post_locked(struct rbx_shared_receives *shared,
			     const struct rbx_receive *receives, uint32_t count)
{
	const struct rbx_device *device = shared->ctx->device;
	struct rbx_receive_chain chain;
	struct rbx_recv_wr *bad = NULL;
	int err;

	chain.count = chain.sges_count = 0;
	for (uint32_t i = 0; i < count; i++)
		rbx_receive_chain_add(&chain, &device->caps, &receives[i],
				      RBX_ENDPOINT_RECEIVE_ID |
					      slot_take(shared,
							receives[i].user));
	err = device->ops->post_srq_recv(shared->srq, chain.wrs, &bad);
	if (!err)
		return 0;
	pthread_mutex_lock(&shared->slots_lock);
	for (; bad; bad = bad->next)
		slot_free_locked(shared, (uint32_t)bad->wr_id);
	pthread_mutex_unlock(&shared->slots_lock);
	return rbx_error(-EIO, "the device refuses what is posted (%d)",
			 err);
}

int rbx_shared_receives_post(struct rbx_shared_receives *shared,
			     const struct rbx_receive *receives,
			     unsigned int count)
{
	unsigned int done = 0;
	int err;

	if (!shared || (!receives && count))
		return rbx_error(-EINVAL, "rbx_shared_receives_post: shared receives and a list must be given");
	err = rbx_guard_use(shared->ctx, "rbx_shared_receives_post");
	if (!err)
		err = rbx_receives_check(&shared->ctx->device->caps, receives,
					 count, shared->segments_max,
					 shared->srq->depth_count);
	if (err)
		return err;
	pthread_mutex_lock(&shared->post_lock);
	err = room_check(shared, count);
	while (done < count && !err) {
		uint32_t part = RBX_MIN(count - done, RBX_CHAIN_MAX);

		err = chain_post_locked(shared, &receives[done], part);
		done += part;
	}
	pthread_mutex_unlock(&shared->post_lock);
	return err;
}

int rbx_shared_receives_tell_low(struct rbx_shared_receives *shared,
				 uint32_t count)
{
	int err;

	if (!shared || count > shared->srq->depth_count)
		return rbx_error(-EINVAL, "rbx_shared_receives_tell_low: %u is more than the depth",
				 count);
	err = rbx_guard_use(shared->ctx, "rbx_shared_receives_tell_low");
	if (!err)
		shared->ctx->device->ops->set_srq_limit(shared->srq, count);
	return err;
}
