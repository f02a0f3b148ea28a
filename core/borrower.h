/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower.h - the client's half of a session: what it says to a memory server, and
 * what the server's answers mean (wire/PROTOCOL.md). lender.h is the other half.
 *
 *            connected()       CHALLENGE          WELCOME, proved
 *    AWAY --------------> GREETING -------> PROVING -------> UP
 *      ^                     |                 |              |
 *      +---------------------+-----------------+--------------+
 *        lost(), drop(), a broken rule, no answer in time, silence
 *
 * A session outlives its connections. The first handshake makes it; each one after
 * that resumes it. The borrower owns all that is said: request ids, the transcript
 * and keys of the handshake, the call under way, heartbeats and the lease, the last
 * epoch, the mailbox and its receipts. Its host connects, posts, waits and calls
 * back, and decides nothing:
 *
 *	an event (connected, message, sent, lost, tick, call, ...), then
 *	while ((slot = rbx_borrower_next(b, now, &message)) >= 0)
 *		encode the message into the buffer of the slot and post it
 *	if the phase is AWAY: end the connection
 *	wake the thread whose call may have ended
 *
 * A call to make or to empty a slab may take longer than anybody waits, while heartbeats
 * say that the server is there: then the connection stays. What is lent so late is for
 * the next who wants to borrow, so that it is not made in vain. If the server wants it back
 * before, the borrower returns it by itself, as nobody else knows of it.
 *
 * Calls. One at a time: rbx_borrower_call(), wait until rbx_borrower_call_is_over(),
 * rbx_borrower_call_end(); or without waiting, as ask.h says. A handshake is a call with
 * two pauses for thought, since an HMAC may sleep:
 *
 *	rbx_borrower_connected(...); wait until rbx_borrower_call_is_over()
 *	while (rbx_borrower_has_to_think(b)) {
 *		rbx_borrower_think(b), without the lock
 *		rbx_borrower_go_on(b, now); wait until rbx_borrower_call_is_over()
 *	}
 *	status = rbx_borrower_call_end(b, NULL);
 *
 * News. What the owner is to be told (rbx_borrower_news()) is taken by one thread,
 * the one that brings the messages, and told without the lock. It takes all news
 * before it brings the next message.
 *
 * Locks. The host holds its lock around every function here but think() and attach(),
 * which only the thread with the call runs. Nothing here allocates or blocks but
 * these two.
 *
 * Left out: connections, and when to make a new one (peer_state.h).
 */
#ifndef RBX_BORROWER_H
#define RBX_BORROWER_H

#include "core/ask.h"
#include "core/eviction.h"
#include "core/last_loan.h"
#include "core/lease.h"
#include "core/loan.h"
#include "core/mailbox.h"
#include "wire/attach.h"
#include "wire/message.h"
#include "wire/proof.h"

enum rbx_borrower_phase {
	RBX_BORROWER_AWAY, /* no connection: before the first, or lost */
	RBX_BORROWER_GREETING, /* HELLO is out: who are you? */
	RBX_BORROWER_PROVING, /* AUTH is out; the server proves itself next */
	RBX_BORROWER_UP, /* both know each other; heartbeats run */
};

/* Send buffers: each kind of message has one of its own, user messages have
 * several. */
enum rbx_borrower_slot {
	RBX_BORROWER_CALL, /* what a call asks */
	RBX_BORROWER_HEARTBEAT,
	RBX_BORROWER_BYE,
	RBX_BORROWER_RECEIPT, /* USER_MESSAGE_TAKEN, not answered */
	RBX_BORROWER_USER_MESSAGE, /* the first of them, by sequence */
	RBX_BORROWER_SLOTS =
		RBX_BORROWER_USER_MESSAGE + RBX_WIRE_USER_MESSAGES_MAX,
};

enum rbx_call_state {
	RBX_CALL_IDLE, /* none is under way */
	RBX_CALL_READY, /* waits for its send buffer */
	RBX_CALL_SENT, /* waits for its answer */
	RBX_CALL_ANSWERED, /* of a handshake: think, then go on */
	RBX_CALL_ENDED, /* its status is known */
};

struct rbx_call {
	enum rbx_call_kind kind;
	enum rbx_call_state state;
	int status; /* ENDED: 0 or -errno */
	const char *why; /* of a status: a sentence that stays */
	uint64_t request_id;
	uint64_t deadline_ns; /* later than this no answer counts */
	uint64_t sent_ns;
	struct rbx_loan loan;
	struct rbx_wire_message message; /* what is asked, then what is answered */
};

