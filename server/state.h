/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - all that a server is made of.
 *
 * One control thread decides everything: it takes connection requests, answers
 * messages, watches leases and gives memory back. It never waits for memory: that
 * is made and emptied by workers, and who asked for it is answered later. The data
 * path needs nobody: a NIC, or the service thread of the soft fabric, carries out
 * the clients' reads and writes. So there is one lock, which the control thread
 * holds whenever it is awake, and which the public calls take to look in; and one
 * between it and the workers, taken last and for moments only.
 *
 *	control_thread.c  the loop
 *	connection.c      a control connection: its messages, its end
 *	tables.c          where connections, clients and data queue pairs stand
 *	half_open.c       which strangers may have one
 *	handshake.c       HELLO, AUTH: from a stranger to a client
 *	client.c          sessions, and what the lender (core/) wants done
 *	requests.c        what a client may ask
 *	letters.c         what this program and a client's say to each other
 *	borrowing.c       those about slabs, which are answered later
 *	attach.c          data queue pairs
 *	workers.c         the threads that make and empty slabs
 *	slab_memory.c     the memory of a slab, step by step
 *	pressure.c        is the host itself short of memory? (host_memory.c)
 *
 * Tables have their bounds from the start, and nothing of them costs memory before
 * it is used first; what a peer does can make a table full, never grow. Who looks for
 * one of many does not search them: 10,000 clients, most of them idle, cost a busy one
 * nothing. Tables are indexed by small numbers that travel
 * in wr_id together with a generation, so that a late completion of something
 * that has ended since is recognised and dropped.
 */
#ifndef RBX_SERVER_STATE_H
#define RBX_SERVER_STATE_H

#include <pthread.h>

#include "core/id_map.h"
#include "core/lender.h"
#include "core/mailbox.h"
#include "core/slab_queue.h"
#include "fabric/fabric.h"
#include "include/rdmabox/server.h"
#include "lib/clock.h"
#include "lib/fabric_choice.h"
#include "lib/secret.h"
#include "server/log.h"
#include "wire/message.h"

/* Receives posted for a client: its requests, and a LETTER_TAKEN for each of our
 * letters. */
#define RBX_CONTROL_RECEIVES_MAX (RBX_REQUESTS_MAX + RBX_WIRE_LETTERS_MAX)
/* What we may have said unasked, and an answer to each receive: 20. */
#define RBX_CONTROL_SENDS_MAX (RBX_CONTROL_RECEIVES_MAX + RBX_UNASKED_MAX)
/* A message too long for the protocol still fits here and is answered. */
#define RBX_CONTROL_BUFFER_BYTES (2 * RBX_WIRE_MESSAGE_BYTES_MAX)

/* Connections that are not authenticated, in all and of one address, and how long
 * they may take: for sure, and if nobody waits for their slot (half_open.c). */
#define RBX_HANDSHAKES_MAX 64u
#define RBX_HANDSHAKES_OF_SOURCE_MAX 32u
#define RBX_HANDSHAKE_UNDISTURBED_NS (500 * 1000000ull)
#define RBX_HANDSHAKE_NS (5 * 1000000000ull)
/* How often it is looked whose time is over. */
#define RBX_HALF_OPEN_CHECK_NS (50 * 1000000ull)
/* How long a refused client may take to receive the reason. */
#define RBX_FAREWELL_NS 1000000000ull

/* Buffers, and completions, of a control connection. */
#define RBX_CONTROL_BUFFERS (RBX_CONTROL_RECEIVES_MAX + RBX_CONTROL_SENDS_MAX)

/* A client has one control connection, and another one while it resumes. */
#define RBX_CONNECTIONS_OF(clients) (2 * (clients) + RBX_HANDSHAKES_MAX)
/* And data queue pairs, each with one receive. */
#define RBX_COMPLETIONS_OF(clients)                                       \
	(RBX_CONNECTIONS_OF(clients) * RBX_CONTROL_BUFFERS +              \
	 (clients) * RBX_QUEUE_PAIRS_MAX)

