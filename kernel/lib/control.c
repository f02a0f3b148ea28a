/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * control.c - one control connection of a session.
 *
 * Receives are always posted, so that no message of the server finds none. A
 * message is either the answer to the call under way, or to the heartbeat, or
 * something the server says unasked: that it wants a slab back, a letter, or why
 * it ends the connection. Whatever else comes is not of this protocol, and the
 * connection is given up.
 *
 * Completions come in a workqueue, one at a time for a connection. One that was
 * replaced meanwhile is told from the session's own by the pointer.
 */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "kernel/lib/context.h"
#include "kernel/lib/session.h"
#include "wire/attach.h"
#include "wire/reason.h"

/*
 * Messages that a server may send before we have handled any: 8 that nobody asked
 * for and 4 letters that it knows to have arrived, and answers to a call and a
 * heartbeat (wire/PROTOCOL.md, "Connections").
 */
#define RECEIVES 14u
RBX_STATIC_ASSERT(RECEIVES >= 8 + RBX_WIRE_LETTERS_MAX + 2,
		  "a receive for each message");
#define SLOTS (RECEIVES + RBX_SESSION_SENDS)
#define BUFFERS_BYTES (SLOTS * RBX_WIRE_MESSAGE_BYTES_MAX)

struct slot {
	struct ib_cqe cqe;
	struct rbx_control *control;
	bool is_busy; /* a send under way; the session's lock */
};

struct rbx_control {
	struct rbx_session *session;
	struct rbx_ib_conn conn;
	struct ib_cq *cq;
	uint8_t *buffers; /* one for each slot */
	u64 buffers_dma;
	struct slot slots[SLOTS]; /* receives, then sends */
};

static uint8_t *buffer_of(const struct rbx_control *control, uint32_t index)
{
	return control->buffers + index * RBX_WIRE_MESSAGE_BYTES_MAX;
}

static struct ib_sge sge_of(const struct rbx_control *control, uint32_t index)
{
	return (struct ib_sge){
		.addr = control->buffers_dma +
			index * RBX_WIRE_MESSAGE_BYTES_MAX,
		.length = RBX_WIRE_MESSAGE_BYTES_MAX,
		.lkey = control->session->ctx->pd->local_dma_lkey,
	};
}

