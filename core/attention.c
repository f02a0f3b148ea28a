/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention.c - the inbox, the lists and the census, see attention.h.
 */
#include "core/attention.h"

#include "core/slab_rebuild.h"

size_t rbx_attention_size(uint32_t slab_count)
{
	size_t size = rbx_index_inbox_size(slab_count) +
		      rbx_index_sets_size(slab_count, RBX_ATTENTION_SETS) +
		      slab_count;

	/* Words follow it in memory. */
	return (size + 7) / 8 * 8;
}

/* ---- What is counted ------------------------------------------------------------*/

/*
 * What is counted of a slab, in four bits: its health in two, then a bit for HOLES and one that
 * is TOGETHER of a whole slab with several replicas and LAST of all others. No slab has both:
 * one that is whole has as many servers as replicas. Blank and dead slabs have no marks, so a
 * dead slab is encoded as a blank one with the first bit.
 */
#define COUNTED_BITS 4u
#define COUNTED_MASK ((1u << COUNTED_BITS) - 1)
#define HEALTH_BITS 2u
#define HEALTH_MASK ((1u << HEALTH_BITS) - 1)
#define COUNTED_FIRST (1u << HEALTH_BITS) /* LAST or TOGETHER */
#define COUNTED_HOLES (2u << HEALTH_BITS)
#define COUNTED_DEAD COUNTED_FIRST

RBX_STATIC_ASSERT(RBX_SLAB_BLANK == 0 && RBX_SLAB_REBUILDING <= HEALTH_MASK &&
			  RBX_SLAB_DEAD > HEALTH_MASK,
		  "those with marks have room for them");
RBX_STATIC_ASSERT(COUNTED_HOLES <= COUNTED_MASK && RBX_SLAB_MARKS == 3, "each has a bit");
RBX_STATIC_ASSERT(RBX_DUE_SLOTS <= COUNTED_MASK, "a slot plus 1 in the other half");

/* Which mark the first bit is. */
static enum rbx_slab_mark first_mark(const struct rbx_slab_shape *shape, uint32_t health)
{
	return health == RBX_SLAB_WHOLE && shape->replicas > 1 ? RBX_MARK_TOGETHER :
								 RBX_MARK_LAST;
}

static uint32_t counted_bits(const struct rbx_slab *slab, uint32_t health)
{
	bool has_first = first_mark(rbx_slab_shape(slab), health) == RBX_MARK_LAST ?
				 rbx_slab_is_last(slab) :
				 rbx_slab_is_together(slab);

	/* Without a live replica it is dead. */
	return (has_first ? COUNTED_FIRST : 0) |
	       (slab->has_holes && slab->read_mask ? COUNTED_HOLES : 0);
}

static uint32_t counted_of(const struct rbx_slab *slab)
{
	enum rbx_slab_health health = rbx_slab_health(slab);

	switch (health) {
	case RBX_SLAB_BLANK:
		return 0;
	case RBX_SLAB_DEAD:
		return COUNTED_DEAD;
	default:
		return (uint32_t)health | counted_bits(slab, health);
	}
}

static enum rbx_slab_health counted_health(uint32_t counted)
{
	return counted == COUNTED_DEAD ?
		       RBX_SLAB_DEAD :
		       (enum rbx_slab_health)(counted & HEALTH_MASK);
}

/* A bit for each mark. */
static uint32_t counted_marks(const struct rbx_slab_shape *shape, uint32_t counted)
{
	uint32_t marks = 0;

	if (!(counted & HEALTH_MASK))
		return 0;
	if (counted & COUNTED_FIRST)
		marks |= 1u << first_mark(shape, counted & HEALTH_MASK);
	if (counted & COUNTED_HOLES)
		marks |= 1u << RBX_MARK_HOLES;
	return marks;
}

static uint32_t index_of(const struct rbx_slab *slab)
{
	return rbx_slab_index(slab);
}

void rbx_attention_init(struct rbx_attention *attention, void *memory,
			const struct rbx_slab_shape *shape, uint32_t slab_max,
			uint32_t slab_count)
{
	const struct rbx_slab *slab = rbx_slab_at(shape, 0);
	char *lists = (char *)memory + rbx_index_inbox_size(slab_max);

	attention->shape = shape;
	rbx_index_inbox_init(&attention->inbox, memory, slab_max);
	rbx_index_sets_init(&attention->lists, lists, slab_max,
			    RBX_ATTENTION_SETS);
	attention->noted =
		(uint8_t *)lists +
		rbx_index_sets_size(slab_max, RBX_ATTENTION_SETS);
	attention->counted_first = (uint8_t)counted_of(slab);
	attention->health_counts[rbx_slab_health(slab)] = slab_count;
}

