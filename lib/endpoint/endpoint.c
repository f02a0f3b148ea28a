/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* endpoint.c - makes, closes and describes endpoints. */
#include "lib/endpoint/endpoint.h"

#include <stdlib.h>

#include "core/paced.h"
#include "lib/endpoint/domain.h"
#include "lib/endpoint/exchange.h"
#include "lib/endpoint/paced.h"
#include "lib/sized.h"
#include "wire/exchange.h"

int rbx_endpoint_limits(struct rbx_context *ctx,
			struct rbx_endpoint_limits *limits)
{
	const struct rbx_device_caps *caps;
	struct rbx_endpoint_limits all;

	if (!ctx || !limits || !limits->size_bytes)
		return rbx_error(-EINVAL, "rbx_endpoint_limits: a context and limits with their size must be given");
	caps = &ctx->device->caps;
	all = (struct rbx_endpoint_limits){
		.send_depth_max = caps->max_send_wr,
		.receive_depth_max = caps->max_recv_wr,
		.segments_max = RBX_MIN(caps->max_sge, RBX_SGE_MAX),
		.receive_segments_max = RBX_MIN(caps->max_recv_sge, RBX_SGE_MAX),
		.message_bytes_max = caps->max_message_bytes,
		.queue_depth_max = caps->max_cqe,
		.connect_data_max = RBX_CONNECT_DATA_MAX,
		.accept_data_max = RBX_ACCEPT_DATA_MAX,
		.reject_data_max = RBX_REJECT_DATA_MAX,
		.has_immediate = caps->has_immediate,
		.has_invalidate = caps->has_invalidate,
		.has_atomics = caps->has_atomics,
		.needs_regions = !caps->has_any_lkey,
		.shared_depth_max = caps->max_srq_wr,
		.shared_segments_max = RBX_MIN(caps->max_srq_sge, RBX_SGE_MAX),
		.has_window_invalidate = caps->has_window_invalidate,
		.has_dmabuf = caps->has_dmabuf,
		.has_service_level = caps->has_service_level,
		.completion_vectors = RBX_MAX(caps->completion_vectors, 1u),
	};
	rbx_sized_give(limits, limits->size_bytes, &all, sizeof(all));
	return 0;
}

/* ---- Making -----------------------------------------------------------------------*/

static int options_check(const struct rbx_context *ctx,
			 const struct rbx_endpoint_options *options)
{
	const struct rbx_device_caps *caps = &ctx->device->caps;
	const struct {
		const char *name;
		uint32_t wanted, most;
	} bounds[] = {
		{ "send_depth", options->send_depth,
		  caps->max_send_wr - (options->paced ? RBX_PACED_MARKERS : 0) },
		{ "receive_depth", options->receive_depth, caps->max_recv_wr },
		{ "exchanges", options->exchanges, RBX_EXCHANGE_MAX },
		{ "segments", options->segments,
		  RBX_MIN(caps->max_sge, RBX_SGE_MAX) },
		{ "receive_segments", options->receive_segments,
		  RBX_MIN(caps->max_recv_sge, RBX_SGE_MAX) },
		{ "inline_bytes", options->inline_bytes, caps->max_inline_bytes },
	};

	if (!options->queue || options->queue->ctx != ctx)
		return rbx_error(-EINVAL, "an endpoint needs a queue of its context: rbx_queue_create()");
	if (options->exchanges && options->receives)
		return rbx_error(-EINVAL, "exchanges and shared receives exclude each other");
	if (options->service_level && !caps->has_service_level)
		return rbx_error(-EINVAL, "service_level=%u: %s has none",
				 options->service_level, caps->name);
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		if (bounds[i].wanted > bounds[i].most)
			return rbx_error(-EINVAL, "%s=%u: %s allows %u at most",
					 bounds[i].name, bounds[i].wanted,
					 caps->name, bounds[i].most);
	return 0;
}

