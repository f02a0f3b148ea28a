/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keys.h - the memory that a device has registered, found by key.
 */
#ifndef SOFT_KEYS_H
#define SOFT_KEYS_H

#include <pthread.h>
#include <stdatomic.h>

#include "../fabric.h"
#include "key_words.h"
#include "limits.h"

struct soft_device;
struct soft_qp;

/* Covers all memory of this process; no slot of the table has this key. */
#define SOFT_ANY_LKEY 0u

struct soft_domain {
	struct rbx_domain domain;
	struct soft_key_words shown; /* words of its keys, shared with peers on this host */
};

/* What a key stands for. Constant while the key is valid, except the key itself. */
struct soft_mr {
	struct rbx_mr mr;
	/*
	 * The valid key of the slot, or 0. Stored with release after the slot is filled,
	 * loaded with acquire before it is read. No other process can see it: shared words
	 * are no basis for our own checks.
	 */
	_Atomic uint32_t key;
	const struct soft_domain *domain; /* whose qps may use the key */
	const struct soft_qp *qp; /* a window: only the peer of this one; NULL: all of the domain */
	uint32_t rights;
	int memory_fd; /* borrowed until deregistration; -1: none */
	uint64_t memory_fd_offset;
	uint32_t generation;
	uint32_t next_free; /* index of the next free slot, 0: none */
};

struct soft_keys {
	struct soft_domain own; /* the device's from the start */
	struct soft_mr *slots;
	pthread_mutex_t lock; /* guards the free list */
	uint32_t free_first; /* oldest first: a key stays invalid for long */
	uint32_t free_last;
	uint32_t unused; /* slots from here on were never used */
	bool has_any_lkey; /* SOFT_ANY_LKEY is a valid key */
};

/* NULL means the device's own. */
static inline const struct soft_domain *
soft_domain_of(const struct soft_keys *keys, const struct rbx_domain *domain)
{
	return domain ? (const struct soft_domain *)domain : &keys->own;
}

/* shown: share the words with peers on this host, if the system allows that safely. */
int soft_keys_open(struct soft_keys *keys, bool shown, char *error);
void soft_keys_close(struct soft_keys *keys);

int soft_create_domain(struct rbx_device *device, struct rbx_domain **domain,
		       char *error);
void soft_destroy_domain(struct rbx_domain *domain);

int soft_register_memory(struct rbx_device *device,
			 const struct rbx_mr_init *inits, size_t count,
			 struct rbx_mr **mrs, char *error);
void soft_deregister_memory(struct rbx_device *device, struct rbx_mr **mrs,
			    size_t count);

/* The same for a part of a region, and for the peer of this qp only. */
int soft_register_window(struct soft_qp *qp,
			 const struct rbx_device_window_init *init,
			 struct rbx_mr **mr, char *error);

/*
 * The memory of a key if the qp is of its domain, all of [addr, addr + length) lies in it and
 * all of `rights` were granted; else NULL. The caller holds the lock of the qp, and the
 * result is valid until it releases the lock.
 */
const struct soft_mr *soft_keys_find(struct soft_qp *qp, uint32_t key,
				     uint64_t addr, uint64_t length_bytes,
				     uint32_t rights);

/* Whether the owner's work requests, in this domain, may use the memory of an entry. */
bool soft_keys_cover(struct soft_keys *keys, const struct soft_domain *domain,
		     const struct rbx_sge *sge, uint32_t rights);

/*
 * Ends a key for the peer of the qp, whose lock the caller holds. False: the key is not of
 * the qp's domain, or its owner has not allowed that.
 */
bool soft_keys_invalidate(struct soft_qp *qp, uint32_t key);

#endif
