/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store.h - an ordered store of keys and values, for names and membership: a few KiB,
 * never data.
 *
 * Each change of a store has a revision, a number that only grows. A key has the revision
 * of its last change. That is enough for three things:
 *
 *	compare and commit	put or remove a key only if it still has the revision
 *				that was read
 *	read and watch		read a range, which tells the store's revision; then watch
 *				from the next one on: nothing between is missed
 *	leases			a key may be bound to a lease, and goes with it
 *
 * etcd/ is an engine of this. An embedded one fits as well: all calls wait, so a database
 * in a file has nothing to add but a watch.
 *
 * A store is used by one thread at a time. A call waits for a bounded time, and not at all
 * once stop_fd is readable: then it returns -ECANCELED. After an error, `error` of the
 * store has one line for the user. Keys are texts without NUL.
 */
#ifndef RBX_POOL_STORE_H
#define RBX_POOL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RBX_STORE_ERROR_BYTES 512
#define RBX_STORE_KEY_BYTES 512 /* with its NUL */
#define RBX_STORE_VALUE_BYTES_MAX 4096
#define RBX_STORE_ABSENT 0 /* as a revision to compare with: there is no such key */
#define RBX_STORE_ANY UINT64_MAX /* the same: do not compare */
#define RBX_STORE_NO_LEASE 0

struct rbx_store_ops;

struct rbx_store {
	const struct rbx_store_ops *ops;
	char error[RBX_STORE_ERROR_BYTES];
};

struct rbx_store_entry {
	const char *key; /* as it is in the store, with the prefix that was asked for */
	const char *value; /* with a NUL behind it; NULL: the key was removed */
	size_t value_bytes;
	uint64_t revision;
};

/* Entries are borrowed during the call. Non-zero ends the visit with that error. */
typedef int rbx_store_visit_fn(void *user, const struct rbx_store_entry *entry);

struct rbx_store_place {
	const char *endpoints; /* "host:port,host:port" */
	bool is_encrypted; /* by TLS */
	int stop_fd;
};

/*
 * Errors that each call may return besides its own:
 *	-ECANCELED	stop_fd is readable
 *	-EHOSTUNREACH	no endpoint can be reached
 *	-ETIMEDOUT	no answer in time
 *	-EPERM		the store wants a user, or refuses this one
 *	-EPROTO		what answers is no such store, or it lies
 *	-EFBIG		the answer is longer than it may be
 *	-EREMOTEIO	the store itself reports an error
 *	-ENOMEM		memory ran out
 * A write that ends with -EHOSTUNREACH was not done. One that ends with -ETIMEDOUT,
 * -EREMOTEIO, -EPROTO or -ECANCELED was done or not: read the key again.
 */
struct rbx_store_ops {
	/* Does not touch the network. `error` has RBX_STORE_ERROR_BYTES. */
	int (*open)(const struct rbx_store_place *place, struct rbx_store **store,
		    char *error);
	void (*close)(struct rbx_store *store);

	/* Visits the key, if it is there. -ENOENT: it is not. */
	int (*get)(struct rbx_store *store, const char *key, rbx_store_visit_fn *visit,
		   void *user);
	/* Visits all keys with the prefix, in order. *revision: of the store at that moment.
	 * -ENOSPC: there are more than `max`; none was visited. */
	int (*range)(struct rbx_store *store, const char *prefix, uint32_t max,
		     rbx_store_visit_fn *visit, void *user, uint64_t *revision);
	/* -EEXIST: the key has another revision than `if_revision`. -ENOENT: there is no such
	 * lease. *revision: of the key, as it is now. */
	int (*put)(struct rbx_store *store, const char *key, const char *value,
		   size_t value_bytes, uint64_t if_revision, uint64_t lease,
		   uint64_t *revision);
	/* -EEXIST: as put(). -ENOENT: there is no such key, if any revision would do. */
	int (*remove)(struct rbx_store *store, const char *key, uint64_t if_revision);

	int (*lease_grant)(struct rbx_store *store, uint32_t seconds, uint64_t *lease);
	/* -ENOENT: it has run out. */
	int (*lease_keep)(struct rbx_store *store, uint64_t lease);
	/* Its keys go at once. */
	int (*lease_end)(struct rbx_store *store, uint64_t lease);

	/* Begins to watch the keys with the prefix from a revision on; at most one watch. */
	int (*watch)(struct rbx_store *store, const char *prefix, uint64_t from_revision);
	/* Visits the changes that come within this time, in order. 0, even if none came.
	 * -ESTALE: the store has forgotten that revision: read the range anew. After any
	 * error the watch has ended. */
	int (*watch_next)(struct rbx_store *store, uint32_t timeout_ms,
			  rbx_store_visit_fn *visit, void *user);
	void (*watch_end)(struct rbx_store *store);
};

/* The engine for etcd: in a part of its own, so that a program without such a pool does not
 * load libcurl. This is the only name that the part exports. */
#define RBX_STORE_ETCD_FILE "librdmabox-etcd.so"
#define RBX_STORE_ETCD_SYMBOL "rbx_store_etcd_1" /* 1: of this table of operations */

extern const struct rbx_store_ops rbx_store_etcd_1;

/* store_module.c: loads it. 0; -EOPNOTSUPP with rbx_last_error(). */
int rbx_store_etcd_load(const struct rbx_store_ops **ops);

#endif
