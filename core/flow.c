/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow.c - makes the steps of slabs and carries out their results, see flow.h.
 *
 * Parts are sent in batches, see server_runs.h. Usual pieces (slab_way.h) join the batch, or
 * the pieces that have ended, in their step; others go there from the list of things to do.
 */
#include "core/flow.h"

#include "core/checksum.h"
#include "core/slab_way.h"
#include "core/status.h"
#include "core/tails.h"

void rbx_flow_init(struct rbx_flow *flow, const struct rbx_flow_ops *ops,
		   struct rbx_flow_counters *counters)
{
	rbx_port_fill(flow, 0, sizeof(*flow));
	flow->ops = ops;
	flow->counters = counters;
	rbx_held_init(&flow->held);
}

static uint32_t pages_max(const struct rbx_volume_shape *shape)
{
	return shape->checksums ? shape->fragment_bytes / RBX_PAGE_BYTES : 0;
}

size_t rbx_flow_pool_size(const struct rbx_volume_shape *shape,
			  uint32_t pieces_count)
{
	return rbx_piece_pool_size(pieces_count, shape->replicas + 1,
				   pages_max(shape));
}

void rbx_flow_open(struct rbx_flow *flow, const struct rbx_volume_shape *shape,
		   void *map_memory, uint64_t seed, uint32_t server_count,
		   void *pool_memory, uint32_t pieces_count)
{
	struct rbx_volume_map *map =
		rbx_volume_map_init(map_memory, shape, seed);
	uint32_t i;

	map->shape.domains = &flow->domains;
	for (i = 0; i < server_count; i++)
		rbx_volume_map_add_server(map, i);
	rbx_piece_pool_init(&flow->pool, pool_memory, pieces_count,
			    map->shape.slots, pages_max(shape), flow,
			    rbx_flow_parts_done);
	/* From here on unsolicited messages of servers find their slabs. */
	RBX_STORE_RELEASE(&flow->map, map);
}

/* ---- Sending --------------------------------------------------------------*/

/* What one start or one poll sends. */
struct batch {
	struct rbx_server_runs runs;
	struct rbx_piece_list todo; /* pieces whose parts are still to be added */
};

static inline void batch_begin(struct batch *batch)
{
	rbx_server_runs_begin(&batch->runs);
	batch->todo.first = NULL;
}

static inline void runs_send(struct rbx_flow *flow, struct rbx_server_runs *runs)
{
	struct rbx_server_run *run = runs->all, *end = run + runs->count;

	for (; run != end; run++) {
		run->last->next = NULL;
		flow->ops->submit(flow, run->server, rbx_fragment_of(run->head.next),
				  rbx_fragment_of(run->last));
	}
}

/* Before the parts of a slab are added, and without its lock. */
static inline void runs_make_room(struct rbx_flow *flow,
				  struct rbx_server_runs *runs)
{
	if (rbx_server_runs_have_room(runs))
		return;
	runs_send(flow, runs);
	rbx_server_runs_begin(runs);
}

/* For a volume with checksums, before the piece is sent. Only a program's write makes new
 * checksums: a copy may be of damaged data, and a repair has them already. It has its granules, so
 * those that it writes to tails stay those of the slab. */
static void checksums_see(struct rbx_flow *flow, struct rbx_piece *piece)
{
	if (piece->state != RBX_PIECE_WRITING)
		return;
	if (piece->kind == RBX_PIECE_WRITE)
		rbx_checksum_compute(piece, flow->ops->look(flow, piece));
	else if (flow->map->shape.has_tails)
		rbx_checksum_recall(rbx_slab_checksums(piece->slab), piece);
	if (flow->map->shape.has_tails && flow->ops->show)
		flow->ops->show(flow, piece);
	if (piece->kind == RBX_PIECE_READ)
		RBX_ADD_RELAXED(&flow->counters->checksum_repairs, 1);
}

/* A piece in READING or WRITING: adds its parts. Once the last of them is sent, the piece may
 * end and be reused. */
static void piece_send(struct rbx_flow *flow, struct rbx_server_runs *runs,
		       struct rbx_piece *piece)
{
	bool has_tails = flow->map->shape.has_tails && piece->state == RBX_PIECE_WRITING;
	uint32_t mask = piece->send_mask;

