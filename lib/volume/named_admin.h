/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_admin.h - what the calls that change a named volume have in common.
 *
 *	named_admin.c     makes it, makes it larger, renames it, removes it
 *	named_members.c   gives it more servers
 *	named_remove.c    takes servers from it
 *
 * Each of them opens the volume as a program does that writes to it, so it is refused if one has
 * it open, and a change is decided in the same way.
 */
#ifndef RBX_LIB_NAMED_ADMIN_H
#define RBX_LIB_NAMED_ADMIN_H

#include "lib/volume/crowd.h"

/* Each call begins with that. crowd: servers, by rbx_crowd_open() or another one of crowd.h. 0,
 * or -errno that was reported. Blocks. */
int rbx_admin_begin(struct rbx_context *ctx, const char *call, const char *servers,
		    const char *name,
		    int (*crowd_open)(struct rbx_context *ctx, const char *servers,
				      struct rbx_crowd **crowd),
		    struct rbx_named *named, struct rbx_crowd **crowd);

/* Of those that have the volume: each shuts everybody else out, and serves us. */
int rbx_admin_grant_all(struct rbx_named *named, const struct rbx_crowd *crowd);

/* 0 if enough servers have accepted the record: then the next open finds it at one of them. by_all:
 * receives whether all have. */
int rbx_admin_accept_all(struct rbx_named *named, const struct rbx_crowd *crowd, bool *by_all);

/* 16 digits; 0: it is another text. named_remove.c. */
uint64_t rbx_incarnation_of_text(const char *text);

#endif
