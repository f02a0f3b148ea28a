/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tally.h - counters of a device's requests, from attach to detach.
 *
 * Requests end in the threads of several pollers, which count one at a time. A latency
 * runs from the time when the block layer made the request to the time when the volume
 * has ended it. If the block layer takes no time (queue/iostats is 0), it runs from the
 * time when the driver got the request.
 */
#ifndef RBX_KERNEL_TALLY_H
#define RBX_KERNEL_TALLY_H

#include "core/histogram.h"

/* One for reads, one for writes. */
struct rbx_disk_tally {
	u64 requests;
	u64 bytes;
	u64 errors;
	struct rbx_histogram latency; /* nanoseconds */
};

static inline void rbx_disk_tally_add(struct rbx_disk_tally *tally,
				      u32 bytes, int status, u64 begin_ns,
				      u64 end_ns)
{
	WRITE_ONCE(tally->requests, tally->requests + 1);
	WRITE_ONCE(tally->bytes, tally->bytes + bytes);
	if (status)
		WRITE_ONCE(tally->errors, tally->errors + 1);
	if (end_ns > begin_ns)
		rbx_histogram_add(&tally->latency, end_ns - begin_ns);
}

#endif
