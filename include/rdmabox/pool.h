/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool.h - where the servers of a volume come from.
 *
 * A pool has members: memory servers. Its text says of what kind it is:
 *
 *	host:port,host:port	a list that does not change
 *	file:PATH		a file with a member in each line, which is watched
 *	etcd://HOST:PORT[,HOST:PORT...]/NAME	what servers announce of themselves in
 *	etcds://...		etcd; etcds is the same over TLS
 *
 * rbx_volume_open() takes such a text in place of a list of servers. This header is for
 * programs that want to see the members themselves, or that serve and announce
 * themselves, as `rdmabox serve --announce` does.
 *
 * A pool is read by a thread of its own. If its source is away or broken, the last
 * members that were read stay in force, and rbx_pool_trouble() says what is wrong.
 */
#ifndef RDMABOX_POOL_H
#define RDMABOX_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_pool; /* an open pool */
struct rbx_announcement; /* a server's entry in a pool of etcd */

#define RBX_POOL_MEMBERS_MAX 1024 /* as many servers as a volume may have */
#define RBX_POOL_ADDRESS_BYTES 264 /* "[host]:port" and its NUL */
#define RBX_POOL_LABELS_BYTES 256

/* Of free_bytes, if the pool does not tell. */
#define RBX_POOL_NOT_TOLD UINT64_MAX

/* What a pool tells of a member. */
struct rbx_pool_member {
	char address[RBX_POOL_ADDRESS_BYTES]; /* "host:port" */
	char labels[RBX_POOL_LABELS_BYTES]; /* "rack=7,zone=b", or "" */
	uint64_t memory_bytes; /* that it lends in all; RBX_POOL_NOT_TOLD */
	uint64_t free_bytes; /* that nobody has borrowed; RBX_POOL_NOT_TOLD */
	uint64_t incarnation; /* identifies one start of the server; 0: not told */
	uint32_t draining; /* 1: it lends nothing more */
	uint32_t reserved; /* 0 */
	uint64_t more[4]; /* 0 */
};

/**
 * rbx_pool_open() - opens a pool and reads its members.
 * @pool: receives the pool
 * @text: "host:port,...", "file:PATH" or "etcd://HOST:PORT,.../NAME"
 *
 * Returns 0, or:
 *	-EINVAL: the text is no pool; or a line of the file, or what etcd has, is broken:
 *		rbx_last_error() says where
 *	-ENOENT, -EACCES, -EIO: the file cannot be read
 *	-ENOSPC: there are more than RBX_POOL_MEMBERS_MAX members
 *	-EFBIG: the file, or an answer of etcd, is too long
 *	-EPROTO: what answers is no etcd
 *	-EREMOTEIO: etcd reports an error
 *	-EHOSTUNREACH: none of the endpoints of etcd can be reached
 *	-ETIMEDOUT: etcd does not answer in time
 *	-EPERM: etcd wants a user, or refuses the one that was given
 *	-EOPNOTSUPP: this installation has no support of etcd
 *	-ENOMEM: memory ran out
 *	-EMFILE: the process has no file descriptors left
 *	-EAGAIN: the process may not start another thread
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks until the members have been read, with etcd for 15 s at most.
 * Lifetime: until rbx_pool_close().
 */
int rbx_pool_open(struct rbx_pool **pool, const char *text);

/**
 * rbx_pool_members_get() - tells the members now.
 * @members: room for @members_max of them; NULL if that is 0
 *
 * It clears the event descriptor.
 *
 * Returns how many members there are, which may be more than were stored.
 * Context: any thread, callbacks too; never blocks.
 */
size_t rbx_pool_members_get(struct rbx_pool *pool,
			    struct rbx_pool_member *members, size_t members_max);

/**
 * rbx_pool_event_fd() - gives a descriptor for epoll(7) or poll(2).
 *
 * It is readable after the members or the trouble have changed, until
 * rbx_pool_members_get() is called. The program must not read or close it.
 *
 * Returns the descriptor; never fails.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until rbx_pool_close().
 */
int rbx_pool_event_fd(struct rbx_pool *pool);

/**
 * rbx_pool_trouble() - tells why the members may be out of date.
 * @text: receives one line, cut to @text_bytes with its NUL; "" if all is well
 *
 * Returns 1 if there is trouble, else 0; never fails.
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_pool_trouble(struct rbx_pool *pool, char *text, size_t text_bytes);

/**
 * rbx_pool_close() - ends a pool.
 * @pool: NULL: nothing is done
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks for less than a second, even if etcd does not answer.
 */
int rbx_pool_close(struct rbx_pool *pool);

/* ---- A server announces itself ----------------------------------------------*/

/**
 * rbx_announcement_open() - begins to announce a server in a pool of etcd.
 * @announcement: receives it
 * @pool: "etcd://HOST:PORT,.../NAME"
 * @member: with address and incarnation; borrowed during the call
 *
 * The entry is under a lease: it vanishes 10 s after this process has died. A thread
 * keeps it alive, and makes it anew if it was lost. If etcd is away, that thread tries
 * again until it is back: this call does not wait for it.
 *
 * Returns 0, or:
 *	-EINVAL: the text is no pool of etcd, or the member has no address of its own,
 *		labels that are none, or no incarnation
 *	-ENOENT, -EACCES: a file that the settings for etcd name cannot be read
 *	-EPERM: the settings would send a password without TLS
 *	-EOPNOTSUPP: this installation has no support of etcd
 *	-ENOMEM: memory ran out
 *	-EMFILE: the process has no file descriptors left
 *	-EAGAIN: the process may not start another thread
 *	-EDEADLK: called in a callback
 * Context: any thread; never blocks for the network.
 * Lifetime: until rbx_announcement_close().
 */
int rbx_announcement_open(struct rbx_announcement **announcement,
			  const char *pool, const struct rbx_pool_member *member);

/**
 * rbx_announcement_update() - tells what has changed.
 * @member: with the address and the incarnation of before; borrowed during the call
 *
 * A change of free_bytes alone is written at most once in 3 s, anything else at once.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or the member is not as rbx_announcement_open() wants it
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_announcement_update(struct rbx_announcement *announcement,
			    const struct rbx_pool_member *member);

/**
 * rbx_announcement_trouble() - tells why the entry may be missing or out of date.
 * @text: receives one line, cut to @text_bytes with its NUL; "" if all is well
 *
 * Returns 1 if there is trouble, else 0; never fails.
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_announcement_trouble(struct rbx_announcement *announcement, char *text,
			     size_t text_bytes);

/**
 * rbx_announcement_close() - takes the entry back.
 * @announcement: NULL: nothing is done
 *
 * If etcd does not answer, the entry vanishes with its lease.
 *
 * Returns 0, or:
 *	-EDEADLK: called in a callback
 * Context: any thread; blocks for less than a second.
 */
int rbx_announcement_close(struct rbx_announcement *announcement);

#ifdef __cplusplus
}
#endif

#endif
