/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server.h - lends this machine's memory to clients, in slabs.
 *
 * `rdmabox serve` runs this. A slab is zeroed before a client sees it, belongs to
 * one client at a time, and its keys have ended before anybody else could get the
 * memory. A client that has not been heard of for the lease loses its slabs.
 *
 * A program includes this header, which has two more:
 *	server_stats.h	the numbers and the clients of a server of this process
 *	server_watch.h	the numbers of a server anywhere
 */
#ifndef RDMABOX_SERVER_H
#define RDMABOX_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <rdmabox/integrity.h>
#include <rdmabox/server_stats.h>
#include <rdmabox/server_watch.h>

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
 * rbx_server_incarnation() - tells the number that identifies this life of the server's memory.
 *
 * A server that is started again with its memory file keeps it. One that is started without
 * has another one, and has nothing of what it had lent.
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
 * go, or the last one has closed it and it can be opened without.
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
 *	-EDEADLK: called in a callback; it goes on
 *	-EIO: all has ended, but the memory file could not be written to its medium, and no
 *		server will take it; or another error of fsync(2)
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

#ifdef __cplusplus
}
#endif

#endif
