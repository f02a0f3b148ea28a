/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * submit.c - a request of a volume: checked, split into pieces, started, joined.
 *
 * rbx_submit() checks everything before it takes anything. Then it takes all pieces that
 * its requests need in one step: all or nothing. The core decides what happens to them
 * (flow.h). Ended pieces come back and are joined into their request (join.h). Nothing
 * here allocates or blocks.
 *
 * Reserved words of a request while it is outstanding: [0] the context's time stamp, [1]
 * the number of pieces that have not ended (atomic). buffers.h and outstanding.h have the
 * others.
 */
#include "lib/join.h"
#include "lib/malformed.h"
#include "lib/outstanding.h"
#include "lib/poller/plug.h"
#include "lib/volume/reader.h"

/* A request's flags are those of its fragments. */
RBX_STATIC_ASSERT((int)RBX_FENCE == RBX_FRAGMENT_FENCE, "same bit");
RBX_STATIC_ASSERT((int)RBX_NO_MERGE == RBX_FRAGMENT_ALONE, "same bit");
RBX_STATIC_ASSERT((int)RBX_URGENT == RBX_FRAGMENT_URGENT, "same bit");
/* And its op is the kind of its pieces. */
RBX_STATIC_ASSERT((int)RBX_READ == RBX_PIECE_READ, "same number");
RBX_STATIC_ASSERT((int)RBX_WRITE == RBX_PIECE_WRITE, "same number");
#define REQUEST_FLAGS (RBX_FENCE | RBX_NO_MERGE | RBX_URGENT)

/* ---- Called by the flow -----------------------------------------------------*/

static void end_later(struct rbx_flow *flow, struct rbx_fragment *fragment)
{
	rbx_poller_end(rbx_volume_of_flow(flow)->ctx->pollers[0], fragment);
}

/* Zeros for reads of slabs that no server has lent yet. */
static void fill_zeros(const struct rbx_piece_list *pieces)
{
	const struct rbx_node *node;

	for (node = pieces->first; node; node = node->next) {
		const struct rbx_piece *piece =
			RBX_CONTAINER_OF(node, const struct rbx_piece, node);

		if (piece->reads_zeros)
			memset((void *)(uintptr_t)piece->local_addr, 0,
			       piece->length_bytes);
	}
}

static void ended(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	struct rbx_volume *volume = rbx_volume_of_flow(flow);

	if (flow->map->shape.on_demand)
		fill_zeros(pieces);
	/* If a page is used, used_count was raised before its piece could end. */
	if (RBX_LOAD_RELAXED(&volume->bounces.used_count))
		rbx_bounces_end(&volume->bounces, pieces);
	if (rbx_join(volume->ctx, &flow->pool, pieces))
		rbx_volume_fence_look(volume);
}

static void wake(struct rbx_flow *flow)
{
	rbx_volume_upkeep_wake(rbx_volume_control_of_flow(flow));
}

/* Here the device and the CPU use the same addresses. */
static const void *look(struct rbx_flow *flow, const struct rbx_piece *piece)
{
	(void)flow;
	return (const void *)(uintptr_t)piece->local_addr;
}

const struct rbx_flow_ops rbx_volume_flow_ops = {
	.submit = rbx_volume_send,
	.end_later = end_later,
	.ended = ended,
	.wake = wake,
	.look = look,
};

/* ---- Submitting -------------------------------------------------------------*/

static bool range_is_good(const struct rbx_volume_map *map, uint64_t offset,
			  uint64_t length_bytes)
{
	uint64_t size_bytes = rbx_volume_map_bytes(map);

	return length_bytes && offset <= size_bytes && length_bytes <= size_bytes - offset &&
	       !(map->shape.checksums &&
		 (offset | length_bytes) % RBX_PAGE_BYTES);
}

int rbx_volume_range_check(const struct rbx_volume *volume, uint64_t offset,
			   uint64_t length_bytes)
{
	uint64_t size_bytes = rbx_volume_map_bytes(volume->control.flow.map);

	if (range_is_good(volume->control.flow.map, offset, length_bytes))
		return 0;
	if (!length_bytes)
		return rbx_error(-EINVAL, "a request is at least 1 byte long");
	if (offset > size_bytes || length_bytes > size_bytes - offset)
		return rbx_error(-EINVAL, "%llu bytes at %llu are beyond the volume's %llu bytes",
				 (unsigned long long)length_bytes,
				 (unsigned long long)offset,
				 (unsigned long long)size_bytes);
	return rbx_error(-EINVAL, "%llu bytes at %llu are not whole pages of %u bytes, which checksums need",
			 (unsigned long long)length_bytes,
			 (unsigned long long)offset, RBX_PAGE_BYTES);
}

