/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes.c - which named volumes the servers of a pool have. Those that are away are not asked
 * once more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pool/pool_status.h"

#define VOLUMES_MAX 1024u /* at first */

static bool is_asked(const struct pool_row *row)
{
	return row->state == POOL_UP || row->state == POOL_DRAINING;
}

/* Those that answered, with commas between them; NULL: there is no memory. */
static char *servers_list(const struct pool_row *rows, size_t count)
{
	char *list = malloc(count * RBX_POOL_ADDRESS_BYTES + 1), *end = list;
	size_t i;

	if (!list)
		return NULL;
	*list = '\0';
	for (i = 0; i < count; i++)
		if (is_asked(&rows[i]))
			end += sprintf(end, "%s%s", *list ? "," : "", rows[i].member.address);
	return list;
}

/* Returns 0 or -errno with rbx_last_error(). */
static int ask(struct rbx_context *ctx, const char *list, struct pool_volumes *volumes)
{
	int count, room = VOLUMES_MAX;

	for (;;) {
		volumes->infos = calloc((size_t)room, sizeof(*volumes->infos));
		count = -ENOMEM;
		if (volumes->infos)
			count = rbx_volume_list(ctx, list, volumes->infos, (uint32_t)room);
		if (count <= room)
			break;
		free(volumes->infos);
		room = count;
	}
	volumes->count = count > 0 ? (size_t)count : 0;
	return count < 0 ? count : 0;
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
	char *list = servers_list(rows, count);
	int err = list ? 0 : -ENOMEM;

	*volumes = (struct pool_volumes){ .count = 0 };
	if (!err && *list)
		err = ask(ctx, list, volumes);
	free(list);
	if (err)
		snprintf(volumes->error, sizeof(volumes->error), "%s",
			 err == -ENOMEM ? "out of memory" : rbx_last_error());
	if (volumes->count)
		qsort(volumes->infos, volumes->count, sizeof(*volumes->infos), by_name);
}
