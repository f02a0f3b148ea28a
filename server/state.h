/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - all the state of a server.
 *
 * One control thread decides everything. It takes connection requests, answers messages,
 * watches leases and gives memory back. It never waits for memory: workers make and empty
 * slabs, and the request for a slab is answered later. The data path needs no thread
 * here: a NIC, or the service thread of the soft fabric, carries out the reads and writes
 * of clients.
 *
 * So there is one lock. The control thread holds it whenever it is awake, and the public
 * calls take it to read. There is a second lock between the control thread and the
 * workers. It is taken last and held for a short time.
 *
 *	bounds.h          how much of each thing there is
 *	control_thread.c  the loop
 *	connection.c      a control connection: its messages, its end (connection.h)
 *	tables.c          the tables of connections, clients and data queue pairs
 *	half_open.c       which untrusted clients may have a connection
 *	handshake.c       HELLO, AUTH: an untrusted client becomes a client
 *	credentials.c     the secrets that are accepted (credentials.h)
 *	owners.c          the owners of sessions, who have a quota and a number of volumes
 *	client.c          sessions, and what the lender (core/) decides
 *	requests.c        the requests of a client
 *	borrowing.c       requests about slabs, which are answered later
 *	user_messages.c   messages between this program and the programs of clients
 *	attach.c          data queue pairs
 *	volumes.c         named volumes (volumes.h), volume_requests.c and volume_readers.c
 *	workers.c         the threads that make and empty slabs (workers.h)
 *	slab_memory.c     the memory of a slab, step by step
 *	remembered.c      what outlives the process (remembered.h), and restore.c
 *	pressure.c        whether the host itself is short of memory (host_memory.c)
 *	descriptors.c     whether the process may have enough open files
 *	reload.c          new limits and new secrets
 *	numbers.c         the counters, and the list of clients
 *
 * Each table has a fixed size, and an entry costs no memory before it is used first. A
 * peer can fill a table but never make it grow. Nothing searches a table, so 10,000
 * clients, most of them idle, cost a busy one nothing. A completion names its object by
 * an index and a generation (wr_name.h).
 */
#ifndef RBX_SERVER_STATE_H
#define RBX_SERVER_STATE_H

#include <pthread.h>

#include "core/id_map.h"
#include "core/lender.h"
#include "lib/clock.h"
#include "lib/fabric_choice.h"
#include "server/connection.h"
#include "server/credentials.h"
#include "server/log.h"
#include "server/remembered.h"
#include "server/volumes.h"
#include "server/workers.h"
#include "server/wr_name.h"

/* Who borrows: all sessions of a credential. Without a secret there is one. */
struct rbx_owner {
	char credential[RBX_CREDENTIAL_BYTES]; /* its name; "": none */
	uint32_t clients_count; /* entries of clients and volumes; 0: this one is free */
	uint32_t volumes_count; /* named volumes that it has */
	uint32_t volumes_ending; /* that it had, and whose slabs are being emptied */
	uint32_t volumes_max; /* that it may have; it makes none while more than that are ending */
	bool is_admin; /* it may list and remove volumes of others */
	uint32_t next; /* in its chain, or of the free ones */
	uint64_t quota_bytes; /* 0: none */
};

#define RBX_OWNER_CHAINS 1024u

struct rbx_owners {
	struct rbx_owner *table; /* RBX_OWNERS_MAX */
	uint32_t used_count; /* entries from this index on were never used */
	uint32_t first_free;
	uint32_t chains[RBX_OWNER_CHAINS]; /* by a hash of the name */
};

/* A session. It outlives its connection by up to the lease. Its entry is free again when
 * the keys in its domain have ended. */
struct rbx_client {
	uint64_t session_id; /* 0: none */
	struct rbx_key key; /* for a resume */
	struct rbx_key connection_key; /* for data queue pairs */
	uint64_t attach_serial; /* of the last data queue pair */
	struct rbx_connection *connection; /* NULL: the client is not connected */
	struct rbx_connection *leaving; /* its former connection, CLOSING; or NULL */
	struct rbx_connection *attempt; /* a half-open connection that resumes it; or NULL */
	uint64_t admitted_ns;
	struct rbx_client *next_free;
	struct rbx_holder own; /* of slabs that it borrows for itself */
	struct rbx_kept_volume *volume; /* that it is bound to, or NULL */
	struct rbx_kept_volume *reading; /* that it only reads, or NULL: never both */
	struct rbx_client *next_reader; /* of that volume */
	bool only_removes; /* that volume: nothing else is allowed */
	uint64_t seen_holder_id; /* of the volume that it has looked at last; 0: none */
	uint64_t seen_returns; /* of that volume */
	uint32_t qps_count;
	bool had_qps;
	struct rbx_owner *owner;
	char address[RBX_NAME_MAX]; /* where it was admitted from */
	char name[RBX_NAME_MAX + RBX_CREDENTIAL_BYTES + 4]; /* the same with its credential */
	struct rbx_mailbox mailbox;
};

struct rbx_data_qp {
	struct rbx_qp *qp; /* NULL: this entry is free */
	struct rbx_client *client;
	uint32_t generation;
};