static int request_check(const struct rbx_volume *volume,
			 struct rbx_request *request)
{
	if (rbx_request_is_malformed(request, REQUEST_FLAGS))
		return rbx_request_malformed(request, REQUEST_FLAGS);
	if (rbx_request_is_outstanding(request))
		return rbx_request_busy();
	if (request->op == RBX_WRITE && volume->reader)
		return rbx_volume_may_change(volume);
	if (!range_is_good(volume->control.flow.map, request->offset, request->length_bytes))
		return rbx_volume_range_check(volume, request->offset,
					      request->length_bytes);
	return rbx_buffers_check(request);
}

/* What all requests of one call need together. */
struct need {
	uint64_t pieces;
	uint64_t bounces;
};

static void need_add(const struct rbx_volume *volume, struct need *need,
		     struct rbx_request *request)
{
	uint32_t pieces_count, bounces_count = 0;

	if (rbx_buffers_are_many(request))
		rbx_volume_scatter_count(volume, request, &pieces_count,
					 &bounces_count);
	else
		pieces_count = rbx_volume_map_pieces(volume->control.flow.map,
						     request->offset,
						     request->length_bytes);
	request->reserved[1] = pieces_count;
	need->pieces += pieces_count;
	need->bounces += bounces_count;
}

/* Whether that many can ever be free. */
static int need_check(const struct rbx_volume *volume, const struct need *need)
{
	if (need->pieces > volume->control.flow.pool.count)
		return rbx_error(-EINVAL, "requests of %llu fragments in one call: %u may be outstanding; raise requests_max or submit less",
				 (unsigned long long)need->pieces,
				 volume->control.flow.pool.count);
	if (need->bounces > RBX_BOUNCES_MAX)
		return rbx_error(-EINVAL, "segments meet within a page at %llu places in one call: at most %u are possible; submit less",
				 (unsigned long long)need->bounces,
				 RBX_BOUNCES_MAX);
	return 0;
}

/* Checks and marks all requests. After a failure none is marked. */
static int requests_check(const struct rbx_volume *volume,
			  struct rbx_request *const requests[],
			  unsigned int count, struct need *need)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < count; i++) {
		struct rbx_request *request = requests[i];

		err = request_check(volume, request);
		if (err)
			goto out_unmark;
		rbx_request_begin(request);
		need_add(volume, need, request);
	}
	err = need_check(volume, need);
out_unmark:
	if (err)
		rbx_requests_end(requests, i);
	return err;
}

/* Takes what requests need now, beyond what they have, or nothing. */
static bool need_more(struct rbx_volume *volume, const struct need *has, const struct need *now,
		      struct rbx_piece_list *pieces, uint32_t *bounce)
{
	struct rbx_piece_list more = { 0 };

	if (now->pieces > has->pieces &&
	    rbx_piece_pool_take(&volume->control.flow.pool, (uint32_t)(now->pieces - has->pieces),
				&more))
		return false;
	if (now->bounces <= has->bounces ||
	    (now->bounces <= RBX_BOUNCES_MAX &&
	     !rbx_bounces_take(&volume->bounces, (uint32_t)(now->bounces - has->bounces),
			       bounce))) {
		rbx_piece_list_append(pieces, &more);
		return true;
	}
	if (more.first && rbx_piece_pool_give(&volume->control.flow.pool, &more))
		rbx_volume_fence_look(volume);
	return false;
}

/*
 * Requests are cut where regions of the cache meet, too. That is known only now, and takes more
 * pieces than were counted. If they are not to be had, the requests are registered as wholes:
 * they may not fail because of what happens to be in the cache.
 */
static void regions_cut(struct rbx_volume *volume, struct rbx_request *const requests[],
			unsigned int count, const struct need *has,
			struct rbx_piece_list *pieces, uint32_t *bounce)
{
	struct need now = { 0 };
	bool is_cut = false;
	unsigned int i;

	for (i = 0; volume->ctx->buffers.cache && i < count; i++)
		is_cut |= rbx_buffers_keys(requests[i]) != NULL;
	if (!is_cut)
		return;
	for (i = 0; i < count; i++)
		need_add(volume, &now, requests[i]);
	if (need_more(volume, has, &now, pieces, bounce))
		return;
	for (i = 0; i < count; i++) {
		if (!rbx_buffers_keys(requests[i]))
			continue;
		rbx_buffers_register_whole(volume->ctx, requests[i]);
		need_add(volume, &now, requests[i]); /* as it was: no more than it has */
	}
}

