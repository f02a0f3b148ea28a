/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.c - the control connection of a session, by rdma_cm.
 *
 * Completions are handled in a workqueue, one at a time for a connection.
 */
#include <linux/slab.h>

#include "client/session_state.h"
#include "kernel/fabric_ib/conn.h"
#include "kernel/lib/address.h"
#include "kernel/lib/context.h"
#include "kernel/lib/session/sessions.h"

#define RECEIVES RBX_CLIENT_RECEIVES
#define SLOTS (RECEIVES + RBX_BORROWER_SLOTS)

/* For so long after the end of a connection, messages that arrived before are still
 * handled. */
#define LAST_WORDS_MS 20
#define BUFFERS_BYTES (SLOTS * RBX_WIRE_MESSAGE_BYTES_MAX)

struct slot {
	struct ib_cqe cqe;
	struct rbx_connection *connection;
};

struct rbx_connection {
	struct rbx_session *session;
	struct rbx_context *ctx; /* the client's */
	uint32_t generation;
	struct delayed_work ended; /* reports the end, after the messages before it */
	bool holds; /* it holds the context, bound to the device of all below */
	struct rbx_ib_conn conn;
	struct ib_cq *cq;
	uint8_t *buffers; /* one for each slot */
	u64 buffers_dma;
	struct slot slots[SLOTS]; /* receives, then sends */
};

static uint8_t *buffer_of(const struct rbx_connection *connection,
			  uint32_t index)
{
	return connection->buffers + index * RBX_WIRE_MESSAGE_BYTES_MAX;
}

static struct ib_sge sge_of(const struct rbx_connection *connection,
			    uint32_t index)
{
	return (struct ib_sge){
		.addr = connection->buffers_dma +
			index * RBX_WIRE_MESSAGE_BYTES_MAX,
		.length = RBX_WIRE_MESSAGE_BYTES_MAX,
		.lkey = connection->ctx->pd->local_dma_lkey,
	};
}

int rbx_connection_receive(struct rbx_connection *connection, uint32_t index)
{
	struct ib_sge sge = sge_of(connection, index);
	struct ib_recv_wr wr = {
		.wr_cqe = &connection->slots[index].cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(connection->ctx->device, sge.addr,
				      sge.length, DMA_FROM_DEVICE);
	return ib_post_recv(connection->conn.id->qp, &wr, NULL);
}

uint8_t *rbx_connection_send_buffer(const struct rbx_connection *connection, uint32_t slot)
{
	return buffer_of(connection, RECEIVES + slot);
}

int rbx_connection_send(struct rbx_connection *connection, uint32_t slot,
			size_t length_bytes)
{
	uint32_t index = RECEIVES + slot;
	struct ib_sge sge = sge_of(connection, index);
	struct ib_send_wr wr = {
		.wr_cqe = &connection->slots[index].cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	sge.length = (u32)length_bytes;
	ib_dma_sync_single_for_device(connection->ctx->device, sge.addr,
				      sge.length, DMA_TO_DEVICE);
	return ib_post_send(connection->conn.id->qp, &wr, NULL);
}

/* ---- Events ----------------------------------------------------------------------*/

/* rdma_cm gives no reason for the end. */
const char *rbx_connection_cut_off(const struct rbx_connection *connection)
{
	return NULL;
}

static void connection_lost(struct rbx_connection *connection, const char *why)
{
	rbx_session_connection_lost(connection->session, connection->generation,
				    why, 0);
}

static void ended_work(struct work_struct *work)
{
	connection_lost(container_of(to_delayed_work(work),
				     struct rbx_connection, ended),
			"the connection was ended");
}

/* The connection manager may be quicker than the workqueue of the completions. The
 * server's last messages, such as the reason for the end, are handled first. */
static void connection_ended(struct rbx_ib_conn *conn)
{
	rbx_session_queue(&container_of(conn, struct rbx_connection, conn)->ended,
			  LAST_WORDS_MS);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct rbx_connection *connection = slot->connection;

	if (wc->status)
		connection_lost(connection, "the connection failed");
	else
		rbx_session_sent(connection->session, connection->generation,
				 (uint32_t)(slot - connection->slots) -
					 RECEIVES);
}

static void receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct rbx_connection *connection = slot->connection;
	uint32_t index = (uint32_t)(slot - connection->slots);

	if (wc->status) {
		connection_lost(connection, "the connection was ended");
		return;
	}
	/* The id may be gone by now, if the end of its drain was not waited for. The
	 * device is held until the queue is freed. */
	ib_dma_sync_single_for_cpu(connection->ctx->device,
				   sge_of(connection, index).addr,
				   RBX_WIRE_MESSAGE_BYTES_MAX, DMA_FROM_DEVICE);
	rbx_session_received(connection->session, connection->generation, index,
			     buffer_of(connection, index), wc->byte_len);
}

/* ---- Addresses as text -----------------------------------------------------------*/

/* By the device that leads there, which may be another one than that of `sessions`. */
int rbx_session_open_name(struct rbx_sessions *sessions, const char *name,
			  const struct rbx_session_events *events,
			  struct rbx_session **session)
{
	struct sockaddr_storage at;
	struct rbx_address address;
	struct rbx_client *client;
	int err;

	if (rbx_address_parse(name, &at))
		return rbx_error(-EINVAL, "\"%s\" is not of the form 10.0.0.1:7471", name);
	rbx_address_name(&address, &at);
	err = rbx_client_of_address(rbx_client_of_sessions(sessions)->first, &at, &client);
	return err ? err : rbx_session_open(&client->sessions, &address, events, session);
}

/* ---- Open and close --------------------------------------------------------*/

void rbx_connection_free(struct rbx_connection *connection)
{
	struct ib_device *device = connection->ctx->device;

	if (connection->conn.id && connection->conn.id->qp)
		(void)rbx_ib_conn_drain(&connection->conn,
					min(rbx_session_left_ms(connection->session),
					    RBX_IB_DRAIN_MS));
	rbx_ib_conn_destroy(&connection->conn);
	cancel_delayed_work_sync(&connection->ended); /* nothing queues it any more */
	if (connection->cq)
		ib_free_cq(connection->cq);
	if (connection->buffers_dma)
		ib_dma_unmap_single(device, connection->buffers_dma,
				    BUFFERS_BYTES, DMA_BIDIRECTIONAL);
	if (connection->holds)
		rbx_context_release(connection->ctx);
	kfree(connection->buffers);
	kfree(connection);
}

static int buffers_make(struct rbx_connection *connection)
{
	struct ib_device *device = connection->ctx->device;
	u64 dma;

	connection->buffers = kzalloc(BUFFERS_BYTES, GFP_KERNEL);
	if (!connection->buffers)
		return -ENOMEM;
	dma = ib_dma_map_single(device, connection->buffers, BUFFERS_BYTES,
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, dma))
		return -ENOMEM;
	connection->buffers_dma = dma;
	return 0;
}

