/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* extents.c - see extents.h. */
#include "core/extents.h"

#include "core/flow.h"
#include "core/slab_way.h"

/* ---- The queue of words that are to be sent ------------------------------------------ */

/* With the slab's lock held. It is sent after what is out now. Only the first one wakes the thread
 * that makes rounds: it takes all that it finds, or looks again when servers have answered. */
static void word_queue(struct rbx_slab *slab)
{
	struct rbx_extents *extents = rbx_slab_group(slab)->extents;
	uint32_t number = rbx_slab_index(slab) + 1;
	struct rbx_extent_word *word = rbx_extent_word_of(slab);

	if (word->is_queued)
		return;
	word->is_queued = true;
	rbx_lock(&extents->lock);
	word->next = 0;
	if (extents->last) {
		extents->words[extents->last - 1].next = number;
	} else {
		extents->first = number;
		slab->attention = true;
	}
	extents->last = number;
	rbx_unlock(&extents->lock);
}

/* The first one, which stays; or NULL. Only the thread that makes rounds takes any off. */
static struct rbx_slab *queue_first(const struct rbx_volume_map *map)
{
	struct rbx_extents *extents = map->shape.groups[0].extents;
	uint32_t first;

	rbx_lock(&extents->lock);
	first = extents->first;
	rbx_unlock(&extents->lock);
	return first ? rbx_slab_at(&map->shape, first - 1) : NULL;
}

/* With the slab's lock held. */
static void queue_take_first(struct rbx_slab *slab)
{
	struct rbx_extents *extents = rbx_slab_group(slab)->extents;
	struct rbx_extent_word *word = rbx_extent_word_of(slab);

	rbx_lock(&extents->lock);
	RBX_ASSERT(extents->first == rbx_slab_index(slab) + 1);
	extents->first = word->next;
	if (!extents->first)
		extents->last = 0;
	rbx_unlock(&extents->lock);
	word->is_queued = false;
}

/* ---- Writes that wait ------------------------------------------------------------------ */

/* The queue of a cell number that no slab has; another one than rbx_slab_waiting_place(). */
static uint64_t waiting_place(const struct rbx_slab *slab)
{
	return rbx_slab_waiting_place(slab) - 1;
}

static uint64_t extents_of_piece(const struct rbx_slab *slab, const struct rbx_piece *piece)
{
	return rbx_extents_of(piece->offset_bytes, piece->length_bytes,
			      rbx_slab_shape(slab)->slab_shift);
}

void rbx_extents_wait(struct rbx_slab *slab, struct rbx_slab_group *group,
		      struct rbx_piece *piece)
{
	struct rbx_extent_word *word = rbx_extent_word_of(slab);

	rbx_way_move(piece, RBX_PIECE_WAITING);
	rbx_cell_wait(&group->cells, piece, waiting_place(slab));
	word->has_waiters = true;
	word->waited |= extents_of_piece(slab, piece);
	word->asked |= extents_of_piece(slab, piece) & ~word->safe;
	word_queue(slab);
}

/* All that wait are taken off the queue before the first goes on, because it may wait again. */
static struct rbx_piece_list waiters_take(struct rbx_slab *slab, struct rbx_slab_group *group)
{
	struct rbx_extent_word *word = rbx_extent_word_of(slab);
	struct rbx_piece_list list = { 0 };

	while (word->has_waiters)
		rbx_piece_list_add(&list, rbx_cell_dismiss(&group->cells, waiting_place(slab),
							   &word->has_waiters));
	word->waited = 0;
	return list;
}

static void waiters_go_on(struct rbx_slab *slab, struct rbx_slab_group *group,
			  struct rbx_piece_list *todo)
{
	struct rbx_piece_list list = waiters_take(slab, group);
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(&list)))
		rbx_way_take(slab, group, piece, todo);
}

static void waiters_fail(struct rbx_slab *slab, struct rbx_slab_group *group,
			 struct rbx_piece_list *todo)
{
	struct rbx_piece_list list = waiters_take(slab, group);
	struct rbx_piece *piece;

	while ((piece = rbx_piece_list_take(&list)))
		rbx_way_end(piece, -EIO, todo);
	rbx_extent_word_of(slab)->asked = 0;
}