	if (flow->map->shape.checksums)
		checksums_see(flow, piece);
	runs_make_room(flow, runs);
	for (; mask; mask &= mask - 1) {
		struct rbx_part *part = &piece->parts[__builtin_ctz(mask)];

		rbx_server_runs_add(runs, part->server, &part->fragment);
		if (has_tails)
			rbx_server_runs_add(runs, part->server,
					    &rbx_tail_part(piece, part->slot)->fragment);
	}
}

/* Has the poller end a piece, as if by a completion. */
RBX_RARE static void piece_end_later(struct rbx_flow *flow,
				     struct rbx_piece *piece)
{
	struct rbx_fragment *fragment = &piece->parts[0].fragment;

	fragment->node.next = NULL;
	flow->ops->end_later(flow, fragment);
}

/* After steps of a slab. */
static inline void slab_unlock(struct rbx_flow *flow, struct rbx_slab *slab,
			       struct rbx_slab_group *group)
{
	bool attention = slab->attention;

	if (attention)
		rbx_attention_put(&flow->map->attention, slab);
	rbx_unlock(&group->lock);
	if (attention)
		flow->ops->wake(flow);
}

/* The pieces from the first one on that are of one slab make their first step under one
 * holding of its lock. Returns what follows them. */
static inline struct rbx_node *slab_start(struct rbx_flow *flow,
					  struct rbx_node *node,
					  struct batch *batch)
{
	struct rbx_slab *slab = rbx_piece_of(node)->slab;
	struct rbx_slab_group *group = rbx_piece_of(node)->group;

	runs_make_room(flow, &batch->runs);
	rbx_lock(&group->lock);
	do {
		struct rbx_piece *piece = rbx_piece_of(node);

		node = node->next;
		if (rbx_way_starts_fast(slab, piece))
			rbx_way_start_fast(slab, group, piece, &batch->runs);
		else
			rbx_slab_start(slab, group, piece, &batch->todo);
	} while (node && rbx_piece_of(node)->slab == slab);
	slab_unlock(flow, slab, group);
	return node;
}

static void todo_do(struct rbx_flow *flow, struct batch *batch)
{
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(&batch->todo))) {
		if (piece->state == RBX_PIECE_IDLE)
			piece_end_later(flow, piece);
		else
			piece_send(flow, &batch->runs, piece);
	}
}

void rbx_flow_do(struct rbx_flow *flow, struct rbx_piece_list *todo)
{
	struct batch batch;

	batch_begin(&batch);
	batch.todo = *todo;
	todo->first = NULL;
	todo_do(flow, &batch);
	runs_send(flow, &batch.runs);
}

void rbx_flow_start(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	struct rbx_node *node = pieces->first;
	struct batch batch;

	pieces->first = NULL;
	batch_begin(&batch);
	while (node)
		node = slab_start(flow, node, &batch);
	if (batch.todo.first)
		todo_do(flow, &batch);
	runs_send(flow, &batch.runs);
}

/* ---- Parts that are done --------------------------------------------------*/

/* Turns a read's success into -EBADMSG if a checksum does not match: of any page of the piece, even
 * if this read was of some only. So none counts as good by a checksum that it had before. */
static int32_t read_check(struct rbx_flow *flow, struct rbx_piece *piece)
{
	uint64_t asked;

	if (!rbx_checksum_mismatches(rbx_slab_checksums(piece->slab), piece,
				     flow->ops->look(flow, piece), &piece->good_pages))
		return 0;
	asked = piece->tried_mask ? piece->asked_pages : rbx_piece_pages_mask(piece);
	if (piece->cell) /* otherwise a write may be under way */
		RBX_ADD_RELAXED(&flow->counters->checksum_errors,
				rbx_server_set_count_word(asked & ~piece->good_pages));
	return -EBADMSG;
}

static inline bool is_part(const struct rbx_fragment *fragment)
{
	return fragment && fragment->done == rbx_flow_parts_done;
}

/*
 * The status from the server, or -EBADMSG, which only this client may set: a checksum does
 * not match.
 */
