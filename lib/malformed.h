/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* malformed.h - checks the form of a request, for volumes and for borrowed memory. */
#ifndef RBX_LIB_MALFORMED_H
#define RBX_LIB_MALFORMED_H

#include <stdbool.h>

#include "include/rdmabox/rdmabox.h"

/* flags: those that the request may have. */
static inline bool rbx_request_is_malformed(const struct rbx_request *request,
					    unsigned int flags)
{
	return !request || !request->buf == !request->segments ||
	       request->op > RBX_WRITE || request->flags & ~flags;
}

/* Says what is wrong with a malformed request: -EINVAL, with rbx_last_error(). */
int rbx_request_malformed(const struct rbx_request *request, unsigned int flags);

#endif
