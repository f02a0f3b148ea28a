/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * buffers.h - how the device gets at the memory of a request: the option
 * `buffers`.
 *
 * A device reads and writes registered memory only, each piece under its key.
 * There are four ways to that, cheapest first:
 *
 *	region    the program registered it once (rbx_region_register())
 *	any key   one key covers all memory of the process, where the device has
 *		  it: the soft device, a NIC, by on_demand_paging
 *	dynMR     registered at submit, deregistered after completion
 *	preMR     copied through staging memory that was registered at open
 *
 * dynMR and preMR are the paper's (section IV-A). Copying costs by the byte,
 * registering mostly by the call, so short requests are copied and long ones
 * registered; where the two meet depends on the device (cost.h).
 *
 * The request's reserved words while it is ours: [2] the key, and whether it has
 * one; [3] its registration, or the first of its segments'.
 */
#ifndef RBX_LIB_BUFFERS_H
#define RBX_LIB_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/request.h"
#include "include/rdmabox/rdmabox.h"

struct rbx_buffers {
	/* Shorter requests are copied; 0: none; UINT64_MAX: all. Only where no
	 * one key covers all memory. */
	uint64_t register_from_bytes;
	bool must_register; /* buffers=direct: else a failure is no error */
	struct rbx_registrar *registrar; /* NULL: nothing is ever registered */
	char why[128]; /* in words, for rbx_describe() */
};

/* Decides and prepares, when device and staging memory are there. 0 or -errno. */
int rbx_buffers_open(struct rbx_context *ctx);
void rbx_buffers_close(struct rbx_context *ctx);

/* Before anything else: 0, or -EINVAL for a buffer outside of its region, or bad
 * segments. */
int rbx_buffers_check(struct rbx_request *request);

/*
 * Registers what is to be registered, of requests that were checked: all or
 * nothing. 0; -EAGAIN: too many registrations are alive; else -errno with
 * rbx_last_error(). May block for system calls.
 */
int rbx_buffers_register(struct rbx_context *ctx,
			 struct rbx_request *const requests[],
			 unsigned int count);

/* Ends the registrations of a request of which nothing is under way. */
void rbx_buffers_release(struct rbx_context *ctx, struct rbx_request *request);

/* Of a request of segments: what was registered for it (segments.h); or NULL. */
struct rbx_mr *rbx_buffers_first_mr(const struct rbx_request *request);

/* The key of a request's buffer, and the flags of its fragments for it. */
static inline uint32_t rbx_buffers_lkey(const struct rbx_request *request,
					uint8_t *fragment_flags)
{
	if (request->reserved[2] >> 32)
		*fragment_flags |= RBX_FRAGMENT_HAS_LKEY;
	return (uint32_t)request->reserved[2];
}

#endif