static inline int32_t status_of(const struct rbx_part *part)
{
	int32_t status = part->fragment.status;

	return status == -EBADMSG ? -EREMOTEIO : status;
}

/* For a volume with checksums, before any lock is taken. */
RBX_RARE static void parts_check(struct rbx_flow *flow,
				 struct rbx_fragment *list)
{
	for (; is_part(list) && rbx_part_of(list)->piece->owner == flow;
	     list = rbx_fragment_next(list)) {
		struct rbx_part *part = rbx_part_of(list);

		list->status = status_of(part);
		if (!list->status && part->piece->state == RBX_PIECE_READING)
			list->status = read_check(flow, part->piece);
	}
}

/* Whether the read of a program is about to be sent to another replica. */
static bool is_failover(const struct rbx_piece *piece, const struct rbx_part *part, int32_t status)
{
	return piece->state == RBX_PIECE_READING &&
	       piece->kind == RBX_PIECE_READ &&
	       (status != -EBADMSG || piece->tried_mask & part->bit);
}

/* A read that failed at a server which has come again meanwhile may be sent there once more. That
 * is bounded: servers come seldom. */
static void came_again_forget(struct rbx_flow *flow, struct rbx_piece *piece)
{
	/* Others may be empty by now. */
	uint32_t mask = piece->failed_mask & piece->slab->read_mask;

	for (; mask; mask &= mask - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(mask);

		if (!rbx_held_has_failed(&flow->held,
					 rbx_replica_server(rbx_slab_replica(piece->slab, slot))))
			piece->failed_mask &= (uint8_t)~(1u << slot);
	}
}

/* Whether a part that failed is done, with this status; else it waits (held.h). The slab is noted,
 * so that the upkeep thread is woken. */
static bool is_done(struct rbx_flow *flow, struct rbx_part *part, int32_t *status)
{
	enum rbx_held_verdict verdict;

	if (!flow->map->shape.is_guarded || *status == -EBADMSG ||
	    rbx_status_class(*status) == RBX_STATUS_LOCAL)
		return true;
	verdict = rbx_held_take(&flow->held, part);
	if (verdict == RBX_HELD_FAILS) {
		*status = -EIO;
		if (part->piece->state == RBX_PIECE_READING)
			came_again_forget(flow, part->piece);
	}
	part->piece->slab->attention |= verdict == RBX_HELD_WAITS;
	return verdict != RBX_HELD_WAITS;
}

RBX_RARE static void part_failed(struct rbx_flow *flow,
				 struct rbx_slab_group *group,
				 struct rbx_part *part,
				 struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;
	int32_t status = part->fragment.status;

	if (!flow->map->shape.checksums)
		status = status_of(part);
	if (!is_done(flow, part, &status))
		return;
	rbx_slab_done(piece->slab, group, part, status, todo);
	if (is_failover(piece, part, status))
		RBX_ADD_RELAXED(&flow->counters->failovers, 1);
}

/* The next step of a slab, whose lock is held, for one part that is not on the fast path. */
static void part_done(struct rbx_flow *flow, struct rbx_slab_group *group,
		      struct rbx_part *part, struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;

	if (piece->state == RBX_PIECE_IDLE) /* from piece_end_later() */
		rbx_piece_list_add(todo, piece);
	else if (part->fragment.status)
		part_failed(flow, group, part, todo);
	else
		rbx_slab_done(piece->slab, group, part, 0, todo);
}

/* What the steps of slabs have brought for the host. */
struct results {
	struct rbx_node ended; /* its next is the first piece that has ended on the fast path */
	struct rbx_node *last_ended;
	struct rbx_piece_list todo; /* other pieces that have ended, or are to be sent */
};

/* The piece of the first fragment of a list, if that is a part of one; or NULL. */
static inline struct rbx_piece *first_piece(struct rbx_fragment *list)
{
	return is_part(list) ? rbx_part_of(list)->piece : NULL;
}

/* Makes the steps of the slab of the first part, up to the first part of another slab, whose piece
 * is returned; or NULL. *list: what is left. */
static inline struct rbx_piece *slab_parts_done(struct rbx_flow *flow, struct rbx_piece *piece,
						struct rbx_fragment **list,
						struct results *results)
{
	struct rbx_slab_group *group = piece->group;
	struct rbx_slab *slab = piece->slab;