/* ---- Room ---------------------------------------------------------------------------------- */

/* How many slabs are looked at to make room for the bits of one word, or in a round. */
#define LOOKS_MAX 128u

/* The extents in which a piece has granules, or waits for some. Bounded by the pieces in the slabs
 * of the group. */
static uint64_t extents_in_use(const struct rbx_slab *slab, const struct rbx_slab_group *group)
{
	const struct rbx_slab_shape *shape = rbx_slab_shape(slab);
	const struct rbx_cell *cell;
	uint64_t in_use = 0;
	uint32_t i;

	for (i = 0; i < RBX_CELL_BUCKETS; i++) {
		for (cell = group->cells.buckets[i]; cell; cell = cell->next) {
			uint32_t number = (uint32_t)cell->place;

			if (cell->place >> 32 == rbx_slab_index(slab) &&
			    number < rbx_slab_cells(shape))
				in_use |= rbx_extents_of_cell(shape, number);
		}
	}
	return in_use;
}

/* Which of these may be cleared. Not those of a write that waits for another extent as well: the
 * two could be cleared in turn. What is noted, is not safe, and is not being told to servers, was
 * asked for in vain: nothing was written there. Those that have RETURNED get all that is written,
 * lack what is stale, and count when they have that, whatever is noted. */
static uint64_t may_clear(const struct rbx_slab *slab, const struct rbx_slab_group *group,
			  uint64_t bits)
{
	const struct rbx_extent_word *word = rbx_extent_word_of(slab);

	bits &= (word->is_asked ? word->safe : UINT64_MAX) & ~(word->waited | word->strayed);
	if (!bits || slab->read_mask != (slab->write_mask & ~rbx_slab_returned(slab)))
		return 0;
	return bits & ~extents_in_use(slab, group);
}

/* With the slab's lock held. What is not noted any more is behind, if a server is OUT. */
static void bits_clear(struct rbx_slab *slab, uint64_t bits)
{
	struct rbx_extent_word *word = rbx_extent_word_of(slab);

	if (RBX_LOAD_ACQUIRE(&rbx_slab_group(slab)->extents->is_tracking))
		word->behind |= word->noted & bits;
	word->safe &= ~bits;
	word->noted &= ~bits;
	word_queue(slab);
}

/* These are not set any more, or have strayed. Returns whether the slab stays in its place of the
 * ring. */
static bool place_give(struct rbx_extents *extents, uint32_t at, uint64_t bits)
{
	struct rbx_extent_word *word = &extents->words[extents->ring[at]];

	extents->set_count -= rbx_server_set_count_word(word->counted & bits);
	word->counted &= ~bits;
	if (!word->counted)
		extents->ring[at] = extents->ring[--extents->ring_count];
	return word->counted;
}

/* Looks at the next slab of which extents are set. Those that have strayed stay noted, and are not
 * looked at again. */
static void clear_quiet(struct rbx_volume_map *map, struct rbx_extents *extents)
{
	uint32_t at = extents->ring_next % extents->ring_count;
	struct rbx_slab *slab = rbx_slab_at(&map->shape, extents->ring[at]);
	struct rbx_slab_group *group = rbx_slab_group(slab);
	struct rbx_extent_word *word = rbx_extent_word_of(slab);
	uint64_t clears, goes;

	rbx_lock(&group->lock);
	clears = may_clear(slab, group, word->counted & ~word->written);
	goes = clears | word->strayed;
	word->written = 0;
	if (clears)
		bits_clear(slab, clears);
	rbx_unlock(&group->lock);
	extents->ring_next = place_give(extents, at, goes) ? at + 1 : at;
}

static bool make_room(struct rbx_volume_map *map, struct rbx_extents *extents, uint32_t wanted)
{
	uint32_t looks = 0;

	while (extents->ring_count && extents->set_count + wanted > extents->set_max &&
	       looks++ < LOOKS_MAX)
		clear_quiet(map, extents);
	return extents->set_count + wanted <= extents->room;
}

