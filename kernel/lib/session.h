/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session.h - the client's control connection to one memory server: the kernel's
 * half of wire/PROTOCOL.md.
 *
 *	open -> [map, unmap, connect_qp]* -> close
 *	          |                    ^
 *	          +-> lost() -> resume-+   0: all grants are good, new queue pairs
 *	                          |        -ESTALE: everything is gone, close
 *	                          +------- other: try again, until you give up
 *
 * A session outlives its connections, each of which is a struct rbx_control with
 * queues of its own. lost() is told once for each connection that was lost; from
 * then on no data may be sent until resume() has succeeded. What is told comes
 * from a workqueue, one at a time, and must not block; every other call blocks,
 * and calls wait for each other.
 *
 *	session.c    the calls of this page
 *	handshake.c  connects and authenticates, for open and resume
 *	control.c    one control connection: sends, receives, its loss
 *	letters.c    what the programs on both sides say to each other
 */
#ifndef RBX_KERNEL_SESSION_H
#define RBX_KERNEL_SESSION_H

#include <linux/inet.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/lease.h"
#include "core/mailbox.h"
#include "core/slab.h"
#include "kernel/fabric_ib/conn.h"
#include "wire/message.h"
#include "wire/proof.h"

struct rbx_client;
struct rbx_peer;
struct rbx_context;
struct rbx_control;

/* Each kind of message has a send buffer of its own. */
enum rbx_session_send {
	RBX_SESSION_SEND_CALL, /* what a blocking call asks */
	RBX_SESSION_SEND_HEARTBEAT,
	RBX_SESSION_SEND_BYE,
	RBX_SESSION_SEND_RECEIPT, /* LETTER_TAKEN */
	RBX_SESSION_SEND_LETTER, /* one for each that may be under way */
	RBX_SESSION_SENDS = RBX_SESSION_SEND_LETTER + RBX_WIRE_LETTERS_MAX,
};

enum rbx_session_status {
	RBX_SESSION_DOWN, /* no connection: before open, or lost */
	RBX_SESSION_HANDSHAKE, /* connected, not yet known to each other */
	RBX_SESSION_UP, /* heartbeats run */
};

struct rbx_session_events {
	void (*lost)(void *user, const char *reason);
	void (*beat)(void *user); /* a heartbeat was answered: it lives */
	void (*evict)(void *user, uint64_t slab_id);
	void *user;
};

/* Who hears the letters of the server's program; message NULL: nobody. */
struct rbx_session_listener {
	void (*message)(struct rbx_peer *peer, const void *data, size_t length,
			void *user);
	struct rbx_peer *peer;
	void *user;
};

struct rbx_session {
	const struct rbx_client *client;
	struct rbx_context *ctx; /* the client's */
	struct sockaddr_storage address;
	char name[INET6_ADDRSTRLEN + 10]; /* the address, for the log */
	struct rbx_session_events events;
	struct delayed_work tick; /* heartbeats */

	/* Held by a blocking call, taken before `lock`. Guards the four below. */
	struct mutex call_lock;
	struct rbx_control *control; /* written with `lock`, too; or NULL */
	uint64_t attach_serial; /* of the last data queue pair */
	uint64_t last_epoch; /* of the last slab that we were granted */
	uint32_t answer_ms; /* how long a call waits for one */

	spinlock_t lock; /* guards all below; taken with interrupts off */
	wait_queue_head_t changed; /* an answer, a loss, a free buffer */
	enum rbx_session_status status;
	bool closing; /* nothing is told any more */
	bool doubted; /* the last tick would have counted it as lost */
	uint64_t last_request_id;
	uint64_t call_id; /* request id of the call under way; 0: none */
	uint64_t call_sent_ns;
	bool call_answered;
	struct rbx_wire_message answer;
	uint64_t heartbeat_id; /* of the last one */
	struct rbx_lease lease;
	struct rbx_mailbox mailbox;
	struct rbx_session_listener listener;
	int letters_status; /* what letters end with from now on; 0: they go */
	bool receipt_owed; /* LETTER_TAKEN is to be sent */
	uint64_t free_bytes; /* atomic: as last told */
	struct rbx_key session_key;
	struct rbx_key connection_key;
	struct rbx_wire_welcome welcome; /* of the first handshake */
};

