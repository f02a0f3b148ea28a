/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_admin.h - what the calls that change a named volume have in common.
 *
 *	named_admin.c     makes it, removes it
 *	named_resize.c    makes it larger
 *	named_rename.c    gives it another name
 *	named_members.c   gives it more servers
 *	named_remove.c    takes servers from it
 *	named_give_up.c   goes on without servers that are gone for good
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

/* What is left of a volume of this name, which is none any more. 0, or -errno that was reported. */
int rbx_admin_name_clear(struct rbx_crowd *crowd, const char *name);

/* 0 if those of its servers that are there are enough to change it; -EHOSTUNREACH, reported. It is
 * asked before any of them shuts anybody out. */
int rbx_admin_enough_check(const struct rbx_wire_record *record, const struct rbx_crowd *crowd);
/* 0 if all its servers are there that are not OUT; -EHOSTUNREACH, reported. why they are needed. */
int rbx_admin_members_check(const struct rbx_wire_record *record, const struct rbx_crowd *crowd,
			    const char *why);

/* 0; -EINVAL, reported: a volume cannot have so many bytes. */
int rbx_admin_size_check(uint64_t size, uint64_t slab_bytes);

/* 0; -EOWNERDEAD, reported: what is lost of the volume has to be cleared before it grows, as nobody
 * could tell it from what is new. named_give_up.c. */
int rbx_admin_lost_check(const struct rbx_wire_record *record);

/* Of those that have the volume: each shuts everybody else out, and serves us. One that falls
 * silent does not count any more. */
int rbx_admin_grant_all(struct rbx_named *named, struct rbx_crowd *crowd);

/* 0 if enough servers have accepted the record: then the next open finds it at one of them. by_all:
 * receives whether all have. */
int rbx_admin_accept_all(struct rbx_named *named, struct rbx_crowd *crowd, bool *by_all);

/* 16 digits; 0: it is another text. named_remove.c. */
uint64_t rbx_incarnation_of_text(const char *text);

#endif
