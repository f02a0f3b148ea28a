/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.c - one control connection of a session: what the borrower says goes out,
 * what comes goes to the borrower.
 *
 * Receives are always posted, so that no message of the server finds none, and the end
 * of the connection shows at once.
 *
 * Completions come in a workqueue, one at a time for a connection. One that was
 * replaced meanwhile is told from the session's own by the pointer.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "kernel/lib/session/state.h"

#define RECEIVES RBX_CLIENT_RECEIVES
#define SLOTS (RECEIVES + RBX_BORROWER_SLOTS)

/* So long after its end what came over a connection is still heard. */
#define LAST_WORDS_MS 20
#define BUFFERS_BYTES (SLOTS * RBX_WIRE_MESSAGE_BYTES_MAX)

struct slot {
	struct ib_cqe cqe;
	struct rbx_connection *connection;
};

struct rbx_connection {
	struct rbx_session *session;
	struct delayed_work ended; /* it was, and what came before has been heard */
	bool holds; /* the context, bound to the device of all below */
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
		.lkey = connection->session->ctx->pd->local_dma_lkey,
	};
}

static int receive_post(struct rbx_connection *connection, uint32_t index)
{
	struct ib_sge sge = sge_of(connection, index);
	struct ib_recv_wr wr = {
		.wr_cqe = &connection->slots[index].cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(connection->conn.id->device, sge.addr,
				      sge.length, DMA_FROM_DEVICE);
	return ib_post_recv(connection->conn.id->qp, &wr, NULL);
}

static int message_post(struct rbx_connection *connection, uint32_t index,
			const struct rbx_wire_message *message)
{
	struct ib_sge sge = sge_of(connection, index);
	struct ib_send_wr wr = {
		.wr_cqe = &connection->slots[index].cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	sge.length = (u32)rbx_wire_encode(message,
					  buffer_of(connection, index));
	ib_dma_sync_single_for_device(connection->conn.id->device, sge.addr,
				      sge.length, DMA_TO_DEVICE);
	return ib_post_send(connection->conn.id->qp, &wr, NULL);
}

void rbx_session_pump_locked(struct rbx_session *session)
{
	struct rbx_borrower *borrower = &session->borrower;
	struct rbx_wire_message message;
	int slot, err;

	lockdep_assert_held(&session->lock);
	/* Bounded: each takes a send buffer, and only completions free them. */
	while ((slot = rbx_borrower_next(borrower, ktime_get_ns(),
					 &message)) >= 0) {
		err = message_post(session->connection,
				   RECEIVES + (uint32_t)slot, &message);
		if (err)
			rbx_borrower_lost(borrower, "cannot post a message",
					  err);
	}
	if (rbx_borrower_ask_end(borrower))
		up(&session->turn);
	wake_up_all(&session->changed);
}

/* ---- What happens to it --------------------------------------------------------*/

/* It is of no use any more: who tells the owner comes soon. Any context. */
static void connection_lost(struct rbx_connection *connection, const char *why)
{
	struct rbx_session *session = connection->session;
	unsigned long flags;
	bool is_ours;

	spin_lock_irqsave(&session->lock, flags);
	is_ours = session->connection == connection;
	if (is_ours) {
		rbx_borrower_lost(&session->borrower, why, 0);
		rbx_session_pump_locked(session);
	}
	spin_unlock_irqrestore(&session->lock, flags);
	if (is_ours)
		rbx_session_tick_soon(session);
}

static void ended_work(struct work_struct *work)
{
	connection_lost(container_of(to_delayed_work(work),
				     struct rbx_connection, ended),
			"the connection was ended");
}

/* The connection manager may be quicker than the workqueue of the completions: what
 * the server said last, such as why it ends the connection, is heard first. */
static void connection_ended(struct rbx_ib_conn *conn)
{
	rbx_session_queue(&container_of(conn, struct rbx_connection, conn)->ended,
			  LAST_WORDS_MS);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct rbx_connection *connection = slot->connection;
	struct rbx_session *session = connection->session;

	if (wc->status) {
		connection_lost(connection, "the connection failed");
		return;
	}
	spin_lock_irq(&session->lock);
	if (session->connection == connection) {
		rbx_borrower_sent(&session->borrower,
				  (uint32_t)(slot - connection->slots) -
					  RECEIVES);
		rbx_session_pump_locked(session);
	}
	spin_unlock_irq(&session->lock);
}

/* The bytes have been copied out when the buffer is posted again, and it is before
 * anything is said or told. */
static void message_received(struct rbx_connection *connection, uint32_t index,
			     uint32_t length_bytes)
{
	struct rbx_session *session = connection->session;
	struct rbx_borrower *borrower = &session->borrower;

	spin_lock_irq(&session->lock);
	if (session->connection == connection) {
		rbx_borrower_message(borrower, buffer_of(connection, index),
				     length_bytes, ktime_get_ns());
		if (borrower->phase != RBX_BORROWER_AWAY &&
		    receive_post(connection, index))
			rbx_borrower_lost(borrower, "cannot post a receive", 0);
		rbx_session_pump_locked(session);
	}
	spin_unlock_irq(&session->lock);
}

static void receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct rbx_connection *connection = slot->connection;
	struct rbx_session *session = connection->session;
	uint32_t index = (uint32_t)(slot - connection->slots);

	if (wc->status) {
		connection_lost(connection, "the connection was ended");
		return;
	}
	ib_dma_sync_single_for_cpu(connection->conn.id->device,
				   sge_of(connection, index).addr,
				   RBX_WIRE_MESSAGE_BYTES_MAX, DMA_FROM_DEVICE);
	mutex_lock(&session->news_lock);
	message_received(connection, index, wc->byte_len);
	rbx_session_tell_news(session);
	mutex_unlock(&session->news_lock);
}

/* ---- Open and close --------------------------------------------------------*/

static void connection_free(struct rbx_connection *connection)
{
	struct ib_device *device = connection->session->ctx->device;

	if (connection->conn.id && connection->conn.id->qp)
		(void)rbx_ib_conn_drain(&connection->conn,
					min(rbx_session_left_ms(connection->session),
					    RBX_IB_DRAIN_MS));
	rbx_ib_conn_destroy(&connection->conn);
	cancel_delayed_work_sync(&connection->ended); /* nobody queues it now */
	if (connection->cq)
		ib_free_cq(connection->cq);
	if (connection->buffers_dma)
		ib_dma_unmap_single(device, connection->buffers_dma,
				    BUFFERS_BYTES, DMA_BIDIRECTIONAL);
	if (connection->holds)
		rbx_context_release(connection->session->ctx);
	kfree(connection->buffers);
	kfree(connection);
}

static int buffers_make(struct rbx_connection *connection)
{
	struct ib_device *device = connection->session->ctx->device;
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
	struct rbx_context *ctx = connection->session->ctx;
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
		err = receive_post(connection, i);
	return err;
}

/* All but the connecting itself. */
static int connection_prepare(struct rbx_connection *connection)
{
	struct rbx_session *session = connection->session;
	int err = rbx_ib_conn_resolve(&connection->conn, &init_net,
				      &session->address, connection_ended,
				      rbx_session_left_ms(session));

	if (err)
		return err;
	err = rbx_context_hold(session->ctx, connection->conn.id->device);
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
			struct rbx_connection **out)
{
	/* A server keeps places for clients that it knows; nobody is known yet at the
	 * first time. */
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
		.session_id = session->borrower.welcome.session_id,
	};
	struct rbx_connection *connection =
		kzalloc(sizeof(*connection), GFP_KERNEL);
	int err;

	if (!connection)
		return -ENOMEM;
	connection->session = session;
	INIT_DELAYED_WORK(&connection->ended, ended_work);
	err = connection_prepare(connection);
	if (!err)
		err = rbx_session_attach(session, &connection->conn, &attach);
	if (err)
		connection_free(connection);
	else
		*out = connection;
	return err;
}

void rbx_connection_begin(struct rbx_connection *connection,
			  const uint8_t nonce[RBX_WIRE_NONCE_BYTES],
			  uint64_t deadline_ns)
{
	struct rbx_session *session = connection->session;

	spin_lock_irq(&session->lock);
	session->connection = connection;
	rbx_borrower_connected(&session->borrower, nonce, deadline_ns);
	/* It may have ended before anybody could be told. */
	if (!RBX_LOAD_ACQUIRE(&connection->conn.is_up))
		rbx_borrower_lost(&session->borrower,
				  "the connection was ended", 0);
	rbx_session_pump_locked(session);
	spin_unlock_irq(&session->lock);
	rbx_session_tick_soon(session); /* the deadline counts */
}

void rbx_session_disconnect(struct rbx_session *session)
{
	struct rbx_connection *connection = session->connection;

	spin_lock_irq(&session->lock);
	rbx_borrower_drop(&session->borrower);
	session->connection = NULL;
	rbx_session_pump_locked(session);
	spin_unlock_irq(&session->lock);
	if (connection)
		connection_free(connection);
}