int rbx_queue_take(struct rbx_queue *queue, uint32_t count)
{
	uint32_t room_count = RBX_LOAD_RELAXED(&queue->room_count);

	do {
		if (count > room_count)
			return rbx_error(-ENOSPC, "the queue has room for %u more completions, but the endpoint needs %u: make a deeper queue, or another one",
					 room_count, count);
	} while (!RBX_COMPARE_EXCHANGE(&queue->room_count, &room_count,
				       room_count - count));
	RBX_FETCH_ADD(&queue->endpoints_count, 1);
	return 0;
}

void rbx_queue_give(struct rbx_queue *queue, uint32_t count)
{
	RBX_FETCH_ADD(&queue->room_count, count);
	RBX_FETCH_ADD(&queue->endpoints_count, (uint32_t)-1);
}

static int ring_make(struct rbx_endpoint_ring *ring, uint32_t depth_count)
{
	ring->depth_count = depth_count;
	while (ring->mask + 1 < depth_count)
		ring->mask = 2 * ring->mask + 1;
	ring->slots = calloc((size_t)ring->mask + 1, sizeof(*ring->slots));
	return ring->slots ? 0 : -ENOMEM;
}

/*
 * Sets all that posting and polling need, before a completion can name the endpoint. That
 * may be long before accept or connect returns, and in another thread. The fabric orders
 * the two: it calls this before any other thread can see the queue pair (rbx_qp_init).
 */
static void begin(struct rbx_qp *qp)
{
	struct rbx_endpoint *endpoint = qp->user;

	endpoint->qp = qp;
	endpoint->sends.depth_count =
		RBX_MIN(endpoint->sends.depth_count, qp->send_depth_count);
	if (endpoint->paced)
		rbx_paced_begin(endpoint,
				RBX_MAX(qp->send_depth_count,
					RBX_PACED_MARKERS + 1) -
					RBX_PACED_MARKERS);
}

int rbx_endpoint_make(struct rbx_context *ctx,
		      const struct rbx_endpoint_options *wanted,
		      struct rbx_endpoint_options *options,
		      struct rbx_qp_init *init, struct rbx_endpoint **out)
{
	struct rbx_endpoint *endpoint;
	struct rbx_domain *domain;
	uint32_t send_depth, receive_depth;
	int err;

	*options = (struct rbx_endpoint_options){ .size_bytes = 0 };
	err = rbx_sized_take("rbx_endpoint_options",
			     offsetof(struct rbx_endpoint_options, tells_end),
			     options, sizeof(*options), wanted);
	if (err)
		return err;
	options->send_depth = options->send_depth ?: 64;
	options->receive_depth = options->receive_depth ?: 64;
	options->segments = options->segments ?: 1;
	options->receive_segments = options->receive_segments ?: 1;
	options->timeout_ms = options->timeout_ms ?: 5000;
	if (options->exchanges) {
		options->receive_depth = RBX_WIRE_EXCHANGE_RECEIVES;
		options->inline_bytes =
			RBX_MAX(options->inline_bytes, RBX_WIRE_EXCHANGE_BYTES);
	}
	err = options_check(ctx, options);
	if (err)
		return err;
	endpoint = calloc(1, sizeof(*endpoint));
	if (!endpoint)
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	pthread_mutex_init(&endpoint->post_lock, NULL);
	endpoint->user = options->user;
	endpoint->completed = options->completed;
	endpoint->segments_max = options->segments;
	endpoint->receive_segments_max = options->receive_segments;
	endpoint->inline_bytes_max = options->inline_bytes;
	send_depth = options->send_depth +
		     (options->paced ? RBX_PACED_MARKERS : 0);
	receive_depth = options->receives ? 0 : options->receive_depth;
	if (ring_make(&endpoint->sends, options->send_depth) ||
	    ring_make(&endpoint->receives, receive_depth)) {
		rbx_endpoint_free(endpoint);
		return rbx_error(-ENOMEM, "cannot allocate an endpoint");
	}
	err = rbx_domain_use(options->domain, ctx, &domain);
	if (!err) {
		endpoint->domain = options->domain;
		err = rbx_queue_take(options->queue,
				     send_depth + receive_depth);
	}
	if (err) {
		rbx_endpoint_free(endpoint);
		return err;
	}
	endpoint->queue = options->queue;
	endpoint->queue_room_count = send_depth + receive_depth;
	/* Its slot in the context cannot be taken in a callback. */
	if (options->paced)
		err = rbx_guard_wait(ctx, "an endpoint that is paced");
	if (options->paced && !err)
		err = rbx_paced_make(endpoint, ctx, options->send_depth);
	if (options->exchanges && !err)
		err = rbx_exchanger_make(endpoint, ctx, options->exchanges);
	if (err) {
		rbx_endpoint_free(endpoint);
		return err;
	}
	*init = (struct rbx_qp_init){
		.domain = domain,
		.send_cq = options->queue->cq,
		.recv_cq = options->queue->cq,
		.send_depth_count = send_depth,
		.recv_depth_count = receive_depth,
		.max_sge = options->paced ? RBX_MAX(options->segments,
						    ctx->planner.sge_max) :
					    options->segments,
		.recv_max_sge = options->receive_segments,
		.max_inline_bytes = options->inline_bytes,
		.served = !options->works_when_polled,
		.answers = options->works_when_polled,
		.tells_end = options->tells_end,
		.traffic_class = options->traffic_class,
		.service_level = options->service_level,
		.user = endpoint,
		.made = begin,
	};
	if (options->receives) {
		err = rbx_shared_receives_use(options->receives, options, init);
		if (err) {
			rbx_endpoint_free(endpoint);
			return err;
		}
		endpoint->shared = options->receives;
	}
	*out = endpoint;
	return 0;
}