/* Connections whose buffers are made and registered together: 1 MiB. */
#define RBX_CONNECTIONS_PER_BLOCK 64u

/* What is done in one turn of the loop before all else gets a turn. */
#define RBX_SERVER_ACCEPTS_PER_TURN 64
#define RBX_SERVER_POLLS_PER_TURN 8
#define RBX_SERVER_ACTIONS_PER_TURN 64 /* of what the lender wants done */

/* How long a SLAB_MAP waits for a slab that is being emptied: a client that heard
 * nothing for longer would take the connection for broken. */
#define RBX_MAP_WAIT_NS 1000000000ull

/* Threads that make and empty slabs: one may be held up by a device that takes its
 * time to register, while the other goes on. */
#define RBX_WORKERS_MAX 2u
/* What one of them does before it looks up. With 4 MiB a step took up to 160 ms on a
 * busy machine of two CPUs, and others waited for it. */
#define RBX_SLAB_STEP_BYTES (512u << 10)

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
struct rbx_slab;

enum rbx_late_kind {
	RBX_LATE_NONE,
	RBX_LATE_GRANT, /* SLAB_MAP */
	RBX_LATE_UNMAPPED, /* SLAB_UNMAP */
};

/* A request that is answered when the memory of its slab is done (borrowing.c). */
struct rbx_late_answer {
	enum rbx_late_kind kind;
	struct rbx_connection *connection;
	uint32_t slot; /* of the receive that it came in */
	uint64_t request_id;
	uint64_t since_ns; /* GRANT: it came */
	uint64_t epoch; /* UNMAPPED */
	struct rbx_slab *slab; /* NULL: it waits for one */
	struct rbx_late_answer *next; /* of those that wait */
};

/* Connections of one kind. */
struct rbx_connection_list {
	struct rbx_connection *first;
	uint32_t count;
};

/* A control connection. */
struct rbx_connection {
	enum rbx_connection_state state;
	/* NEW, CHALLENGED, CLOSING: of those that are half open; FREE: of those. */
	struct rbx_connection *next, *prev;
	uint32_t generation;
	struct rbx_qp *qp;
	struct rbx_client *client; /* of an OPEN one; else NULL */
	uint64_t arrived_ns;
	uint64_t named_session_id; /* that it came to resume; 0: a stranger */
	uint64_t deadline_ns; /* NEW, CHALLENGED, CLOSING: then it is ended */
	uint64_t last_request_id;
	uint32_t sends_busy; /* bit n: send buffer n is under way */
	int answering; /* receive whose message is being handled; -1: none */
	bool client_is_up; /* it has spoken since WELCOME, and may be spoken to */
	bool resumes;
	uint64_t resume_session_id;
	uint64_t resume_last_epoch; /* of what the client knows to be lent */
	struct rbx_transcript transcript;
	struct rbx_late_answer late[RBX_CONTROL_RECEIVES_MAX];
};

RBX_STATIC_ASSERT(RBX_CONTROL_SENDS_MAX <= 32, "sends_busy has a bit for each");

/* A session. It outlives its connection by up to the lease. What was a session is
 * free again when the keys in its domain have ended. */
struct rbx_client {
	uint64_t session_id; /* 0: it is none */
	struct rbx_key key; /* for a resume */
	struct rbx_key connection_key; /* for data queue pairs */
	uint64_t attach_serial; /* of the last data queue pair */
	struct rbx_connection *connection; /* NULL: it is away */
	struct rbx_connection *attempt; /* to resume it, half open; or NULL */
	struct rbx_client *next_free;
	struct rbx_domain *domain; /* of its data queue pairs and slabs */
	uint32_t slabs_held; /* that have to do with the domain */
	uint32_t qps_count;
	char name[RBX_NAME_MAX];
	struct rbx_mailbox mailbox;
};

struct rbx_data_qp {
	struct rbx_qp *qp; /* NULL: this entry is free */
	struct rbx_client *client;
	uint32_t generation;
};

