/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * local_keys.h - the keys of a request whose memory has several.
 *
 * A request has a key for each of its segments, unless one is copied; and if regions of the
 * cache (region_cache.h) have its memory together, a key for each region. They are a chain in
 * the order of the request's bytes. A walk (segments.h) goes along it.
 *
 * The entries come from a pool of the context, so that nothing is allocated. If it is empty, the
 * memory is copied, as if it could not be registered.
 */
#ifndef RBX_LIB_LOCAL_KEYS_H
#define RBX_LIB_LOCAL_KEYS_H

#include <pthread.h>

#include "fabric/fabric.h"
#include "lib/buffers/registrar.h"

/* The memory of 4,096 registrations, and as many parts of regions. */
#define RBX_LOCAL_KEYS_MAX (2u * RBX_REGISTRATIONS_MAX)

struct rbx_local_key {
	struct rbx_local_key *next; /* of the request, or of the free ones */
	uint64_t addr; /* the bytes of the request that it is for */
	uint32_t length_bytes;
	uint32_t lkey;
	uint32_t segment; /* index of the segment that these bytes are of */
	uint32_t region; /* of the cache, if mr is NULL */
	struct rbx_mr *mr; /* registered for the request */
};

struct rbx_local_keys {
	pthread_mutex_t lock; /* guards all below */
	struct rbx_local_key *free_first;
	uint32_t touched_count; /* the others were never used */
	struct rbx_local_key keys[RBX_LOCAL_KEYS_MAX];
};

/* 0 or -ENOMEM. */
int rbx_local_keys_open(struct rbx_local_keys **keys);
/* All must have been given back. NULL: does nothing. */
void rbx_local_keys_close(struct rbx_local_keys *keys);

/* A chain of so many, at least one; NULL: there are not so many. Any thread; never blocks. */
struct rbx_local_key *rbx_local_keys_take(struct rbx_local_keys *keys, uint32_t count);
void rbx_local_keys_give(struct rbx_local_keys *keys, struct rbx_local_key *first);

#endif
