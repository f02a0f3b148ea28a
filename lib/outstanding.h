/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* outstanding.h - marks outstanding requests, so that none is submitted twice. */
#ifndef RBX_LIB_OUTSTANDING_H
#define RBX_LIB_OUTSTANDING_H

#include <stdbool.h>

#include "include/rdmabox/rdmabox.h"

/*
 * reserved[4] of a request marks it as outstanding: from the check at submit until its
 * callback is called, or until it is reaped. The mark contains the request's address, so
 * a copy of a request is not marked.
 */
static inline uint64_t rbx_request_mark(const struct rbx_request *request)
{
	return (uintptr_t)request ^ 0x6f75747374616e64ull;
}

static inline bool rbx_request_is_outstanding(const struct rbx_request *request)
{
	return request->reserved[4] == rbx_request_mark(request);
}

static inline void rbx_request_begin(struct rbx_request *request)
{
	request->reserved[4] = rbx_request_mark(request);
}

static inline void rbx_request_end(struct rbx_request *request)
{
	request->reserved[4] = 0;
}

/* Called after a submit that failed: unmarks the first `count` requests. */
void rbx_requests_end(struct rbx_request *const requests[], unsigned int count);

/* Returns -EBUSY and sets rbx_last_error(). */
int rbx_request_busy(void);

#endif
