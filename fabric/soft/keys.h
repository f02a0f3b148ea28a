/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys.h - the memory that a device has registered, found by key.
 */
#ifndef SOFT_KEYS_H
#define SOFT_KEYS_H

#include <pthread.h>
#include <stdatomic.h>

#include "../fabric.h"
#include "limits.h"

struct soft_device;
struct soft_qp;

/* Covers all memory of this process; no slot of the table has this key. */
#define SOFT_ANY_LKEY 0u

/* What is behind a key. Constant while the key is valid. */
struct soft_mr {
	struct rbx_mr mr;
	const struct rbx_domain *domain; /* whose qps may use the key */
	uint32_t rights;
	int memory_fd; /* borrowed until deregistration; -1: none */
	uint64_t memory_fd_offset;
	uint32_t generation;
	uint32_t next_free; /* index of the next free slot, 0: none */
};

typedef _Atomic uint32_t soft_key_word;

struct soft_keys {
	/*
	 * One word a slot, in a memory file that peers on this host map for
	 * reading: the valid key of the slot, or 0. Stored with release after
	 * the slot is filled, loaded with acquire before it is read.
	 */
	soft_key_word *words;
	int words_fd; /* read-only, handed to peers */
	struct soft_mr *slots;
	pthread_mutex_t lock; /* guards the free list */
	uint32_t free_first; /* oldest first: a key stays dead for long */
	uint32_t free_last;
	uint32_t unused; /* slots from here on were never used */
	bool has_any_lkey; /* SOFT_ANY_LKEY is one */
};

#define SOFT_KEY_WORDS_BYTES (SOFT_KEY_COUNT * sizeof(soft_key_word))

int soft_keys_open(struct soft_keys *keys, char *error);
void soft_keys_close(struct soft_keys *keys);

int soft_create_domain(struct rbx_device *device, struct rbx_domain **domain,
		       char *error);
void soft_destroy_domain(struct rbx_domain *domain);

int soft_register_memory(struct rbx_device *device,
			 const struct rbx_mr_init *inits, size_t count,
			 struct rbx_mr **mrs, char *error);
void soft_deregister_memory(struct rbx_device *device, struct rbx_mr **mrs,
			    size_t count);

/*
 * The memory behind a key if the qp is of its domain, all of
 * [addr, addr + length) lies in it and all of `rights` were granted; else NULL.
 * The caller holds the lock of the qp, and the answer is good until it lets go
 * of it.
 */
const struct soft_mr *soft_keys_find(struct soft_qp *qp, uint32_t key,
				     uint64_t addr, uint64_t length_bytes,
				     uint32_t rights);

#endif
