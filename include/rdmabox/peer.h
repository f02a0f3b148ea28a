/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer.h - one server's memory, without a volume.
 *
 * A program that knows by itself what is where borrows memory of one server. There is one copy
 * of it, and nobody looks after it: if the server dies, it is lost.
 */
#ifndef RDMABOX_PEER_H
#define RDMABOX_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_context;
struct rbx_request; /* of request.h */
struct rbx_peer; /* one memory server, without volume */
struct rbx_remote; /* memory borrowed from one peer */

/**
 * rbx_peer_connect() - connects to one memory server.
 * @peer: receives the peer
 * @server: "host:port"
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the address is no "host:port"
 *	-EINVAL, -EADDRNOTAVAIL: the name of the server cannot be resolved
 *	-EHOSTUNREACH: a server cannot be reached, or nobody listens there
 *	-ENETUNREACH: there is no way to the network of a server
 *	-ETIMEDOUT: a server does not answer in time
 *	-ENODEV: with verbs: the address is not reached through an RDMA device
 *	-EXDEV: with verbs: the address is reached through another device than the open one
 *	-EPERM: the server is another machine, and there is no secret (the options
 *		secret_file and insecure)
 *	-EACCES: one side refuses the secret of the other
 *	-EBUSY: the server has no room for another client
 *	-EPROTO: what answers is no RDMAbox server
 *	-EPROTONOSUPPORT: the server speaks another version of the protocol
 *	-EREMOTEIO: the server failed; its log tells why
 *	-ENOSPC: the context has as many peers, or queue pairs, as it can have
 *	-ENOMEM: memory or the room of the device ran out
 *	-EMFILE: the process has no file descriptors left
 *	-EAGAIN: the process may not start another thread
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the server has answered.
 * Lifetime: until rbx_peer_close().
 */
int rbx_peer_connect(struct rbx_context *ctx, struct rbx_peer **peer,
		     const char *server);

/**
 * rbx_peer_close() - ends the connection to a server.
 * @peer: NULL: nothing is done
 *
 * All that was borrowed from it has to be returned before.
 *
 * Returns 0, or:
 *	-EBUSY: borrowed memory has not been returned
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that opened it
 * Context: any thread; blocks until the server has taken leave.
 */
int rbx_peer_close(struct rbx_peer *peer);

/**
 * rbx_borrow() - borrows memory of a peer.
 * @remote: receives the memory
 * @size: bytes, 1 to the slab size of the server
 *
 * The memory reads as zeros until it is written.
 *
 * A server that runs short takes memory back after a time of grace. The program is not
 * asked before: its requests to that memory end with -EACCES, and rbx_return() is all
 * that is left to do with it. If the server then lends the same memory anew, this call
 * ends the old loan first, and waits for requests to it, but not longer than
 * peer_timeout_ms. Plain verbs (verbs.h) are not seen here: a program that uses them
 * stops when a work request ends with a remote access error.
 *
 * Returns 0, or:
 *	-EINVAL: the size is 0, or more than a slab
 *	-ENOSPC: the server has no memory left, or is about to stop
 *	-EDQUOT: the quota of the server does not allow it
 *	-ENOTCONN: the peer is not connected now, or is dead
 *	-ETIMEDOUT: the server does not answer, cannot lend its free memory yet, or
 *		requests to the old loan do not end
 *	-EPROTO: the server lends a slab that cannot be
 *	-EREMOTEIO: the server failed; its log tells why
 *	-ENOMEM: memory of this machine ran out
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the server has answered.
 * Lifetime: until rbx_return(), or until the server takes the memory back.
 */
int rbx_borrow(struct rbx_peer *peer, struct rbx_remote **remote,
	       uint64_t size);

/**
 * rbx_return() - waits for what is outstanding, and gives borrowed memory back.
 * @remote: NULL: nothing is done
 *
 * While the connection is broken it waits until the session is resumed or the peer is
 * dead. If the server does not answer for some peer_timeout_ms, the memory goes back when
 * the peer is closed.
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 *	-EINVAL: called in a child of the process that borrowed it
 * Context: any thread; blocks until the server has the memory again.
 */
int rbx_return(struct rbx_remote *remote);

/**
 * rbx_remote_submit() - hands over requests on borrowed memory.
 * @requests: borrows each until it completes; their offsets are in the borrowed memory
 * @count: 1 to 1024
 *
 * It works as rbx_submit(). There is one copy of the data: if the peer dies, requests
 * end with -EHOSTUNREACH or -ETIMEDOUT within peer_timeout_ms. Overlapping writes that
 * are outstanding together are not ordered.
 *
 * Returns 0, or:
 *	-EACCES: the server took the memory back and has lent it anew
 *	-E...: as rbx_submit()
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_remote_submit(struct rbx_remote *remote,
		      struct rbx_request *const requests[], unsigned int count);

#ifdef __cplusplus
}
#endif

#endif