/* What the control thread knows of a slab that is not free. */
struct rbx_slab {
	struct rbx_client *client; /* whose it is, or was; NULL: it is free */
	struct rbx_late_answer *asker; /* who is told when it is done; or NULL */
};

/* The receives and sends of so many connections. */
struct rbx_buffer_block {
	uint8_t *buffers; /* NULL: none of these connections was there yet */
	struct rbx_mr *mr;
};

enum rbx_slab_work {
	RBX_SLAB_NONE, /* nothing is to be done, there is no memory */
	RBX_SLAB_PREPARE, /* its memory is to be made, or has been */
	RBX_SLAB_END, /* its memory is to be given back */
};

/* The memory of a slab. In work it is a worker's, otherwise the control thread's. */
struct rbx_slab_memory {
	/* Guarded by the workers' lock. */
	enum rbx_slab_work work;
	bool in_work; /* it waits for a worker, has one, or is to be told of */
	uint32_t next_done;

	int status; /* 0: it is ready; -errno: it cannot be made */
	void *addr; /* NULL: there is none */
	int fd;
	bool is_huge; /* on huge pages */
	uint64_t done_bytes; /* that have pages */
	struct rbx_domain *domain; /* whose keys are valid there */
	struct rbx_mr *mr; /* NULL: no peer reaches it */
};

/* The threads that make and empty slabs. */
struct rbx_workers {
	pthread_mutex_t lock; /* guards all below; taken after the server's */
	pthread_cond_t wanted;
	bool stopping;
	struct rbx_slab_queue *queue;
	uint32_t done_first; /* line of slabs that the control thread is to see */
	uint32_t done_last;
	struct rbx_slab_memory *slabs; /* slabs_count of them, by slab_id - 1 */
	pthread_t threads[RBX_WORKERS_MAX];
	uint32_t count;
};

struct rbx_server {
	struct rbx_server_options options;
	struct rbx_fabric_choice fabric;
	char description[RBX_ERROR_TEXT_MAX + RBX_NAME_MAX + 72];
	struct rbx_secret *secret; /* NULL: none */
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_listener *listener;
	uint64_t incarnation;
	uint64_t started_ns;
	uint32_t slabs_count;
	int wake_fd; /* eventfd: the control thread shall look */
	pthread_t thread;
	struct rbx_workers workers;

	/* Guards all below, and all posting and polling. */
	pthread_mutex_t lock;
	pthread_cond_t slab_ended;
	bool stopping;

	struct rbx_lender *lender;
	struct rbx_slab *slabs; /* slabs_count of them, by slab_id - 1 */
	struct rbx_late_answer *waiting_first; /* SLAB_MAPs without a slab */
	struct rbx_late_answer *waiting_last;

	/* Tables (tables.c). */
	uint32_t clients_max;
	struct rbx_client *clients;
	uint32_t clients_used; /* entries from there on never were */
	struct rbx_client *client_free;
	uint32_t connected_count; /* clients that are not away */
	struct rbx_id_map sessions; /* to clients */
	struct rbx_connection *connections;
	uint32_t connections_used;
	struct rbx_connection *connection_free;
	struct rbx_connection_list strangers; /* half open */
	struct rbx_connection_list resumers; /* half open, and name a session */
	struct rbx_buffer_block *blocks; /* of connections */
	struct rbx_data_qp *data_qps; /* RBX_QUEUE_PAIRS_MAX a client */
	uint64_t half_open_checked_ns;

	uint64_t pressure_checked_ns;
	uint64_t refused_auth;
	uint64_t refused_malformed;
	uint64_t heartbeats;
	uint64_t messages_received;
	uint64_t messages_sent;
	struct rbx_log log;
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
	uint32_t index; /* in connections or data_qps, less than 2^20 */
	uint32_t generation;
};
RBX_STATIC_ASSERT(RBX_CONNECTIONS_OF(RBX_CLIENTS_MAX) < 1u << 20 &&
			  RBX_CLIENTS_MAX * RBX_QUEUE_PAIRS_MAX < 1u << 20,
		  "an index has 20 bits");