static int queues_make(struct rbx_connection *connection)
{
	struct rbx_context *ctx = connection->ctx;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One more on either side, for rbx_ib_conn_drain(). */
		.cap = {
			.max_send_wr = RBX_BORROWER_SLOTS + 1,
			.max_recv_wr = RECEIVES + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	connection->cq = ib_alloc_cq(ctx->device, connection, SLOTS + 2, 0,
				     IB_POLL_WORKQUEUE);
	if (IS_ERR(connection->cq)) {
		int err = PTR_ERR(connection->cq);

		connection->cq = NULL;
		return err;
	}
	init.send_cq = connection->cq;
	init.recv_cq = connection->cq;
	return rdma_create_qp(connection->conn.id, ctx->pd, &init);
}

static int receives_post(struct rbx_connection *connection)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < SLOTS; i++) {
		connection->slots[i].connection = connection;
		connection->slots[i].cqe.done =
			i < RECEIVES ? receive_done : send_done;
	}
	for (i = 0; i < RECEIVES && !err; i++)
		err = rbx_connection_receive(connection, i);
	return err;
}

/* Prepares all but the connecting itself. */
static int connection_prepare(struct rbx_connection *connection)
{
	struct rbx_session *session = connection->session;
	int err = rbx_ib_conn_resolve(&connection->conn, &init_net,
				      &session->address.at, connection_ended,
				      rbx_session_left_ms(session));

	if (err)
		return err;
	err = rbx_context_hold(connection->ctx, connection->conn.id->device);
	connection->holds = !err;
	if (!err)
		err = buffers_make(connection);
	if (!err)
		err = queues_make(connection);
	if (!err)
		err = receives_post(connection);
	return err;
}

int rbx_connection_make(struct rbx_session *session,
			const struct rbx_wire_attach *attach,
			struct rbx_connection **out,
			char why[RBX_SESSION_WHY_BYTES])
{
	struct rbx_connection *connection =
		kzalloc(sizeof(*connection), GFP_KERNEL);
	int err;

	if (!connection)
		return -ENOMEM;
	connection->session = session;
	connection->ctx = rbx_client_of_sessions(session->sessions)->ctx;
	connection->generation = session->generation;
	INIT_DELAYED_WORK(&connection->ended, ended_work);
	err = connection_prepare(connection);
	if (!err)
		err = rbx_session_connect(session, &connection->conn, attach,
					  why);
	if (err)
		rbx_connection_free(connection);
	else
		*out = connection;
	return err;
}
