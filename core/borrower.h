/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower.h - the client's half of a session: what it sends to a memory server, and what the
 * server's answers mean (wire/PROTOCOL.md). lender.h is the other half.
 *
 *            connected()       CHALLENGE          WELCOME, proved
 *    AWAY --------------> GREETING -------> PROVING -------> UP
 *      ^                     |                 |              |
 *      +---------------------+-----------------+--------------+
 *        lost(), drop(), a broken rule, no answer in time, silence
 *
 * A session outlives its connections. The first handshake creates it; each later one resumes
 * it. The borrower owns all state of the protocol: request ids, the transcript and keys of
 * the handshake, the call under way, heartbeats and the lease, the last epoch, the mailbox
 * and its receipts. Its host connects, posts, waits and calls back, and decides nothing:
 *
 *	an event (connected, message, sent, lost, tick, call, ...), then
 *	while ((slot = rbx_borrower_next(b, now, &message)) >= 0)
 *		rbx_borrower_encode() the message into the buffer of the slot, and post it
 *	if the phase is AWAY: end the connection
 *	wake the thread whose call may have ended
 *
 * A call to prepare or to empty a slab may take longer than any caller waits. If heartbeats
 * show that the server lives, the connection stays. A loan that comes so late is kept for the
 * next MAP, so that its work is not wasted. If the server wants it back before that, the
 * borrower returns it by itself, because no other code knows of it.
 *
 * Calls. One at a time: rbx_borrower_call(), wait until rbx_borrower_call_is_over(),
 * rbx_borrower_call_end(). Without waiting: see ask.h. A handshake is a call that pauses
 * twice to compute an HMAC, which may sleep:
 *
 *	rbx_borrower_connected(...); wait until rbx_borrower_call_is_over()
 *	while (rbx_borrower_has_to_think(b)) {
 *		rbx_borrower_think(b), without the lock
 *		rbx_borrower_go_on(b, now); wait until rbx_borrower_call_is_over()
 *	}
 *	status = rbx_borrower_call_end(b, NULL);
 *
 * News. One thread, the one that passes in the messages, takes what the owner is to be told
 * (rbx_borrower_news()) and tells it without the lock. It takes all news before it passes in
 * the next message.
 *
 * Locks. The host holds its lock around every function here except think() and attach(),
 * which are called only by the thread that has the call. Only these two may allocate or
 * block.
 *
 * Not here: connections, and when to make a new one (peer_state.h).
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
#include "wire/seal.h"

enum rbx_borrower_phase {
	RBX_BORROWER_AWAY, /* no connection: before the first, or lost */
	RBX_BORROWER_GREETING, /* HELLO is sent; the server answers with CHALLENGE */
	RBX_BORROWER_PROVING, /* AUTH is sent; the server proves itself next */
	RBX_BORROWER_UP, /* both sides are proved; heartbeats run */
};

/* Send buffers: one for each kind of message, and several for user messages. */
enum rbx_borrower_slot {
	RBX_BORROWER_CALL, /* the request of a call */
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
	const char *why; /* of a status: a string that is never freed */
	uint16_t talk_type; /* of the request, of TALK */
	uint64_t request_id;
	uint64_t deadline_ns; /* an answer that comes later does not count */
	uint64_t sent_ns;
	uint64_t lent_bytes; /* of MAP: what is asked for (wire/terms.h) */
	struct rbx_loan loan;
	struct rbx_wire_message message; /* the request, then its answer */
};

struct rbx_borrower_config {
	struct rbx_root secret; /* borrowed until it is UP; empty: there is no secret */
	char credential[RBX_CREDENTIAL_BYTES]; /* whose secret it is; empty: it has no name */
	uint64_t silence_ns; /* after such a silence the server counts as lost */
};

struct rbx_borrower {
	struct rbx_borrower_config config;
	enum rbx_borrower_phase phase;
	const char *why; /* why it was lost: a string that is never freed */
	int why_err; /* -errno that goes with it, or 0 */
	uint32_t why_ms; /* a time that goes with it, or 0 */

	/* Of this connection. */
	uint64_t last_request_id;
	uint64_t heartbeat_id; /* of the last one */
	uint64_t late_id; /* of a call that timed out; 0: none is out */
	enum rbx_call_kind late_kind;
	bool late_has_label; /* a MAP for a slab of a named volume */
	uint64_t late_lent_bytes; /* of a MAP: what was asked for */
	uint32_t sends_busy; /* bits of enum rbx_borrower_slot */
	bool heartbeat_due;
	bool eviction_heard; /* since the last heartbeat; the next one says so (unheard.h) */
	bool bye_due;
	bool receipt_owed; /* USER_MESSAGE_TAKEN is to be sent */
	struct rbx_seals seals;
	uint64_t doubt_until_ns; /* until then a loss is only suspected; 0: none is */

