/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - all that a server is made of.
 *
 * One control thread does everything: it takes connection requests, answers
 * messages, watches leases and gives memory back. The data path needs nobody:
 * a NIC, or the service thread of the soft fabric, carries out the clients'
 * reads and writes. So there is one lock, which the control thread holds
 * whenever it is awake, and which the public calls take to look in.
 *
 *	control_thread.c  the loop
 *	connection.c      a control connection: its buffers, its end
 *	handshake.c       HELLO, AUTH: from a stranger to a client
 *	client.c          sessions, and what the lender (core/) wants done
 *	requests.c        what a client may ask
 *	letters.c         what this program and a client's say to each other
 *	attach.c          data queue pairs
 *	slab_memory.c     the memory of a slab
 *	pressure.c        is the host itself short of memory? (host_memory.c)
 *
 * Everything is allocated at the start, with fixed bounds; what a peer does can
 * make a table full, never grow. Tables are indexed by small numbers that travel
 * in wr_id together with a generation, so that a late completion of something
 * that has ended since is recognised and dropped.
 */
#ifndef RBX_SERVER_STATE_H
#define RBX_SERVER_STATE_H

#include <pthread.h>

#include "core/lender.h"
#include "core/mailbox.h"
#include "fabric/fabric.h"
#include "include/rdmabox/server.h"
#include "lib/clock.h"
#include "lib/fabric_choice.h"
#include "lib/secret.h"
#include "server/log.h"
#include "wire/message.h"

/* Requests that a client may have outstanding. */
#define RBX_CONTROL_REQUESTS_MAX 8u
/* Receives posted for it: these, and a LETTER_TAKEN for each of our letters. */
#define RBX_CONTROL_RECEIVES_MAX \
	(RBX_CONTROL_REQUESTS_MAX + RBX_WIRE_LETTERS_MAX)
/* What we may have said unasked, and an answer to each receive: 20. */
#define RBX_CONTROL_UNASKED_MAX 8u
#define RBX_CONTROL_SENDS_MAX \
	(RBX_CONTROL_RECEIVES_MAX + RBX_CONTROL_UNASKED_MAX)
/* A message too long for the protocol still fits here and is answered. */
#define RBX_CONTROL_BUFFER_BYTES (2 * RBX_WIRE_MESSAGE_BYTES_MAX)

/* Connections that are not authenticated, and how long they may take. */
#define RBX_HANDSHAKES_MAX 16u
#define RBX_HANDSHAKE_NS (5 * 1000000000ull)
/* How long a refused client may take to receive the reason. */
#define RBX_FAREWELL_NS 1000000000ull

/* A client has one control connection; a resumed one has two for a moment,
 * of which the new one still counts as a handshake. */
#define RBX_CONNECTIONS_MAX (RBX_CLIENTS_MAX + RBX_HANDSHAKES_MAX)
#define RBX_DATA_QPS_MAX (RBX_CLIENTS_MAX * RBX_QUEUE_PAIRS_MAX)

/* A send and a receive each for all data queue pairs: 144 * 32 + 4096 = 8704. */
#define RBX_SERVER_CQ_DEPTH                                               \
	(RBX_CONNECTIONS_MAX *                                            \
		 (RBX_CONTROL_RECEIVES_MAX + RBX_CONTROL_SENDS_MAX) +     \
	 2 * RBX_DATA_QPS_MAX)
RBX_STATIC_ASSERT(RBX_SERVER_CQ_DEPTH <= 32767,
		  "the smallest limit of a device that was seen (rxe)");

/* What is done in one turn of the loop before all else gets a turn. */
#define RBX_SERVER_ACCEPTS_PER_TURN 64
#define RBX_SERVER_POLLS_PER_TURN 8

/* A slab that is wanted back is revoked after this. */
#define RBX_EVICT_GRACE_NS (10 * 1000000000ull)

enum rbx_connection_state {
	RBX_CONNECTION_FREE, /* no connection */
	RBX_CONNECTION_NEW, /* a stranger; HELLO is awaited */
	RBX_CONNECTION_CHALLENGED, /* the same; AUTH is awaited */
	RBX_CONNECTION_OPEN, /* belongs to a client */
	RBX_CONNECTION_CLOSING, /* ends when the last answer has arrived */
};

struct rbx_client;