struct rbx_borrower_config {
	struct rbx_root secret; /* borrowed; of no bytes: there is none */
	uint64_t silence_ns; /* a server silent for so long counts as lost */
};

struct rbx_borrower {
	struct rbx_borrower_config config;
	enum rbx_borrower_phase phase;
	const char *why; /* it was lost: a sentence that stays */
	int why_err; /* -errno that belongs to it, or 0 */
	uint32_t why_ms; /* a time that belongs to it, or 0 */

	/* Of this connection. */
	uint64_t last_request_id;
	uint64_t heartbeat_id; /* of the last one */
	uint64_t late_id; /* of a call that nobody waits for; 0: none is out */
	enum rbx_call_kind late_kind;
	uint32_t sends_busy; /* bits of enum rbx_borrower_slot */
	bool heartbeat_due;
	bool eviction_heard; /* since the last heartbeat: the next says so (unheard.h) */
	bool bye_due;
	bool receipt_owed; /* USER_MESSAGE_TAKEN is to be sent */
	uint64_t doubt_until_ns; /* it seems lost, and then is; 0: it does not */

	/* Of the session. */
	bool closing; /* nothing is told or sent any more, but BYE */
	struct rbx_last_loan last_loan;
	uint64_t attach_serial; /* of the last data queue pair */
	struct rbx_lease lease;
	struct rbx_wire_welcome welcome; /* of the first handshake */
	uint64_t free_bytes; /* as last told; atomic, read by any thread */
	struct rbx_key session_key;
	struct rbx_key connection_key;
	struct rbx_call call;
	struct rbx_ask *asked; /* whose call it is, or NULL */
	bool has_spare; /* a loan that came too late: of the next MAP */
	bool returns_spare; /* instead: until the server has answered that */
	uint64_t return_id; /* of the request that says so; 0: not on this connection */
	struct rbx_loan spare;

	/* Of the handshake under way. */
	struct rbx_transcript transcript;
	uint64_t incarnation; /* that CHALLENGE says */
	bool is_welcomed; /* what is thought about: WELCOME, or CHALLENGE */
	int verdict; /* of the thought */
	uint8_t proof[RBX_WIRE_PROOF_BYTES]; /* the same */

	struct rbx_mailbox mailbox;
	bool listens; /* the program wants to hear user messages */
	int messages_status; /* not 0: user messages end with it */

	/* News that nobody has taken yet. */
	bool lost_untold, evict_untold, user_message_untold, ends_untold;
	struct rbx_eviction eviction;
	struct rbx_wire_user_message user_message;
	struct rbx_user_message_ends ends;
};

/* Keeps a copy of the config; what it points to stays. */
void rbx_borrower_init(struct rbx_borrower *borrower,
		       const struct rbx_borrower_config *config);

/* ---- The connection -------------------------------------------------------*/

/*
 * There is a new connection, with receives posted: begins the handshake, which ends
 * until deadline_ns. From AWAY, and no call is under way. The nonce is random.
 * The handshake ends with 0; -EACCES the secret was refused, or the server cannot
 * prove that it has it; -ESTALE it does not know the session (any more); -EBUSY;
 * -EPROTO, -EPROTONOSUPPORT; -EHOSTUNREACH it went away meanwhile; -ETIMEDOUT.
 */
void rbx_borrower_connected(struct rbx_borrower *borrower,
			    const uint8_t nonce[RBX_WIRE_NONCE_BYTES],
			    uint64_t deadline_ns);

/* Bytes have come. */
void rbx_borrower_message(struct rbx_borrower *borrower, const uint8_t *bytes,
			  size_t length_bytes, uint64_t now_ns);

/* The buffer of a slot is free again. */
void rbx_borrower_sent(struct rbx_borrower *borrower, uint32_t slot);

/* The host finds that the connection is of no use. why: a sentence that stays. */
void rbx_borrower_lost(struct rbx_borrower *borrower, const char *why, int err);

/* The host ends the connection, if there is one: nobody is told. */
void rbx_borrower_drop(struct rbx_borrower *borrower);

/*
 * Looks at the clock. now_ns was read before the last messages were taken from the
 * connection, so that one who was stopped for a while reads his mail before he counts
 * anybody as lost. Returns when it wants to be called again.
 */
uint64_t rbx_borrower_tick(struct rbx_borrower *borrower, uint64_t now_ns);