void rbx_endpoint_free(struct rbx_endpoint *endpoint)
{
	rbx_exchanger_free(endpoint->exchanger);
	rbx_paced_free(endpoint);
	if (endpoint->queue)
		rbx_queue_give(endpoint->queue, endpoint->queue_room_count);
	if (endpoint->shared)
		rbx_shared_receives_leave(endpoint->shared);
	rbx_domain_leave(endpoint->domain);
	pthread_mutex_destroy(&endpoint->post_lock);
	free(endpoint->sends.slots);
	free(endpoint->receives.slots);
	free(endpoint);
}

/* ---- Closing ----------------------------------------------------------------------*/

void rbx_endpoint_disconnect(struct rbx_endpoint *endpoint)
{
	if (rbx_guard_use(endpoint->queue->ctx, "rbx_endpoint_disconnect"))
		return;
	if (endpoint->exchanger)
		rbx_exchanger_cut(endpoint->exchanger);
	rbx_endpoint_cut(endpoint);
}

void rbx_endpoint_cut(struct rbx_endpoint *endpoint)
{
	if (endpoint->paced)
		rbx_paced_disconnect(endpoint);
	else
		endpoint->qp->device->ops->disconnect(endpoint->qp);
}

int rbx_endpoint_close(struct rbx_endpoint *endpoint)
{
	struct rbx_queue *queue;
	int err;

	if (!endpoint)
		return 0;
	queue = endpoint->queue;
	err = rbx_guard_wait(queue->ctx, "rbx_endpoint_close");
	if (!err && RBX_LOAD_ACQUIRE(&endpoint->windows_count))
		err = rbx_error(-EBUSY, "rbx_endpoint_close: it has memory windows: rbx_memory_window_close() first");
	if (err)
		return err;
	if (endpoint->exchanger)
		rbx_exchanger_stop(endpoint);
	if (endpoint->paced) {
		rbx_paced_end(endpoint);
	} else {
		/* A thread that polls may hold a completion that names the endpoint. */
		pthread_mutex_lock(&queue->lock);
		endpoint->qp->device->ops->destroy_qp(endpoint->qp);
		pthread_mutex_unlock(&queue->lock);
	}
	rbx_endpoint_free(endpoint);
	return 0;
}

/* ---- Describing -------------------------------------------------------------------*/

void *rbx_endpoint_user(const struct rbx_endpoint *endpoint)
{
	return endpoint->user;
}

const char *rbx_endpoint_name(const struct rbx_endpoint *endpoint)
{
	return endpoint->qp->peer_name;
}

uint32_t rbx_endpoint_send_depth(const struct rbx_endpoint *endpoint)
{
	return endpoint->sends.depth_count;
}
