/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit.c - the way of a request through a volume: checked, split into
 * pieces, sent, joined.
 *
 * rbx_submit() checks everything before it takes anything, then takes all the
 * pieces that its requests need in one step: all or nothing. Each piece makes a
 * step of its slab under the slab's lock; what comes out is done without it:
 * parts are sent, checksums computed, ended pieces joined into their request
 * (join.h). Nothing here allocates or blocks.
 *
 * A part that is done makes the next step of its slab, which may send the same
 * piece on to another replica, or let others go that waited for it. What one
 * poll finds done takes these steps together: neighbours in the list that are
 * of one slab share one turn of its lock, and all join at once. The lock and
 * the pool would otherwise be a sixth of a small request on the same host.
 *
 * The request's reserved words while it is ours: [0] the context's time stamp,
 * [1] pieces that have not ended (atomic), and those of buffers.h.
 */
#include "lib/join.h"
#include "lib/poller/plug.h"
#include "lib/volume/volume.h"

/* A request's flags are those of its fragments. */
RBX_STATIC_ASSERT((int)RBX_FENCE == RBX_FRAGMENT_FENCE, "same bit");
RBX_STATIC_ASSERT((int)RBX_NO_MERGE == RBX_FRAGMENT_ALONE, "same bit");
RBX_STATIC_ASSERT((int)RBX_URGENT == RBX_FRAGMENT_URGENT, "same bit");
/* And its op is the kind of its pieces. */
RBX_STATIC_ASSERT((int)RBX_READ == RBX_PIECE_READ, "same number");
RBX_STATIC_ASSERT((int)RBX_WRITE == RBX_PIECE_WRITE, "same number");
#define REQUEST_FLAGS (RBX_FENCE | RBX_NO_MERGE | RBX_URGENT)

/* What a piece in READING or WRITING wants: its parts sent. */
static inline void piece_send(struct rbx_volume *volume,
			      struct rbx_piece *piece)
{
	/* Once the last part is sent the piece may end and be reused. */
	uint32_t mask = piece->send_mask;

	if (piece->kind == RBX_PIECE_WRITE && volume->map->shape.checksums)
		rbx_checksum_store(piece->slab->checksums, piece);
	do {
		struct rbx_part *part = &piece->parts[__builtin_ctz(mask)];

		mask &= mask - 1;
		part->fragment.node.next = NULL;
		rbx_peer_submit(volume->servers[part->server].peer,
				&part->fragment, &part->fragment);
	} while (mask);
}

/* Has a piece ended by the poller, as if by a completion. */
static void piece_end_later(struct rbx_volume *volume, struct rbx_piece *piece)
{
	struct rbx_fragment *fragment = &piece->parts[0].fragment;

	fragment->node.next = NULL;
	rbx_poller_end(volume->ctx->pollers[0], fragment);
}

/* Those from the front of the list that are of one slab make their first step
 * in one turn of its lock. */
static void slab_start(struct rbx_volume *volume, struct rbx_piece_list *pieces,
		       struct rbx_piece_list *todo)
{
	struct rbx_slab *slab = rbx_piece_of(pieces->first)->slab;

	rbx_volume_lock(volume, slab);
	do
		rbx_slab_start(slab, rbx_piece_list_take(pieces), todo);
	while (pieces->first && rbx_piece_of(pieces->first)->slab == slab);
	rbx_volume_unlock(volume, slab);
}

void rbx_volume_start(struct rbx_volume *volume, struct rbx_piece_list *pieces)
{
	struct rbx_piece_list todo = { 0 };
	struct rbx_piece *piece;

	while (pieces->first)
		slab_start(volume, pieces, &todo);
	while ((piece = rbx_piece_list_take(&todo))) {
		if (piece->state == RBX_PIECE_IDLE)
			piece_end_later(volume, piece);
		else
			piece_send(volume, piece);
	}
}

/* Turns a read's success into -EBADMSG where a checksum says otherwise. */
static int32_t read_check(struct rbx_volume *volume,
			  const struct rbx_piece *piece)
{
	struct rbx_counters *counters = rbx_context_counters(volume->ctx);
	uint32_t mismatches =
		rbx_checksum_mismatches(piece->slab->checksums, piece);

	if (!mismatches)
		return 0;
	if (piece->cell) /* else it may be a write under way */
		RBX_ADD_RELAXED(&counters->checksum_errors, mismatches);
	return -EBADMSG;
}