void rbx_attention_grow(struct rbx_attention *attention, uint32_t slab_count)
{
	RBX_ADD_RELAXED(&attention->health_counts[counted_health(attention->counted_first)],
			slab_count);
}

RBX_RARE static void marks_keep(struct rbx_attention *attention,
				uint32_t before, uint32_t now)
{
	uint32_t mark;

	for (mark = 0; mark < RBX_SLAB_MARKS; mark++)
		if ((now ^ before) >> mark & 1)
			RBX_ADD_RELAXED(&attention->mark_counts[mark],
					now >> mark & 1 ? 1 : UINT32_MAX);
}

/* With the slab's lock held. */
static void census_keep(struct rbx_attention *attention,
			const struct rbx_slab *slab)
{
	uint8_t *noted = &attention->noted[index_of(slab)];
	uint32_t before = (*noted & COUNTED_MASK) ^ attention->counted_first;
	uint32_t now = counted_of(slab), marks_before, marks_now;

	if (now == before)
		return;
	*noted ^= (uint8_t)(now ^ before);
	marks_before = counted_marks(attention->shape, before);
	marks_now = counted_marks(attention->shape, now);
	if (marks_now != marks_before)
		marks_keep(attention, marks_before, marks_now);
	if (counted_health(now) == counted_health(before))
		return;
	RBX_ADD_RELAXED(&attention->health_counts[counted_health(before)],
			UINT32_MAX);
	RBX_ADD_RELAXED(&attention->health_counts[counted_health(now)], 1);
}

void rbx_attention_put(struct rbx_attention *attention, struct rbx_slab *slab)
{
	(void)rbx_slab_attention(slab);
	census_keep(attention, slab);
	rbx_index_inbox_put(&attention->inbox, index_of(slab));
}

/* ---- The circle of times --------------------------------------------------------*/

static uint32_t due_slot(uint64_t at_ns)
{
	return (uint32_t)(at_ns >> RBX_DUE_SHIFT) % RBX_DUE_SLOTS;
}

static uint32_t due_set(uint32_t slot)
{
	return RBX_LISTS + slot % RBX_DUE_SLOTS;
}

void rbx_attention_until(struct rbx_attention *attention,
			 const struct rbx_slab *slab, uint64_t now_ns,
			 uint64_t until_ns)
{
	uint8_t *noted = &attention->noted[index_of(slab)];
	uint64_t due_ns = RBX_MAX(now_ns, until_ns);
	uint32_t due = 0;

	if (due_ns - now_ns < RBX_EVICT_NEAR_NS)
		due = due_slot(due_ns) + 1;
	*noted = (uint8_t)((*noted & COUNTED_MASK) | due << COUNTED_BITS);
	RBX_STORE_RELAXED(&attention->due_now, due_slot(now_ns));
}

/* The set of a slab that a server wants back. The slab's lock is held. */
static uint32_t set_leaving(const struct rbx_attention *attention,
			    const struct rbx_slab *slab)
{
	uint32_t due = attention->noted[index_of(slab)] >> COUNTED_BITS;

	return due ? due_set(due - 1) : RBX_LIST_LEAVING;
}

/* The set of the slabs that will be revoked first: what was due a slot ago comes first, and
 * last what has no time. */
static uint32_t set_leaving_first(const struct rbx_attention *attention)
{
	uint32_t slot = RBX_LOAD_RELAXED(&attention->due_now) + RBX_DUE_SLOTS - 1;
	uint32_t end = slot + RBX_DUE_SLOTS;

	for (; slot < end && attention->due_count; slot++)
		if (rbx_index_sets_count(&attention->lists, due_set(slot)))
			return due_set(slot);
	return RBX_LIST_LEAVING;
}

/* ---- Lists ----------------------------------------------------------------------*/

static void move(struct rbx_attention *attention, uint32_t index, uint32_t set)
{
	uint32_t before = rbx_index_sets_of(&attention->lists, index);

	attention->due_count -= before >= RBX_LISTS;
	attention->due_count += set >= RBX_LISTS;
	rbx_index_sets_move(&attention->lists, index, set);
}

