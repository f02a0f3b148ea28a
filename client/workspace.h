/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * workspace.h - what a thread needs to read and write all replicas of a slab at the same time,
 * outside of any request: memory for the tail and for a cell of each of them, and what is under
 * way.
 *
 *	rbx_workspace_make         for any slab; then the slab and its sources are filled in
 *	rbx_workspace_begin        a read or a write of one replica, of memory of the workspace
 *	...
 *	rbx_workspace_wait         all of them have ended
 *	rbx_workspace_is_bad       whether anything has failed at a replica
 *
 * One thread at a time has it, but what is under way ends in any thread. For reconcile.c alone.
 */
#ifndef RBX_CLIENT_WORKSPACE_H
#define RBX_CLIENT_WORKSPACE_H

#include "client/scratch.h"
#include "client/volume.h"

struct rbx_workspace;

/* A read of a replica, or a write. It looks like a part of a piece to those who ask which slab
 * needs its server (rbx_last_copies_wait()). */
struct rbx_workspace_io {
	struct rbx_part part;
	struct rbx_workspace *space;
	uint32_t replica;
};

/* One of the replicas. */
struct rbx_workspace_source {
	uint32_t slot, server;
	struct rbx_loan loan;
	bool is_bad; /* atomic: something has failed there */
	uint32_t *tail; /* a chunk of the scratch */
	uint8_t *data; /* of a cell; another one */
};

/* What a thread has for the slab that it has in hand. */
struct rbx_workspace {
	struct rbx_volume_control *control;
	struct rbx_workspace *next; /* in the list of free ones */
	struct rbx_slab *slab;
	struct rbx_piece *piece; /* with the slab alone */
	uint64_t noted; /* extents in which a client was writing */
	uint32_t *checksums; /* of the map */
	uint32_t sources_count;
	struct rbx_workspace_source sources[RBX_SLOTS_MAX];
	struct rbx_scratch scratch; /* of each source its tail, then its data */
	struct rbx_scratch_chunk chunks[2 * RBX_SLOTS_MAX];
	int32_t local_err; /* atomic: a fault of this machine since the last wait, or 0 */
	uint32_t left_count; /* atomic: of the ios that are under way */
	uint32_t ios_count;
	struct rbx_workspace_io *ios;
};

/* NULL: this machine is out of memory. Blocks, as does the next one. */
struct rbx_workspace *rbx_workspace_make(struct rbx_volume_control *control);
void rbx_workspace_free(struct rbx_workspace *space);

/* Begins to read so much of a replica, or to write it. memory: of the tail or the data of one of
 * the sources. offset_bytes: in the slab, or behind it, where its tail is. */
void rbx_workspace_begin(struct rbx_workspace *space, uint32_t replica,
			 enum rbx_direction direction, uint64_t offset_bytes, const void *memory,
			 uint32_t length_bytes);
/* Waits until all that was begun has ended. Blocks. Returns 0, or -errno: this machine was at
 * fault, so it is unknown what has arrived where; the next open finds out. */
int rbx_workspace_wait(struct rbx_workspace *space);

static inline bool rbx_workspace_is_bad(const struct rbx_workspace *space, uint32_t replica)
{
	return RBX_LOAD_RELAXED(&space->sources[replica].is_bad);
}

#endif
