/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attention.c - an inbox and a few doubly linked lists, see attention.h.
 *
 * Evictions have a list for each server. A server asks in the order in which it takes
 * back, so that these lists are in order as they come, and the first of all is among
 * the heads of those that are not empty.
 */
#include "core/attention.h"

RBX_STATIC_ASSERT(sizeof(struct rbx_attention_node) == 20,
		  "with its share of alignment no more than attention.h says");

/* Times are kept in units of about a millisecond, in 32 bits that wrap around after
 * 52 days: they are compared by their difference. */
#define UNTIL_SHIFT 20u
#define UNTIL_NEVER 0u

size_t rbx_attention_size(uint32_t slab_count)
{
	return (size_t)slab_count * sizeof(struct rbx_attention_node);
}

void rbx_attention_init(struct rbx_attention *attention, void *nodes,
			const struct rbx_slab_shape *shape, uint32_t slab_count)
{
	attention->shape = shape;
	attention->nodes = nodes;
	attention->health_first = (uint8_t)rbx_slab_health(rbx_slab_at(shape, 0));
	attention->health_counts[attention->health_first] = slab_count;
}

/* ---- Notes ----------------------------------------------------------------*/

/* Of what is counted of a slab: the health plus 1, and a bit for each mark above. */
#define HEALTH_BITS 4u
#define HEALTH_MASK ((1u << HEALTH_BITS) - 1)

RBX_STATIC_ASSERT(RBX_SLAB_HEALTHS <= HEALTH_MASK, "room for each health plus 1");
RBX_STATIC_ASSERT(HEALTH_BITS + RBX_SLAB_MARKS <= 8, "and for each mark");

static inline uint32_t marks_of(const struct rbx_slab *slab)
{
	uint32_t marks = (uint32_t)rbx_slab_is_last(slab) << RBX_MARK_LAST;

	if (slab->has_holes && slab->read_mask) /* else it is dead */
		marks |= 1u << RBX_MARK_HOLES;
	return marks;
}

RBX_RARE static void marks_keep(struct rbx_attention *attention, uint32_t before,
		       uint32_t now)
{
	uint32_t mark;

	for (mark = 0; mark < RBX_SLAB_MARKS; mark++)
		if ((now ^ before) >> mark & 1)
			RBX_ADD_RELAXED(&attention->mark_counts[mark],
					now >> mark & 1 ? 1 : UINT32_MAX);
}

static void census_keep(struct rbx_attention *attention,
			struct rbx_attention_node *node,
			const struct rbx_slab *slab)
{
	uint32_t health = (uint32_t)rbx_slab_health(slab);
	uint32_t marks = marks_of(slab);
	uint32_t counted = (health + 1) | marks << HEALTH_BITS;
	uint32_t before = node->counted & HEALTH_MASK;

	if (counted == node->counted)
		return;
	if (marks != node->counted >> HEALTH_BITS)
		marks_keep(attention, node->counted >> HEALTH_BITS, marks);
	node->counted = (uint8_t)counted;
	before = before ? before - 1 : attention->health_first;
	if (health == before)
		return;
	RBX_ADD_RELAXED(&attention->health_counts[before], UINT32_MAX);
	RBX_ADD_RELAXED(&attention->health_counts[health], 1);
}

void rbx_attention_put(struct rbx_attention *attention, struct rbx_slab *slab)
{
	struct rbx_attention_node *node = &attention->nodes[slab->index];
	uint32_t first;

	(void)rbx_slab_attention(slab);
	census_keep(attention, node, slab);
	if (node->is_in_inbox)
		return;
	node->is_in_inbox = true;
	first = RBX_LOAD_RELAXED(&attention->inbox);
	/* Pairs with the exchange of inbox_take(): the links of what is found there
	 * are seen. Bounded by the threads that add at this moment. */
	do
		node->inbox_next = first;
	while (!RBX_COMPARE_EXCHANGE(&attention->inbox, &first,
				     slab->index + 1));
}

void rbx_attention_until(struct rbx_attention *attention,
			 const struct rbx_slab *slab, uint64_t until_ns)
{
	uint32_t until = until_ns == UINT64_MAX ?
				 UNTIL_NEVER :
				 (uint32_t)(until_ns >> UNTIL_SHIFT) | 1;

	RBX_STORE_RELAXED(&attention->nodes[slab->index].until, until);
}

/* ---- Lists ------------------------------------------------------------------*/

static struct rbx_attention_ends *ends_of(struct rbx_attention *attention,
					  const struct rbx_attention_node *node)
{
	return node->list == RBX_LIST_LEAVING ?
		       &attention->leaving[node->server] :
		       &attention->lists[node->list];
}

static void list_leave(struct rbx_attention *attention,
		   struct rbx_attention_node *node)
{
	struct rbx_attention_ends *ends = ends_of(attention, node);

	if (node->list == RBX_LIST_NONE)
		return;
	if (node->previous)
		attention->nodes[node->previous - 1].next = node->next;
	else
		ends->first = node->next;
	if (node->next)
		attention->nodes[node->next - 1].previous = node->previous;
	else
		ends->last = node->previous;
	ends->count--;
	if (node->list == RBX_LIST_LEAVING) {
		attention->lists[RBX_LIST_LEAVING].count--;
		if (!ends->count)
			rbx_server_set_remove(&attention->leaving_servers,
					      node->server);
	}
	node->list = RBX_LIST_NONE;
}

static void list_join(struct rbx_attention *attention, uint32_t index,
		      enum rbx_attention_list list, uint32_t server)
{
	struct rbx_attention_node *node = &attention->nodes[index];
	struct rbx_attention_ends *ends;