/* The message to be sent next, and the slot to send it from; -1: none. */
int rbx_borrower_next(struct rbx_borrower *borrower, uint64_t now_ns,
		      struct rbx_wire_message *message);

/* Takes leave: the server answers by ending the connection. */
void rbx_borrower_bye(struct rbx_borrower *borrower);

/* ---- Calls ----------------------------------------------------------------*/

/* Not HANDSHAKE. loan: of UNMAP and CHECK. answer_ms: how long an answer may take
 * that needs no work; what does is given more (wire/terms.h). -ENOTCONN: not UP. */
int rbx_borrower_call(struct rbx_borrower *borrower, enum rbx_call_kind kind,
		      const struct rbx_loan *loan, uint32_t answer_ms,
		      uint64_t now_ns);

static inline bool rbx_borrower_call_is_over(const struct rbx_borrower *borrower)
{
	return borrower->call.state >= RBX_CALL_ANSWERED;
}

/*
 * Ends a call that is over, and returns its status. loan: filled in by MAP, or NULL.
 * STATS leaves its answer in call.message until the next call. MAP: -ENOSPC, -EDQUOT.
 * UNMAP, CHECK: -ESTALE, -EPERM: it is not ours any more. All: -ENOTCONN, -ETIMEDOUT,
 * -EPROTO.
 */
int rbx_borrower_call_end(struct rbx_borrower *borrower, struct rbx_loan *loan);

/* Puts a question for which the session was taken: kind and loan are filled in. Its call
 * is ended by rbx_borrower_ask_end(), see ask.h. OVER at once: -ENOTCONN. */
void rbx_borrower_ask(struct rbx_borrower *borrower, struct rbx_ask *ask,
		      uint32_t answer_ms, uint64_t now_ns);
bool rbx_borrower_ask_end(struct rbx_borrower *borrower);
/* The call under way, of MAP, UNMAP or CHECK, is over with this status. Its answer may
 * still come, and no other call is sent before. */
void rbx_borrower_call_leave(struct rbx_borrower *borrower, int status,
			     const char *why);

static inline bool rbx_borrower_has_to_think(const struct rbx_borrower *borrower)
{
	return borrower->call.state == RBX_CALL_ANSWERED;
}

/* Proves, or checks a proof. Without the lock. May block. */
void rbx_borrower_think(struct rbx_borrower *borrower);
/* What was thought counts: the handshake goes on, or is over. */
void rbx_borrower_go_on(struct rbx_borrower *borrower, uint64_t now_ns);

/* What the private data of a new data queue pair says. UP was seen since the call
 * began that this is part of; without the lock. May block. */
void rbx_borrower_attach(struct rbx_borrower *borrower,
			 struct rbx_wire_attach *attach);

/* ---- User messages (mailbox.h) --------------------------------------------*/

/* -EAGAIN: full; else what user_messages_stop() said. */
int rbx_borrower_user_message_put(struct rbx_borrower *borrower,
				  const void *bytes, uint32_t length_bytes,
				  void (*done)(int status, void *user),
				  void *user);
/* The program wants to hear user messages. -EBUSY: it does already, or one has come
 * that nobody heard. */
int rbx_borrower_listen(struct rbx_borrower *borrower);
/* After the news USER_MESSAGE: the program has had it. */
void rbx_borrower_user_message_heard(struct rbx_borrower *borrower);
/* All user messages end, those put in later are refused. The first status counts. */
void rbx_borrower_user_messages_stop(struct rbx_borrower *borrower, int status);

/* ---- News -----------------------------------------------------------------*/

enum rbx_borrower_news {
	RBX_BORROWER_NO_NEWS,
	RBX_BORROWER_LOST, /* a connection that was UP, once; see why */
	RBX_BORROWER_EVICT, /* it wants a slab back: eviction */
	RBX_BORROWER_HEAR, /* a user message: tell it, then user_message_heard() */
	RBX_BORROWER_ENDS, /* some have ended: rbx_user_message_ends_tell() */
};

/* The next thing to tell, taken. What belongs to it stays until the same thread
 * takes the next or brings a message. */
enum rbx_borrower_news rbx_borrower_news(struct rbx_borrower *borrower);

/* ---- For the files of the borrower only ------------------------------------*/

void rbx_borrower_call_answered(struct rbx_borrower *borrower,
				const struct rbx_wire_message *answer);
void rbx_borrower_call_fail(struct rbx_borrower *borrower, int status);
void rbx_borrower_late_answered(struct rbx_borrower *borrower,
				const struct rbx_wire_message *answer);

#endif
