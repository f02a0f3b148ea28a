/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow.c - makes the steps of slabs and carries out their results, see flow.h.
 *
 * Parts are sent in batches: all that one start or one poll has for a server goes to its peer
 * in one call, so that neighbours meet in its merge queue and one doorbell is enough.
 */
#include "core/flow.h"

#include "core/checksum.h"
#include "core/slab_way.h"

void rbx_flow_init(struct rbx_flow *flow, const struct rbx_flow_ops *ops,
		   struct rbx_flow_counters *counters)
{
	rbx_port_fill(flow, 0, sizeof(*flow));
	flow->ops = ops;
	flow->counters = counters;
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

	for (i = 0; i < server_count; i++)
		rbx_volume_map_add_server(map, i);
	rbx_piece_pool_init(&flow->pool, pool_memory, pieces_count,
			    map->shape.slots, pages_max(shape), flow,
			    rbx_flow_parts_done);
	/* From here on unsolicited messages of servers find their slabs. */
	RBX_STORE_RELEASE(&flow->map, map);
}

/* ---- Sending --------------------------------------------------------------*/

/* Parts to be sent to their servers. A piece has as many servers as slots, and a batch rarely
 * has more. */
struct batch {
	uint32_t count;
	bool has_checksums; /* whether the volume has checksums */
	struct {
		uint32_t server;
		struct rbx_fragment *first;
		struct rbx_fragment *last;
	} runs[RBX_SLOTS_MAX];
};

static inline void batch_begin(struct batch *batch, const struct rbx_flow *flow)
{
	batch->count = 0;
	batch->has_checksums = flow->map->shape.checksums != NULL;
}

static inline void batch_send(struct rbx_flow *flow, struct batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->count; i++)
		flow->ops->submit(flow, batch->runs[i].server,
				  batch->runs[i].first, batch->runs[i].last);
	batch->count = 0;
}

static inline void batch_add(struct rbx_flow *flow, struct batch *batch,
			     struct rbx_part *part)
{
	struct rbx_fragment *fragment = &part->fragment;
	uint32_t i = 0;

	while (i < batch->count && batch->runs[i].server != part->server)
		i++;
	if (i == RBX_SLOTS_MAX) {
		batch_send(flow, batch);
		i = 0;
	}
	if (i == batch->count) {
		batch->count++;
		batch->runs[i].server = part->server;
		batch->runs[i].first = NULL;
	}
	rbx_fragment_append(&batch->runs[i].first, &batch->runs[i].last,
			    fragment, fragment);
}

/* For a volume with checksums, before the piece is sent. Only a program's write makes new
 * checksums: a copy may be of damaged data, and a repair has them already. */
static void checksums_see(struct rbx_flow *flow, struct rbx_piece *piece)
{
	if (piece->kind == RBX_PIECE_WRITE)
		rbx_checksum_compute(piece, flow->ops->look(flow, piece));
	else if (piece->kind == RBX_PIECE_READ &&
		 piece->state == RBX_PIECE_WRITING)
		RBX_ADD_RELAXED(&flow->counters->checksum_repairs, 1);
}

/* A piece in READING or WRITING: sends its parts. */
static inline void piece_send(struct rbx_flow *flow, struct batch *batch,
			      struct rbx_piece *piece)
{
	/* Once the last part is sent, the piece may end and be reused. */
	uint32_t mask = piece->send_mask;

	if (batch->has_checksums)
		checksums_see(flow, piece);
	do {
		batch_add(flow, batch, &piece->parts[__builtin_ctz(mask)]);
		mask &= mask - 1;
	} while (mask);
}

/* Has the poller end a piece, as if by a completion. */
RBX_RARE static void piece_end_later(struct rbx_flow *flow,
				     struct rbx_piece *piece)
{
	struct rbx_fragment *fragment = &piece->parts[0].fragment;

	fragment->node.next = NULL;
	flow->ops->end_later(flow, fragment);
}

/* The group of a piece's slab. */
static inline struct rbx_slab_group *group_of(const struct rbx_flow *flow,
					      const struct rbx_piece *piece)
{
	return rbx_slab_group_at(&flow->map->shape, piece->slab_index);
}

/* The pieces from the first one on that are of one slab make their first step under one
 * holding of its lock. Returns what follows them. */
static inline struct rbx_node *slab_start(struct rbx_flow *flow,
					  struct rbx_node *node,
					  struct rbx_piece_list *todo)
{
	struct rbx_slab *slab = rbx_piece_of(node)->slab;
	struct rbx_slab_group *group = group_of(flow, rbx_piece_of(node));
	bool attention;

	rbx_lock(&group->lock);
	do {
		struct rbx_node *next = node->next;

		rbx_slab_start(slab, group, rbx_piece_of(node), todo);
		node = next;
	} while (node && rbx_piece_of(node)->slab == slab);
	attention = rbx_attention_note(&flow->map->attention, slab);
	rbx_unlock(&group->lock);
	if (attention)
		flow->ops->wake(flow);
	return node;
}

