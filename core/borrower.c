/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower.c - the connection of a session: what is sent, what has come, what is lost.
 *
 * A message is the answer to the call under way (borrower_call.c), or to the heartbeat, or
 * about user messages. Or it is unsolicited: the server wants a slab back, or says why it
 * ends the connection. Anything else breaks the protocol, and the connection is given up.
 */
#include "core/borrower.h"

#include "wire/reason.h"

/* A process that was stopped sees the clock jump. So before a server counts as lost it gets
 * this much more time, for messages that may be in a queue nobody has read yet. */
#define DOUBT_NS 20000000ull

#define NS_PER_MS 1000000u

void rbx_borrower_init(struct rbx_borrower *b,
		       const struct rbx_borrower_config *config)
{
	rbx_port_fill(b, 0, sizeof(*b));
	b->config = *config;
	b->why = "it was never connected";
}

/* ---- The connection -------------------------------------------------------*/

static void connection_end(struct rbx_borrower *b)
{
	b->phase = RBX_BORROWER_AWAY;
	b->bye_due = false;
	rbx_mailbox_rewind(&b->mailbox);
	rbx_borrower_call_fail(b, b->call.kind == RBX_CALL_HANDSHAKE ?
					  -EHOSTUNREACH :
					  -ENOTCONN);
}

void rbx_borrower_connected(struct rbx_borrower *b,
			    const uint8_t nonce[RBX_WIRE_NONCE_BYTES],
			    uint64_t deadline_ns)
{
	struct rbx_wire_message *hello = &b->call.message;

	RBX_ASSERT(b->phase == RBX_BORROWER_AWAY);
	RBX_ASSERT(b->call.state == RBX_CALL_IDLE);
	b->phase = RBX_BORROWER_GREETING;
	b->last_request_id = 0;
	b->late_id = 0;
	b->return_id = 0;
	b->sends_busy = 0;
	b->seals = (struct rbx_seals){ 0 };
	b->heartbeat_due = false;
	b->eviction_heard = false;
	b->lease.heartbeat_is_out = false;
	b->call.kind = RBX_CALL_HANDSHAKE;
	b->call.state = RBX_CALL_READY;
	b->call.deadline_ns = deadline_ns;
	*hello = (struct rbx_wire_message){ .type = RBX_WIRE_HELLO };
	rbx_port_copy(hello->hello.nonce, nonce, RBX_WIRE_NONCE_BYTES);
	if (b->config.secret.length_bytes) {
		hello->hello.flags |= RBX_WIRE_HAS_SECRET;
		rbx_port_copy(hello->hello.credential, b->config.credential,
			      RBX_CREDENTIAL_BYTES);
	}
	if (!b->welcome.session_id)
		return;
	hello->hello.flags |= RBX_WIRE_RESUME;
	hello->hello.session_id = b->welcome.session_id;
	hello->hello.incarnation = b->welcome.incarnation;
	hello->hello.last_epoch = b->last_loan.epoch;
}

void rbx_borrower_lost(struct rbx_borrower *b, const char *why, int err)
{
	if (b->phase == RBX_BORROWER_AWAY)
		return;
	b->lost_untold = b->phase == RBX_BORROWER_UP;
	b->why = why;
	b->why_err = err;
	b->why_ms = 0;
	connection_end(b);
}

void rbx_borrower_drop(struct rbx_borrower *b)
{
	if (b->phase != RBX_BORROWER_AWAY)
		connection_end(b);
	b->lost_untold = false;
}

void rbx_borrower_bye(struct rbx_borrower *b)
{
	b->closing = true;
	b->bye_due = b->phase == RBX_BORROWER_UP;
}

/* ---- The clock ------------------------------------------------------------*/

static void silence_notice(struct rbx_borrower *b, const char *why,
			   uint64_t for_ns, uint64_t now_ns, uint64_t *due_ns)
{
	if (!b->doubt_until_ns)
		b->doubt_until_ns = now_ns + DOUBT_NS;
	*due_ns = b->doubt_until_ns;
	if (now_ns < b->doubt_until_ns)
		return;
	rbx_borrower_lost(b, why, 0);
	b->why_ms = (uint32_t)(for_ns / NS_PER_MS);
}

static uint64_t lease_tick(struct rbx_borrower *b, uint64_t now_ns)
{
	uint64_t due_ns;

	switch (rbx_lease_next(&b->lease, now_ns, &due_ns)) {
	case RBX_LEASE_WAIT:
		b->doubt_until_ns = 0;
		break;
	case RBX_LEASE_HEARTBEAT:
		b->doubt_until_ns = 0;
		b->heartbeat_due = true;
		break;
	case RBX_LEASE_SILENT:
		silence_notice(b, "no answer", b->lease.timeout_ns, now_ns,
			       &due_ns);
		break;
	case RBX_LEASE_OVER:
		silence_notice(b, "half of the lease is over: no answer",
			       b->lease.lease_ns / 2, now_ns, &due_ns);
		break;
	}
	return due_ns;
}

