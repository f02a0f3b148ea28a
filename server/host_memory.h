/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_memory.h - how much memory there is for this process, and could still be had:
 * of the machine, or of its control group if that has less.
 */
#ifndef RBX_SERVER_HOST_MEMORY_H
#define RBX_SERVER_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/memory_group.h"

struct rbx_host_memory {
	uint64_t total_bytes;
	uint64_t available_bytes; /* without swapping */
	char where[RBX_MEMORY_GROUP_NAME_MAX]; /* whose total it is, in words */
};

/* False where the system does not tell: then there is no pressure to see. */
bool rbx_host_memory_read(struct rbx_host_memory *memory);

#endif
