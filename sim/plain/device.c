/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* device.c - devices, domains, completion queues, and the table of the fabric. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/descriptors.h"
#include "sim/fail.h"
#include "sim/hands.h"
#include "sim/plain/plain.h"
#include "sim/random.h"
#include "sim/sites.h"

static struct rbx_random chance;
static bool is_stopped[RBX_SIM_NODES_MAX], is_cut[RBX_SIM_NODES_MAX];
static bool is_fenced[RBX_SIM_NODES_MAX];
static bool are_apart[RBX_SIM_NODES_MAX][RBX_SIM_NODES_MAX];
static bool has_any_lkey;
static uint32_t max_sge;
static uint64_t way_ns = RBX_PLAIN_WAY_NS;
struct plain_qp *plain_qps;

uint64_t plain_draw(uint64_t low, uint64_t high)
{
	return rbx_sim_between(&chance, low, high);
}

void rbx_sim_plain_way(uint64_t ns)
{
	way_ns = ns;
}

uint64_t plain_way_back_ns(void)
{
	return way_ns;
}

uint64_t plain_way_ns(void)
{
	return way_ns + rbx_random_below(&chance, RBX_PLAIN_JITTER_NS);
}

bool plain_reaches(uint32_t from_node, uint32_t to_node)
{
	return !is_stopped[to_node] &&
	       (from_node == to_node || !(is_cut[from_node] || is_cut[to_node] ||
					  are_apart[from_node][to_node]));
}

void plain_fence_check(uint32_t node)
{
	if (is_fenced[node])
		rbx_sim_fail("fenced", "node %u reads or writes what is another one's now", node);
}

void plain_scribble(void *bytes, size_t length)
{
	memset(bytes, (int)(0x80 | rbx_random_below(&chance, 0x80)), length);
}

static int plain_open(const struct rbx_device_options *options,
		      struct rbx_device **out, char *error)
{
	struct plain_device *device = calloc(1, sizeof(*device));

	(void)options;
	(void)error;
	if (!device)
		return -ENOMEM;
	device->node = rbx_sim_node();
	/* A node that opens a device has power again. */
	is_stopped[device->node] = false;
	device->base.ops = rbx_sim_fabric_plain.ops;
	device->base.caps = (struct rbx_device_caps){
		.max_qp = 65536,
		.max_sge = max_sge,
		.max_message_bytes = 1u << 30,
		.max_send_wr = 4096,
		.max_recv_wr = 4096,
		.max_recv_sge = RBX_SGE_MAX,
		.max_cqe = 1u << 22,
		.has_immediate = true,
		.has_invalidate = true,
		.has_remote_invalidate = true,
		.has_atomics = true,
		.has_any_lkey = has_any_lkey,
		.any_lkey = RBX_PLAIN_ANY_LKEY,
		.connect_data_bytes = RBX_CONNECT_DATA_MAX,
		.accept_data_bytes = RBX_ACCEPT_DATA_MAX,
		.reject_data_bytes = RBX_REJECT_DATA_MAX,
	};
	snprintf(device->base.caps.description,
		 sizeof(device->base.caps.description), "plain of node %u",
		 device->node);
	snprintf(device->base.caps.name, sizeof(device->base.caps.name),
		 "plain:%u", device->node);
	*out = &device->base;
	return 0;
}

static int plain_probe(char *error)
{
	(void)error;
	return 0;
}

static void plain_close(struct rbx_device *device)
{
	free(device);
}

static int plain_create_domain(struct rbx_device *device,
			       struct rbx_domain **domain, char *error)
{
	(void)error;
	*domain = calloc(1, sizeof(struct plain_domain));
	if (!*domain)
		return -ENOMEM;
	(*domain)->device = device;
	return 0;
}

static void plain_destroy_domain(struct rbx_domain *domain)
{
	free(domain);
}

/* ---- Completion queues ------------------------------------------------------*/

static int plain_create_cq(struct rbx_device *device, uint32_t depth_count,
			   struct rbx_cq **out, char *error)
{
	struct plain_cq *cq = calloc(1, sizeof(*cq));

	(void)error;
	if (!cq)
		return -ENOMEM;
	cq->wcs = calloc(depth_count, sizeof(*cq->wcs));
	if (!cq->wcs) {
		free(cq);
		return -ENOMEM;
	}
	cq->base.device = device;
	cq->base.depth_count = depth_count;
	cq->base.event_fd = rbx_sim_descriptor_open();
	*out = &cq->base;
	return 0;
}

static void plain_destroy_cq(struct rbx_cq *base)
{
	struct plain_cq *cq = (struct plain_cq *)base;

	rbx_sim_descriptor_close(base->event_fd);
	free(cq->wcs);
	free(cq);
}