/* Preparing slabs takes time, and heartbeats show that the server lives, even if the call was
 * not sent yet. Any other answer that does not come is an error. */
static void call_late(struct rbx_borrower *b)
{
	static const char why[] = "it did not answer in time";
	enum rbx_call_kind kind = b->call.kind;

	if (kind == RBX_CALL_MAP || kind == RBX_CALL_UNMAP ||
	    (kind != RBX_CALL_HANDSHAKE && b->late_id)) {
		rbx_borrower_call_leave(b, -ETIMEDOUT, why);
		return;
	}
	b->why = why;
	rbx_borrower_call_fail(b, -ETIMEDOUT);
	rbx_borrower_lost(b, why, 0);
}

uint64_t rbx_borrower_tick(struct rbx_borrower *b, uint64_t now_ns)
{
	struct rbx_call *call = &b->call;
	uint64_t due_ns = UINT64_MAX, lease_due_ns;

	if (b->phase == RBX_BORROWER_AWAY)
		return due_ns;
	/* Also while a thread computes an answer: it does not check the time again after it
	 * has sent the result. */
	if (call->state != RBX_CALL_IDLE && call->state != RBX_CALL_ENDED) {
		if (now_ns >= call->deadline_ns)
			call_late(b);
		else
			due_ns = call->deadline_ns;
	}
	if (b->phase != RBX_BORROWER_UP)
		return due_ns;
	lease_due_ns = lease_tick(b, now_ns);
	return RBX_MIN(due_ns, lease_due_ns);
}

/* ---- Sending --------------------------------------------------------------*/

static bool is_free(const struct rbx_borrower *b, uint32_t slot)
{
	return !(b->sends_busy >> slot & 1);
}

/* A user message is sent from the buffer of its number, and waits while that is in use. */
static int user_message_next(struct rbx_borrower *b,
			     struct rbx_wire_message *message)
{
	uint32_t slot;

	if (!rbx_mailbox_next(&b->mailbox, message))
		return -1;
	slot = RBX_BORROWER_USER_MESSAGE +
	       (uint32_t)(message->user_message.sequence %
			  RBX_WIRE_USER_MESSAGES_MAX);
	if (!is_free(b, slot))
		return -1;
	rbx_mailbox_sent(&b->mailbox);
	return (int)slot;
}

static int heartbeat_next(struct rbx_borrower *b, uint64_t now_ns,
			  struct rbx_wire_message *message)
{
	*message = (struct rbx_wire_message){ .type = RBX_WIRE_HEARTBEAT };
	b->heartbeat_due = false;
	b->eviction_heard = false;
	b->heartbeat_id = b->last_request_id + 1;
	b->lease.heartbeat_ns = now_ns;
	b->lease.heartbeat_is_out = true;
	return RBX_BORROWER_HEARTBEAT;
}

static int call_next(struct rbx_borrower *b, uint64_t now_ns,
		     struct rbx_wire_message *message)
{
	b->call.state = RBX_CALL_SENT;
	b->call.request_id = b->last_request_id + 1;
	b->call.message.request_id = b->call.request_id;
	*message = b->call.message;
	b->call.sent_ns = now_ns;
	return RBX_BORROWER_CALL;
}

/* Sent before a call. It waits for the answer to a late call, as a call does. */
static bool wants_return(const struct rbx_borrower *b)
{
	return b->returns_spare && !b->closing && !b->late_id &&
	       b->call.state != RBX_CALL_SENT && is_free(b, RBX_BORROWER_CALL);
}

static int return_next(struct rbx_borrower *b, struct rbx_wire_message *message)
{
	*message = (struct rbx_wire_message){ .type = RBX_WIRE_SLAB_UNMAP,
					      .epoch = b->spare.epoch,
					      .slab_id = b->spare.slab_id };
	b->return_id = b->last_request_id + 1;
	b->late_id = b->return_id;
	b->late_kind = RBX_CALL_UNMAP;
	return RBX_BORROWER_CALL;
}

/* One at a time: the next one tells the server that we have read the answer. */
static bool wants_heartbeat(const struct rbx_borrower *b)
{
	return (b->heartbeat_due || b->eviction_heard) &&
	       !b->lease.heartbeat_is_out && is_free(b, RBX_BORROWER_HEARTBEAT);
}

