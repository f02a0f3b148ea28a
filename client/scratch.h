/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scratch.h - memory for what is read of servers, and written to them, outside of any request. The
 * host makes it.
 *
 * It consists of chunks, each of which is one range for any device. In a kernel the address of a
 * chunk in a fragment is another one than that of the CPU (kernel/lib/late.h). When a fragment is
 * done, the CPU sees what was read.
 */
#ifndef RBX_CLIENT_SCRATCH_H
#define RBX_CLIENT_SCRATCH_H

#include "core/port.h"

struct rbx_scratch_chunk {
	uint32_t bytes;
	void *memory;
	uint64_t addr; /* for fragments */
};

struct rbx_scratch {
	struct rbx_scratch_chunk *chunks; /* of whoever makes it, as long as it is there */
	uint32_t chunks_count;
};

/* ---- What the host does for it -------------------------------------------------------------- */

/* Zeroed memory for all chunks, whose sizes are set and which have none. 0, -ENOMEM; the scratch is
 * free then. Blocks. */
int rbx_scratch_make(struct rbx_scratch *scratch);
/* Nothing of it is under way. One that was never made may be freed, too. */
void rbx_scratch_free(struct rbx_scratch *scratch);

#endif
