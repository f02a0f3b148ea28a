/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * answer.h - reads the answers of etcd's JSON gateway.
 *
 * All bytes are foreign. What is no JSON, lacks a field or cannot be true is -EPROTO with
 * a text; nothing is believed before it was checked. Numbers of 64 bits are texts in this
 * JSON. Keys and values are in base64.
 */
#ifndef RBX_ETCD_ANSWER_H
#define RBX_ETCD_ANSWER_H

#include "pool/store.h"

#define ETCD_TOKEN_BYTES 1024 /* a JWT has some hundred */

/* The codes of gRPC that matter. */
enum etcd_code {
	ETCD_INVALID_ARGUMENT = 3,
	ETCD_NOT_FOUND = 5,
	ETCD_PERMISSION_DENIED = 7,
	ETCD_OUT_OF_RANGE = 11, /* the revision was compacted */
	ETCD_UNAVAILABLE = 14, /* no leader, or it stops */
	ETCD_UNAUTHENTICATED = 16, /* the token has run out */
};

struct etcd_bytes {
	const char *bytes;
	size_t length;
};

/* *more: there are more than were visited. Each key must begin with the prefix. */
int etcd_answer_range(struct etcd_bytes json, const char *prefix, uint32_t max,
		      rbx_store_visit_fn *visit, void *user, uint64_t *revision,
		      char *error);
/* *revision: of the store after it. */
int etcd_answer_txn(struct etcd_bytes json, bool *succeeded, uint64_t *revision,
		    char *error);
/* How many keys the transaction has removed. */
uint64_t etcd_answer_removed(struct etcd_bytes json);
int etcd_answer_lease(struct etcd_bytes json, uint64_t *lease, char *error);
/* -ENOENT: it has run out. */
int etcd_answer_kept(struct etcd_bytes json, char *error);
int etcd_answer_token(struct etcd_bytes json, char *token, char *error);
/* One line of a watch. -ESTALE: the revision was compacted. */
int etcd_answer_watch(struct etcd_bytes json, const char *prefix,
		      rbx_store_visit_fn *visit, void *user, char *error);
/* What an answer that is no success says: only characters that print; "" if nothing. The
 * code, or -1. text: RBX_STORE_ERROR_BYTES. */
int etcd_answer_failure(struct etcd_bytes json, char *text);

/* encode.c: base64. The caller frees it; NULL: no memory. */
char *etcd_base64(const char *bytes, size_t length);
/* The first key behind all keys with this prefix, in base64. */
char *etcd_base64_end(const char *prefix);
/* Into room of *length; -1: it is no base64, or longer. A NUL is put behind, in the room. */
int etcd_base64_read(const char *text, char *bytes, size_t *length);

#endif