static int32_t part_status(const struct rbx_part *part)
{
	const struct rbx_piece *piece = part->piece;
	struct rbx_volume *volume = piece->owner;
	int32_t status = part->fragment.status;

	if (status == -EBADMSG)
		return -EIO; /* the peer's; ours means a checksum */
	if (status || piece->state != RBX_PIECE_READING ||
	    !volume->map->shape.checksums)
		return status;
	return read_check(volume, piece);
}

/* The read of a program is about to be sent to another replica. */
static bool is_failover(const struct rbx_piece *piece, int32_t status)
{
	return status && piece->state == RBX_PIECE_READING &&
	       piece->kind == RBX_PIECE_READ &&
	       (status != -EBADMSG || piece->tried_mask);
}

/* The next step of a slab, whose lock is held, for one part. */
static void part_done(struct rbx_volume *volume, struct rbx_part *part,
		      struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	int32_t status = part->fragment.status;

	if (piece->state == RBX_PIECE_IDLE) { /* from piece_end_later() */
		rbx_piece_list_add(todo, piece);
		return;
	}
	rbx_slab_done(piece->slab, part, status, todo);
	if (is_failover(piece, status))
		RBX_ADD_RELAXED(&rbx_context_counters(volume->ctx)->failovers,
				1);
}

/* The steps of the slab of the first part, up to the first part of another
 * slab, which is returned. */
static struct rbx_fragment *slab_parts_done(struct rbx_volume *volume,
					    struct rbx_fragment *list,
					    struct rbx_piece_list *todo)
{
	struct rbx_slab *slab = rbx_part_of(list)->piece->slab;
	bool attention;

	rbx_volume_lock(volume, slab);
	do {
		struct rbx_fragment *next = rbx_fragment_next(list);

		part_done(volume, rbx_part_of(list), todo);
		list = next;
	} while (list && rbx_part_of(list)->piece->slab == slab);
	attention = rbx_slab_attention(slab);
	rbx_volume_unlock(volume, slab);
	if (attention)
		rbx_volume_keeper_wake(volume);
	return list;
}

/* Does what the steps of slabs have put on the list. */
static void carry_out(struct rbx_volume *volume, struct rbx_piece_list *todo)
{
	struct rbx_piece_list ended = { 0 };
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(todo))) {
		if (piece->state != RBX_PIECE_IDLE)
			piece_send(volume, piece);
		else if (piece->kind == RBX_PIECE_COPY)
			rbx_volume_copy_ended(volume, piece);
		else
			rbx_piece_list_add(&ended, piece);
	}
	if (ended.first && rbx_join(volume->ctx, &volume->pool, &ended))
		rbx_volume_fence_look(volume);
}

/* No piece is twice on the list of things to do: what a step puts there has no
 * part under way before it is carried out. */
void rbx_volume_parts_done(struct rbx_fragment *list)
{
	struct rbx_fragment *fragment;

	for (fragment = list; fragment; fragment = rbx_fragment_next(fragment))
		fragment->status = part_status(rbx_part_of(fragment));
	while (list) {
		struct rbx_volume *volume = rbx_part_of(list)->piece->owner;
		struct rbx_piece_list todo = { 0 };

		do
			list = slab_parts_done(volume, list, &todo);
		while (list && rbx_part_of(list)->piece->owner == volume);
		carry_out(volume, &todo);
	}
}

static bool range_is_good(const struct rbx_volume_map *map, uint64_t offset,
			  uint64_t length_bytes)
{
	return length_bytes && offset <= map->size_bytes &&
	       length_bytes <= map->size_bytes - offset &&
	       !(map->shape.checksums &&
		 (offset | length_bytes) % RBX_PAGE_BYTES);
}

int rbx_volume_range_check(const struct rbx_volume *volume, uint64_t offset,
			   uint64_t length_bytes)
{
	uint64_t size_bytes = volume->map->size_bytes;

	if (range_is_good(volume->map, offset, length_bytes))
		return 0;
	if (!length_bytes)
		return rbx_error(-EINVAL, "a request is at least 1 byte long");
	if (offset > size_bytes || length_bytes > size_bytes - offset)
		return rbx_error(-EINVAL, "%llu bytes at %llu are beyond the volume's %llu bytes",
				 (unsigned long long)length_bytes,
				 (unsigned long long)offset,
				 (unsigned long long)size_bytes);
	return rbx_error(-EINVAL, "%llu bytes at %llu are not whole pages of %u bytes, as checksums need",
			 (unsigned long long)length_bytes,
			 (unsigned long long)offset, RBX_PAGE_BYTES);
}

