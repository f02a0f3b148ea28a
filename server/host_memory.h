/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_memory.h - how much memory the machine has, and could still give. */
#ifndef RBX_SERVER_HOST_MEMORY_H
#define RBX_SERVER_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct rbx_host_memory {
	uint64_t total_bytes;
	uint64_t available_bytes; /* without swapping */
};

/* False where the system does not tell: then there is no pressure to see. */
bool rbx_host_memory_read(struct rbx_host_memory *memory);

#endif