/* A control connection. */
struct rbx_connection {
	enum rbx_connection_state state;
	uint32_t generation;
	struct rbx_qp *qp;
	struct rbx_client *client; /* of an OPEN one; else NULL */
	uint64_t deadline_ns; /* NEW, CHALLENGED, CLOSING: then it is ended */
	uint64_t last_request_id;
	uint32_t sends_busy; /* bit n: send buffer n is under way */
	int answering; /* receive whose message is being handled; -1: none */
	bool client_is_up; /* it has spoken since WELCOME, and may be spoken to */
	bool resumes;
	uint64_t resume_session_id;
	uint64_t resume_last_epoch; /* of what the client knows to be lent */
	struct rbx_transcript transcript;
};

RBX_STATIC_ASSERT(RBX_CONTROL_SENDS_MAX <= 32, "sends_busy has a bit for each");

/* A session. It outlives its connection by up to the lease. */
struct rbx_client {
	uint64_t session_id; /* 0: this entry is free */
	struct rbx_key key; /* for a resume */
	struct rbx_key connection_key; /* for data queue pairs */
	uint64_t attach_serial; /* of the last data queue pair */
	struct rbx_connection *connection; /* NULL: it is away */
	struct rbx_domain *domain; /* of its data queue pairs and slabs */
	uint32_t qps_count;
	char name[RBX_NAME_MAX];
	struct rbx_mailbox mailbox;
};

struct rbx_data_qp {
	struct rbx_qp *qp; /* NULL: this entry is free */
	struct rbx_client *client;
	uint32_t generation;
};

struct rbx_slab_memory {
	void *addr; /* NULL: not lent */
	int fd;
	struct rbx_mr *mr; /* NULL: no peer reaches it */
	const struct rbx_client *client; /* whose keys are valid there */
};

struct rbx_server {
	struct rbx_server_options options;
	struct rbx_fabric_choice fabric;
	char description[RBX_ERROR_TEXT_MAX + RBX_NAME_MAX + 8];
	struct rbx_secret *secret; /* NULL: none */
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_listener *listener;
	uint64_t incarnation;
	uint64_t started_ns;
	uint32_t slabs_count;
	int wake_fd; /* eventfd: the control thread shall look */
	pthread_t thread;

	/* Guards all below, and all posting and polling. */
	pthread_mutex_t lock;
	pthread_cond_t slab_ended;
	bool stopping;

	struct rbx_lender *lender;
	struct rbx_slab_memory *slabs; /* slabs_count of them, by slab_id - 1 */
	struct rbx_client clients[RBX_CLIENTS_MAX];
	struct rbx_connection connections[RBX_CONNECTIONS_MAX];
	struct rbx_data_qp data_qps[RBX_DATA_QPS_MAX];
	uint32_t handshakes_count; /* connections NEW, CHALLENGED, CLOSING */

	uint8_t *buffers; /* receives and sends of all connections */
	size_t buffers_bytes;
	struct rbx_mr *buffers_mr;

	uint64_t pressure_checked_ns;
	uint64_t refused_auth;
	uint64_t refused_malformed;
	uint64_t heartbeats;
	uint64_t messages_received;
	uint64_t messages_sent;
	struct rbx_hostile_log hostile;
};


/* ---- wr_id: what a completion is about. ------------------------------------*/

enum rbx_wr_kind {
	RBX_WR_CONTROL_RECV = 1,
	RBX_WR_CONTROL_SEND,
	RBX_WR_DATA_RECV,
};

struct rbx_wr_name {
	uint8_t kind; /* enum rbx_wr_kind */
	uint8_t slot; /* buffer of a control connection */
	uint16_t index; /* in connections or data_qps */
	uint32_t generation;
};

static inline uint64_t rbx_wr_name_pack(struct rbx_wr_name name)
{
	return (uint64_t)name.kind << 56 | (uint64_t)name.slot << 48 |
	       (uint64_t)name.index << 32 | name.generation;
}

static inline struct rbx_wr_name rbx_wr_name_unpack(uint64_t wr_id)
{
	return (struct rbx_wr_name){
		.kind = (uint8_t)(wr_id >> 56),
		.slot = (uint8_t)(wr_id >> 48),
		.index = (uint16_t)(wr_id >> 32),
		.generation = (uint32_t)wr_id,
	};
}

/* ---- All functions below are called with the lock held. -----------------*/

/* options.c */
int rbx_server_options_check(const struct rbx_server_options *options);

/* control_thread.c; argument and result as pthread_create() wants them. */
void *rbx_control_thread(void *server);

/* connection.c */
int rbx_connections_init(struct rbx_server *s);
void rbx_connections_destroy(struct rbx_server *s);
/* Both take the request. */
void rbx_request_refuse(struct rbx_server *s, struct rbx_conn_request *request,
			uint32_t reason);