static int receive_post(struct rbx_control *control, uint32_t index)
{
	struct ib_sge sge = sge_of(control, index);
	struct ib_recv_wr wr = {
		.wr_cqe = &control->slots[index].cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(control->conn.id->device, sge.addr,
				      sge.length, DMA_FROM_DEVICE);
	return ib_post_recv(control->conn.id->qp, &wr, NULL);
}

/* ---- Its loss -----------------------------------------------------------------*/

/* Returns whether lost() is to be called, without the lock. */
static bool lose_locked(struct rbx_session *session)
{
	bool tell = session->status == RBX_SESSION_UP && !session->closing;

	session->status = RBX_SESSION_DOWN;
	wake_up_all(&session->changed);
	return tell;
}

void rbx_session_lose(struct rbx_session *session, const char *reason)
{
	unsigned long flags;
	bool tell;

	spin_lock_irqsave(&session->lock, flags);
	tell = lose_locked(session);
	spin_unlock_irqrestore(&session->lock, flags);
	if (tell)
		session->events.lost(session->events.user, reason);
}

static void control_lost(struct rbx_control *control, const char *reason)
{
	if (READ_ONCE(control->session->control) == control)
		rbx_session_lose(control->session, reason);
}

static void control_ended(struct rbx_ib_conn *conn)
{
	control_lost(container_of(conn, struct rbx_control, conn),
		     "the control connection has ended");
}

/* ---- Sending ---------------------------------------------------------------*/

static struct slot *send_slot(const struct rbx_session *session,
			      enum rbx_session_send slot)
{
	return &session->control->slots[RECEIVES + slot];
}

bool rbx_control_slot_is_free(const struct rbx_session *session,
			      enum rbx_session_send slot)
{
	return !send_slot(session, slot)->is_busy;
}

void rbx_control_send_locked(struct rbx_session *session,
			     enum rbx_session_send slot,
			     struct rbx_wire_message *message)
{
	struct rbx_control *control = session->control;
	struct ib_sge sge = sge_of(control, RECEIVES + slot);
	struct ib_send_wr wr = {
		.wr_cqe = &send_slot(session, slot)->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	message->request_id = ++session->last_request_id;
	sge.length = (u32)rbx_wire_encode(message,
					  buffer_of(control, RECEIVES + slot));
	ib_dma_sync_single_for_device(control->conn.id->device, sge.addr,
				      sge.length, DMA_TO_DEVICE);
	/* One that cannot be posted is not answered, which ends the session. */
	send_slot(session, slot)->is_busy =
		!ib_post_send(control->conn.id->qp, &wr, NULL);
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct rbx_session *session = slot->control->session;

	spin_lock_irq(&session->lock);
	slot->is_busy = false;
	if (session->control == slot->control)
		rbx_session_letters_send_locked(session);
	wake_up_all(&session->changed);
	spin_unlock_irq(&session->lock);
	if (wc->status)
		control_lost(slot->control, "the control connection failed");
}

int rbx_session_call(struct rbx_session *session,
		     struct rbx_wire_message *message, uint16_t expected,
		     struct rbx_wire_message *answer)
{
	unsigned long left = msecs_to_jiffies(session->answer_ms) + 1;
	int err = 0;

	/* Its last message may have been answered before it was seen to be sent. */
	left = wait_event_timeout(
		session->changed,
		READ_ONCE(session->status) == RBX_SESSION_DOWN ||
			rbx_control_slot_is_free(session,
						 RBX_SESSION_SEND_CALL),
		left);
	spin_lock_irq(&session->lock);
	if (session->status == RBX_SESSION_DOWN) {
		spin_unlock_irq(&session->lock);
		return -ENOTCONN;
	}
	if (left) {
		session->call_answered = false;
		session->call_sent_ns = ktime_get_ns();
		session->call_id = session->last_request_id + 1;
		rbx_control_send_locked(session, RBX_SESSION_SEND_CALL,
					message);
	}
	spin_unlock_irq(&session->lock);
	if (left)
		left = wait_event_timeout(
			session->changed,
			READ_ONCE(session->call_answered) ||
				READ_ONCE(session->status) == RBX_SESSION_DOWN,
			left);
	spin_lock_irq(&session->lock);
	session->call_id = 0;
	if (!left)
		err = -ETIMEDOUT;
	else if (!session->call_answered)
		err = -ENOTCONN;
	else
		*answer = session->answer;
	spin_unlock_irq(&session->lock);
	if (err == -ETIMEDOUT)
		rbx_session_lose(session, "a call was not answered");
	if (err || answer->type == expected)
		return err;
	if (answer->type == RBX_WIRE_ERROR) {
		pr_notice_ratelimited("rdmabox: %s refused: %s\n",
				      session->name,
				      rbx_reason_sentence(answer->status));
		return rbx_reason_errno(answer->status);
	}
	rbx_session_lose(session, "an answer of the wrong kind");
	return -EPROTO;
}

/* ---- Receiving ------------------------------------------------------------*/

static void note_free_bytes(struct rbx_session *session,
			    const struct rbx_wire_message *message)
{
	switch (message->type) {
	case RBX_WIRE_SLAB_GRANT:
		WRITE_ONCE(session->free_bytes, message->grant.free_bytes);
		break;
	case RBX_WIRE_SLAB_UNMAPPED:
		WRITE_ONCE(session->free_bytes, message->free_bytes);
		break;
	case RBX_WIRE_HEARTBEAT_REPLY:
		WRITE_ONCE(session->free_bytes,
			   message->heartbeat_reply.free_bytes);
		break;
	}
}

static bool is_letter(const struct rbx_wire_message *message)
{
	return message->type == RBX_WIRE_LETTER ||
	       message->type == RBX_WIRE_LETTER_TAKEN;
}

/* What is to be told without the lock. */
struct news {
	uint64_t evict; /* a slab that is wanted back, or 0 */
	bool beat;
};

/* Returns why the connection is to be given up, or NULL. */
static const char *handle_locked(struct rbx_session *session,
				 const struct rbx_wire_message *message,
				 struct news *news)
{
	bool is_up = session->status == RBX_SESSION_UP;

	rbx_lease_heard(&session->lease, ktime_get_ns());
	note_free_bytes(session, message);
	if (message->request_id && message->request_id == session->call_id &&
	    !session->call_answered) {
		session->answer = *message;
		rbx_lease_answered(&session->lease, session->call_sent_ns);
		WRITE_ONCE(session->call_answered, true);
		wake_up_all(&session->changed);
		return NULL;
	}
	if (message->type == RBX_WIRE_HEARTBEAT_REPLY &&
	    session->lease.heartbeat_is_out &&
	    message->request_id == session->heartbeat_id) {
		session->lease.heartbeat_is_out = false;
		rbx_lease_answered(&session->lease,
				   session->lease.heartbeat_ns);
		news->beat = is_up;
		return NULL;
	}
	if (message->type == RBX_WIRE_SLAB_EVICT && is_up) {
		news->evict = message->evict.slab_id;
		return NULL;
	}
	if (is_letter(message) && is_up)
		return NULL; /* handled without the lock */
	if (message->type == RBX_WIRE_ERROR)
		return rbx_reason_sentence(message->status);
	return "a message that nobody asked for";
}

static void message_received(struct rbx_control *control,
			     const struct rbx_wire_message *message)
{
	struct rbx_session *session = control->session;
	struct news news = { 0 };
	const char *fault = NULL;
	bool is_ours;

	spin_lock_irq(&session->lock);
	is_ours = session->control == control &&
		  session->status != RBX_SESSION_DOWN;
	if (is_ours)
		fault = handle_locked(session, message, &news);
	is_ours &= !session->closing;
	spin_unlock_irq(&session->lock);
	if (fault)
		rbx_session_lose(session, fault);
	else if (news.evict && is_ours)
		session->events.evict(session->events.user, news.evict);
	else if (news.beat && is_ours)
		session->events.beat(session->events.user);
	else if (is_letter(message) && is_ours)
		rbx_session_letter(session, message);
}

static void receive_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct rbx_control *control = slot->control;
	uint32_t index = (uint32_t)(slot - control->slots);
	struct rbx_wire_message message;

	if (wc->status) {
		control_lost(control, "the control connection was ended");
		return;
	}
	ib_dma_sync_single_for_cpu(control->conn.id->device,
				   sge_of(control, index).addr,
				   RBX_WIRE_MESSAGE_BYTES_MAX,
				   DMA_FROM_DEVICE);
	/* The bytes are copied out: the buffer is free before they count. */
	if (rbx_wire_decode(buffer_of(control, index),
			    min(wc->byte_len, RBX_WIRE_MESSAGE_BYTES_MAX),
			    &message))
		control_lost(control, "a message that is no message");
	else if (receive_post(control, index))
		control_lost(control, "cannot post a receive");
	else
		message_received(control, &message);
}

/* ---- Open and close --------------------------------------------------------*/

static void control_free(struct rbx_control *control)
{
	struct ib_device *device = control->session->ctx->device;

	rbx_ib_conn_destroy(&control->conn);
	if (control->cq)
		ib_free_cq(control->cq);
	if (control->buffers_dma)
		ib_dma_unmap_single(device, control->buffers_dma,
				    BUFFERS_BYTES, DMA_BIDIRECTIONAL);
	kfree(control->buffers);
	kfree(control);
}

static int buffers_make(struct rbx_control *control)
{
	struct ib_device *device = control->session->ctx->device;
	u64 dma;

	control->buffers = kzalloc(BUFFERS_BYTES, GFP_KERNEL);
	if (!control->buffers)
		return -ENOMEM;
	dma = ib_dma_map_single(device, control->buffers, BUFFERS_BYTES,
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, dma))
		return -ENOMEM;
	control->buffers_dma = dma;
	return 0;
}