	rbx_lock(&group->lock);
	do {
		struct rbx_part *part = rbx_part_of(*list);

		*list = rbx_fragment_next(*list);
		if (!rbx_way_is_done_fast(slab, part)) {
			part_done(flow, group, part, &results->todo);
		} else if (rbx_way_done_fast(slab, group, part,
					     &results->todo)) {
			results->last_ended->next = &piece->node;
			results->last_ended = &piece->node;
		}
		piece = first_piece(*list);
	} while (piece && piece->slab == slab);
	slab_unlock(flow, slab, group);
	return piece;
}

/* Pieces of requests that have ended join the others that have. */
RBX_RARE static void todo_carry_out(struct rbx_flow *flow, struct results *results)
{
	struct rbx_server_runs runs;
	struct rbx_piece *piece;

	rbx_server_runs_begin(&runs);
	while ((piece = rbx_piece_list_take(&results->todo))) {
		if (piece->state != RBX_PIECE_IDLE) {
			piece_send(flow, &runs, piece);
		} else if (piece->kind == RBX_PIECE_COPY) {
			rbx_rebuild_copy_ended(flow, piece);
		} else {
			results->last_ended->next = &piece->node;
			results->last_ended = &piece->node;
		}
	}
	runs_send(flow, &runs);
}

static inline void carry_out(struct rbx_flow *flow, struct results *results)
{
	struct rbx_piece_list ended;

	if (results->todo.first)
		todo_carry_out(flow, results);
	if (results->last_ended == &results->ended)
		return;
	results->last_ended->next = NULL;
	ended.first = results->ended.next;
	ended.last = results->last_ended;
	flow->ops->ended(flow, &ended);
}

/* No piece is twice on the list of things to do: a piece that a step puts there has no part
 * under way before the list is carried out. */
struct rbx_fragment *rbx_flow_parts_done(struct rbx_fragment *list)
{
	struct rbx_piece *piece = rbx_part_of(list)->piece;
	struct results results;

	RBX_DEBUG_ASSERT(is_part(list));
	do {
		struct rbx_flow *flow = piece->owner;

		results.last_ended = &results.ended;
		results.todo.first = NULL;
		if (flow->map->shape.checksums)
			parts_check(flow, list);
		do
			piece = slab_parts_done(flow, piece, &list, &results);
		while (piece && piece->owner == flow);
		carry_out(flow, &results);
	} while (piece);
	return list;
}

void rbx_flow_go_on(struct rbx_flow *flow, struct rbx_fragment *list)
{
	struct rbx_fragment *next;

	for (; list; list = next) {
		next = rbx_fragment_next(list);
		list->node.next = NULL;
		flow->ops->end_later(flow, list);
	}
}

bool rbx_flow_any_failed(struct rbx_flow *flow, const struct rbx_slab *slab)
{
	uint32_t mask = slab->write_mask;

	for (; mask; mask &= mask - 1)
		if (rbx_held_has_failed(&flow->held,
					rbx_replica_server(rbx_slab_replica(
						slab, (uint32_t)__builtin_ctz(mask)))))
			return true;
	return false;
}

/* ---- Discarding -----------------------------------------------------------*/

void rbx_flow_discard(struct rbx_flow *flow, uint64_t offset_bytes,
		      uint64_t length_bytes)
{
	struct rbx_volume_map *map = flow->map;
	struct rbx_attention *attention = &map->attention;
	uint32_t shift = map->shape.slab_shift;
	uint64_t end_bytes = offset_bytes + length_bytes;
	uint64_t first, end;

	RBX_ASSERT(end_bytes <= map->size_bytes);
	first = (offset_bytes + ((uint64_t)1 << shift) - 1) >> shift;
	/* The last slab may be longer than the volume. */
	end = end_bytes == map->size_bytes ? map->slab_count :
					     end_bytes >> shift;
	if (first >= end)
		return;
	for (; first < end; first++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, (uint32_t)first);

		rbx_slab_lock(slab);
		rbx_slab_discard(slab);
		(void)rbx_attention_note(attention, slab);
		rbx_slab_unlock(slab);
	}
	flow->ops->wake(flow);
}