	RBX_ASSERT(node->list == RBX_LIST_NONE);
	if (list == RBX_LIST_NONE)
		return;
	node->list = list & 0x3f;
	node->server = server & 0x3ff;
	ends = ends_of(attention, node);
	node->next = 0;
	node->previous = ends->last;
	if (ends->last)
		attention->nodes[ends->last - 1].next = index + 1;
	else
		ends->first = index + 1;
	ends->last = index + 1;
	ends->count++;
	if (list == RBX_LIST_LEAVING) {
		attention->lists[RBX_LIST_LEAVING].count++;
		rbx_server_set_add(&attention->leaving_servers, server);
	}
}

static bool is_earlier(uint32_t until, uint32_t other)
{
	if (until == UNTIL_NEVER || other == UNTIL_NEVER)
		return until != UNTIL_NEVER;
	return (int32_t)(until - other) < 0;
}

/* The first that some server takes back. */
static uint32_t first_leaving(const struct rbx_attention *attention)
{
	const struct rbx_server_set *servers = &attention->leaving_servers;
	uint32_t found = 0, earliest = UNTIL_NEVER, i;
	uint32_t count = rbx_server_set_count(servers);

	for (i = 0; i < count; i++) {
		uint32_t server = rbx_server_set_member(servers, i);
		uint32_t first = attention->leaving[server].first, until;

		until = RBX_LOAD_RELAXED(&attention->nodes[first - 1].until);
		if (found && !is_earlier(until, earliest))
			continue;
		found = first;
		earliest = until;
	}
	return found;
}

struct rbx_slab *rbx_attention_first(struct rbx_attention *attention,
				     enum rbx_attention_list list)
{
	uint32_t first = list == RBX_LIST_LEAVING ?
				 first_leaving(attention) :
				 attention->lists[list].first;

	return first ? rbx_slab_at(attention->shape, first - 1) : NULL;
}

/* ---- Where a slab belongs, whose lock is held ---------------------------------*/

static enum rbx_attention_list list_of_lack(const struct rbx_slab *slab,
					    bool is_lent)
{
	if (rbx_slab_readable(slab) >= slab->shape->replicas)
		return is_lent ? RBX_LIST_COPY_LEAVING : RBX_LIST_LEAVING;
	if (rbx_slab_readable(slab) == 1)
		return is_lent ? RBX_LIST_COPY_ONE : RBX_LIST_BORROW_ONE;
	return is_lent ? RBX_LIST_COPY_SOME : RBX_LIST_BORROW_SOME;
}

/* What is to be given back is in the way of what is to be done next. */
static enum rbx_attention_list list_of_return(const struct rbx_slab *slab)
{
	switch (rbx_slab_health(slab)) {
	case RBX_SLAB_BLANK:
	case RBX_SLAB_DEAD:
		return slab->waits ? RBX_LIST_LEND : RBX_LIST_RETURN;
	case RBX_SLAB_LACKING:
		return list_of_lack(slab, false);
	case RBX_SLAB_REBUILDING:
		return slab->copies_count ? RBX_LIST_RETURN :
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
		return list_of_return(slab);
	case RBX_TASK_LEND:
		return RBX_LIST_LEND;
	case RBX_TASK_COPY:
		return list_of_lack(slab, true);
	case RBX_TASK_BORROW:
		return list_of_lack(slab, false);
	}
	return RBX_LIST_NONE;
}

static enum rbx_attention_list parking_of(enum rbx_attention_list list)
{
	switch (list) {
	case RBX_LIST_NONE:
	case RBX_LIST_RETURN:
		return list;
	case RBX_LIST_LEND:
		return RBX_LIST_LEND_WAITS;
	default:
		return RBX_LIST_STUCK;
	}
}

/* The server that wants a replica back. */
static uint32_t server_leaving(const struct rbx_slab *slab)
{
	struct rbx_loan loan;
	uint32_t server = 0;

	(void)rbx_slab_leaving(slab, &server, &loan);
	return server;
}

void rbx_attention_relist(struct rbx_attention *attention,
			  struct rbx_slab *slab, bool parked)
{
	struct rbx_attention_node *node = &attention->nodes[slab->index];
	enum rbx_attention_list list;
	uint32_t server;

	rbx_slab_lock(slab);
	(void)rbx_slab_attention(slab);
	census_keep(attention, node, slab);
	list = list_of(slab);
	server = server_leaving(slab);
	rbx_slab_unlock(slab);
	list_leave(attention, node);
	list_join(attention, slab->index, parked ? parking_of(list) : list,
		  server);
}

/* ---- The inbox ----------------------------------------------------------------*/

/* All that is there, the oldest first. */
static uint32_t inbox_take(struct rbx_attention *attention)
{
	uint32_t link = RBX_EXCHANGE(&attention->inbox, 0), oldest = 0;

	while (link) {
		struct rbx_attention_node *node = &attention->nodes[link - 1];
		uint32_t next = node->inbox_next;

		node->inbox_next = oldest;
		oldest = link;
		link = next;
	}
	return oldest;
}

bool rbx_attention_take(struct rbx_attention *attention, uint32_t max)
{
	uint32_t i;

	for (i = 0; i < max; i++) {
		struct rbx_attention_node *node;
		struct rbx_slab *slab;

		if (!attention->taken)
			attention->taken = inbox_take(attention);
		if (!attention->taken)
			return false;
		slab = rbx_slab_at(attention->shape, attention->taken - 1);
		node = &attention->nodes[slab->index];
		attention->taken = node->inbox_next;
		rbx_slab_lock(slab);
		node->is_in_inbox = false;
		rbx_slab_unlock(slab);
		rbx_attention_relist(attention, slab, false);
	}
	return attention->taken || RBX_LOAD_RELAXED(&attention->inbox);
}