static inline uint64_t rbx_wr_name_pack(struct rbx_wr_name name)
{
	return (uint64_t)name.kind << 60 | (uint64_t)name.slot << 52 |
	       (uint64_t)name.index << 32 | name.generation;
}

static inline struct rbx_wr_name rbx_wr_name_unpack(uint64_t wr_id)
{
	return (struct rbx_wr_name){
		.kind = (uint8_t)(wr_id >> 60),
		.slot = (uint8_t)(wr_id >> 52),
		.index = (uint32_t)(wr_id >> 32) & 0xfffff,
		.generation = (uint32_t)wr_id,
	};
}

static inline uint64_t rbx_slab_id(const struct rbx_server *s,
				   const struct rbx_slab *slab)
{
	return (uint64_t)(slab - s->slabs) + 1;
}

static inline uint32_t rbx_client_index(const struct rbx_server *s,
					const struct rbx_client *client)
{
	return (uint32_t)(client - s->clients);
}

/* For whom workers work: a client each, and whoever has left. */
static inline uint32_t rbx_owner_nobody(const struct rbx_server *s)
{
	return s->clients_max;
}

/* ---- Workers. ----------------------------------------------------------------*/

/* slab_memory.c; without the lock, by whoever has the slab in work. */
/* Makes memory of which slab->domain has the only keys, by steps: 1 there are more,
 * 0 it is ready, -errno with rbx_last_error(). */
int rbx_slab_prepare_step(const struct rbx_server *s,
			  struct rbx_slab_memory *slab);
/* Ends what was begun, its keys first, by steps. Returns whether there are more. */
bool rbx_slab_end_step(const struct rbx_server *s,
		       struct rbx_slab_memory *slab);

/* workers.c */
int rbx_workers_init(struct rbx_server *s);
int rbx_workers_start(struct rbx_server *s);
/* They end after the step that they are at; the control thread has ended. */
void rbx_workers_stop(struct rbx_server *s);
/* Ends all memory that there still is. */
void rbx_workers_destroy(struct rbx_server *s);
/* Have the memory of a slab made for an owner, and ended, made or not. */
void rbx_workers_prepare(struct rbx_server *s, uint32_t index, uint32_t owner);
void rbx_workers_end(struct rbx_server *s, uint32_t index, uint32_t owner);
/* A slab that is done with: made (or not: its status), or ended, or NONE: it goes
 * on. False: no further one now. */
bool rbx_workers_next(struct rbx_server *s, uint32_t *index,
		      enum rbx_slab_work *work);

/* ---- All functions below are called with the lock held. -----------------*/

/* options.c */
int rbx_server_options_take(struct rbx_server_options *taken,
			    const struct rbx_server_options *options);

/* control_thread.c; argument and result as pthread_create() wants them. */
void *rbx_control_thread(void *server);
/* With or without the lock. */
void rbx_control_thread_wake(struct rbx_server *s);

/* tables.c */
/* As many clients as the options say, or fewer if the device cannot. */
int rbx_tables_init(struct rbx_server *s);
/* When the device can be used: buffers for the first to come. 0 or -errno. */
int rbx_tables_begin(struct rbx_server *s);
/* There is nobody left in them. */
void rbx_tables_destroy(struct rbx_server *s);
/* An entry for a connection, with buffers; NULL: there is none. */
struct rbx_connection *rbx_connection_take(struct rbx_server *s);
void rbx_connection_give(struct rbx_server *s,
			 struct rbx_connection *connection);
/* Slots from 0 are receives, from RBX_CONTROL_RECEIVES_MAX on sends. */
struct rbx_sge rbx_connection_buffer(const struct rbx_server *s,
				     const struct rbx_connection *connection,
				     uint32_t slot);
/* It is half open from now on; it is no longer. */
void rbx_half_open_join(struct rbx_server *s,
			struct rbx_connection *connection);
void rbx_half_open_part(struct rbx_server *s,
			struct rbx_connection *connection);
/* An entry for a client; NULL: there is none. */
struct rbx_client *rbx_client_take(struct rbx_server *s);
void rbx_client_give(struct rbx_server *s, struct rbx_client *client);
struct rbx_client *rbx_client_find(const struct rbx_server *s,
				   uint64_t session_id);
