/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.c - data queue pairs: which are accepted, and how they end.
 *
 * The fabric serves a data queue pair without a thread of the server. The server only
 * accepts and ends it. It is accepted if its private data carries the MAC of a session's
 * current control connection and a serial number that is higher than all before. So
 * nothing that was seen on the wire can be used again. One receive stays posted that no
 * message ever fills. Its flush reports the end of the connection.
 */
#include <string.h>

#include "server/state.h"
#include "wire/attach.h"

/* A receive of no bytes. No message is expected; if one comes the queue pair ends. */
static bool watch_post(struct rbx_server *s, struct rbx_data_qp *data_qp)
{
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = rbx_wr_name_pack((struct rbx_wr_name){
			.kind = RBX_WR_DATA_RECV,
			.index = (uint32_t)(data_qp - s->data_qps),
			.generation = data_qp->generation,
		}),
	};

	return s->fabric.ops->post_recv(data_qp->qp, &wr, &bad) == 0;
}

static uint32_t attach_judge(struct rbx_server *s,
			     const struct rbx_wire_attach *attach,
			     struct rbx_client **client)
{
	uint8_t mac[RBX_WIRE_MAC_BYTES];

	*client = rbx_client_find(s, attach->session_id);
	if (!*client || !(*client)->connection)
		return RBX_REASON_STALE_SESSION;
	rbx_proof_of_attach(&(*client)->connection_key, attach, mac);
	if (!rbx_proof_equal(mac, attach->mac, sizeof(mac))) {
		s->refused_auth++;
		return RBX_REASON_WRONG_SECRET;
	}
	if ((*client)->only_removes)
		return RBX_REASON_OUT_OF_TURN;
	if (attach->serial <= (*client)->attach_serial)
		return RBX_REASON_REPLAYED;
	if ((*client)->qps_count >= RBX_QUEUE_PAIRS_MAX)
		return RBX_REASON_TOO_MANY;
	return RBX_REASON_NONE;
}

static struct rbx_data_qp *data_qp_take_free(struct rbx_server *s,
					     const struct rbx_client *client)
{
	struct rbx_data_qp *data_qps = rbx_data_qps_of(s, client);
	uint32_t i;

	for (i = 0; i < RBX_QUEUE_PAIRS_MAX; i++)
		if (!data_qps[i].qp)
			return &data_qps[i];
	return NULL;
}

static void data_qp_end(struct rbx_server *s, struct rbx_data_qp *data_qp)
{
	s->fabric.ops->destroy_qp(data_qp->qp);
	data_qp->qp = NULL;
	data_qp->generation++;
	data_qp->client->qps_count--;
	data_qp->client = NULL;
}

void rbx_data_qp_accept(struct rbx_server *s, struct rbx_conn_request *request,
			const struct rbx_wire_attach *attach)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_data_qp *data_qp;
	struct rbx_client *client;
	uint32_t reason = attach_judge(s, attach, &client);
	struct rbx_qp_init init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.send_depth_count = 1,
		.recv_depth_count = 1,
		.max_sge = 1,
		.peer_reads_max_count = RBX_SEND_DEPTH,
		.served = true,
	};
	int err;

	if (reason) {
		rbx_request_refuse(s, request, reason);
		return;
	}
	client->attach_serial = attach->serial;
	init.domain = client->reading ? client->reading->holder.domain :
					rbx_holder_of(client)->domain;
	data_qp = data_qp_take_free(s, client);
	RBX_ASSERT(data_qp); /* it has fewer than the most that it may have */
	err = s->fabric.ops->accept(request, &init, NULL, 0, &data_qp->qp,
				    error);
	if (err) {
		data_qp->qp = NULL;
		rbx_log_hostile(&s->hostile, client->name, strerror(-err),
				rbx_now_ns());
		return;
	}
	data_qp->client = client;
	client->qps_count++;
	client->had_qps = true;
	if (!watch_post(s, data_qp))
		data_qp_end(s, data_qp);
}

void rbx_data_qp_completed(struct rbx_server *s, const struct rbx_wc *wc)
{
	struct rbx_wr_name name = rbx_wr_name_unpack(wc->wr_id);
	struct rbx_data_qp *data_qp = &s->data_qps[name.index];

	RBX_ASSERT(name.index < s->clients_used * RBX_QUEUE_PAIRS_MAX);
	/* With or without an error: this protocol has no messages on a data queue pair. */
	if (!data_qp->qp || data_qp->generation != name.generation)
		return;
	if (wc->status && data_qp->qp->cut_off)
		rbx_log_hostile(&s->hostile, data_qp->qp->peer_name,
				data_qp->qp->cut_off, rbx_now_ns());
	data_qp_end(s, data_qp);
}

void rbx_data_qps_end(struct rbx_server *s, struct rbx_client *client)
{
	struct rbx_data_qp *data_qps = rbx_data_qps_of(s, client);
	uint32_t i;

	for (i = 0; i < RBX_QUEUE_PAIRS_MAX; i++)
		if (data_qps[i].qp)
			data_qp_end(s, &data_qps[i]);
	RBX_ASSERT(!client->qps_count);
}
