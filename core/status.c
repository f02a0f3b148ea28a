/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - the status codes of verbs completions as errno values, see status.h.
 */
#include "core/status.h"

/*
 * 0 in this table means: our own device has failed, or was asked for something that we never
 * ask for.
 */
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
