/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fence.c - RBX_FENCE on a volume: a request that starts after all earlier ones have
 * completed.
 *
 * A fence at the peer is not enough. An earlier write may still wait for its granules,
 * and an earlier read may be sent again to another replica. So a fenced request waits
 * here until no older piece is in use, whatever its peer is; this is more than is
 * promised. Its fragments have the fence of the peer as well, to order them after what
 * other users of the peer sent there.
 *
 * A thread that puts a piece back and sees the fence bit of the pool looks here. Fenced
 * requests wait in order; each counts as older for the next.
 */
#include "lib/volume/volume.h"

/* Takes the requests at the front that may start now. */
static void fence_pass(struct rbx_volume *volume, struct rbx_piece_list *ready)
{
	struct rbx_piece *piece;
	uint64_t sequence;

	while (volume->fenced.first) {
		piece = rbx_piece_of(volume->fenced.first);
		sequence = RBX_LOAD_RELAXED(&piece->sequence);
		if (rbx_piece_pool_older(&volume->control.flow.pool, sequence,
					 &volume->fence_cursor))
			return;
		rbx_piece_list_add(ready, rbx_piece_list_take(&volume->fenced));
		if (volume->fenced.first &&
		    RBX_LOAD_RELAXED(&rbx_piece_of(volume->fenced.first)
					      ->sequence) != sequence)
			volume->fence_cursor = 0;
	}
	rbx_piece_pool_unfence(&volume->control.flow.pool);
	volume->fence_cursor = 0;
}

void rbx_volume_fence_look(struct rbx_volume *volume)
{
	struct rbx_piece_list ready = { 0 };

	pthread_mutex_lock(&volume->fence_lock);
	fence_pass(volume, &ready);
	pthread_mutex_unlock(&volume->fence_lock);
	rbx_volume_start(volume, &ready);
}

void rbx_volume_fence(struct rbx_volume *volume, struct rbx_piece_list *pieces)
{
	struct rbx_piece *piece;
	uint64_t sequence;

	pthread_mutex_lock(&volume->fence_lock);
	sequence = rbx_piece_pool_fence(&volume->control.flow.pool);
	while ((piece = rbx_piece_list_take(pieces))) {
		RBX_STORE_RELAXED(&piece->sequence, sequence);
		rbx_piece_list_add(&volume->fenced, piece);
	}
	pthread_mutex_unlock(&volume->fence_lock);
	rbx_volume_fence_look(volume);
}
