/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The raw verbs peer: libibverbs and librdmacm, and nothing above them.
 *
 * A request is one work request of a reliable connection, whose completion means that the
 * other side's device has acknowledged it. With --chain 1 each is signaled and posted by a
 * call and a doorbell of its own: plain verbs. With --chain N up to N posts of one pass of
 * the load are linked and posted by one call, of which only the last is signaled: doorbell
 * batching. A reliable connection completes in order, so a completion counts for all that was
 * posted before it; `posted` remembers which.
 *
 * The load's buffers are registered once, before the first request, and used directly. A
 * broken connection flushes what is outstanding as errors.
 */
#include "verbs_peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define VERBS_TIMEOUT_MS 5000
/* Completions that one call takes. */
#define VERBS_POLL_COUNT 64

const struct peer_traits peer_traits = {
	.fabrics = { "verbs" },
	.chain_max = PEER_DEPTH_MAX,
};

struct peer {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct lent_memory lent;
	uint32_t block_bytes;
	uint32_t chain_max;
	bool armed;
	struct ibv_send_wr wrs[PEER_DEPTH_MAX];	/* the present chain */
	struct ibv_sge sges[PEER_DEPTH_MAX];
	uint32_t chain_count;
	uint32_t posted[PEER_DEPTH_MAX];	/* slots in the order of posting; a ring */
	uint32_t posted_first;
	uint32_t posted_end;
};

void peer_fabric_name(const struct peer_options *options, char *name, size_t len)
{
	snprintf(name, len, "verbs chain %u", options->chain);
}

int verbs_address(const struct peer_options *options, int flags, struct rdma_addrinfo **address)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };

	return rdma_getaddrinfo(options->host, options->port, &hints, address) ?
		       -EADDRNOTAVAIL :
		       0;
}

void verbs_limit_reads(const struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(id->verbs, &attr))
		return;
	if (param->initiator_depth > attr.max_qp_init_rd_atom)
		param->initiator_depth = attr.max_qp_init_rd_atom;
	if (param->responder_resources > attr.max_qp_rd_atom)
		param->responder_resources = attr.max_qp_rd_atom;
}

static int resolve(struct peer *peer, const struct peer_options *options)
{
	struct rdma_addrinfo *address;
	int err = verbs_address(options, 0, &address);

	if (err)
		return err;
	/* Without an event channel each step waits for its answer. */
	if (rdma_create_id(NULL, &peer->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(peer->id, NULL, address->ai_dst_addr, VERBS_TIMEOUT_MS) ||
	    rdma_resolve_route(peer->id, VERBS_TIMEOUT_MS))
		err = -errno;
	rdma_freeaddrinfo(address);
	return err;
}

static int queues_create(struct peer *peer, const struct peer_options *options)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = options->depth, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	peer->channel = ibv_create_comp_channel(peer->id->verbs);
	if (!peer->channel)
		return -errno;
	peer->cq = ibv_create_cq(peer->id->verbs, options->depth, NULL, peer->channel, 0);
	if (!peer->cq)
		return -errno;
	attr.send_cq = peer->cq;
	attr.recv_cq = peer->cq;
	return rdma_create_qp(peer->id, NULL, &attr) ? -errno : 0;
}

static int ask_server(struct peer *peer)
{
	struct rdma_conn_param param = {
		.responder_resources = UINT8_MAX,
		.initiator_depth = UINT8_MAX,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	const struct rdma_cm_event *answer;

	verbs_limit_reads(peer->id, &param);
	if (rdma_connect(peer->id, &param))
		return -errno;
	answer = peer->id->event;
	if (!answer || answer->param.conn.private_data_len < sizeof(peer->lent))
		return -EPROTO;
	memcpy(&peer->lent, answer->param.conn.private_data, sizeof(peer->lent));
	return 0;
}

int peer_connect(const struct peer_options *options, struct peer **connected)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int err;

	if (!peer)
		return -ENOMEM;
	peer->block_bytes = options->block_bytes;
	peer->chain_max = options->chain;
	err = resolve(peer, options);
	if (!err)
		err = queues_create(peer, options);
	if (!err)
		err = ask_server(peer);
	if (!err && peer->lent.size_bytes < options->volume_bytes)
		err = -ENOSPC;
	if (err) {
		peer_disconnect(peer);
		return err;
	}
	*connected = peer;
	return 0;
}

