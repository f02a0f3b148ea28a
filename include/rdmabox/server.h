/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.h - lends this machine's memory to clients, in slabs.
 *
 * What `rdmabox serve` runs. A slab is zeroed before a client sees it, belongs
 * to one client at a time, and its keys have ended before anybody else could
 * get the memory. A client that has not been heard of for the lease term loses
 * its slabs.
 */
#ifndef RDMABOX_SERVER_H
#define RDMABOX_SERVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_server;

struct rbx_server_options {
	size_t size_bytes; /* of this struct */
	char listen[128]; /* "host:port"; port 0 takes a free one */
	char fabric[16]; /* auto | verbs | soft | soft:tcp */
	char device[64]; /* verbs: "mlx5_0" or "mlx5_0:1"; "": choose */
	int gid_index; /* verbs: -1 chooses */
	uint64_t memory_bytes; /* to lend in all */
	uint64_t slab_bytes; /* a power of two, 64 KiB to 1 GiB */
	uint64_t quota_bytes; /* for one client; 0: all */
	uint32_t lease_ms; /* a client must be heard of this often; 60,000.
			      A client whose link is down gives its last
			      copies up after half of it */
	char secret_file[256]; /* shared secret; "": none */
	uint32_t insecure; /* 1: no secret even beyond loopback */
	/* Called with each message of a client's program: see "Messages". */
	void (*message)(struct rbx_server *server, uint64_t client,
			const void *data, size_t length, void *user);
	void *user;
	uint32_t overcommit; /* 1: memory_bytes may be more than there is */
	uint32_t clients_max; /* at a time, 1 to 16384; fewer if the device's
				 completion queues are too short for them. 0: 1024
				 at most */
	/* 1: slabs on small pages even if there are huge ones of 2 MiB, which slabs of
	 * a multiple of that take as long as there are some. */
	uint32_t small_pages;
	/* Called with each line of the log, which has no newline at its end and only
	 * characters that print, by threads of the server, and rbx_server_start() and
	 * rbx_server_drain(): it must not block, nor call the server. `user` is the same
	 * as of `message`. NULL: lines go to stderr, behind "rdmabox serve: ". */
	void (*log)(const char *line, void *user);
};

/** rbx_server_options_defaults_sized() - fills in the defaults of a struct of that
 * size. */
void rbx_server_options_defaults_sized(struct rbx_server_options *options,
				       size_t size_bytes);

/** rbx_server_options_defaults() - the same for this version of the struct. */
static inline void
rbx_server_options_defaults(struct rbx_server_options *options)
{
	rbx_server_options_defaults_sized(options, sizeof(*options));
}

/**
 * rbx_server_start() - binds, and serves from threads of its own.
 *
 * Returns 0, -EINVAL for a bad option, -ENODEV, -EADDRINUSE, -ENOMEM (also if this
 * machine, or the memory control group of the process, has less than memory_bytes),
 * -ENOENT or -EACCES for the secret file, -EPERM where a secret is missing and
 * the address is not a loopback one. rbx_last_error() has cause and fix.
 */
int rbx_server_start(struct rbx_server **server,
		     const struct rbx_server_options *options);

/** rbx_server_address() - "host:port" as bound. Valid while it serves. */
const char *rbx_server_address(const struct rbx_server *server);

/** rbx_server_describe() - one line: fabric, device, and why it was taken. */
const char *rbx_server_describe(const struct rbx_server *server);

/**
 * rbx_server_drain() - lends nothing more, asks clients to take their slabs
 * elsewhere, and waits until no slab is lent.
 *
 * Returns 0, -ETIMEDOUT with slabs still lent, -EDEADLK in a callback. Blocks.
 */
int rbx_server_drain(struct rbx_server *server, uint32_t timeout_ms);

/** rbx_server_stop() - ends all access and all connections, frees all. Returns 0,
 * or -EDEADLK in a callback. */
int rbx_server_stop(struct rbx_server *server);

/* ---- Messages --------------------------------------------------------------
 *
 * The program that serves and the programs of its clients may talk, through the
 * session that there is anyway (message.h has the client's half).
 * A client is a number that its messages come with; it stays the same while the
 * client's session lasts, whatever becomes of connections, and is not used again.
 *
 * options.message is called from the server's control thread: one at a time, in
 * the order each client sent. It may send messages. It must not block, for
 * meanwhile nobody borrows, and must not stop the server. Without it the
 * messages of clients end with -EOPNOTSUPP.
 */

/**
 * rbx_server_message_submit() - sends a message to a client's program.
 * @client: as told to options.message.
 * @data: copied; @length at most RBX_MESSAGE_BYTES_MAX (message.h).
 * @done: called once: 0 when the client's handler has had it, -EOPNOTSUPP where
 *	it has none, -EHOSTUNREACH when the client has left or its lease has run
 *	out, -ECANCELED when the server was stopped; after these two the client
 *	may have had it or not. From the control thread or, with -ECANCELED,
 *	rbx_server_stop(). May send, must not block. NULL: nobody wants to know.
 *
 * Never blocks. Messages of one client arrive in the order of the calls. Returns
 * 0, -EINVAL, -ENOENT where there is no such client (any more), -EAGAIN where 32
 * messages to the client wait already: then nothing was sent.
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
	X(messages_sent, "messages sent to clients' programs")

struct rbx_server_stats {
	size_t size_bytes; /* in: of this struct; out: of what was filled in */
#define RBX_SERVER_STATS_FIELD(name, what) uint64_t name;
	RBX_SERVER_STATS(RBX_SERVER_STATS_FIELD)
#undef RBX_SERVER_STATS_FIELD
};

/** rbx_server_stats_get() - of a server of this process. */
void rbx_server_stats_get(struct rbx_server *server,
			  struct rbx_server_stats *stats);

struct rbx_context;

/**
 * rbx_server_query() - of a server anywhere, over the control protocol.
 *
 * Returns 0, -EHOSTUNREACH, -ETIMEDOUT, -EACCES, -EPROTO. Blocks.
 */
int rbx_server_query(struct rbx_context *ctx, const char *address,
		     struct rbx_server_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
