/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scratch.c - memory outside of I/Os (client/scratch.h): it is late, so for whichever device. */
#include <linux/slab.h>

#include "client/scratch.h"
#include "kernel/lib/late.h"

int rbx_scratch_make(struct rbx_scratch *scratch)
{
	u32 i;

	for (i = 0; i < scratch->chunks_count; i++) {
		struct rbx_scratch_chunk *chunk = &scratch->chunks[i];

		chunk->memory = kzalloc(chunk->bytes, GFP_KERNEL);
		if (!chunk->memory) {
			rbx_scratch_free(scratch);
			return -ENOMEM;
		}
		chunk->addr = rbx_late_addr(chunk->memory);
	}
	return 0;
}

void rbx_scratch_free(struct rbx_scratch *scratch)
{
	u32 i;

	for (i = 0; i < scratch->chunks_count; i++) {
		kfree(scratch->chunks[i].memory);
		scratch->chunks[i].memory = NULL;
	}
}
