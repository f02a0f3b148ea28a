/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scratch.c - memory outside of requests (client/scratch.h): a device of a program sees what the
 * CPU sees, at the same address. */
#include "client/scratch.h"

#include <errno.h>
#include <stdlib.h>

int rbx_scratch_make(struct rbx_scratch *scratch)
{
	struct rbx_scratch_chunk *chunks = scratch->chunks;
	uint32_t i;

	for (i = 0; i < scratch->chunks_count; i++) {
		chunks[i].memory = calloc(1, chunks[i].bytes);
		chunks[i].addr = (uintptr_t)chunks[i].memory;
		if (!chunks[i].memory) {
			rbx_scratch_free(scratch);
			return -ENOMEM;
		}
	}
	return 0;
}

void rbx_scratch_free(struct rbx_scratch *scratch)
{
	uint32_t i;

	for (i = 0; i < scratch->chunks_count; i++) {
		free(scratch->chunks[i].memory);
		scratch->chunks[i].memory = NULL;
	}
}