void plain_cq_add(struct rbx_cq *base, const struct rbx_wc *wc)
{
	struct plain_cq *cq = (struct plain_cq *)base;
	uint32_t at = cq->first + cq->count;

	if (cq->count == base->depth_count)
		rbx_sim_fail("queue-depth", "a completion queue of %u overruns",
			     base->depth_count);
	cq->wcs[at < base->depth_count ? at : at - base->depth_count] = *wc;
	cq->count++;
	if (cq->is_armed) {
		cq->is_armed = false;
		rbx_sim_descriptor_raise(base->event_fd, 1);
	}
}

void plain_cq_add_error(struct rbx_cq *cq, struct plain_qp *qp, uint64_t wr_id,
			int32_t status)
{
	struct rbx_wc wc;

	plain_scribble(&wc, sizeof(wc));
	wc.wr_id = wr_id;
	wc.qp = &qp->base;
	wc.status = status;
	plain_cq_add(cq, &wc);
}

void plain_cq_forget(struct rbx_cq *base, const struct rbx_qp *qp)
{
	struct plain_cq *cq = (struct plain_cq *)base;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < cq->count; i++) {
		uint32_t from = (cq->first + i) % base->depth_count;

		if (cq->wcs[from].qp == qp)
			continue;
		cq->wcs[(cq->first + kept) % base->depth_count] = cq->wcs[from];
		kept++;
	}
	cq->count = kept;
}

/* A thread that looks again and again is given longer looks, so that waiting for a machine to
 * come back does not take a million events. */
static uint64_t look_ns(struct plain_cq *cq)
{
	cq->empty_count++;
	return (uint64_t)RBX_PLAIN_POLL_NS
	       << RBX_MIN(cq->empty_count / RBX_PLAIN_POLLS, 6u);
}

static int plain_poll(struct rbx_cq *base, struct rbx_wc *wcs, int max)
{
	struct plain_cq *cq = (struct plain_cq *)base;
	int taken = 0;

	if (cq->count == 0) {
		if (rbx_sim_self())
			rbx_sim_sleep(look_ns(cq));
		return 0;
	}
	cq->empty_count = 0;
	for (; taken < max && cq->count != 0; taken++) {
		wcs[taken] = cq->wcs[cq->first];
		cq->first = cq->first + 1 < base->depth_count ? cq->first + 1 :
								0;
		cq->count--;
	}
	return taken;
}

static int plain_arm(struct rbx_cq *cq)
{
	((struct plain_cq *)cq)->is_armed = true;
	return 0;
}

static void plain_consume_events(struct rbx_cq *cq)
{
	(void)rbx_sim_descriptor_take(cq->event_fd);
}

/* ---- Actions of the world --------------------------------------------------- */

static void plain_begin(uint64_t seed)
{
	rbx_sim_random_split(&chance, seed, "plain", 0);
	has_any_lkey = rbx_random_below(&chance, 2);
	max_sge = 1u << rbx_random_below(&chance, 5);
	plain_keys_begin();
}

static void plain_node_stop(uint32_t node)
{
	struct plain_qp *qp, *next;

	is_stopped[node] = true;
	for (qp = plain_qps; qp; qp = next) {
		next = qp->next;
		if (qp->node != node)
			continue;
		plain_strays_send(qp);
		plain_qp_free(qp);
	}
	plain_listeners_stop(node);
	plain_keys_stop(node);
	rbx_sim_hands_stop(node);
}

static void plain_node_cut(uint32_t node, bool cut)
{
	is_cut[node] = cut;
}

static void plain_pair_cut(uint32_t node, uint32_t other, bool cut)
{
	are_apart[node][other] = are_apart[other][node] = cut;
}

static void plain_node_fence(uint32_t node, bool fenced)
{
	is_fenced[node] = fenced;
}

static const struct rbx_fabric_ops ops = {
	.name = "plain",
	.probe = plain_probe,
	.open = plain_open,
	.close = plain_close,
	.create_domain = plain_create_domain,
	.destroy_domain = plain_destroy_domain,
	.register_memory = plain_register,
	.deregister_memory = plain_deregister,
	.create_cq = plain_create_cq,
	.destroy_cq = plain_destroy_cq,
	.poll = plain_poll,
	.arm = plain_arm,
	.consume_events = plain_consume_events,
	.connect = plain_connect,
	.listen = plain_listen,
	.close_listener = plain_close_listener,
	.get_request = plain_get_request,
	.accept = plain_accept,
	.reject = plain_reject,
	.disconnect = plain_disconnect,
	.destroy_qp = plain_destroy_qp,
	.post_send = plain_post_send,
	.post_recv = plain_post_recv,
};

const struct rbx_sim_fabric rbx_sim_fabric_plain = {
	.ops = &ops,
	.begin = plain_begin,
	.node_stop = plain_node_stop,
	.node_cut = plain_node_cut,
	.pair_cut = plain_pair_cut,
	.node_fence = plain_node_fence,
	.in_flight = plain_in_flight,
};