/* What the control thread knows about a slab that is not free. */
struct rbx_slab {
	struct rbx_holder *holder; /* that has or had it; NULL: the slab is free */
	struct rbx_wire_map map; /* of a named volume: which of its slabs it is */
	uint64_t intent; /* and where its writer may be writing: a bit for each 64th */
	uint64_t behind; /* the same, where it has written while a server was out */
	struct rbx_late_answer *asker; /* told when the slab is ready; or NULL */
};

/* The receive and send buffers of RBX_CONNECTIONS_PER_BLOCK connections. */
struct rbx_buffer_block {
	uint8_t *buffers; /* NULL: none of these connections was used yet */
	struct rbx_mr *mr;
};

struct rbx_server {
	struct rbx_server_options options;
	struct rbx_fabric_choice fabric;
	char description[RBX_ERROR_TEXT_MAX + RBX_NAME_MAX + 72];
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_listener *listener;
	uint64_t incarnation;
	uint64_t started_ns;
	int wake_fd; /* eventfd: wakes the control thread */
	pthread_t thread;
	struct rbx_workers workers;

	/* Guards all below, and all posting and polling. */
	pthread_mutex_t lock;
	pthread_cond_t slab_ended;
	bool stopping;

	struct rbx_credentials credentials;
	struct rbx_owners owners;
	struct rbx_lender *lender;
	struct rbx_volumes volumes;
	struct rbx_remembered remembered;
	struct rbx_slab *slabs; /* RBX_LENT_SLABS_MAX, by slab_id - 1 */
	struct rbx_late_answer *waiting_first; /* SLAB_MAPs that wait for a slab */
	struct rbx_late_answer *waiting_last;

	/* Tables (tables.c). */
	uint32_t clients_max;
	struct rbx_client *clients;
	uint32_t clients_used; /* entries from this index on were never used */
	struct rbx_client *client_free;
	uint32_t connected_count; /* clients that have a connection */
	struct rbx_id_map sessions; /* to clients */
	struct rbx_connection *connections;
	uint32_t connections_used;
	struct rbx_connection *connection_free;
	struct rbx_connection_list untrusted; /* half open */
	struct rbx_connection_list resumers; /* half open, of clients that resume */
	struct rbx_buffer_block *blocks; /* of connections */
	struct rbx_data_qp *data_qps; /* RBX_QUEUE_PAIRS_MAX a client */
	uint64_t half_open_checked_ns;

	uint64_t pressure_checked_ns;
	uint64_t refused_auth;
	uint32_t crowded_out_count; /* of the listener, as far as it was logged */
	uint64_t refused_malformed;
	uint64_t heartbeats;
	uint64_t messages_received;
	uint64_t messages_sent;
	uint64_t refused[RBX_REASONS_COUNT]; /* by reason */
	struct rbx_server_answers answers; /* each one counted only in its own bound */
	struct rbx_log log;
	struct rbx_hostile_log hostile;
};

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

/* The most slabs that are lent in all. */
static inline uint32_t rbx_slabs_of_memory(const struct rbx_server_options *o)
{
	return (uint32_t)(o->memory_bytes / o->slab_bytes);
}

/* The most slabs of an owner with this quota; 0: all. */
static inline uint32_t rbx_slabs_of_quota(const struct rbx_server *s, uint64_t quota_bytes)
{
	return (uint32_t)RBX_MIN(quota_bytes / s->options.slab_bytes, UINT32_MAX);
}

/* The bytes that are lent in all: whole slabs. */
static inline uint64_t rbx_server_lend_bytes(const struct rbx_server *s)
{
	return rbx_slabs_of_memory(&s->options) * s->options.slab_bytes;
}

/* The number for the work on slabs whose holder has left. Each client and each volume has one
 * of its own. */
static inline uint32_t rbx_owner_nobody(const struct rbx_server *s)
{
	return s->clients_max + RBX_KEPT_VOLUMES_MAX;
}

/* Who the slabs of a session are lent to. */
static inline struct rbx_holder *rbx_holder_of(struct rbx_client *client)
{
	return client->volume ? &client->volume->holder : &client->own;
}

/* ---- All functions below are called with the lock held. -----------------*/

/* options.c */
int rbx_server_options_take(struct rbx_server_options *taken,
			    const struct rbx_server_options *options);

/* control_thread.c; argument and result as pthread_create() wants them. */
void *rbx_control_thread(void *server);
/* May be called without the lock too. */
void rbx_control_thread_wake(struct rbx_server *s);

/* server.c */
/* All secrets become keys of TLS, if connections are under TLS. Clients that are connected may
 * have a former key, which stays: what they get by it is a connection, on which they still have
 * to prove that they are clients. */
void rbx_tls_keys_add(struct rbx_server *s);

/* tables.c */
/* As many clients as the options say, or fewer if the device has no room for them. */
int rbx_tables_init(struct rbx_server *s);
/* Called when the device can be used: makes the first block of buffers. 0 or -errno. */
int rbx_tables_begin(struct rbx_server *s);
/* All entries must be free. */
void rbx_tables_destroy(struct rbx_server *s);
/* Takes an entry for a connection, with buffers. NULL: none is free. */
struct rbx_connection *rbx_connection_take(struct rbx_server *s);
void rbx_connection_give(struct rbx_server *s,
			 struct rbx_connection *connection);