uint64_t rbx_extents_round(struct rbx_volume_map *map, uint64_t now_ns)
{
	struct rbx_extents *extents = map->shape.groups[0].extents;
	uint32_t looks = RBX_MIN(extents->ring_count, LOOKS_MAX);

	if (!looks) {
		extents->look_ns = 0;
		return UINT64_MAX;
	}
	if (extents->look_ns && now_ns < extents->look_ns)
		return extents->look_ns;
	for (; extents->look_ns && looks && extents->ring_count; looks--)
		clear_quiet(map, extents);
	/* So that each slab is looked at once in that time. */
	extents->look_ns = now_ns + extents->quiet_ns * LOOKS_MAX /
					     RBX_MAX(extents->ring_count, LOOKS_MAX);
	return extents->look_ns;
}

/* ---- Words that are sent -------------------------------------------------------------------- */

/* What writes wait for is set now. */
static void bits_set(struct rbx_extents *extents, struct rbx_slab *slab, uint64_t bits)
{
	struct rbx_extent_word *word = rbx_extent_word_of(slab);
	uint64_t left = bits & ~(word->noted | word->counted);

	if (left && !word->counted)
		extents->ring[extents->ring_count++] = rbx_slab_index(slab);
	extents->set_count += rbx_server_set_count_word(left);
	RBX_ASSERT(extents->set_count <= extents->room);
	word->counted |= left;
	word->noted |= bits;
	word->asked &= ~bits;
}

static void word_take(struct rbx_slab *slab, struct rbx_intents *intents)
{
	struct rbx_extent_word *word = rbx_extent_word_of(slab);
	uint32_t mask = slab->write_mask;

	intents->slabs[intents->slabs_count] = rbx_slab_index(slab);
	intents->words[intents->slabs_count++] = word->noted;
	word->is_asked = true;
	for (; mask; mask &= mask - 1) {
		const struct rbx_replica *replica =
			rbx_slab_replica(slab, (uint32_t)__builtin_ctz(mask));

		intents->all[intents->count++] = (struct rbx_intent){
			.server = rbx_replica_server(replica),
			.slab_id = replica->slab_id,
			.epoch = replica->epoch,
			.word = word->noted,
			.behind = word->behind,
		};
	}
}

/* false: there is no room for what it asks. The writes that wait for it may ask for more
 * meanwhile, which is for the next time. */
static bool word_next(struct rbx_volume_map *map, struct rbx_extents *extents,
		      struct rbx_slab *slab, struct rbx_intents *intents)
{
	const struct rbx_extent_word *word = rbx_extent_word_of(slab);
	uint64_t asked, more;

	rbx_slab_lock(slab);
	asked = word->asked;
	more = asked & ~(word->noted | word->counted);
	rbx_slab_unlock(slab);
	if (!make_room(map, extents, rbx_server_set_count_word(more)))
		return false;
	rbx_slab_lock(slab);
	queue_take_first(slab);
	bits_set(extents, slab, asked);
	word_take(slab, intents);
	if (rbx_extent_word_of(slab)->asked)
		word_queue(slab);
	rbx_slab_unlock(slab);
	return true;
}

bool rbx_extents_next(struct rbx_volume_map *map, struct rbx_intents *intents, bool *is_full)
{
	struct rbx_extents *extents = map->shape.groups[0].extents;
	struct rbx_slab *slab;

	intents->slabs_count = intents->count = 0;
	*is_full = false;
	while (intents->slabs_count < RBX_WIRE_INTENTS_MAX && (slab = queue_first(map))) {
		if (rbx_extent_word_of(slab)->is_asked) /* it is in this batch already */
			break;
		*is_full = !word_next(map, extents, slab, intents);
		if (*is_full)
			break;
	}
	return intents->slabs_count > 0;
}

static void word_noted(struct rbx_flow *flow, struct rbx_slab *slab, uint64_t sent,
		       struct rbx_piece_list *todo)
{
	struct rbx_slab_group *group = rbx_slab_group(slab);
	struct rbx_extent_word *word = rbx_extent_word_of(slab);

	word->is_asked = false;
	/* Then it cannot be known what its server has noted. */
	if (rbx_flow_any_failed(flow, slab)) {
		waiters_fail(slab, group, todo);
		return;
	}
	word->safe |= sent & word->noted;
	waiters_go_on(slab, group, todo);
	if (word->noted != sent)
		word_queue(slab);
}