/* For the module: what all sessions share. */
int rbx_sessions_init(void);
void rbx_sessions_exit(void);

/* 0; -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT nobody there; -EACCES the secret was
 * refused, or the server could not prove that it has it; -EXDEV it is reached
 * through another device; -EBUSY, -EPROTO, -EPROTONOSUPPORT, -ENOMEM. */
int rbx_session_open(const struct rbx_client *client,
		     struct sockaddr_storage *address,
		     const struct rbx_session_events *events,
		     struct rbx_session **session);
/* Says goodbye: the server takes back what is still borrowed. */
void rbx_session_close(struct rbx_session *session);
/* One attempt at a new control connection. See the page above. */
int rbx_session_resume(struct rbx_session *session, uint32_t timeout_ms);
/* The owner will not resume any more. */
void rbx_session_give_up(struct rbx_session *session);

/* Makes and connects one data queue pair; after a failure, too, the caller
 * destroys the connection. -ENOTCONN while the session is lost. */
int rbx_session_connect_qp(struct rbx_session *session,
			   struct rbx_ib_conn *conn,
			   struct ib_qp_init_attr *init,
			   void (*ended)(struct rbx_ib_conn *conn));

/* Borrows one slab. -ENOSPC, -EDQUOT, -ENOTCONN, -ETIMEDOUT. */
int rbx_session_map(struct rbx_session *session, struct rbx_loan *loan);
/* Gives it back; after 0 its rkey is dead. -ESTALE, -EPERM it is not ours any
 * more; -ENOTCONN, -ETIMEDOUT. */
int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan);
/* 0: the loan is still good. -ESTALE, -EPERM: revoked. */
int rbx_session_check(struct rbx_session *session, const struct rbx_loan *loan);

/* Puts a letter of at most RBX_WIRE_LETTER_BYTES_MAX in; any context. -EAGAIN: full;
 * -EHOSTUNREACH: given up. */
int rbx_session_letter_submit(struct rbx_session *session, const void *bytes,
			      size_t length_bytes,
			      void (*done)(int status, void *user), void *user);
/* The same, and waits for its end: not to be called by a handler. */
int rbx_session_letter_send(struct rbx_session *session, const void *bytes,
			    size_t length_bytes);
/* -EBUSY: there is one, or a letter has come that nobody heard. */
int rbx_session_listen(struct rbx_session *session,
		       const struct rbx_session_listener *listener);

const char *rbx_session_name(const struct rbx_session *session);

/* ---- For the files of the session only. -----------------------------------*/

/* control.c */

/* Connects; the session is in its handshake then. call_lock is held. */
int rbx_control_open(struct rbx_session *session);
/* Ends the connection, if there is one, without a word. call_lock is held. */
void rbx_control_close(struct rbx_session *session);
/* Sends, where there is a connection; its lock is held. The buffer of the slot is
 * free. */
void rbx_control_send_locked(struct rbx_session *session,
			     enum rbx_session_send slot,
			     struct rbx_wire_message *message);
bool rbx_control_slot_is_free(const struct rbx_session *session,
			      enum rbx_session_send slot);
/* The connection is of no use: wakes a call, has lost() called. No lock is held. */
void rbx_session_lose(struct rbx_session *session, const char *reason);
/* Sends a message and waits for its answer. call_lock is held. */
int rbx_session_call(struct rbx_session *session,
		     struct rbx_wire_message *message, uint16_t expected,
		     struct rbx_wire_message *answer);

/* letters.c */

/* Sends what waits and may; its lock is held, and there is a connection. */
void rbx_session_letters_send_locked(struct rbx_session *session);
/* A LETTER or LETTER_TAKEN has come. No lock is held. */
void rbx_session_letter(struct rbx_session *session,
			const struct rbx_wire_message *message);
/* All letters end, and so do those that are put in later. */
void rbx_session_letters_end(struct rbx_session *session, int status);

/* handshake.c. call_lock is held. */
int rbx_session_handshake(struct rbx_session *session, bool resume);
/* Connects with what attach says; turns a refusal into its errno. */
int rbx_session_attach(struct rbx_session *session, struct rbx_ib_conn *conn,
		       const struct rbx_wire_attach *attach);

/* session.c: begins the heartbeats of a session that is up. */
void rbx_session_tick_soon(struct rbx_session *session);

#endif
