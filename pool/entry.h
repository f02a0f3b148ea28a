/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * entry.h - what a server writes of itself into a store, and what is read of it.
 *
 *	/rdmabox/NAME/servers/0123456789abcdef
 *	{"address": "10.0.0.1:7471", "labels": "rack=7", "memory_bytes": 68719476736,
 *	 "free_bytes": 1073741824, "draining": false}
 *
 * The key ends with the incarnation in 16 hex digits: a server that was started anew has
 * another key, and the old one goes with its lease. A reader ignores fields that it does
 * not know, so that there may be more one day.
 */
#ifndef RBX_POOL_ENTRY_H
#define RBX_POOL_ENTRY_H

#include "pool/members.h"

#define RBX_ENTRY_BYTES_MAX 1024 /* of the JSON; address and labels are half of it */
#define RBX_POOL_NAME_BYTES 64 /* of the NAME, with its NUL */
#define RBX_ENTRY_ERROR_BYTES 512

/* "HOST:PORT,HOST:PORT/NAME" in parts. endpoints: as long as the text. 0, or -EINVAL with
 * rbx_last_error(). */
int rbx_pool_place_parse(const char *place, char *endpoints, char *name);
/* "/rdmabox/NAME/servers/". key_bytes: at least RBX_POOL_NAME_BYTES + 40. */
void rbx_entry_prefix(const char *name, char *key, size_t key_bytes);
/* The same with the incarnation behind it. */
void rbx_entry_key(const char *name, uint64_t incarnation, char *key, size_t key_bytes);

/* The incarnation of a key; 0: it is none. */
uint64_t rbx_entry_incarnation(const char *prefix, const char *key);
/* Returns the length. */
size_t rbx_entry_write(const struct rbx_pool_member *member, char *json, size_t json_bytes);
/* 0, or -EINVAL with what is wrong. The incarnation is that of the key. */
int rbx_entry_read(const char *json, size_t json_bytes, struct rbx_pool_member *member,
		   char *error);

#endif
