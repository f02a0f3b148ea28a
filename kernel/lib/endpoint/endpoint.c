/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.c - makes, closes and describes endpoints.
 *
 *	make -> (conn has an id) -> build -> (connected) -> begin -> ... -> end
 *
 * If a step fails, end() undoes the steps before it.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "core/paced.h"
#include "kernel/lib/drain.h"
#include "kernel/lib/endpoint/paced.h"

static struct workqueue_struct *endings;

int rbx_endpoints_init(void)
{
	endings = alloc_workqueue("rdmabox_endings",
				  WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return endings ? 0 : -ENOMEM;
}

void rbx_endpoints_exit(void)
{
	destroy_workqueue(endings);
}

/* ---- Making -----------------------------------------------------------------------*/

static bool is_within(uint32_t wanted, uint32_t most)
{
	return wanted <= most;
}

static int options_check(const struct rbx_protection_domain *domain,
			 const struct rbx_endpoint_options *options)
{
	const struct rbx_endpoint_limits *limits = &domain->limits;
	uint32_t pages = options->regions ? options->region_pages ?: 1 : 0;

	if (options->completed &&
	    is_within(options->send_depth, limits->send_depth_max) &&
	    is_within(options->receive_depth, limits->receive_depth_max) &&
	    is_within(options->segments, limits->segments_max) &&
	    is_within(options->receive_segments, limits->receive_segments_max) &&
	    is_within(pages, limits->region_pages_max) &&
	    is_within(options->regions, RBX_ENDPOINT_REGIONS_MAX))
		return 0;
	return -EINVAL;
}

static int ring_make(struct rbx_endpoint *endpoint,
		     struct rbx_endpoint_ring *ring, uint32_t depth_count,
		     uint32_t segments_max,
		     void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	size_t slots_count = roundup_pow_of_two(depth_count);
	size_t i;

	ring->depth_count = depth_count;
	ring->segments_max = segments_max;
	ring->mask = (uint32_t)slots_count - 1;
	ring->slots = kvcalloc(slots_count, sizeof(*ring->slots), GFP_KERNEL);
	ring->sges = kvcalloc(slots_count * segments_max, sizeof(*ring->sges),
			      GFP_KERNEL);
	if (!ring->slots || !ring->sges)
		return -ENOMEM;
	for (i = 0; i < slots_count; i++) {
		ring->slots[i].cqe.done = done;
		ring->slots[i].endpoint = endpoint;
	}
	return 0;
}

static int rings_make(struct rbx_endpoint *endpoint,
		      const struct rbx_endpoint_options *options)
{
	int err = ring_make(endpoint, &endpoint->sends, options->send_depth ?: 64,
			    options->segments ?: 1,
			    rbx_endpoint_operation_done);

	return err ? err :
		     ring_make(endpoint, &endpoint->receives,
			       options->receive_depth ?: 64,
			       options->receive_segments ?: 1,
			       rbx_endpoint_receive_done);
}

/* Frees the parts that exist. */
static void endpoint_free(struct rbx_endpoint *endpoint)
{
	rbx_paced_free(endpoint->paced);
	kvfree(endpoint->sends.slots);
	kvfree(endpoint->sends.sges);
	kvfree(endpoint->receives.slots);
	kvfree(endpoint->receives.sges);
	rbx_domain_leave(endpoint->domain);
	kfree(endpoint);
}

/* Ends the connection for the peer, a device that is removed or has failed, or the owner. */
static void ending(struct work_struct *work)
{
	struct rbx_endpoint *endpoint =
		container_of(work, struct rbx_endpoint, ending);

	mutex_lock(&endpoint->domain->lock);
	if (!endpoint->is_closing) {
		rbx_ib_conn_disconnect(&endpoint->conn);
		if (endpoint->paced)
			rbx_paced_disconnect(endpoint);
	}
	mutex_unlock(&endpoint->domain->lock);
}

int rbx_endpoint_make(struct rbx_protection_domain *domain,
		      const struct rbx_endpoint_options *options,
		      struct rbx_endpoint **out)
{
	struct rbx_endpoint *endpoint;
	int err = options_check(domain, options);

	if (!err)
		err = rbx_domain_enter(domain);
	if (err)
		return err;
	endpoint = kzalloc(sizeof(*endpoint), GFP_KERNEL);
	if (!endpoint) {
		rbx_domain_leave(domain);
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&endpoint->link);
	INIT_WORK(&endpoint->ending, ending);
	spin_lock_init(&endpoint->post_lock);
	endpoint->domain = domain;
	endpoint->completed = options->completed;
	endpoint->user = options->user;
	endpoint->timeout_ms = options->timeout_ms ?: 5000;
	endpoint->regions_count = options->regions;
	endpoint->region_pages = options->region_pages ?: 1;
	err = rings_make(endpoint, options);
	if (!err && options->paced)
		err = rbx_paced_make(endpoint);
	if (err)
		endpoint_free(endpoint);
	else
		*out = endpoint;
	return err;
}

/* ---- Building on a connection -----------------------------------------------------*/

/* A message may arrive before the connection manager's last event. */
static void queue_pair_event(struct ib_event *event, void *context)
{
	struct rbx_endpoint *endpoint = context;

	if (event->event == IB_EVENT_COMM_EST)
		(void)rdma_notify(endpoint->conn.id, event->event);
}

/* How many work requests the queue pair needs for operations. */
static uint32_t send_depth(const struct rbx_endpoint *endpoint)
{
	return endpoint->paced ? rbx_paced_depth(endpoint) + RBX_PACED_MARKERS :
				 endpoint->sends.depth_count;
}

/* Merged ones have as many as the planner allows. */
static uint32_t segments_max(const struct rbx_endpoint *endpoint)
{
	return endpoint->paced ? max(endpoint->sends.segments_max,
				     endpoint->domain->client.planner.sge_max) :
				 endpoint->sends.segments_max;
}

static int queue_pair_make(struct rbx_endpoint *endpoint)
{
	struct ib_qp_init_attr init = {
		.event_handler = queue_pair_event,
		.qp_context = endpoint,
		.send_cq = endpoint->poller->cqs[endpoint->cq_index],
		.recv_cq = endpoint->poller->cqs[endpoint->cq_index],
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			/* One more on either side, for rbx_ib_conn_drain(). */
			.max_send_wr = send_depth(endpoint) + 1,
			.max_recv_wr = endpoint->receives.depth_count + 1,
			.max_send_sge = segments_max(endpoint),
			.max_recv_sge = endpoint->receives.segments_max,
		},
	};

	return rdma_create_qp(endpoint->conn.id, endpoint->domain->pd, &init);
}