/* The receipt goes first: the server sends no user message before it has had one. */
static int choose(struct rbx_borrower *b, uint64_t now_ns,
		  struct rbx_wire_message *message)
{
	bool is_up = b->phase == RBX_BORROWER_UP;

	if (is_up && b->receipt_owed && !b->closing &&
	    is_free(b, RBX_BORROWER_RECEIPT)) {
		b->receipt_owed = false;
		*message = rbx_mailbox_receipt(&b->mailbox, !b->listens);
		return RBX_BORROWER_RECEIPT;
	}
	if (is_up && wants_return(b))
		return return_next(b, message);
	if (b->call.state == RBX_CALL_READY && !b->late_id &&
	    is_free(b, RBX_BORROWER_CALL))
		return call_next(b, now_ns, message);
	if (is_up && wants_heartbeat(b))
		return heartbeat_next(b, now_ns, message);
	if (b->bye_due && is_free(b, RBX_BORROWER_BYE)) {
		b->bye_due = false;
		*message = (struct rbx_wire_message){ .type = RBX_WIRE_BYE };
		return RBX_BORROWER_BYE;
	}
	return is_up && !b->closing ? user_message_next(b, message) : -1;
}

int rbx_borrower_next(struct rbx_borrower *b, uint64_t now_ns,
		      struct rbx_wire_message *message)
{
	int slot = -1;

	if (b->phase != RBX_BORROWER_AWAY)
		slot = choose(b, now_ns, message);
	if (slot < 0)
		return slot;
	RBX_ASSERT(is_free(b, (uint32_t)slot));
	message->request_id = ++b->last_request_id;
	b->sends_busy |= 1u << slot;
	return slot;
}

size_t rbx_borrower_encode(struct rbx_borrower *b, const struct rbx_wire_message *message,
			   uint8_t *buf)
{
	return rbx_seal_encode(&b->seals.out, message, buf);
}

void rbx_borrower_sent(struct rbx_borrower *b, uint32_t slot)
{
	RBX_ASSERT(slot < RBX_BORROWER_SLOTS);
	b->sends_busy &= ~(1u << slot);
}

/* ---- Messages from the server --------------------------------------------- */

/* A drain is never taken back. */
void rbx_borrower_drains_note(struct rbx_borrower *b, bool drains)
{
	b->drains_untold |= drains && !b->drains;
	if (drains)
		RBX_STORE_RELAXED(&b->drains, true);
}

static void report_note(struct rbx_borrower *b, const struct rbx_wire_message *m)
{
	if (m->type == RBX_WIRE_HEARTBEAT_REPLY)
		rbx_borrower_drains_note(b, m->heartbeat_reply.draining);
	if (m->type == RBX_WIRE_SLAB_LOAN)
		RBX_STORE_RELAXED(&b->free_bytes, m->loan.free_bytes);
	else if (m->type == RBX_WIRE_SLAB_UNMAPPED)
		RBX_STORE_RELAXED(&b->free_bytes, m->free_bytes);
	else if (m->type == RBX_WIRE_HEARTBEAT_REPLY)
		RBX_STORE_RELAXED(&b->free_bytes,
				  m->heartbeat_reply.free_bytes);
}

static void user_message_came(struct rbx_borrower *b,
			      const struct rbx_wire_user_message *user_message)
{
	if (b->closing)
		return; /* the server is told that we are gone */
	switch (rbx_mailbox_judge(&b->mailbox, user_message->sequence)) {
	case RBX_USER_MESSAGE_NEW:
		if (b->listens) {
			b->user_message = *user_message;
			b->user_message_untold = true;
			return; /* the receipt is sent once the program has had it */
		}
		rbx_mailbox_heard(&b->mailbox);
		break;
	case RBX_USER_MESSAGE_AGAIN:
		break;
	case RBX_USER_MESSAGE_AHEAD:
		rbx_borrower_lost(b, "a message of the server is missing", 0);
		return;
	}
	b->receipt_owed = true;
}

static void user_messages_taken(struct rbx_borrower *b,
				const struct rbx_wire_user_message_taken *taken)
{
	if (rbx_mailbox_taken(&b->mailbox, taken, &b->ends))
		rbx_borrower_lost(
			b, "the server confirms a message that was never sent",
			0);
	else
		b->ends_untold = b->ends.count > 0;
}

/* No other code knows of this loan. */
static void spare_return(struct rbx_borrower *b)
{
	if (!b->has_spare || b->spare.slab_id != b->eviction.slab_id ||
	    b->spare.epoch != b->eviction.epoch)
		return;
	b->has_spare = false;
	b->returns_spare = true;
}