/* The places for a client's data queue pairs, RBX_QUEUE_PAIRS_MAX of them. */
struct rbx_data_qp *rbx_data_qps_of(const struct rbx_server *s,
				    const struct rbx_client *client);

/* connection.c */
/* Both take the request. */
void rbx_request_refuse(struct rbx_server *s, struct rbx_conn_request *request,
			uint32_t reason);
void rbx_connection_accept(struct rbx_server *s,
			   struct rbx_conn_request *request,
			   uint64_t named_session_id, uint64_t now_ns);
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
/* The message that is being handled keeps its buffers, for an answer by
 * rbx_connection_send_late(). Returns which. */
uint32_t rbx_connection_answer_later(struct rbx_connection *connection);
void rbx_connection_send_late(struct rbx_server *s,
			      struct rbx_connection *connection, uint32_t slot,
			      const struct rbx_wire_message *message);
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

/* half_open.c */
/* May another one come? It may cost one that is there its place. */
bool rbx_half_open_admit(struct rbx_server *s, const char *peer_name,
			 uint64_t named_session_id, uint64_t now_ns);
/* Ends handshakes and farewells that take too long. */
void rbx_half_open_tick(struct rbx_server *s, uint64_t now_ns);
void rbx_half_open_end_all(struct rbx_server *s);

/* handshake.c */
void rbx_handshake_message(struct rbx_server *s,
			   struct rbx_connection *connection,
			   const struct rbx_wire_message *message,
			   uint64_t now_ns);

/* client.c */
/* Admits a new session; RBX_REASON_NONE or why not. */
uint32_t rbx_client_admit(struct rbx_server *s, const char *name,
			  uint64_t now_ns, struct rbx_client **client);
/* Ends its connections and letters and gives up its slabs. May give up the lock
 * for callbacks, at the end. */
void rbx_client_leave(struct rbx_server *s, struct rbx_client *client);
/* The memory of a slab of it, whether it is still there or not, has ended. */
void rbx_client_slab_ended(struct rbx_server *s, struct rbx_client *client);
/* Does what the lender wants done now. Returns whether there may be more. */
bool rbx_lender_serve(struct rbx_server *s, uint64_t now_ns);

/* requests.c */
void rbx_request_message(struct rbx_server *s,
			 struct rbx_connection *connection,
			 const struct rbx_wire_message *message,
			 uint64_t now_ns);
uint64_t rbx_server_free_bytes(struct rbx_server *s);
void rbx_server_stats_fill(struct rbx_server *s,
			   struct rbx_server_stats *stats);

/* borrowing.c */
/* The three requests about slabs. */
void rbx_slab_map(struct rbx_server *s, struct rbx_connection *connection,
		  const struct rbx_wire_message *message);
void rbx_slab_unmap(struct rbx_server *s, struct rbx_connection *connection,
		    const struct rbx_wire_message *message);
void rbx_slab_query(struct rbx_server *s, struct rbx_connection *connection,
		    const struct rbx_wire_message *message);
/* The lender says that the slab is to end. */
void rbx_slab_end(struct rbx_server *s, uint64_t slab_id);
/* Tells who asked what the workers have done. Returns whether it was anything. */
bool rbx_workers_serve(struct rbx_server *s);
/* Gives slabs to those who wait for one, or refuses them, as far as can be said. */
void rbx_borrowing_go_on(struct rbx_server *s);
/* Nobody is there any more to hear them. */
void rbx_late_answers_forget(struct rbx_server *s,
			     struct rbx_connection *connection);

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

/* pressure.c */
/* Is there as much at all? -ENOMEM. */
int rbx_host_memory_check(const struct rbx_server *s);
/* May a slab be lent, seen from the host? */
bool rbx_host_has_room(const struct rbx_server *s);
/* Asks clients for slabs where the host is short of memory. */
void rbx_pressure_tick(struct rbx_server *s, uint64_t now_ns);

#endif