int rbx_endpoint_build(struct rbx_endpoint *endpoint)
{
	struct rbx_protection_domain *domain = endpoint->domain;
	uint32_t room_count = send_depth(endpoint) + 1 +
			      endpoint->receives.depth_count + 1;
	int err;

	if (endpoint->conn.id->device != domain->device)
		return -EXDEV;
	snprintf(endpoint->name, sizeof(endpoint->name), "%pISpc",
		 &endpoint->conn.id->route.addr.dst_addr);
	err = rbx_context_take_room(domain->client.ctx, room_count,
				    &endpoint->poller, &endpoint->cq_index);
	if (err)
		return err;
	endpoint->room_count = room_count;
	err = rbx_regions_make(endpoint);
	return err ? err : queue_pair_make(endpoint);
}

int rbx_endpoint_begin(struct rbx_endpoint *endpoint)
{
	struct rbx_protection_domain *domain = endpoint->domain;
	int err = 0;

	mutex_lock(&domain->lock);
	if (domain->is_gone)
		err = -ENODEV;
	else
		list_add(&endpoint->link, &domain->endpoints);
	mutex_unlock(&domain->lock);
	return err;
}

/* ---- Closing ----------------------------------------------------------------------*/

void rbx_endpoint_disconnect(struct rbx_endpoint *endpoint)
{
	queue_work(endings, &endpoint->ending);
}
EXPORT_SYMBOL_GPL(rbx_endpoint_disconnect);

void rbx_endpoint_ended(struct rbx_ib_conn *conn)
{
	rbx_endpoint_disconnect(container_of(conn, struct rbx_endpoint, conn));
}

/* After this no other thread ends it, and nothing is posted. */
static void endpoint_stop(struct rbx_endpoint *endpoint)
{
	unsigned long flags;

	mutex_lock(&endpoint->domain->lock);
	endpoint->is_closing = true;
	list_del_init(&endpoint->link);
	mutex_unlock(&endpoint->domain->lock);
	spin_lock_irqsave(&endpoint->post_lock, flags);
	endpoint->is_closed = true;
	spin_unlock_irqrestore(&endpoint->post_lock, flags);
}

void rbx_endpoint_end(struct rbx_endpoint *endpoint)
{
	bool all_is_back;

	endpoint_stop(endpoint);
	if (endpoint->paced)
		rbx_paced_stop(endpoint);
	all_is_back = rbx_drain_and_destroy(&endpoint->conn, endpoint->poller,
					    RBX_IB_DRAIN_MS, &endpoint->is_over,
					    endpoint->name);
	if (endpoint->paced)
		rbx_paced_finish(endpoint, all_is_back);
	if (!all_is_back)
		rbx_endpoint_complete_rest(endpoint);
	/* The connection that queued it is gone. */
	cancel_work_sync(&endpoint->ending);
	rbx_regions_free(endpoint);
	if (endpoint->room_count)
		rbx_context_give_room(endpoint->poller, endpoint->cq_index,
				      endpoint->room_count);
	endpoint_free(endpoint);
}

/* Whether this is called in completed() of this or another endpoint. A paced endpoint has
 * to wait for every poller. */
static bool is_told(const struct rbx_context *ctx)
{
	uint32_t i;

	for (i = 0; i < ctx->pollers_count; i++)
		if (READ_ONCE(ctx->pollers[i].holder) == current)
			return true;
	return false;
}

int rbx_endpoint_close(struct rbx_endpoint *endpoint)
{
	if (!endpoint)
		return 0;
	if (is_told(endpoint->domain->client.ctx))
		return -EDEADLK;
	rbx_endpoint_end(endpoint);
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_close);

/* ---- Describing -------------------------------------------------------------------*/

void *rbx_endpoint_user(const struct rbx_endpoint *endpoint)
{
	return endpoint->user;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_user);

const char *rbx_endpoint_name(const struct rbx_endpoint *endpoint)
{
	return endpoint->name;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_name);

u32 rbx_endpoint_send_depth(const struct rbx_endpoint *endpoint)
{
	return endpoint->sends.depth_count;
}
EXPORT_SYMBOL_GPL(rbx_endpoint_send_depth);
