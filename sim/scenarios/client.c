/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* client.c - see client.h. Opens, submits and combines; poller.c polls. */
#include "sim/scenarios/client.h"

#include <stdlib.h>

#include "sim/scenarios/poller.h"

/* CPU time to copy so many bytes. */
static uint64_t copy_ns(const struct rbx_client *client, uint64_t bytes)
{
	return bytes * 8000 / client->params->copy_mbps;
}

static void translate(const struct rbx_work *work, uint32_t number,
		      struct rbx_wr *wr)
{
	*wr = (struct rbx_wr){
		.next = wr + 1,
		.wr_id = number,
		.sges = work->sges,
		.sge_count = work->sge_count,
		.opcode = work->direction == RBX_DIRECTION_READ ? RBX_OP_READ :
								  RBX_OP_WRITE,
		.rkey = work->rkey,
		.remote_addr = work->remote_addr,
	};
}

/* What buffers cost the combiner before the post. */
static void spend_on_buffers(const struct rbx_client *client,
			     const struct rbx_work *work)
{
	const struct rbx_nic_params *params = client->params;

	if (work->staged && work->direction == RBX_DIRECTION_WRITE)
		rbx_sim_spend(copy_ns(client, work->length_bytes));
	if (client->choices.buffers == RBX_CLIENT_MAPPED)
		rbx_sim_spend((uint64_t)work->sge_count * params->map_ns +
			      (work->length_bytes + params->page_bytes - 1) /
				      params->page_bytes *
				      params->map_page_ns);
}

static void post(struct rbx_client_peer *peer, const struct rbx_chain *chain)
{
	struct rbx_send_ring *ring = &peer->channel.rings[chain->ring_index];
	struct rbx_qp *qp = peer->qps[chain->ring_index];
	struct rbx_wr wrs[RBX_CHAIN_MAX], *bad;
	int err;

	for (uint32_t i = 0; i < chain->work_count; i++) {
		uint32_t number = chain->first_number + i;
		const struct rbx_work *work = rbx_send_ring_slot(ring, number);

		spend_on_buffers(peer->client, work);
		translate(work, number, &wrs[i]);
	}
	wrs[chain->work_count - 1].next = NULL;
	wrs[chain->work_count - 1].flags |= RBX_WR_SIGNALED;
	err = qp->device->ops->post_send(qp, wrs, &bad);
	RBX_ASSERT(!err);
}

void rbx_client_combine(struct rbx_client *client,
			struct rbx_combining *combining)
{
	struct rbx_channel *channel = combining->channel;
	struct rbx_chain chain;

	if (combining->chains_count++ == RBX_COMBINE_MAX) {
		combining->channel = NULL;
		/* The completion of what is outstanding unparks it, or else we do. */
		if (rbx_channel_yield(channel))
			rbx_sim_thread_wake(&client->pollers[0].thread);
		return;
	}
	if (!rbx_channel_combine(channel, rbx_sim_thread_now(), &chain)) {
		combining->channel = NULL;
		return;
	}
	RBX_ASSERT(!chain.refused);
	if (chain.work_count != 0)
		post(RBX_CONTAINER_OF(channel, struct rbx_client_peer, channel),
		     &chain);
}

void rbx_client_submit(struct rbx_client *client, uint32_t peer,
		       struct rbx_fragment *first, struct rbx_fragment *last,
		       struct rbx_combining *combining)
{
	struct rbx_channel *channel = &client->peers[peer].channel;

	if (rbx_channel_submit(channel, first, last))
		*combining = (struct rbx_combining){ .channel = channel };
}

static void open_peer(struct rbx_client *client, uint32_t index)
{
	const struct rbx_client_choices *choices = &client->choices;
	struct rbx_client_peer *peer = &client->peers[index];
	struct rbx_device *server = rbx_sim_wires_device(index + 1);
	struct rbx_cq *server_cq = rbx_sim_wires_cq(server, 1);
	struct rbx_cq *cq = client->pollers[index % client->poller_count].cq;
	struct rbx_qp_init server_init = {
		.send_cq = server_cq,
		.recv_cq = server_cq,
		.send_depth_count = 1,
	};
	struct rbx_qp_init init = {
		.send_cq = cq,
		.recv_cq = cq,
		.send_depth_count = choices->send_depth_count,
		.max_sge = client->planner.sge_max,
	};

	peer->client = client;
	peer->memory = rbx_sim_wires_memory(server, choices->peer_bytes);
	peer->works = rbx_sim_take((size_t)choices->qps_count *
					   choices->send_depth_count,
				   sizeof(*peer->works));
	rbx_channel_init(&peer->channel, &client->planner, &client->window);
	for (uint32_t i = 0; i < choices->qps_count; i++) {
		struct rbx_qp *other;

		rbx_channel_add_ring(
			&peer->channel,
			&peer->works[i * choices->send_depth_count],
			choices->send_depth_count);
		rbx_sim_wires_connect(client->device, &init, &peer->qps[i],
				      server, &server_init, &other);
		peer->qps[i]->user = peer;
	}
}

static void open_memory(struct rbx_client *client)
{
	bool copied = client->choices.buffers == RBX_CLIENT_COPIED;

	client->local = rbx_sim_wires_memory(client->device,
					     client->choices.local_bytes);
	client->staging_memory = rbx_sim_wires_memory(
		client->device, copied ? RBX_STAGING_BYTES : 1);
	rbx_staging_init(&client->staging, client->staging_memory->addr,
			 client->staging_memory->lkey);
	client->planner = (struct rbx_planner){
		.merge = client->choices.merge,
		.stage_always = copied,
		.chain_max = client->choices.chain_max,
		.sge_max = RBX_MIN(RBX_SGE_MAX, client->params->sge_max),
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.staging = &client->staging,
	};
}

void rbx_client_open(struct rbx_client *client,
		     const struct rbx_nic_params *params,
		     const struct rbx_client_choices *choices)
{
	uint32_t qps_count = choices->peers_count * choices->qps_count;

	*client = (struct rbx_client){ .choices = *choices, .params = params };
	rbx_sim_wires_begin(params);
	client->device = rbx_sim_wires_device(0);
	rbx_window_init(&client->window, choices->window_bytes, 0);
	open_memory(client);
	client->poller_count = choices->pollers_count ? choices->pollers_count :
							choices->peers_count;
	client->pollers =
		rbx_sim_take(client->poller_count, sizeof(*client->pollers));
	for (uint32_t i = 0; i < client->poller_count; i++)
		rbx_client_poller_open(client, &client->pollers[i],
				       qps_count * choices->send_depth_count);
	client->peers =
		rbx_sim_take(choices->peers_count, sizeof(*client->peers));
	for (uint32_t i = 0; i < choices->peers_count; i++) {
		open_peer(client, i);
		client->peers[i].channel.slot = i;
	}
}

void rbx_client_close(struct rbx_client *client)
{
	rbx_sim_wires_end();
	for (uint32_t i = 0; i < client->choices.peers_count; i++)
		free(client->peers[i].works);
	free(client->peers);
	free(client->pollers);
}
