/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - the work completions of the verbs, in our words, see status.h.
 */
#include "core/status.h"

/* What is 0 here our own device has failed in, or was asked for what we never ask. */
#define STATUS(name, number, errno) [number] = errno,
static const int16_t statuses[] = { RBX_COMPLETION_STATUSES(STATUS) };

int32_t rbx_status_of_completion(uint32_t wc_status)
{
	if (wc_status == 0)
		return 0;
	if (wc_status >= sizeof(statuses) / sizeof(statuses[0]) ||
	    statuses[wc_status] == 0)
		return -EIO;
	return statuses[wc_status];
}