struct rbx_slab *rbx_attention_first(struct rbx_attention *attention,
				     enum rbx_attention_list list)
{
	uint32_t set = list == RBX_LIST_LEAVING ? set_leaving_first(attention) :
						  list;
	uint32_t index = rbx_index_sets_next(&attention->lists, set,
					     attention->next[set]);

	if (index == RBX_INDEX_NONE)
		return NULL;
	attention->next[set] = index + 1;
	return rbx_slab_at(attention->shape, index);
}

/* ---- Where a slab belongs; its lock is held ----------------------------------- */

static enum rbx_attention_list list_of_lack(const struct rbx_slab *slab,
					    bool is_lent)
{
	if (rbx_slab_readable(slab) >= rbx_slab_shape(slab)->replicas)
		return is_lent ? RBX_LIST_COPY_LEAVING : RBX_LIST_LEAVING;
	if (rbx_slab_readable(slab) == 1)
		return is_lent ? RBX_LIST_COPY_ONE : RBX_LIST_BORROW_ONE;
	return is_lent ? RBX_LIST_COPY_SOME : RBX_LIST_BORROW_SOME;
}

/* What is to be given back comes first if it blocks what is to be done next. */
static enum rbx_attention_list list_of_return(const struct rbx_slab *slab)
{
	switch (rbx_slab_health(slab)) {
	case RBX_SLAB_BLANK:
	case RBX_SLAB_DEAD:
		return slab->waits ? RBX_LIST_LEND : RBX_LIST_RETURN;
	case RBX_SLAB_LACKING:
		return list_of_lack(slab, false);
	case RBX_SLAB_REBUILDING:
		return rbx_slab_copies_count(slab) ? RBX_LIST_RETURN :
					    list_of_lack(slab, true);
	default:
		return RBX_LIST_RETURN;
	}
}

static enum rbx_attention_list list_of(const struct rbx_slab *slab)
{
	switch (rbx_slab_task(slab)) {
	case RBX_TASK_NONE:
		break;
	case RBX_TASK_GIVE_BACK:
	case RBX_TASK_FREE_PAGES:
	case RBX_TASK_RETURN_RECORD:
		return list_of_return(slab);
	case RBX_TASK_LEND:
		return RBX_LIST_LEND;
	case RBX_TASK_COPY:
		return list_of_lack(slab, true);
	case RBX_TASK_LABEL: /* it asks a server, as those do that borrow */
	case RBX_TASK_UNLABEL:
	case RBX_TASK_BORROW:
		return list_of_lack(slab, false);
	}
	return RBX_LIST_NONE;
}

static enum rbx_attention_list parking_of(enum rbx_attention_list list,
					  enum rbx_attention_parking parking)
{
	if (parking == RBX_PARK_NOT)
		return list;
	switch (list) {
	case RBX_LIST_NONE:
	case RBX_LIST_RETURN:
		return list;
	case RBX_LIST_LEND:
		return RBX_LIST_LEND_WAITS;
	case RBX_LIST_COPY_ONE:
	case RBX_LIST_COPY_SOME:
	case RBX_LIST_COPY_LEAVING:
		/* It needs no server, and may have the record that other slabs wait for. */
		return parking == RBX_PARK_WAITS ? RBX_LIST_BORROW_WAITS : list;
	default:
		return parking == RBX_PARK_WAITS ? RBX_LIST_BORROW_WAITS :
						   RBX_LIST_STUCK;
	}
}

void rbx_attention_relist(struct rbx_attention *attention,
			  struct rbx_slab *slab,
			  enum rbx_attention_parking parking)
{
	enum rbx_attention_list list;
	uint32_t set;

	rbx_slab_lock(slab);
	(void)rbx_slab_attention(slab);
	census_keep(attention, slab);
	list = parking_of(list_of(slab), parking);
	set = list == RBX_LIST_LEAVING ? set_leaving(attention, slab) : list;
	rbx_slab_unlock(slab);
	move(attention, index_of(slab), set);
}

bool rbx_attention_take(struct rbx_attention *attention, uint32_t max)
{
	uint32_t index, i;

	for (i = 0; i < max; i++) {
		index = rbx_index_inbox_take(&attention->inbox);
		if (index == RBX_INDEX_NONE)
			return false;
		rbx_attention_relist(attention,
				     rbx_slab_at(attention->shape, index),
				     RBX_PARK_NOT);
	}
	return rbx_index_inbox_has_any(&attention->inbox);
}
