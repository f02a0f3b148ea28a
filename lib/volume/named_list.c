/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_list.c - tells which named volumes servers have (include/rdmabox/volumes.h).
 */
#include <stdlib.h>
#include <string.h>

#include "include/rdmabox/volumes.h"
#include "lib/guard.h"
#include "lib/sized.h"
#include "lib/volume/crowd.h"

struct found {
	struct rbx_volume_info *infos;
	uint32_t count;
	uint32_t room;
};

/* Two volumes may have the same name, if one of them is what a remove has left. */
static struct rbx_volume_info *info_find(struct found *found, uint64_t volume_id)
{
	uint32_t i;

	for (i = 0; i < found->count; i++)
		if (found->infos[i].volume_id == volume_id)
			return &found->infos[i];
	if (found->count == found->room) {
		uint32_t room = found->room ? 2 * found->room : 16;
		void *infos = realloc(found->infos, room * sizeof(*found->infos));

		if (!infos)
			return NULL;
		found->infos = infos;
		found->room = room;
	}
	found->infos[found->count] = (struct rbx_volume_info){
		.size_bytes = sizeof(struct rbx_volume_info),
		.volume_id = volume_id,
	};
	return &found->infos[found->count++];
}

static int info_add(struct found *found, const struct rbx_wire_volume *volume)
{
	const struct rbx_wire_record *record = &volume->record;
	struct rbx_volume_info *info = info_find(found, record->volume_id);

	if (!info)
		return rbx_error(-ENOMEM, "out of memory");
	memcpy(info->name, record->name, sizeof(info->name));
	memcpy(info->writer, volume->holder, sizeof(info->writer));
	info->volume_bytes = record->size_bytes;
	info->slab_bytes = record->slab_bytes;
	info->keep_s = record->keep_s;
	info->is_open |= volume->is_open;
	info->servers = record->members_count;
	info->servers_there++;
	return 0;
}

/* Bounded: a server has so many volumes at most, whatever it says. */
static int list_of(struct rbx_session *session, struct found *found)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_LIST };
	uint64_t cursor;
	uint32_t i;
	int err;

	for (i = 0; i < RBX_KEPT_VOLUMES_MAX; i++) {
		err = rbx_session_talk(session, &m);
		if (err)
			return err == -ENOENT ? 0 : err;
		cursor = m.volume.next;
		if (m.volume.record.epoch)
			err = info_add(found, &m.volume);
		if (err)
			return err;
		m = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME_LIST,
					       .cursor = cursor };
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct rbx_volume_info *one = a, *other = b;

	return strcmp(one->name, other->name);
}

static void infos_give(struct found *found, struct rbx_volume_info *infos, uint32_t max,
		       size_t info_bytes)
{
	uint32_t i;

	if (found->count)
		qsort(found->infos, found->count, sizeof(*found->infos), by_name);
	for (i = 0; i < found->count && i < max; i++)
		rbx_sized_give((char *)infos + i * info_bytes, info_bytes, &found->infos[i],
			       sizeof(found->infos[i]));
}

int rbx_volume_list_sized(struct rbx_context *ctx, const char *servers,
			  struct rbx_volume_info *infos, uint32_t max, size_t info_bytes)
{
	struct found found = { 0 };
	struct rbx_crowd *crowd;
	uint32_t i;
	int err;

	if (!ctx || !servers || (max && !infos))
		return rbx_error(-EINVAL, "context, servers and infos must be given");
	err = rbx_guard_wait(ctx, "rbx_volume_list");
	if (!err)
		err = rbx_crowd_open(ctx, servers, &crowd);
	if (err)
		return err;
	for (i = 0; i < crowd->count && !err; i++)
		err = list_of(crowd->sessions[i], &found);
	rbx_crowd_close(crowd);
	if (!err)
		infos_give(&found, infos, max, info_bytes);
	free(found.infos);
	return err ? err : (int)found.count;
}
