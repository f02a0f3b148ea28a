/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* malformed.c - finds the first thing that is wrong with the form of a request. */
#include "lib/malformed.h"

#include <errno.h>

#include "lib/error.h"

int rbx_request_malformed(const struct rbx_request *request, unsigned int flags)
{
	unsigned int others;

	if (!request)
		return rbx_error(-EINVAL, "malformed request: it is NULL");
	if (!request->buf == !request->segments)
		return rbx_error(-EINVAL, "malformed request: it needs a buffer or segments, %s",
				 request->buf ? "not both" : "and has neither");
	if (request->op > RBX_WRITE)
		return rbx_error(-EINVAL, "malformed request: op %u is neither RBX_READ nor RBX_WRITE",
				 request->op);
	others = request->flags & ~flags;
	if (others == RBX_NO_RESEND)
		return rbx_error(-EINVAL, "RBX_NO_RESEND is for borrowed memory (rbx_remote_submit()): a volume sends again what a replica lacks");
	return rbx_error(-EINVAL, "malformed request: unknown flags 0x%x", others);
}