	/* Of the session. */
	bool closing; /* nothing but BYE is sent or told any more */
	struct rbx_last_loan last_loan;
	uint64_t attach_serial; /* of the last data queue pair */
	struct rbx_lease lease;
	struct rbx_wire_welcome welcome; /* of the first handshake */
	/* As the server last said; atomic, read by any thread. */
	uint64_t free_bytes;
	bool drains; /* it lends nothing more, and ends soon */
	struct rbx_key session_key;
	struct rbx_key connection_key;
	struct rbx_call call;
	struct rbx_ask *asked; /* the ask that the call belongs to, or NULL */
	bool has_spare; /* a loan that came too late, for the next MAP */
	bool returns_spare; /* it is being returned instead, until the server has answered */
	uint64_t return_id; /* of the request that returns it; 0: not on this connection */
	struct rbx_loan spare;

	/* Of the handshake under way. */
	struct rbx_transcript transcript;
	uint64_t incarnation; /* the server's, from CHALLENGE */
	bool is_welcomed; /* whether WELCOME or CHALLENGE is being checked */
	int verdict; /* the result of think() */
	struct rbx_seals new_seals; /* the same */
	uint8_t proof[RBX_WIRE_PROOF_BYTES]; /* the same */

	struct rbx_mailbox mailbox;
	bool listens; /* the program wants to receive user messages */
	int messages_status; /* not 0: user messages end with it */

	/* News that were not taken yet. */
	bool lost_untold, evict_untold, drains_untold, user_message_untold, ends_untold;
	struct rbx_eviction eviction;
	struct rbx_wire_user_message user_message;
	struct rbx_user_message_ends ends;
};

/* Copies the config; what it points to must outlive the borrower. */
void rbx_borrower_init(struct rbx_borrower *borrower,
		       const struct rbx_borrower_config *config);

/* ---- The connection -------------------------------------------------------*/

/*
 * A new connection with posted receives is there: begins the handshake, which ends by
 * deadline_ns. The phase is AWAY and no call is under way. The nonce is random. The handshake
 * ends with 0; -EACCES the secret was refused, or the server cannot prove that it has it;
 * -ESTALE it does not know the session (any more); -EBUSY; -EPROTO, -EPROTONOSUPPORT;
 * -EHOSTUNREACH the connection was lost meanwhile; -ETIMEDOUT.
 */
void rbx_borrower_connected(struct rbx_borrower *borrower,
			    const uint8_t nonce[RBX_WIRE_NONCE_BYTES],
			    uint64_t deadline_ns);

/* A message has come. Its bytes are changed. */
void rbx_borrower_message(struct rbx_borrower *borrower, uint8_t *bytes,
			  size_t length_bytes, uint64_t now_ns);

/* The buffer of a slot is free again. */
void rbx_borrower_sent(struct rbx_borrower *borrower, uint32_t slot);

/* The host finds that the connection is of no use. why: a string that is never freed. */
void rbx_borrower_lost(struct rbx_borrower *borrower, const char *why, int err);

/* The host ends the connection, if there is one. No news come of it. */
void rbx_borrower_drop(struct rbx_borrower *borrower);

/*
 * Checks what is due. now_ns was read before the last messages were taken from the
 * connection: a process that was stopped for a while reads its messages before it counts a
 * server as lost. Returns when it wants to be called again.
 */
uint64_t rbx_borrower_tick(struct rbx_borrower *borrower, uint64_t now_ns);

/* The message to be sent next, and the slot to send it from; -1: none. */
int rbx_borrower_next(struct rbx_borrower *borrower, uint64_t now_ns,
		      struct rbx_wire_message *message);
/* Makes its bytes, before the next one is asked for; buf has room for
 * RBX_WIRE_MESSAGE_BYTES_MAX. Returns the length in bytes. */
size_t rbx_borrower_encode(struct rbx_borrower *borrower,
			   const struct rbx_wire_message *message, uint8_t *buf);

/* Says BYE: the server answers by ending the connection. */
void rbx_borrower_bye(struct rbx_borrower *borrower);

/* ---- Calls ----------------------------------------------------------------*/

/* kind: MAP, UNMAP, CHECK or STATS. loan: for UNMAP and CHECK. answer_ms: how long an answer
 * may take that needs no work of the server; others get more time (wire/terms.h). -ENOTCONN:
 * not UP. */