void rbx_extents_noted(struct rbx_flow *flow, const struct rbx_intents *intents)
{
	struct rbx_piece_list todo = { 0 };
	bool wakes = false;
	uint32_t i;

	for (i = 0; i < intents->slabs_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&flow->map->shape, intents->slabs[i]);

		rbx_slab_lock(slab);
		word_noted(flow, slab, intents->words[i], &todo);
		wakes |= rbx_attention_note(&flow->map->attention, slab);
		rbx_slab_unlock(slab);
	}
	rbx_flow_do(flow, &todo);
	if (wakes)
		flow->ops->wake(flow);
}

/* ---- Replicas come --------------------------------------------------------------------------- */

void rbx_extents_joined(struct rbx_slab *slab)
{
	if (rbx_slab_group(slab)->extents)
		word_queue(slab);
}

void rbx_extents_found(struct rbx_volume_map *map, uint32_t slab_index, uint64_t word,
		       uint64_t behind)
{
	struct rbx_extents *extents = map->shape.groups[0].extents;

	if (!extents)
		return;
	extents->words[slab_index].noted |= word;
	extents->words[slab_index].behind |= behind;
	if (behind)
		RBX_STORE_RELEASE(&extents->is_tracking, true);
}

void rbx_extents_made_equal(struct rbx_slab *slab)
{
	bits_clear(slab, rbx_extent_word_of(slab)->noted);
}

/* What is to be done with the word of each slab, in its lock. Returns whether it did anything. */
typedef bool word_act(struct rbx_slab *slab);

static void each_word(struct rbx_flow *flow, word_act *act)
{
	struct rbx_volume_map *map = flow->map;
	bool wakes = false;
	uint32_t i;

	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		if (act(slab))
			wakes |= rbx_attention_note(&map->attention, slab);
		rbx_slab_unlock(slab);
	}
	if (wakes)
		flow->ops->wake(flow);
}

static bool found_forget(struct rbx_slab *slab)
{
	bool is_noted = rbx_extent_word_of(slab)->noted;

	if (is_noted)
		rbx_extents_made_equal(slab);
	return is_noted;
}

void rbx_extents_forget_found(struct rbx_flow *flow)
{
	each_word(flow, found_forget);
}

void rbx_extents_end(struct rbx_volume_map *map)
{
	RBX_STORE_RELEASE(&map->shape.groups[0].extents->is_over, true);
}

void rbx_extents_resume(struct rbx_volume_map *map)
{
	RBX_STORE_RELEASE(&map->shape.groups[0].extents->is_over, false);
}

uint64_t rbx_extents_unequal(const struct rbx_slab *slab)
{
	RBX_ASSERT(rbx_slab_group(slab)->extents);
	return rbx_extent_word_of(slab)->noted;
}

/* ---- Servers are OUT, and return ---------------------------------------------------- */

static bool behind_forget(struct rbx_slab *slab)
{
	struct rbx_extent_word *word = rbx_extent_word_of(slab);

	if (!word->behind)
		return false;
	word->behind = 0;
	word_queue(slab);
	return true;
}

/* While all replicas are there, those that are quiet are equal: a server that is lost now misses
 * nothing in them. */
static void quiet_clear(struct rbx_volume_map *map, struct rbx_extents *extents)
{
	uint32_t i;

	for (i = extents->ring_count; i-- > 0;) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, extents->ring[i]);
		uint64_t clears;

		rbx_slab_lock(slab);
		clears = may_clear(slab, rbx_slab_group(slab), rbx_extent_word_of(slab)->counted);
		if (clears)
			bits_clear(slab, clears);
		rbx_slab_unlock(slab);
		(void)place_give(extents, i, clears);
	}
}

void rbx_extents_track(struct rbx_flow *flow, bool any_is_out)
{
	struct rbx_extents *extents = flow->map->shape.groups[0].extents;

	if (any_is_out)
		quiet_clear(flow->map, extents);
	if (RBX_EXCHANGE(&extents->is_tracking, any_is_out) && !any_is_out)
		each_word(flow, behind_forget);
}
