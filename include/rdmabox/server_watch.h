/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_watch.h - the numbers of a server anywhere: once, or again and again.
 */
#ifndef RDMABOX_SERVER_WATCH_H
#define RDMABOX_SERVER_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include <rdmabox/server_stats.h>

#ifdef __cplusplus
extern "C" {
#endif

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
