/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_queue.c - see slab_queue.h. There is a line of slabs for each owner, and a line of the
 * owners that have slabs, all linked by index. So each call touches a few entries, however
 * many slabs wait.
 */
#include "core/slab_queue.h"

#define NONE UINT32_MAX

struct line {
	uint32_t first; /* NONE: it is empty */
	uint32_t last;
};

struct rbx_slab_queue {
	uint32_t slabs_count;
	uint32_t owners_count;
	struct line turns; /* of owners; the first is next */
	struct line *lines; /* of slabs, for each owner */
	uint32_t *next_owner; /* by owner */
	uint32_t *next_slab; /* by slab */
};

size_t rbx_slab_queue_size(uint32_t slabs_count, uint32_t owners_count)
{
	return sizeof(struct rbx_slab_queue) +
	       (size_t)owners_count * (sizeof(struct line) + sizeof(uint32_t)) +
	       (size_t)slabs_count * sizeof(uint32_t);
}

struct rbx_slab_queue *rbx_slab_queue_init(void *memory, uint32_t slabs_count,
					   uint32_t owners_count)
{
	struct rbx_slab_queue *queue = memory;
	uint32_t i;

	RBX_ASSERT(slabs_count > 0 && slabs_count <= RBX_LENT_SLABS_MAX);
	RBX_ASSERT(owners_count > 0);
	queue->slabs_count = slabs_count;
	queue->owners_count = owners_count;
	queue->lines = (struct line *)(queue + 1);
	queue->next_owner = (uint32_t *)(queue->lines + owners_count);
	queue->next_slab = queue->next_owner + owners_count;
	queue->turns.first = NONE;
	for (i = 0; i < owners_count; i++)
		queue->lines[i].first = NONE;
	return queue;
}

/* Returns whether it was empty before. */
static bool line_put(struct line *line, uint32_t *next, uint32_t entry)
{
	bool was_empty = line->first == NONE;

	next[entry] = NONE;
	if (was_empty)
		line->first = entry;
	else
		next[line->last] = entry;
	line->last = entry;
	return was_empty;
}

static uint32_t line_take(struct line *line, const uint32_t *next)
{
	uint32_t entry = line->first;

	RBX_ASSERT(entry != NONE);
	line->first = next[entry];
	return entry;
}

void rbx_slab_queue_put(struct rbx_slab_queue *queue, uint32_t slab,
			uint32_t owner)
{
	RBX_ASSERT(slab < queue->slabs_count);
	RBX_ASSERT(owner < queue->owners_count);
	if (line_put(&queue->lines[owner], queue->next_slab, slab))
		(void)line_put(&queue->turns, queue->next_owner, owner);
}

uint32_t rbx_slab_queue_take(struct rbx_slab_queue *queue)
{
	uint32_t owner, slab;

	if (queue->turns.first == NONE)
		return RBX_SLAB_QUEUE_EMPTY;
	owner = line_take(&queue->turns, queue->next_owner);
	slab = line_take(&queue->lines[owner], queue->next_slab);
	if (queue->lines[owner].first != NONE)
		(void)line_put(&queue->turns, queue->next_owner, owner);
	return slab;
}
