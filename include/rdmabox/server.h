/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.h - lends this machine's memory to clients, in slabs.
 *
 * `rdmabox serve` runs this. A slab is zeroed before a client sees it, belongs to
 * one client at a time, and its keys have ended before anybody else could get the
 * memory. A client that has not been heard of for the lease loses its slabs.
 */
#ifndef RDMABOX_SERVER_H
#define RDMABOX_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <rdmabox/integrity.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_server;

struct rbx_server_options {
	size_t size_bytes; /* of this struct; rbx_server_options_defaults() sets it */
	/* "host:port" or "[v6]:port"; port 0 takes a free one. Default: "127.0.0.1:7471". */
	char listen[128];
	/* auto, verbs, soft or soft:tcp, as struct rbx_options. Default: "auto". */
	char fabric[16];
	/* With verbs "mlx5_0" or "mlx5_0:1"; "" chooses. Default: "". */
	char device[64];
	/* With verbs the index of the GID; -1 chooses. Default: -1. */
	int gid_index;
	uint64_t memory_bytes; /* to lend in all, at least a slab. Default: 1 GiB. */
	uint64_t slab_bytes; /* a power of two, 64 KiB to 1 GiB. Default: 64 MiB. */
	/* For one owner, at least a slab; 0: all. An owner is all clients of one credential,
	 * or all clients if there is no secret. Default: 0. */
	uint64_t quota_bytes;
	/* Milliseconds, 100 to 3600000, in which a client must be heard of. A client that
	 * is cut off gives its last copies up after half of it. Default: 60000. */
	uint32_t lease_ms;
	/* The file that holds the secret shared with the clients: 16 to 4096 bytes, no
	 * rights for others. It is for clients that name no credential. Default: "" (no
	 * such secret). */
	char secret_file[256];
	/* 1: does without a secret even beyond loopback. Default: 0. */
	uint32_t insecure;
	/* Called with each message of the program of a client: see "Messages" below.
	 * Default: NULL. */
	void (*message)(struct rbx_server *server, uint64_t client,
			const void *data, size_t length, void *user);
	void *user; /* passed to `message` and to `log`. Default: NULL. */
	/* 1: starts even if memory_bytes is more than this machine, or the memory control
	 * group of the process, has. Default: 0. */
	uint32_t overcommit;
	/* Clients at a time, 1 to 16384; fewer if the completion queues of the device are
	 * too short for them, which the log tells. 0: 1024, or what they are long enough
	 * for. Default: 0. */
	uint32_t clients_max;
	/* 1: slabs on small pages even if there are huge ones of 2 MiB. Else slabs of a
	 * multiple of that take huge pages as long as there are some. Default: 0. */
	uint32_t small_pages;
	/* Called with each line of the log, which has no newline at its end and only
	 * characters that print. It is called by threads of the server, by
	 * rbx_server_start(), rbx_server_reload() and rbx_server_drain(), also by two
	 * threads at the same time. It must not block, nor call the server. NULL: lines go
	 * to stderr, behind "rdmabox serve: ". Default: NULL. */
	void (*log)(const char *line, void *user);
	/* A file with a line for each credential, NAME:SECRET. A name has 1 to 31 characters of
	 * A-Z a-z 0-9 . _ -, a secret 16 to 4096 bytes. Between them may stand ,quota=SIZE and
	 * ,volumes=N (0 to 1024), which go before quota_bytes and volumes_max; and ,admin: it
	 * may list and remove named volumes of all owners. Two lines of a name are an old and a
	 * new secret. A line that begins with # is a comment. At most
	 * 4096 lines; no rights for others. Default: "" (no names). */
	char secrets_file[256];
	/* Of enum rbx_integrity: what protects the bytes between server and clients, who must
	 * have the same. tls without a secret, or with verbs, is refused. Default: 0. */
	uint32_t integrity;
	/* Named volumes that this server keeps for one owner, 1 to 1024. 0: 64 if there is a file
	 * of secrets with names, else 1024, as nobody else wants any. Default: 0. */
	uint32_t volumes_max;
	/* Where the server is: "rack=7,zone=b". No name twice, of printable characters other
	 * than space, comma, quote and backslash. Clients put the replicas of a slab where
	 * the label of their spread differs. Default: "". */
	char labels[256];
	/* The file that the memory lies in: on hugetlbfs or tmpfs, or with the soft fabric on any
	 * file system that can punch holes. A server that is started with the file of a former one
	 * is the same server: it has the same incarnation, named volumes and their contents. It is
	 * made if it is not there. See rdmabox-serve(1). Default: "" (memory that ends with the
	 * server). */
	char memory_file[256];
};

