/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes.c - which named volumes the servers of a pool have.
 *
 * The library asks as many servers at a time as a volume may have. A pool may have more, so it
 * is asked part by part, and a volume that is in several parts is put together.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pool/pool_status.h"

#define PART_MAX 64u /* servers of a named volume */
#define VOLUMES_MAX 1024u /* at first, of one part */

static bool is_asked(const struct pool_row *row)
{
	return row->state == POOL_UP || row->state == POOL_DRAINING;
}

/* The next servers to ask, as a list. Returns where to go on. */
static size_t part_print(const struct pool_row *rows, size_t count, size_t at, char *list)
{
	size_t taken;

	for (taken = 0, *list = '\0'; at < count && taken < PART_MAX; at++) {
		if (!is_asked(&rows[at]))
			continue;
		sprintf(list + strlen(list), "%s%s", taken ? "," : "", rows[at].member.address);
		taken++;
	}
	return at;
}

static struct rbx_volume_info *volume_find(const struct pool_volumes *volumes, uint64_t volume_id)
{
	size_t i;

	for (i = 0; i < volumes->count; i++)
		if (volumes->infos[i].volume_id == volume_id)
			return &volumes->infos[i];
	return NULL;
}

static int volume_join(struct pool_volumes *volumes, const struct rbx_volume_info *info)
{
	struct rbx_volume_info *known = volume_find(volumes, info->volume_id);
	uint32_t there = info->servers_there;
	uint32_t copies = info->copies;
	void *more;

	if (!known) {
		more = realloc(volumes->infos, (volumes->count + 1) * sizeof(*info));
		if (!more)
			return -ENOMEM;
		volumes->infos = more;
		volumes->infos[volumes->count++] = *info;
		return 0;
	}
	there += known->servers_there;
	if (known->copies < copies)
		copies = known->copies; /* one of the parts may have an older record */
	if (info->is_open)
		*known = *info;
	known->servers_there = there;
	known->copies = copies;
	return 0;
}

/* Returns 0 or -errno with rbx_last_error(). */
static int part_ask(struct rbx_context *ctx, const char *list, struct pool_volumes *volumes)
{
	struct rbx_volume_info *infos = NULL;
	int i, count, err = 0, room = VOLUMES_MAX;

	for (;;) {
		free(infos);
		infos = calloc((size_t)room, sizeof(*infos));
		count = infos ? rbx_volume_list(ctx, list, infos, (uint32_t)room) : -ENOMEM;
		if (count <= room)
			break;
		room = count;
	}
	for (i = 0; i < count && !err; i++)
		err = volume_join(volumes, &infos[i]);
	free(infos);
	return count < 0 ? count : err;
}

uint32_t pool_volume_missing(const struct rbx_volume_info *info)
{
	uint32_t accounted = info->servers_there + info->servers_out;

	return info->servers > accounted ? info->servers - accounted : 0;
}

static int by_name(const void *a, const void *b)
{
	const struct rbx_volume_info *one = a, *other = b;

	return strcmp(one->name, other->name);
}

void pool_volumes_ask(struct rbx_context *ctx, const struct pool_row *rows, size_t count,
		      struct pool_volumes *volumes)
{
	char *list = malloc(PART_MAX * RBX_POOL_ADDRESS_BYTES);
	int err = list ? 0 : -ENOMEM;
	size_t at = 0;

	*volumes = (struct pool_volumes){ .count = 0 };
	while (!err && at < count) {
		at = part_print(rows, count, at, list);
		if (*list)
			err = part_ask(ctx, list, volumes);
	}
	free(list);
	if (err)
		snprintf(volumes->error, sizeof(volumes->error), "%s",
			 err == -ENOMEM ? "out of memory" : rbx_last_error());
	if (volumes->count)
		qsort(volumes->infos, volumes->count, sizeof(*volumes->infos), by_name);
}
