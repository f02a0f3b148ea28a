/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_memory.h - the memory of this process: all there is, and how much is still
 * available. It is that of the machine, or of the control group if that has less.
 */
#ifndef RBX_SERVER_HOST_MEMORY_H
#define RBX_SERVER_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/memory_group.h"

struct rbx_host_memory {
	uint64_t total_bytes;
	uint64_t available_bytes; /* without swapping */
	char where[RBX_MEMORY_GROUP_NAME_MAX]; /* whose memory it is, as text */
};

/* False if the system does not tell. Then no shortage can be seen. */
bool rbx_host_memory_read(struct rbx_host_memory *memory);

#endif