int peer_register(struct peer *peer, void *memory, size_t size_bytes)
{
	peer->mr = ibv_reg_mr(peer->id->pd, memory, size_bytes, IBV_ACCESS_LOCAL_WRITE);
	return peer->mr ? 0 : -errno;
}

int peer_post(struct peer *peer, uint32_t slot, bool write, void *buf, uint64_t offset_bytes)
{
	uint32_t link = peer->chain_count++;

	peer->sges[link] = (struct ibv_sge){
		.addr = (uintptr_t)buf,
		.length = peer->block_bytes,
		.lkey = peer->mr->lkey,
	};
	peer->wrs[link] = (struct ibv_send_wr){
		.wr_id = slot,
		.sg_list = &peer->sges[link],
		.num_sge = 1,
		.opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.wr.rdma.remote_addr = peer->lent.address + offset_bytes,
		.wr.rdma.rkey = peer->lent.rkey,
	};
	if (link)
		peer->wrs[link - 1].next = &peer->wrs[link];
	peer->posted[peer->posted_end++ % PEER_DEPTH_MAX] = slot;
	return peer->chain_count < peer->chain_max ? 0 : peer_post_end(peer);
}

/* Posts the chain, if there is one. */
int peer_post_end(struct peer *peer)
{
	struct ibv_send_wr *refused;

	if (!peer->chain_count)
		return 0;
	peer->wrs[peer->chain_count - 1].send_flags = IBV_SEND_SIGNALED;
	peer->chain_count = 0;
	return -ibv_post_send(peer->id->qp, peer->wrs, &refused);
}

/* Ends all requests up to @last, in the order of posting. */
static uint32_t complete_up_to(struct peer *peer, uint32_t last, int status,
			       struct peer_done *done)
{
	uint32_t slot, count = 0;

	do {
		slot = peer->posted[peer->posted_first++ % PEER_DEPTH_MAX];
		done[count++] = (struct peer_done){ .slot = slot, .status = status };
	} while (slot != last && peer->posted_first != peer->posted_end);
	return count;
}

int peer_poll(struct peer *peer, struct peer_done done[PEER_DEPTH_MAX])
{
	struct ibv_wc wcs[VERBS_POLL_COUNT];
	uint32_t count = 0;
	int polled, i;

	polled = ibv_poll_cq(peer->cq, VERBS_POLL_COUNT, wcs);
	for (i = 0; i < polled; i++)
		count += complete_up_to(peer, wcs[i].wr_id, wcs[i].status ? -EIO : 0,
					&done[count]);
	return polled < 0 ? -EIO : (int)count;
}

/*
 * Arms at the first call and sleeps at the second: the load polls in between,
 * and so finds what completed before the queue was armed.
 */
bool peer_wait(struct peer *peer)
{
	struct pollfd event = { .fd = peer->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (!peer->armed) {
		peer->armed = !ibv_req_notify_cq(peer->cq, 0);
		return peer->armed;
	}
	if (poll(&event, 1, PEER_WAIT_LIMIT_MS) <= 0)
		return false;
	if (!ibv_get_cq_event(peer->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	peer->armed = false;
	return true;
}

void peer_disconnect(struct peer *peer)
{
	if (peer->id && peer->id->qp) {
		rdma_disconnect(peer->id);
		rdma_destroy_qp(peer->id);
	}
	if (peer->mr)
		ibv_dereg_mr(peer->mr);
	if (peer->cq)
		ibv_destroy_cq(peer->cq);
	if (peer->channel)
		ibv_destroy_comp_channel(peer->channel);
	if (peer->id)
		rdma_destroy_id(peer->id);
	free(peer);
}