static int request_check(const struct rbx_volume *volume,
			 struct rbx_request *request)
{
	if (!request || !request->buf || request->op > RBX_WRITE ||
	    request->flags & ~REQUEST_FLAGS)
		return rbx_error(-EINVAL, "malformed request: it needs a buffer, and known op and flags");
	if (!range_is_good(volume->map, request->offset, request->length_bytes))
		return rbx_volume_range_check(volume, request->offset,
					      request->length_bytes);
	return rbx_buffers_check(request);
}

/* Checks all; counts the pieces they need. */
static int requests_check(const struct rbx_volume *volume,
			  struct rbx_request *const requests[],
			  unsigned int count, uint32_t *pieces_count)
{
	uint64_t sum = 0;
	unsigned int i;
	int err;

	for (i = 0; i < count; i++) {
		struct rbx_request *request = requests[i];

		err = request_check(volume, request);
		if (err)
			return err;
		request->reserved[1] = rbx_volume_map_pieces(
			volume->map, request->offset, request->length_bytes);
		sum += request->reserved[1];
	}
	if (sum > volume->pool.count)
		return rbx_error(-EINVAL, "requests of %llu fragments in one call: %u may be outstanding; raise requests_max or submit less",
				 (unsigned long long)sum, volume->pool.count);
	*pieces_count = (uint32_t)sum;
	return 0;
}

/* Aims a piece at what a request wants from there on; returns the bytes that
 * it takes of it. */
static uint32_t piece_fill(const struct rbx_volume *volume,
			   struct rbx_request *request, uint32_t from_bytes,
			   struct rbx_piece *piece)
{
	uint64_t offset_bytes = request->offset + from_bytes;

	piece->user = request;
	piece->kind = request->op;
	piece->fragment_flags = request->flags;
	piece->local_addr = (uintptr_t)request->buf + from_bytes;
	piece->lkey = rbx_buffers_lkey(request, &piece->fragment_flags);
	return rbx_volume_map_aim(volume->map, piece, offset_bytes,
				  request->length_bytes - from_bytes);
}

/* Splits a request; its pieces come off the list and start, or wait behind a
 * fence. */
static void request_start(struct rbx_volume *volume,
			  struct rbx_request *request,
			  struct rbx_piece_list *pieces)
{
	struct rbx_piece_list own = { 0 };
	struct rbx_piece *piece;
	uint32_t filled_bytes = 0;

	request->status = 0;
	rbx_request_stamp(request);
	do {
		piece = rbx_piece_list_take(pieces);
		filled_bytes +=
			piece_fill(volume, request, filled_bytes, piece);
		rbx_piece_list_add(&own, piece);
	} while (filled_bytes < request->length_bytes);
	/* With its last piece started the request may be gone. */
	if (request->flags & RBX_FENCE)
		rbx_volume_fence(volume, &own);
	else if (!rbx_plug_hold_pieces(volume, &own))
		rbx_volume_start(volume, &own);
}

int rbx_submit(struct rbx_volume *volume, struct rbx_request *const requests[],
	       unsigned int count)
{
	struct rbx_piece_list pieces = { 0 };
	uint32_t pieces_count = 0;
	unsigned int i;
	int err;

	if (!volume || !requests || !count || count > RBX_SUBMIT_MAX)
		return rbx_error(-EINVAL, "submit takes a volume and 1 to %u requests",
				 RBX_SUBMIT_MAX);
	err = requests_check(volume, requests, count, &pieces_count);
	if (err)
		return err;
	if (rbx_piece_pool_take(&volume->pool, pieces_count, &pieces))
		return rbx_error(-EAGAIN, "too many requests are outstanding: submit again after a completion, or raise requests_max");
	err = rbx_buffers_register(volume->ctx, requests, count);
	if (err) {
		if (rbx_piece_pool_give(&volume->pool, &pieces))
			rbx_volume_fence_look(volume);
		return err;
	}
	if (pieces_count > 1)
		rbx_plug_push(); /* they start together */
	for (i = 0; i < count; i++)
		request_start(volume, requests[i], &pieces);
	if (pieces_count > 1)
		rbx_plug_pull();
	return 0;
}
