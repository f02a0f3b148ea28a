/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow.h - the path of pieces through a volume: started, sent, and handled when their parts
 * are done.
 *
 *	rbx_flow_start(flow, pieces)         each makes the first step of its slab
 *	    ops->submit(server, parts)       parts, those of a server together
 *	...a poll finds parts done:
 *	rbx_flow_parts_done(parts)           each makes the next step of its slab
 *	    ops->submit(server, parts)       to another replica, or of waiting pieces
 *	    ops->ended(pieces)               to be joined into their requests
 *
 * A step is made under the lock of its slab (slab.h). Its results are handled without the
 * lock: parts are sent, checksums computed, ended pieces handed to the host. All that one
 * poll finds done makes these steps together: neighbours in the list that belong to the same
 * slab share one holding of its lock. Nothing here allocates or blocks.
 *
 * A piece that ends in its first step is ended by the poller and never inside
 * rbx_flow_start(): a callback that submits again would recurse.
 *
 * A volume has one flow, and one upkeep (upkeep.h) for its replicas. Both are in the host's
 * memory. The host brings threads and connections, and the functions of the tables. It takes
 * pieces from the pool, fills them in from its requests with the map, and puts them back.
 */
#ifndef RBX_FLOW_H
#define RBX_FLOW_H

#include "core/held.h"
#include "core/piece_pool.h"
#include "core/rebuild.h"
#include "core/volume.h"

struct rbx_flow;

/* What the host does for a flow. None of it blocks, none is called with a lock
 * held. */
struct rbx_flow_ops {
	/* Submits the parts, linked from first to last, to the peer of a server. None of them
	 * ends before it returns. */
	void (*submit)(struct rbx_flow *flow, uint32_t server,
		       struct rbx_fragment *first, struct rbx_fragment *last);
	/* Has the poller call done() of a fragment. */
	void (*end_later)(struct rbx_flow *flow, struct rbx_fragment *fragment);
	/* Takes ended pieces of requests, at least one. By the poller. The host fills the
	 * memory of those with reads_zeros. */
	void (*ended)(struct rbx_flow *flow, struct rbx_piece_list *pieces);
	/* A round of upkeep is needed, or a rebuild has ended. Any thread. */
	void (*wake)(struct rbx_flow *flow);
	/* For volumes with checksums: where the CPU finds the memory of a piece, after making
	 * data that was read into it visible to the CPU. It is only read. Any thread. */
	const void *(*look)(struct rbx_flow *flow, const struct rbx_piece *piece);
	/* For volumes with tails (tails.h), before they are written: makes the checksums of a piece
	 * visible to the device, where it reads them. NULL: it sees what the CPU does. Any
	 * thread. */
	void (*show)(struct rbx_flow *flow, struct rbx_piece *piece);
};

/* Added to with RBX_ADD_RELAXED(). */
struct rbx_flow_counters {
	uint64_t failovers; /* reads sent to another replica */
	uint64_t checksum_errors; /* pages that did not match their checksums */
	uint64_t checksum_repairs; /* reads that rewrote a bad copy */
	uint64_t rebuilt_bytes;
};

struct rbx_flow {
	const struct rbx_flow_ops *ops;
	struct rbx_flow_counters *counters; /* several flows may share it */
	struct rbx_volume_map *map; /* atomic until the volume is open; NULL before */
	struct rbx_piece_pool pool;
	struct rbx_rebuild rebuild;
	struct rbx_held held; /* of a named volume */
	struct rbx_domains domains; /* of the servers; known before there is a map */
};

/* counters: borrowed for the life of the flow. */
void rbx_flow_init(struct rbx_flow *flow, const struct rbx_flow_ops *ops,
		   struct rbx_flow_counters *counters);

/* Bytes of memory for so many pieces of a volume of this shape. */
size_t rbx_flow_pool_size(const struct rbx_volume_shape *shape,
			  uint32_t pieces_count);

/*
 * Opens it with a map of this shape for these servers, and so many pieces. The memory is
 * zeroed, and borrowed for the life of the flow: rbx_volume_map_size(), rbx_flow_pool_size().
 */
void rbx_flow_open(struct rbx_flow *flow, const struct rbx_volume_shape *shape,
		   void *map_memory, uint64_t seed, uint32_t server_count,
		   void *pool_memory, uint32_t pieces_count);

/* Starts pieces that were aimed at their slabs; the list is empty afterwards. */
void rbx_flow_start(struct rbx_flow *flow, struct rbx_piece_list *pieces);

/* Does what steps of slabs have put on the list; it is empty afterwards. Pieces that have
 * ended are ended by the poller. */
void rbx_flow_do(struct rbx_flow *flow, struct rbx_piece_list *todo);

/* Parts that had to wait (held.h), linked, or NULL: the poller has them done once more. */
void rbx_flow_go_on(struct rbx_flow *flow, struct rbx_fragment *list);

/* Whether a replica of this slab is on a server that has FAILED (held.h). The slab's lock is
 * held. */
bool rbx_flow_any_failed(struct rbx_flow *flow, const struct rbx_slab *slab);

/* Discards the slabs that lie completely in the range: from here on they read as zeros. Only
 * of a volume whose slabs get memory on demand. */
void rbx_flow_discard(struct rbx_flow *flow, uint64_t offset_bytes,
		      uint64_t length_bytes);

/* done() of the parts of pieces that rbx_flow_open() or rbx_rebuild_lend() made. */
struct rbx_fragment *rbx_flow_parts_done(struct rbx_fragment *list);

#endif
