/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool.h - a pool and the kinds behind it.
 *
 *	pool.c          the public calls; finds the kind by the text
 *	members.c       what may be a member
 *	worker.c        the thread of a pool, and what is wrong with it
 *	list.c          "host:port,host:port"
 *	file_lines.c    the lines of a file
 *	file.c          reads the file, and again when it changes
 *	entry.c         the JSON of a server in a store
 *	store.h         the store: ordered keys, revisions, leases; etcd/ is one
 *	store_module.c  loads the part that knows etcd
 *	store_pool.c    reads and watches the entries of a store
 *	announcement.c  writes one, and keeps it alive
 *	backoff.h       how long to wait before the next try
 *
 * A kind reads its members in open(), so that an open pool has some. Then it may start
 * the worker of the pool, which gives new members to rbx_pool_set() and what is wrong to
 * rbx_pool_complain().
 */
#ifndef RBX_POOL_H
#define RBX_POOL_H

#include "lib/error.h"
#include "pool/members.h"
#include "pool/worker.h"

struct rbx_pool_kind {
	const char *prefix; /* of the text; "": whatever has no other one */
	/* `place` is the text behind the prefix. Sets the members and may start the worker.
	 * 0 or -errno with rbx_last_error(). */
	int (*open)(struct rbx_pool *pool, const char *place);
	/* Frees kind_data, after the worker has ended. Called after a failed open(), too.
	 * NULL: there is nothing to free. */
	void (*close)(struct rbx_pool *pool);
};

extern const struct rbx_pool_kind rbx_pool_list, rbx_pool_file;
extern const struct rbx_pool_kind rbx_pool_etcd, rbx_pool_etcds;

struct rbx_pool {
	const struct rbx_pool_kind *kind;
	void *kind_data;
	int event_fd; /* readable: something has changed */
	struct rbx_pool_worker worker; /* its lock guards the members */
	struct rbx_members members;
};

/* Takes the members over and empties *members. trouble: what is wrong with some; "": nothing. */
void rbx_pool_set(struct rbx_pool *pool, struct rbx_members *members, const char *trouble);
/* The members of before stay in force. */
void rbx_pool_complain(struct rbx_pool *pool, const char *text);

/* Whether members may come and go. */
bool rbx_pool_text_may_change(const char *text);

/* file_lines.c: reads lines "host:port [name=value ...]". The text has a NUL at its end, and
 * is changed. 0; -EINVAL: rbx_last_error() has path and line; -ENOSPC: too many; -ENOMEM. */
int rbx_pool_lines_parse(const char *path, char *text, size_t length_bytes,
			 struct rbx_members *members);

#endif