/* The first slots are receives; from RBX_CONTROL_RECEIVES_MAX on they are sends. */
struct rbx_sge rbx_connection_buffer(const struct rbx_server *s,
				     const struct rbx_connection *connection,
				     uint32_t slot);
/* Takes an entry for a client. NULL: none is free. */
struct rbx_client *rbx_client_take(struct rbx_server *s);
void rbx_client_give(struct rbx_server *s, struct rbx_client *client);
struct rbx_client *rbx_client_find(const struct rbx_server *s,
				   uint64_t session_id);
/* The entries for a client's data queue pairs: RBX_QUEUE_PAIRS_MAX of them. */
struct rbx_data_qp *rbx_data_qps_of(const struct rbx_server *s,
				    const struct rbx_client *client);

/* handshake.c */
void rbx_handshake_message(struct rbx_server *s,
			   struct rbx_connection *connection,
			   const struct rbx_wire_message *message,
			   uint64_t now_ns);

/* owners.c */
int rbx_owners_init(struct rbx_server *s);
void rbx_owners_destroy(struct rbx_server *s);
/* The owner of a credential, for the entry of one more client. NULL: no place is free. */
struct rbx_owner *rbx_owner_take(struct rbx_server *s, const char name[RBX_CREDENTIAL_BYTES]);
/* The entry of one of its clients is free again. */
void rbx_owner_give(struct rbx_server *s, struct rbx_owner *owner);
/* As the lender knows it. */
uint32_t rbx_owner_number(const struct rbx_server *s, const struct rbx_owner *owner);
/* Takes over quotas, numbers of volumes and rights that a reload has changed. */
void rbx_owners_set_limits(struct rbx_server *s);

/* client.c */
/* Admits a new session of a credential. Returns RBX_REASON_NONE, or the reason against it. */
uint32_t rbx_client_admit(struct rbx_server *s, const char *address,
			  const char credential[RBX_CREDENTIAL_BYTES],
			  uint64_t now_ns, struct rbx_client **client);
/* Ends its connections and messages and gives up its slabs. At the end it may release the
 * lock for callbacks. */
void rbx_client_leave(struct rbx_server *s, struct rbx_client *client);
/* The memory of a slab has ended. Its holder may have left before. */
void rbx_holder_slab_ended(struct rbx_server *s, struct rbx_holder *holder);
/* Carries out what the lender wants now. Returns whether there may be more. */
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
/* Answers the clients whose slabs the workers have finished. Returns whether there were
 * any. */
bool rbx_workers_serve(struct rbx_server *s);
/* Gives slabs to the clients that wait for one, or refuses them, as far as this can be
 * decided. */
void rbx_borrowing_go_on(struct rbx_server *s);
/* user_messages.c */
/* Both may release the lock for a callback of the program. */
void rbx_user_message_received(struct rbx_server *s,
			       struct rbx_connection *connection,
			       const struct rbx_wire_message *message);
void rbx_user_message_taken(struct rbx_server *s,
			    struct rbx_connection *connection,
			    const struct rbx_wire_message *message);
/* Sends the messages that wait for the client and may be sent now. */
void rbx_user_messages_send(struct rbx_server *s, struct rbx_client *client);
/* Tells the program how its messages ended. Releases the lock meanwhile. */
void rbx_user_messages_tell(struct rbx_server *s,
			    const struct rbx_user_message_ends *ends);

/* attach.c */
void rbx_data_qp_accept(struct rbx_server *s, struct rbx_conn_request *request,
			const struct rbx_wire_attach *attach);
void rbx_data_qp_completed(struct rbx_server *s, const struct rbx_wc *wc);
/* When it returns, no operation of these queue pairs can have any effect. */
void rbx_data_qps_end(struct rbx_server *s, struct rbx_client *client);

/* numbers.c */
/* The traffic of the device. */
void rbx_traffic_fill(struct rbx_server *s, struct rbx_server_stats *stats);
void rbx_refusal_note(struct rbx_server *s, uint32_t reason);
/* A message that was found at asked_ns is answered now. */
void rbx_answer_note(struct rbx_server *s, uint64_t asked_ns);

/* pressure.c */
/* Whether the host has as much memory as the options want to lend, with what is lent
 * already: -ENOMEM. Whether the slabs are not too many: -EINVAL. */
int rbx_memory_check(const struct rbx_server *s, const struct rbx_server_options *options,
		     uint64_t lent_bytes);
/* Whether the host has memory for one more slab. */
bool rbx_host_has_room(const struct rbx_server *s);
/* Asks clients to give slabs back if the host is short of memory, or if more is lent than
 * a lowered limit allows. */
void rbx_pressure_tick(struct rbx_server *s, uint64_t now_ns);

/* descriptors.c: raises the limit of open files for the slabs of the options. 0 or
 * -EINVAL. */
int rbx_descriptors_reserve(const struct rbx_server *s,
			    const struct rbx_server_options *options);

#endif