void rbx_connection_accept(struct rbx_server *s,
			   struct rbx_conn_request *request, uint64_t now_ns);
void rbx_connection_completed(struct rbx_server *s, const struct rbx_wc *wc,
			      uint64_t now_ns);
/* Answers the message that is being handled, once: with a message, or with a
 * refusal after which the connection lives on. */
void rbx_connection_answer(struct rbx_server *s,
			   struct rbx_connection *connection,
			   const struct rbx_wire_message *message);
void rbx_connection_answer_error(struct rbx_server *s,
				 struct rbx_connection *connection,
				 uint64_t request_id, uint32_t reason);
/* Says something unasked. False: too much is under way; try again later. */
bool rbx_connection_tell(struct rbx_server *s,
			 struct rbx_connection *connection,
			 const struct rbx_wire_message *message);
/* Tells the reason, then ends the connection. In place of an answer, or at any
 * time before the client is known. */
void rbx_connection_refuse(struct rbx_server *s,
			   struct rbx_connection *connection,
			   uint64_t request_id, uint32_t reason);
void rbx_connection_end(struct rbx_server *s,
			struct rbx_connection *connection);
void rbx_connection_set_state(struct rbx_server *s,
			      struct rbx_connection *connection,
			      enum rbx_connection_state state,
			      uint64_t deadline_ns);
/* Ends handshakes and farewells that take too long. */
void rbx_connections_tick(struct rbx_server *s, uint64_t now_ns);

/* handshake.c */
void rbx_handshake_message(struct rbx_server *s,
			   struct rbx_connection *connection,
			   const struct rbx_wire_message *message,
			   uint64_t now_ns);

/* client.c */
struct rbx_client *rbx_client_find(struct rbx_server *s, uint64_t session_id);
/* Admits a new session; RBX_REASON_NONE or why not. */
uint32_t rbx_client_admit(struct rbx_server *s, const char *name,
			  uint64_t now_ns, struct rbx_client **client);
/* Ends its connections and letters and gives up its slabs. May give up the lock
 * for callbacks, at the end. */
void rbx_client_leave(struct rbx_server *s, struct rbx_client *client);
/* Does what the lender wants done now. */
void rbx_lender_serve(struct rbx_server *s, uint64_t now_ns);

/* requests.c */
void rbx_request_message(struct rbx_server *s,
			 struct rbx_connection *connection,
			 const struct rbx_wire_message *message,
			 uint64_t now_ns);
uint64_t rbx_server_free_bytes(struct rbx_server *s);
void rbx_server_stats_fill(struct rbx_server *s,
			   struct rbx_server_stats *stats);

/* letters.c */
/* Both may give up the lock for a callback of the program. */
void rbx_letter_received(struct rbx_server *s,
			 struct rbx_connection *connection,
			 const struct rbx_wire_message *message);
void rbx_letter_taken(struct rbx_server *s, struct rbx_connection *connection,
		      const struct rbx_wire_message *message);
/* Sends what waits for the client and may be sent now. */
void rbx_letters_send(struct rbx_server *s, struct rbx_client *client);
/* Tells the program how its letters ended; gives up the lock meanwhile. */
void rbx_letters_tell(struct rbx_server *s, const struct rbx_letter_ends *ends);

/* attach.c */
void rbx_data_qp_accept(struct rbx_server *s, struct rbx_conn_request *request,
			const struct rbx_wire_attach *attach);
void rbx_data_qp_completed(struct rbx_server *s, const struct rbx_wc *wc);
/* When it returns no operation of these queue pairs can do anything more. */
void rbx_data_qps_end(struct rbx_server *s, struct rbx_client *client);

/* slab_memory.c */
/* Its keys are the client's alone. */
int rbx_slab_memory_begin(struct rbx_server *s, struct rbx_slab_memory *slab,
			  const struct rbx_client *client);
/* Ends the keys of a client that leaves; the memory follows. */
void rbx_slab_keys_end(struct rbx_server *s, const struct rbx_client *client);
/* Keys first, then memory. Also for a slab whose begin failed. */
void rbx_slab_memory_end(struct rbx_server *s, struct rbx_slab_memory *slab);

/* pressure.c: may a slab be lent, seen from the host? */
bool rbx_host_has_room(const struct rbx_server *s);
/* Asks clients for slabs where the host is short of memory. */
void rbx_pressure_tick(struct rbx_server *s, uint64_t now_ns);

#endif