static void said_unasked(struct rbx_borrower *b,
			 const struct rbx_wire_message *m, uint64_t now_ns)
{
	bool is_up = b->phase == RBX_BORROWER_UP;

	if (m->type == RBX_WIRE_SLAB_EVICT && is_up) {
		b->eviction = rbx_eviction_of(m, now_ns);
		b->evict_untold = true;
		b->eviction_heard = true;
		spare_return(b);
	} else if (m->type == RBX_WIRE_USER_MESSAGE && is_up) {
		user_message_came(b, &m->user_message);
	} else if (m->type == RBX_WIRE_USER_MESSAGE_TAKEN && is_up) {
		user_messages_taken(b, &m->user_message_taken);
	} else if (m->type == RBX_WIRE_ERROR) {
		rbx_borrower_lost(b, rbx_reason_sentence(m->status), 0);
	} else {
		rbx_borrower_lost(b, "an unsolicited message", 0);
	}
}

/* Returns whether it is a message of the server. If not, the connection is given up. */
static bool decode(struct rbx_borrower *b, uint8_t *bytes, size_t length_bytes,
		   struct rbx_wire_message *m)
{
	int err = length_bytes > RBX_WIRE_MESSAGE_BYTES_MAX ?
			  -EBADMSG :
			  rbx_seal_decode(&b->seals.in, bytes, length_bytes, m);

	if (err)
		rbx_borrower_lost(b, err == -EACCES ?
					     "a message was changed, repeated or lost on its way" :
					     "a malformed message", 0);
	return !err;
}

void rbx_borrower_message(struct rbx_borrower *b, uint8_t *bytes,
			  size_t length_bytes, uint64_t now_ns)
{
	struct rbx_wire_message m;

	RBX_ASSERT(!b->user_message_untold && !b->evict_untold &&
		   !b->ends_untold);
	if (b->phase == RBX_BORROWER_AWAY)
		return;
	if (!decode(b, bytes, length_bytes, &m))
		return;
	rbx_lease_heard(&b->lease, now_ns);
	report_note(b, &m);
	if (b->call.state == RBX_CALL_SENT && m.request_id &&
	    m.request_id == b->call.request_id) {
		rbx_lease_answered(&b->lease, b->call.sent_ns);
		rbx_borrower_call_answered(b, &m);
	} else if (m.type == RBX_WIRE_HEARTBEAT_REPLY &&
		   b->lease.heartbeat_is_out &&
		   m.request_id == b->heartbeat_id) {
		b->lease.heartbeat_is_out = false;
		rbx_lease_answered(&b->lease, b->lease.heartbeat_ns);
	} else if (b->late_id && m.request_id == b->late_id) {
		rbx_borrower_late_answered(b, &m);
	} else {
		said_unasked(b, &m, now_ns);
	}
}

/* ---- User messages --------------------------------------------------------*/

int rbx_borrower_user_message_put(struct rbx_borrower *b, const void *bytes,
				  uint32_t length_bytes,
				  void (*done)(int status, void *user),
				  void *user)
{
	if (b->messages_status)
		return b->messages_status;
	return rbx_mailbox_put(&b->mailbox, bytes, length_bytes, done, user);
}

int rbx_borrower_listen(struct rbx_borrower *b)
{
	if (b->listens || b->mailbox.heard_sequence)
		return -EBUSY;
	b->listens = true;
	return 0;
}

void rbx_borrower_user_message_heard(struct rbx_borrower *b)
{
	rbx_mailbox_heard(&b->mailbox);
	b->receipt_owed = true;
}

void rbx_borrower_user_messages_stop(struct rbx_borrower *b, int status)
{
	if (!b->messages_status)
		b->messages_status = status;
}

/* ---- News -----------------------------------------------------------------*/

static bool take(bool *untold)
{
	bool was = *untold;

	*untold = false;
	return was;
}

/* After close() the only news is that user messages have ended. */
enum rbx_borrower_news rbx_borrower_news(struct rbx_borrower *b)
{
	if (b->closing)
		b->evict_untold = b->drains_untold = b->user_message_untold = b->lost_untold =
			false;
	if (take(&b->evict_untold))
		return RBX_BORROWER_EVICT;
	if (take(&b->drains_untold))
		return RBX_BORROWER_DRAINS;
	if (take(&b->user_message_untold))
		return RBX_BORROWER_HEAR;
	if (take(&b->lost_untold))
		return RBX_BORROWER_LOST;
	if (take(&b->ends_untold))
		return RBX_BORROWER_ENDS;
	if (!b->messages_status || !rbx_mailbox_outstanding(&b->mailbox))
		return RBX_BORROWER_NO_NEWS;
	rbx_mailbox_end(&b->mailbox, b->messages_status, &b->ends);
	return RBX_BORROWER_ENDS;
}