static inline void todo_do(struct rbx_flow *flow, struct rbx_piece_list *todo)
{
	struct rbx_node *node = todo->first, *next;
	struct batch batch;

	todo->first = NULL;
	batch_begin(&batch, flow);
	for (; node; node = next) {
		struct rbx_piece *piece = rbx_piece_of(node);

		next = node->next;
		if (piece->state == RBX_PIECE_IDLE)
			piece_end_later(flow, piece);
		else
			piece_send(flow, &batch, piece);
	}
	batch_send(flow, &batch);
}

void rbx_flow_do(struct rbx_flow *flow, struct rbx_piece_list *todo)
{
	todo_do(flow, todo);
}

void rbx_flow_start(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	struct rbx_node *node = pieces->first;
	struct rbx_piece_list todo = { 0 };

	pieces->first = NULL;
	while (node)
		node = slab_start(flow, node, &todo);
	todo_do(flow, &todo);
}

/* ---- Parts that are done --------------------------------------------------*/

/* Turns a read's success into -EBADMSG if a checksum does not match. */
static int32_t read_check(struct rbx_flow *flow, struct rbx_piece *piece)
{
	uint64_t good;
	uint32_t mismatches = rbx_checksum_mismatches(
		rbx_slab_checksums(piece->slab), piece, flow->ops->look(flow, piece),
		&good);

	piece->good_pages = piece->tried_mask ? piece->good_pages | good : good;
	if (!mismatches)
		return 0;
	if (piece->cell) /* otherwise a write may be under way */
		RBX_ADD_RELAXED(&flow->counters->checksum_errors, mismatches);
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
static bool is_failover(const struct rbx_piece *piece, int32_t status)
{
	return piece->state == RBX_PIECE_READING &&
	       piece->kind == RBX_PIECE_READ &&
	       (status != -EBADMSG || piece->tried_mask);
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
	rbx_slab_done(piece->slab, group, part, status, todo);
	if (is_failover(piece, status))
		RBX_ADD_RELAXED(&flow->counters->failovers, 1);
}

/* Makes the next step of a slab, whose lock is held, for one part. */
static inline void part_done(struct rbx_flow *flow, struct rbx_slab *slab,
			     struct rbx_slab_group *group,
			     struct rbx_part *part,
			     struct rbx_piece_list *todo)
{
	struct rbx_piece *piece = part->piece;

	if (piece->state == RBX_PIECE_IDLE) /* from piece_end_later() */
		rbx_piece_list_add(todo, piece);
	else if (part->fragment.status)
		part_failed(flow, group, part, todo);
	else
		rbx_slab_done(slab, group, part, 0, todo);
}

/* Makes the steps of the slab of the first part, up to the first part of another slab, which
 * is returned; *more: whether there is one. */
static inline struct rbx_fragment *
slab_parts_done(struct rbx_flow *flow, struct rbx_fragment *list,
		struct rbx_piece_list *todo, bool *more)
{
	struct rbx_slab *slab = rbx_part_of(list)->piece->slab;
	struct rbx_slab_group *group =
		group_of(flow, rbx_part_of(list)->piece);
	bool attention;

	rbx_lock(&group->lock);
	do {
		struct rbx_fragment *next = rbx_fragment_next(list);

		part_done(flow, slab, group, rbx_part_of(list), todo);
		list = next;
		*more = is_part(list);
	} while (*more && rbx_part_of(list)->piece->slab == slab);
	attention = rbx_attention_note(&flow->map->attention, slab);
	rbx_unlock(&group->lock);
	if (attention)
		flow->ops->wake(flow);
	return list;
}

/* Carries out what the steps of slabs have put on the list. Ended pieces of requests, which
 * are nearly all, stay there for the host. */
static void carry_out(struct rbx_flow *flow, struct rbx_piece_list *todo)
{
	struct rbx_node **link = &todo->first;
	struct rbx_piece *piece;
	struct batch batch;

	batch_begin(&batch, flow);
	while (*link) {
		piece = rbx_piece_of(*link);
		if (piece->state == RBX_PIECE_IDLE &&
		    piece->kind != RBX_PIECE_COPY) {
			todo->last = &piece->node;
			link = &piece->node.next;
			continue;
		}
		*link = piece->node.next;
		if (piece->state == RBX_PIECE_IDLE)
			rbx_rebuild_copy_ended(flow, piece);
		else
			piece_send(flow, &batch, piece);
	}
	batch_send(flow, &batch);
	if (todo->first)
		flow->ops->ended(flow, todo);
}

/* No piece is twice on the list of things to do: a piece that a step puts there has no part
 * under way before the list is carried out. */
struct rbx_fragment *rbx_flow_parts_done(struct rbx_fragment *list)
{
	bool more = is_part(list);

	while (more) {
		struct rbx_flow *flow = rbx_part_of(list)->piece->owner;
		struct rbx_piece_list todo = { 0 };

		if (flow->map->shape.checksums)
			parts_check(flow, list);
		do
			list = slab_parts_done(flow, list, &todo, &more);
		while (more && rbx_part_of(list)->piece->owner == flow);
		carry_out(flow, &todo);
	}
	return list;
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