int rbx_borrower_call(struct rbx_borrower *borrower, enum rbx_call_kind kind,
		      const struct rbx_loan *loan, uint32_t answer_ms,
		      uint64_t now_ns);

/* The same for a MAP that is for a slab of a named volume. */
int rbx_borrower_call_map(struct rbx_borrower *borrower, const struct rbx_wire_map *map,
			  uint32_t answer_ms, uint64_t now_ns);
/* The same for TALK: any other request. */
int rbx_borrower_call_talk(struct rbx_borrower *borrower,
			   const struct rbx_wire_message *request, uint32_t answer_ms,
			   uint64_t now_ns);

static inline bool rbx_borrower_call_is_over(const struct rbx_borrower *borrower)
{
	return borrower->call.state >= RBX_CALL_ANSWERED;
}

/*
 * Ends a call that is over, and returns its status. loan: filled in by MAP, or NULL. STATS and
 * TALK leave their answer in call.message until the next call. MAP: -ENOSPC, -EDQUOT. UNMAP, CHECK:
 * -ESTALE, -EPERM: the loan is not ours any more. All: -ENOTCONN, -ETIMEDOUT, -EPROTO.
 */
int rbx_borrower_call_end(struct rbx_borrower *borrower, struct rbx_loan *loan);

/* Sends an ask for which the session was taken; its kind and loan are filled in. Its call is
 * ended by rbx_borrower_ask_end(), see ask.h. It is OVER at once if not UP: -ENOTCONN. */
void rbx_borrower_ask(struct rbx_borrower *borrower, struct rbx_ask *ask,
		      uint32_t answer_ms, uint64_t now_ns);
bool rbx_borrower_ask_end(struct rbx_borrower *borrower);
/* Gives up waiting for the call under way (MAP, UNMAP or CHECK): it is over with this status.
 * Its answer may still come, and no other call is sent before. */
void rbx_borrower_call_leave(struct rbx_borrower *borrower, int status,
			     const char *why);

static inline bool rbx_borrower_has_to_think(const struct rbx_borrower *borrower)
{
	return borrower->call.state == RBX_CALL_ANSWERED;
}

/* Computes a proof, or checks one. Without the lock. May block. */
void rbx_borrower_think(struct rbx_borrower *borrower);
/* Takes the result of think(): the handshake goes on, or is over. */
void rbx_borrower_go_on(struct rbx_borrower *borrower, uint64_t now_ns);

/* Makes the private data of a new data queue pair. The session was UP at some time since the
 * call began that this belongs to. Without the lock. May block. */
void rbx_borrower_attach(struct rbx_borrower *borrower,
			 struct rbx_wire_attach *attach);

/* ---- User messages (mailbox.h) --------------------------------------------*/

/* -EAGAIN: full; else the status given to user_messages_stop(). */
int rbx_borrower_user_message_put(struct rbx_borrower *borrower,
				  const void *bytes, uint32_t length_bytes,
				  void (*done)(int status, void *user),
				  void *user);
/* The program wants to receive user messages. -EBUSY: it does already, or one came that
 * nobody took. */
int rbx_borrower_listen(struct rbx_borrower *borrower);
/* After the news HEAR: the program has taken the message. */
void rbx_borrower_user_message_heard(struct rbx_borrower *borrower);
/* All user messages end, and later ones are refused. The first status counts. */
void rbx_borrower_user_messages_stop(struct rbx_borrower *borrower, int status);

/* ---- News -----------------------------------------------------------------*/

enum rbx_borrower_news {
	RBX_BORROWER_NO_NEWS,
	RBX_BORROWER_LOST, /* a connection that was UP is lost, told once; see why */
	RBX_BORROWER_EVICT, /* the server wants a slab back: eviction */
	RBX_BORROWER_DRAINS, /* it lends nothing more; told once in a session */
	RBX_BORROWER_HEAR, /* a user message: tell it, then user_message_heard() */
	RBX_BORROWER_ENDS, /* some have ended: rbx_user_message_ends_tell() */
};

/* Takes the next news. What belongs to it stays until the same thread takes the next or
 * passes in a message. */
enum rbx_borrower_news rbx_borrower_news(struct rbx_borrower *borrower);

/* ---- For the files of the borrower only ------------------------------------*/

void rbx_borrower_call_answered(struct rbx_borrower *borrower,
				const struct rbx_wire_message *answer);
void rbx_borrower_call_fail(struct rbx_borrower *borrower, int status);
void rbx_borrower_drains_note(struct rbx_borrower *borrower, bool drains);
void rbx_borrower_late_answered(struct rbx_borrower *borrower,
				const struct rbx_wire_message *answer);

#endif
