/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watches.c - see watches.h. */
#include "lib/monitor/watches.h"

#include <string.h>

#include "lib/monitor/monitor.h"

struct watch {
	uintptr_t start;
	uintptr_t end;
};

static struct {
	uint32_t count;
	struct watch watches[RBX_MEMORY_MONITOR_WATCHES_MAX]; /* sorted by start, then by end */
} table;

static bool is_before(const struct watch *watch, uintptr_t start, uintptr_t end)
{
	return watch->start != start ? watch->start < start : watch->end < end;
}

/* The first one that is not before this range. */
static uint32_t place_of(uintptr_t start, uintptr_t end)
{
	uint32_t low = 0, high = table.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (is_before(&table.watches[middle], start, end))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void rbx_watches_add(uintptr_t start, uintptr_t end)
{
	uint32_t place = place_of(start, end);
	struct watch *watch = &table.watches[place];

	RBX_ASSERT(start < end);
	RBX_ASSERT(table.count < RBX_MEMORY_MONITOR_WATCHES_MAX);
	memmove(watch + 1, watch, (table.count - place) * sizeof(*watch));
	*watch = (struct watch){ start, end };
	table.count++;
}

void rbx_watches_remove(uintptr_t start, uintptr_t end)
{
	uint32_t place = place_of(start, end);
	struct watch *watch = &table.watches[place];

	RBX_ASSERT(place < table.count && watch->start == start && watch->end == end);
	table.count--;
	memmove(watch, watch + 1, (table.count - place) * sizeof(*watch));
}

void rbx_watches_clear(void)
{
	table.count = 0;
}

uint32_t rbx_watches_count(void)
{
	return table.count;
}

bool rbx_watches_next_hole(struct rbx_watches_walk *walk, uintptr_t *start, uintptr_t *end)
{
	for (; walk->index < table.count; walk->index++) {
		const struct watch *watch = &table.watches[walk->index];

		if (watch->start > walk->at)
			break;
		if (watch->end > walk->at)
			walk->at = watch->end;
	}
	if (walk->at >= walk->end)
		return false;
	*start = walk->at;
	*end = walk->end;
	if (walk->index < table.count)
		*end = RBX_MIN(*end, table.watches[walk->index].start);
	walk->at = *end;
	return true;
}