/* Takes all that the checked requests need, or nothing. */
static int need_take(struct rbx_volume *volume,
		     struct rbx_request *const requests[], unsigned int count,
		     const struct need *need, struct rbx_piece_list *pieces,
		     uint32_t *bounce)
{
	int err;

	if (rbx_piece_pool_take(&volume->control.flow.pool, (uint32_t)need->pieces,
				pieces))
		return rbx_error(-EAGAIN, "too many requests are outstanding: submit again after a completion, or raise requests_max");
	if (need->bounces &&
	    rbx_bounces_take(&volume->bounces, (uint32_t)need->bounces,
			     bounce)) {
		err = rbx_error(-EAGAIN, "too many outstanding requests have segments that meet within a page: submit again after a completion");
		goto out_give_pieces;
	}
	err = rbx_buffers_register(volume->ctx, requests, count);
	if (!err) {
		regions_cut(volume, requests, count, need, pieces, bounce);
		return 0;
	}
	if (need->bounces)
		rbx_bounces_give(&volume->bounces, *bounce);
out_give_pieces:
	if (rbx_piece_pool_give(&volume->control.flow.pool, pieces))
		rbx_volume_fence_look(volume);
	return err;
}

/* Fills a piece with the request's bytes from from_bytes on. Returns how many it takes. */
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
	return rbx_volume_map_aim(volume->control.flow.map, piece, offset_bytes,
				  request->length_bytes - from_bytes);
}

/* Fills pieces, from one of the list on. Returns the last one. */
static struct rbx_piece *split(const struct rbx_volume *volume,
			       struct rbx_request *request,
			       struct rbx_piece *piece)
{
	uint32_t filled_bytes = 0;

	for (;;) {
		filled_bytes += piece_fill(volume, request, filled_bytes, piece);
		if (filled_bytes == request->length_bytes)
			return piece;
		piece = rbx_piece_of(piece->node.next);
	}
}

/* Splits a request. Returns the last of its pieces, which are those from one of the list on. */
static struct rbx_piece *request_fill(struct rbx_volume *volume,
				      struct rbx_request *request,
				      struct rbx_piece *piece, uint32_t *bounce)
{
	request->status = 0;
	rbx_request_stamp(request);
	if (rbx_buffers_are_many(request))
		return rbx_volume_scatter(volume, request, piece, bounce);
	return split(volume, request, piece);
}

void rbx_volume_start(struct rbx_volume *volume, struct rbx_piece_list *pieces)
{
	if (volume->reader)
		rbx_reader_start(volume->reader, pieces);
	else
		rbx_flow_start(&volume->control.flow, pieces);
}

/* Once its last piece has started a request may have ended. */
static void start(struct rbx_volume *volume, struct rbx_piece_list *pieces)
{
	if (volume->reader)
		rbx_reader_start(volume->reader, pieces);
	else if (!rbx_plug_hold_pieces(&volume->control.flow, pieces))
		rbx_flow_start(&volume->control.flow, pieces);
}

/* The request that was filled last has a fence: its pieces wait behind it. Those before them
 * on the list, up to `before`, start. */
static void fence(struct rbx_volume *volume, struct rbx_piece_list *pieces,
		  struct rbx_piece *before, struct rbx_piece *last)
{
	struct rbx_piece_list own;

	if (before) {
		own = rbx_piece_list_cut(pieces, before);
		start(volume, &own);
	}
	own = rbx_piece_list_cut(pieces, last);
	rbx_volume_fence(volume, &own);
}

/* Splits all requests of a call, which need exactly these pieces. They start together, or wait
 * behind fences. */
static void requests_start(struct rbx_volume *volume,
			   struct rbx_request *const requests[],
			   unsigned int count, struct rbx_piece_list *pieces,
			   uint32_t *bounce)
{
	struct rbx_piece *last = NULL, *before; /* of those that are to start */
	unsigned int i;

	for (i = 0; i < count; i++) {
		before = last;
		last = request_fill(volume, requests[i],
				    rbx_piece_of(before ? before->node.next :
							  pieces->first),
				    bounce);
		if (requests[i]->flags & RBX_FENCE) {
			fence(volume, pieces, before, last);
			last = NULL;
		}
	}
	if (last)
		start(volume, pieces);
}

int rbx_submit(struct rbx_volume *volume, struct rbx_request *const requests[],
	       unsigned int count)
{
	struct rbx_piece_list pieces = { 0 };
	struct need need = { 0 };
	uint32_t bounce = RBX_BOUNCE_NONE;
	int err;

	if (!volume || !requests || !count || count > RBX_SUBMIT_MAX)
		return rbx_error(-EINVAL, "submit takes a volume and 1 to %u requests",
				 RBX_SUBMIT_MAX);
	err = rbx_guard_use(volume->ctx, "rbx_submit");
	if (err)
		return err;
	err = requests_check(volume, requests, count, &need);
	if (err)
		return err;
	err = need_take(volume, requests, count, &need, &pieces, &bounce);
	if (err) {
		rbx_requests_end(requests, count);
		return err;
	}
	requests_start(volume, requests, count, &pieces, &bounce);
	return 0;
}
