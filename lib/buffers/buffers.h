/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * buffers.h - gives the device access to the memory of a request: the option `buffers`.
 *
 * A device reads and writes only registered memory, and each registration has a key.
 * There are five ways to get one, the cheapest first:
 *
 *	region    the program registered the memory once (rbx_region_register())
 *	any key   one key covers all memory of the process, if the device has such a key:
 *	          the soft device has it, a NIC with on_demand_paging too
 *	cached    registered for an earlier request, and kept (region_cache.h)
 *	dynMR     registered at submit, deregistered after completion
 *	preMR     copied through staging memory that was registered at open
 *
 * dynMR and preMR are the paper's (section IV-A). The cost of copying grows with the
 * length; the cost of registering is mostly the system call. So short requests are copied
 * and long ones registered. The length at which both cost the same depends on the device
 * (cost.h).
 *
 * With buffers=cached a request uses the regions that the cache has of its memory, or makes them.
 * What cannot be cached now, such as a mapping of a file, is registered for its request or
 * copied, as with auto.
 *
 * Reserved words of a request while it is outstanding: [2] the key, and whether it has
 * one; [3] its registration, its region, or the first of its keys (local_keys.h).
 */
#ifndef RBX_LIB_BUFFERS_H
#define RBX_LIB_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/request.h"
#include "include/rdmabox/rdmabox.h"

/* Shorter memory is copied, and not looked up in the cache: a look-up asks the kernel whether
 * memory is being changed, and takes as long as to copy so much (bench/registration). */
#define RBX_CACHED_BYTES_MIN (16u << 10)

struct rbx_buffers {
	/* Shorter requests are copied; 0: none; UINT64_MAX: all. Used only if no one key
	 * covers all memory. */
	uint64_t register_from_bytes;
	struct rbx_region_cache *cache; /* NULL: nothing is kept */
	struct rbx_local_keys *keys; /* NULL: nothing is ever registered */
	/* buffers=direct: a failed registration is an error. Else the request is copied. */
	bool must_register;
	struct rbx_registrar *registrar; /* NULL: nothing is ever registered */
	char why[384]; /* in words, for rbx_describe() */
};

/* Decides and prepares. The device and the staging memory must be there. 0 or -errno. */
int rbx_buffers_open(struct rbx_context *ctx);
void rbx_buffers_close(struct rbx_context *ctx);

/* Called before all else. 0; -EINVAL: the buffer is not in its region, or a segment is
 * bad. */
int rbx_buffers_check(struct rbx_request *request);

/*
 * Registers what has to be registered for requests that were checked: all or nothing. 0;
 * -EAGAIN: too many registrations are alive; else -errno with rbx_last_error(). May block
 * for system calls.
 */
int rbx_buffers_register(struct rbx_context *ctx,
			 struct rbx_request *const requests[],
			 unsigned int count);

/*
 * Gives up the keys that a request has of the cache. It is registered as a whole, or copied. So it
 * is cut nowhere but where segments meet. For requests that regions would cut into more pieces
 * than there are.
 */
void rbx_buffers_register_whole(struct rbx_context *ctx, struct rbx_request *request);

/* Ends the registrations of a request. No piece of it may be in flight. */
void rbx_buffers_release(struct rbx_context *ctx, struct rbx_request *request);

/* What has to be given back, by the lowest bits of the reserved word. */
enum rbx_buffers_held {
	RBX_BUFFERS_HOLD_NOTHING,
	RBX_BUFFERS_HOLD_MR, /* registered for the request */
	RBX_BUFFERS_HOLD_REGION, /* one of the cache */
	RBX_BUFFERS_HOLD_KEYS,
	RBX_BUFFERS_HELD, /* what is behind it */
};

/* The chain of the keys of a request (local_keys.h); NULL: it has none, or one key for all. */
static inline struct rbx_local_key *rbx_buffers_keys(const struct rbx_request *request)
{
	uint64_t held = request->reserved[3];

	if (held % RBX_BUFFERS_HELD != RBX_BUFFERS_HOLD_KEYS)
		return NULL;
	return (struct rbx_local_key *)(uintptr_t)(held - RBX_BUFFERS_HOLD_KEYS);
}

/* Whether it takes a walk (segments.h) to find the keys of the request. */
static inline bool rbx_buffers_are_many(const struct rbx_request *request)
{
	return request->segments || rbx_buffers_keys(request);
}

/* The key of a request's buffer, and the flags that its fragments need for it. */
static inline uint32_t rbx_buffers_lkey(const struct rbx_request *request,
					uint8_t *fragment_flags)
{
	if (request->reserved[2] >> 32)
		*fragment_flags |= RBX_FRAGMENT_HAS_LKEY;
	return (uint32_t)request->reserved[2];
}

#endif