static int queues_make(struct rbx_control *control)
{
	struct rbx_context *ctx = control->session->ctx;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One more on either side, for ib_drain_qp(). */
		.cap = {
			.max_send_wr = RBX_SESSION_SENDS + 1,
			.max_recv_wr = RECEIVES + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	control->cq = ib_alloc_cq(ctx->device, control, SLOTS + 2, 0,
				  IB_POLL_WORKQUEUE);
	if (IS_ERR(control->cq)) {
		int err = PTR_ERR(control->cq);

		control->cq = NULL;
		return err;
	}
	init.send_cq = control->cq;
	init.recv_cq = control->cq;
	return rdma_create_qp(control->conn.id, ctx->pd, &init);
}

static int receives_post(struct rbx_control *control)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < SLOTS; i++) {
		control->slots[i].control = control;
		control->slots[i].cqe.done = i < RECEIVES ? receive_done :
							    send_done;
	}
	for (i = 0; i < RECEIVES && !err; i++)
		err = receive_post(control, i);
	return err;
}

int rbx_control_open(struct rbx_session *session)
{
	const struct rbx_wire_attach attach = {
		.kind = RBX_WIRE_ATTACH_CONTROL,
	};
	struct rbx_control *control = kzalloc(sizeof(*control), GFP_KERNEL);
	int err;

	if (!control)
		return -ENOMEM;
	control->session = session;
	err = rbx_ib_conn_resolve(&control->conn, &init_net, &session->address,
				  control_ended, session->answer_ms);
	if (!err && control->conn.id->device != session->ctx->device)
		err = -EXDEV;
	if (!err)
		err = buffers_make(control);
	if (!err)
		err = queues_make(control);
	if (!err)
		err = receives_post(control);
	if (!err)
		err = rbx_session_attach(session, &control->conn, &attach);
	if (err) {
		control_free(control);
		return err;
	}
	spin_lock_irq(&session->lock);
	session->control = control;
	session->status = RBX_SESSION_HANDSHAKE;
	session->last_request_id = 0;
	rbx_mailbox_rewind(&session->mailbox);
	session->lease.heartbeat_is_out = false;
	/* It may have ended before anybody could be told. */
	if (!RBX_LOAD_ACQUIRE(&control->conn.is_up))
		session->status = RBX_SESSION_DOWN;
	spin_unlock_irq(&session->lock);
	return 0;
}

void rbx_control_close(struct rbx_session *session)
{
	struct rbx_control *control = session->control;

	spin_lock_irq(&session->lock);
	(void)lose_locked(session);
	session->control = NULL;
	spin_unlock_irq(&session->lock);
	if (control)
		control_free(control);
}
