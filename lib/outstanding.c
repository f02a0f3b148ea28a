/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* outstanding.c - the parts of outstanding.h that are seldom needed. */
#include "lib/outstanding.h"

#include <errno.h>

#include "lib/error.h"

void rbx_requests_end(struct rbx_request *const requests[], unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		rbx_request_end(requests[i]);
}

int rbx_request_busy(void)
{
	return rbx_error(-EBUSY, "a request is outstanding already, or twice in this call; submit it again after its completion");
}
