/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - the work completions of the verbs, in our words, see status.h.
 */
#include "core/status.h"

/*
 * By the numbers of the verbs' specification; who calls asserts that its enum has
 * them. What is 0 here our own device has failed in, or was asked for what we never
 * ask.
 */
static const int16_t statuses[] = {
	[1] = -EMSGSIZE, /* local length */
	/* Soft-RoCE calls a wrong local key an operation error, which by the
	 * specification is a work request of wrong form: we post none. */
	[2] = -EFAULT, /* local queue pair operation */
	[4] = -EFAULT, /* local protection */
	[5] = -ECANCELED, /* flushed */
	[7] = -EREMOTEIO, /* bad response */
	[8] = -EFAULT, /* local access */
	/* The sender of a message longer than the receive sees this. */
	[9] = -EREMOTEIO, /* remote: invalid request */
	[10] = -EACCES, /* remote access */
	[11] = -EREMOTEIO, /* remote operation */
	[12] = -ETIMEDOUT, /* transport retries exceeded */
	[13] = -ENOBUFS, /* receiver not ready, retries exceeded */
	[15] = -EREMOTEIO, /* remote: invalid read request */
	[16] = -EHOSTUNREACH, /* remote: aborted */
	[20] = -ETIMEDOUT, /* no response */
};

int32_t rbx_status_of_completion(uint32_t wc_status)
{
	if (wc_status == 0)
		return 0;
	if (wc_status >= sizeof(statuses) / sizeof(statuses[0]) ||
	    statuses[wc_status] == 0)
		return -EIO;
	return statuses[wc_status];
}