/**
 * rbx_server_options_defaults_sized() - fills in the defaults of a struct of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * Context: any thread, callbacks too; never blocks.
 */
void rbx_server_options_defaults_sized(struct rbx_server_options *options,
				       size_t size_bytes);

/**
 * rbx_server_options_defaults() - fills in the defaults of this version of the struct.
 *
 * Context: any thread, callbacks too; never blocks.
 */
static inline void
rbx_server_options_defaults(struct rbx_server_options *options)
{
	rbx_server_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_server_start() - binds, and serves from threads of its own.
 * @server: receives the server
 * @options: borrowed during the call
 *
 * After an error rbx_last_error() has cause and fix.
 *
 * Returns 0, or:
 *	-EINVAL: an option is not allowed, a secret is no file, too short, too long or of one
 *		byte, a line of the file of secrets is wrong, the memory file is of another
 *		slab size or has more slabs, or the process may not open as many files as
 *		there are slabs
 *	-EBUSY: another server has the memory file open
 *	-EBADMSG: the memory file is damaged, or none of a server
 *	-EPROTONOSUPPORT: it is of another version
 *	-ESTALE: it is a copy, or the machine went down while it was in use
 *	-EOPNOTSUPP: its file system cannot punch holes
 *	-ENODEV: the fabric has no device here, or the address is none of the device
 *	-EXDEV: with verbs: the address is of another device
 *	-ENETDOWN: with verbs, the port of the device is down
 *	-EADDRINUSE: somebody else listens there
 *	-EADDRNOTAVAIL: it is no address of this machine
 *	-ENOMEM: memory cannot be had; or this machine, or the memory control group of the
 *		process, has less than memory_bytes
 *	-ENOENT: there is no such secret file
 *	-EACCES: the secret file cannot be read, or others may read it; or the process may
 *		not use this port
 *	-EPERM: there is no secret, and the address is not a loopback one
 *	-EMFILE: the process has no file descriptors left
 *	-EAGAIN: the process may not start another thread
 * Context: any thread; blocks while the device is opened.
 * Lifetime: until rbx_server_stop().
 */
int rbx_server_start(struct rbx_server **server,
		     const struct rbx_server_options *options);

/**
 * rbx_server_address() - tells the address as it is bound.
 *
 * Returns "host:port", with the real port.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_server_stop().
 */
const char *rbx_server_address(const struct rbx_server *server);

/**
 * rbx_server_describe() - tells the fabric and the device, and why they were taken.
 *
 * Returns one line.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_server_stop().
 */
const char *rbx_server_describe(const struct rbx_server *server);

/**
 * rbx_server_incarnation() - tells the number that identifies this start of the server.
 *
 * A server that is started anew has another one, and has nothing of what it had lent.
 *
 * Returns the number, never 0.
 * Context: any thread, callbacks too; never blocks.
 */
uint64_t rbx_server_incarnation(const struct rbx_server *server);

/**
 * rbx_server_reload() - takes over new limits and new secrets while the server runs.
 * @options: with the new memory_bytes, overcommit, quota_bytes, volumes_max, secret_file and
 *	secrets_file; borrowed during the call. `message`, `user` and `log` are not looked
 *	at. The others must be as at the start, and so must whether there is any secret
 *
 * The files of secrets are read again even if their names are the same. New secrets are for
 * new clients: those that are connected stay, and can connect again, also if their credential
 * is gone. If more is lent than the
 * new memory_bytes, nothing more is lent and the server asks its clients for slabs, as a
 * drain does: without a deadline. A client keeps what it has above a new quota, and its volumes.
 *
 * After an error the options are as before, and rbx_last_error() has cause and fix.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, an option is not allowed or cannot be changed, a
 *		secret is no file, too short, too long or of one byte, a line of the file of
 *		secrets is wrong, or the process may not open as many files as there are slabs
 *	-ENOMEM: this machine, or the memory control group of the process, has less than
 *		memory_bytes
 *	-ENOENT: there is no such secret file
 *	-EACCES: the secret file cannot be read, or others may read it
 *	-EMFILE: the process has no file descriptors left
 *	-EDEADLK: called in a callback
 * Context: one thread at a time; blocks while the secret is read.
 */
int rbx_server_reload(struct rbx_server *server,
		      const struct rbx_server_options *options);

/**
 * rbx_server_drain() - empties a server.
 *
 * It lends nothing more, asks clients to take their slabs elsewhere, and waits until no
 * slab is lent, and no named volume with replicas needs the server: its program has let it
 * go, or nobody has it open and it can be opened without.
 *
 * Returns 0, or:
 *	-ETIMEDOUT: slabs are still lent, or such a volume is left
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks for @timeout_ms at most.
 */
int rbx_server_drain(struct rbx_server *server, uint32_t timeout_ms);

/**
 * rbx_server_stop() - ends all access and all connections, and frees all.
 * @server: NULL: nothing is done
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the threads of the server have ended.
 */
int rbx_server_stop(struct rbx_server *server);

/* ---- Messages --------------------------------------------------------------
 *
 * The program that serves and the programs of its clients may talk, through the
 * session that there is anyway (message.h has the half of the client). A client is a
 * number that its messages come with. The number stays the same while the session of
 * the client lasts, whatever becomes of connections, and is not used again.
 *
 * `message` of the options is called from the control thread of the server: one at a
 * time, in the order in which each client sent. It may send messages. It must not
 * block, for meanwhile nobody borrows, and must not stop the server. Without it the
 * messages of clients end with -EOPNOTSUPP.
 */

/**
 * rbx_server_message_submit() - sends a message to the program of a client.
 * @client: as it was told to `message` of the options
 * @data: copied
 * @length: at most RBX_MESSAGE_BYTES_MAX (message.h); may be 0
 * @done: called once when the message has ended, by the control thread or, with -ECANCELED,
 *	by rbx_server_stop(). It may send, and must not block. NULL: nobody wants to know
 * @user: passed to @done
 *
 * Messages to one client arrive in the order of the calls. After an error nothing was
 * sent, and @done is not called. A message ends with
 *	0	the handler of the client has had it
 *	-EOPNOTSUPP	the client has no handler
 *	-EHOSTUNREACH	the client has left, or its lease has run out; it may have had the
 *		message or not
 *	-ECANCELED	the server was stopped; the same
 *
 * Returns 0, or:
 *	-EINVAL: there is no data, or more than fits
 *	-ENOENT: there is no such client, or none any more
 *	-EAGAIN: 32 messages to the client wait already
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
int rbx_server_message_submit(struct rbx_server *server, uint64_t client,
			      const void *data, size_t length,
			      void (*done)(int status, void *user), void *user);

#define RBX_SERVER_STATS(X)                                                   \
	X(memory_bytes, "bytes to lend in all")                               \
	X(lent_bytes, "bytes lent now")                                       \
	X(slab_bytes, "bytes of a slab")                                      \
	X(slabs_lent, "slabs lent now")                                       \
	X(clients, "clients connected now")                                   \
	X(sessions, "clients ever admitted")                                  \
	X(slabs_mapped, "slabs ever lent")                                    \
	X(slabs_unmapped, "slabs given back by clients")                      \
	X(slabs_revoked, "slabs taken back from clients")                     \
	X(leases_expired, "clients that were not heard of for a term")        \
	X(refused_full, "requests for a slab refused: no memory left")        \
	X(refused_quota, "requests for a slab refused: quota reached")        \
	X(refused_auth, "connections refused: wrong secret")                  \
	X(refused_malformed, "messages refused: malformed")                   \
	X(heartbeats, "heartbeats answered")                                  \
	X(uptime_s, "seconds since the start")                                \
	X(messages_received, "messages that clients' programs sent")          \
	X(messages_sent, "messages sent to clients' programs")                \
	X(reads, "work requests of clients that read, as far as seen")        \
	X(read_bytes, "bytes that clients read, as far as seen")              \
	X(writes, "work requests of clients that wrote, as far as seen")      \
	X(written_bytes, "bytes that clients wrote, as far as seen")          \
	X(draining, "1 if nothing more is lent, since it drains")

/*
 * Of reads, read_bytes, writes and written_bytes if the device does not tell. A NIC
 * carries out what clients ask and its server never hears of it. The software device
 * counts what comes over TCP; it does not see what a client of the same host does
 * through a mapping.
 */
#define RBX_SERVER_NOT_SEEN UINT64_MAX

struct rbx_server_stats {
	size_t size_bytes; /* of what was filled in; the rest is zero */
#define RBX_SERVER_STATS_FIELD(name, what) uint64_t name;
	RBX_SERVER_STATS(RBX_SERVER_STATS_FIELD)
#undef RBX_SERVER_STATS_FIELD
};

/**
 * rbx_server_stats_get_sized() - fills in numbers of a server of this process, of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero.
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
void rbx_server_stats_get_sized(struct rbx_server *server,
				struct rbx_server_stats *stats, size_t size_bytes);

/**
 * rbx_server_stats_get() - tells the numbers of a server of this process.
 *
 * It fills in this version of the struct, as rbx_server_stats_get_sized().
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
static inline void rbx_server_stats_get(struct rbx_server *server,
					struct rbx_server_stats *stats)
{
	rbx_server_stats_get_sized(server, stats, sizeof(*stats));
}

/* ---- Looking closer, at a server of this process ---------------------------*/

/* One reason to refuse, and how often it was given. */
struct rbx_server_refusal {
	const char *reason; /* "QUOTA"; constant text */
	const char *sentence; /* "the quota of this owner is reached" */
	uint64_t count; /* since the start */
};

/**
 * rbx_server_refusals_get() - tells why messages and connections were refused.
 * @refusals: room for @refusals_max of them; NULL if that is 0
 *
 * Returns how many reasons there are, which is the same for all servers.
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
size_t rbx_server_refusals_get(struct rbx_server *server,
			       struct rbx_server_refusal *refusals,
			       size_t refusals_max);

/* The upper bounds of rbx_server_answers.within, in nanoseconds. */
#define RBX_SERVER_ANSWER_BOUNDS(X)                                           \
	X(10000) X(100000) X(1000000) X(10000000) X(100000000) X(1000000000)
#define RBX_SERVER_ANSWER_BOUND_ONE(bound_ns) +1
#define RBX_SERVER_ANSWER_BOUNDS_COUNT                                        \
	(0 RBX_SERVER_ANSWER_BOUNDS(RBX_SERVER_ANSWER_BOUND_ONE))

/* How long answers to control messages took, from the moment the server found the
 * message; those to requests for a slab include making its memory. */
struct rbx_server_answers {
	size_t size_bytes; /* of what was filled in; the rest is zero */
	uint64_t count; /* of answers since the start */
	uint64_t sum_ns; /* of the times of all */
	uint64_t max_ns; /* the longest */
	uint64_t within[RBX_SERVER_ANSWER_BOUNDS_COUNT]; /* of count, at most a bound */
};

/**
 * rbx_server_answers_get_sized() - fills in how long answers took, of that size.
 * @size_bytes: of the struct, as the program knows it
 *
 * What this version of the library does not know is zero.
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
void rbx_server_answers_get_sized(struct rbx_server *server,
				  struct rbx_server_answers *answers,
				  size_t size_bytes);

/**
 * rbx_server_answers_get() - tells how long answers of a server of this process took.
 *
 * It fills in this version of the struct, as rbx_server_answers_get_sized().
 *
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
static inline void rbx_server_answers_get(struct rbx_server *server,
					  struct rbx_server_answers *answers)
{
	rbx_server_answers_get_sized(server, answers, sizeof(*answers));
}

/* A client that is connected, or away within its lease. */
struct rbx_server_client {
	char address[128]; /* where it was admitted from, only characters that print */
	uint64_t slabs_lent; /* to it, now */
	uint64_t age_ms; /* since it was admitted */
	uint64_t connected; /* 1, or 0 if it is away */
	char credential[32]; /* the name of its credential; "": it has none */
};

/**
 * rbx_server_clients_get() - tells the clients of a server of this process.
 * @clients: room for @clients_max of them; NULL if that is 0
 *
 * Returns how many clients there are, which may be more than were stored.
 * Context: any thread, callbacks too; blocks until the server has
 *	answered what has come.
 */
size_t rbx_server_clients_get(struct rbx_server *server,
			      struct rbx_server_client *clients,
			      size_t clients_max);

/* ---- Looking at a server anywhere ------------------------------------------*/

struct rbx_context;

/**
 * rbx_server_query_sized() - asks a server anywhere for numbers of that size.
 * @address: "host:port"
 * @size_bytes: of the struct, as the program knows it
 *
 * It uses the control protocol. What an older server, or this version of the library, does
 * not know is zero.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the address is no "host:port"
 *	-EINVAL, -EADDRNOTAVAIL: the name of the server cannot be resolved
 *	-ECONNREFUSED: nobody listens there
 *	-EHOSTUNREACH, -ENETUNREACH: the server cannot be reached
 *	-ETIMEDOUT: the server does not answer in time
 *	-ENODEV: with verbs: the address is not reached through an RDMA device
 *	-EXDEV: with verbs: the address is reached through another device than the open one
 *	-EPERM: the server is another machine, and there is no secret (the options
 *		secret_file and insecure)
 *	-EACCES: one side refuses the secret of the other
 *	-EBUSY: the server has no room for another client
 *	-ENOTCONN: the server was lost meanwhile
 *	-EPROTO: what answers is no RDMAbox server
 *	-EPROTONOSUPPORT: the server speaks another version of the protocol
 *	-EREMOTEIO: the server failed; its log tells why
 *	-ENOMEM: memory ran out, or the context has as many sessions as it can have
 *	-EMFILE: the process has no file descriptors left
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the server has answered.
 */
int rbx_server_query_sized(struct rbx_context *ctx, const char *address,
			   struct rbx_server_stats *stats, size_t size_bytes);

/**
 * rbx_server_query() - asks a server anywhere for its numbers.
 * @address: "host:port"
 *
 * It fills in this version of the struct.
 *
 * Returns 0, or:
 *	-E...: as rbx_server_query_sized()
 * Context: any thread; blocks until the server has answered.
 */
static inline int rbx_server_query(struct rbx_context *ctx, const char *address,
				   struct rbx_server_stats *stats)
{
	return rbx_server_query_sized(ctx, address, stats, sizeof(*stats));
}

struct rbx_server_watch;

/**
 * rbx_server_watch_open() - begins to ask a server anywhere again and again.
 * @watch: receives it
 * @address: "host:port"
 *
 * A watch stays one client of the server, and borrows nothing.
 *
 * Returns 0, or:
 *	-E...: as rbx_server_query_sized()
 * Context: any thread, not in a callback; blocks.
 * Lifetime: until rbx_server_watch_close(), before that of its context.
 */
int rbx_server_watch_open(struct rbx_context *ctx,
			  struct rbx_server_watch **watch, const char *address);

/**
 * rbx_server_watch_stats_sized() - tells numbers of that size of the server now.
 * @size_bytes: of the struct, as the program knows it
 *
 * After an error the server may have been started anew: close the watch and open another.
 *
 * Returns 0, or:
 *	-E...: as rbx_server_query_sized()
 * Context: one thread at a time, not in a callback; blocks.
 */
int rbx_server_watch_stats_sized(struct rbx_server_watch *watch,
				 struct rbx_server_stats *stats, size_t size_bytes);

/**
 * rbx_server_watch_stats() - tells the numbers of the server now.
 *
 * It fills in this version of the struct, as rbx_server_watch_stats_sized().
 *
 * Returns 0, or:
 *	-E...: as rbx_server_query_sized()
 * Context: one thread at a time, not in a callback; blocks.
 */
static inline int rbx_server_watch_stats(struct rbx_server_watch *watch,
					 struct rbx_server_stats *stats)
{
	return rbx_server_watch_stats_sized(watch, stats, sizeof(*stats));
}

/**
 * rbx_server_watch_incarnation() - tells which start of a server is watched.
 *
 * Two addresses with the same one lead to the same server.
 *
 * Returns what rbx_server_incarnation() tells there, never 0.
 * Context: any thread, callbacks too; never blocks.
 */
uint64_t rbx_server_watch_incarnation(const struct rbx_server_watch *watch);

/**
 * rbx_server_watch_labels() - tells where the server is.
 *
 * Returns its labels as rbx_server_options has them, "" if there are none; never NULL.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_server_watch_close().
 */
const char *rbx_server_watch_labels(const struct rbx_server_watch *watch);

/**
 * rbx_server_watch_close() - ends a watch.
 * @watch: NULL: nothing is done
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened the context
 * Context: any thread; blocks.
 */
int rbx_server_watch_close(struct rbx_server_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
