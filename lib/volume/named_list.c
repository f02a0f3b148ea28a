/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_list.c - tells which named volumes servers have (include/rdmabox/named_volume.h).
 *
 * Servers that do not answer are left out: what the others know is told, and the newest record
 * counts. All are asked at once.
 *
 * A volume that some of its servers do not have may be what is left of one that was removed, or
 * was not made to its end. It is looked for as by anybody, which removes such a rest
 * (client/removal.h).
 */
#include <stdlib.h>
#include <string.h>

#include "client/at_once.h"
#include "core/record.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/session/sessions.h"
#include "lib/sized.h"
#include "lib/volume/crowd.h"

struct found_volume {
	struct rbx_volume_info info;
	struct rbx_wire_record record; /* the newest that a server has */
	struct rbx_member_set there; /* servers that have it */
	struct rbx_member_set open_at; /* those of them where its writer has it open */
};

struct found {
	struct found_volume *volumes;
	uint32_t count;
	uint32_t room;
};

/* Two volumes may have the same name, if one of them is what a remove has left. */
static struct found_volume *volume_find(struct found *found, uint64_t volume_id)
{
	uint32_t i;

	for (i = 0; i < found->count; i++)
		if (found->volumes[i].record.volume_id == volume_id)
			return &found->volumes[i];
	if (found->count == found->room) {
		uint32_t room = found->room ? 2 * found->room : 16;
		void *volumes = realloc(found->volumes, room * sizeof(*found->volumes));

		if (!volumes)
			return NULL;
		found->volumes = volumes;
		found->room = room;
	}
	found->volumes[found->count] = (struct found_volume){
		.info.size_bytes = sizeof(struct rbx_volume_info),
	};
	return &found->volumes[found->count++];
}

static uint64_t reserved_bytes(const struct rbx_wire_record *record)
{
	return record->flags & RBX_WIRE_RESERVED ?
		       rbx_named_slabs(record->size_bytes, record->slab_bytes) *
			       record->slab_bytes * record->replicas :
		       0;
}

static int volume_add(struct found *found, uint64_t incarnation,
		      const struct rbx_wire_volume *volume)
{
	const struct rbx_wire_record *record = &volume->record;
	struct found_volume *one = volume_find(found, record->volume_id);
	struct rbx_volume_info *info;

	if (!one)
		return rbx_error(-ENOMEM, "out of memory");
	info = &one->info;
	info->is_open |= volume->is_open;
	rbx_member_set_add(&one->there, incarnation);
	if (volume->is_open)
		rbx_member_set_add(&one->open_at, incarnation);
	if (!rbx_record_is_newer(record, &one->record))
		return 0;
	one->record = *record;
	memcpy(info->name, record->name, sizeof(info->name));
	memcpy(info->writer, volume->holder, sizeof(info->writer));
	memcpy(info->owner, record->owner, sizeof(info->owner));
	info->volume_id = record->volume_id;
	info->volume_bytes = record->size_bytes;
	info->slab_bytes = record->slab_bytes;
	info->keep_s = record->keep_s;
	info->servers = record->members_count;
	info->servers_out = record->members_count - rbx_record_in_count(record);
	info->replicas = record->replicas;
	info->copies = record->copies;
	info->reserved_bytes = reserved_bytes(record);
	info->checksums = (record->flags & RBX_WIRE_CHECKSUMS) != 0;
	info->is_lost = (record->flags & RBX_WIRE_LOST) != 0;
	return 0;
}

/* ---- What each server tells --------------------------------------------------------------- */

/* What one of them has, as it tells it. */
struct told {
	struct rbx_wire_volume *volumes;
	uint32_t count;
	uint32_t room;
};

struct listing {
	struct rbx_crowd *crowd;
	struct told *told; /* of each of its servers */
	struct rbx_at_once asked;
};

static int told_add(struct told *told, const struct rbx_wire_volume *volume)
{
	uint32_t room = told->room ? 2 * told->room : 4;
	void *volumes;

	if (told->count == told->room) {
		volumes = realloc(told->volumes, room * sizeof(*told->volumes));
		if (!volumes)
			return rbx_error(-ENOMEM, "out of memory");
		told->volumes = volumes;
		told->room = room;
	}
	told->volumes[told->count++] = *volume;
	return 0;
}

/* Bounded: a server has so many volumes at most, whatever it says. */
static int list_of_one(void *user, uint32_t index)
{
	const struct listing *listing = user;
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_LIST };
	uint64_t cursor;
	uint32_t i;
	int err;

	for (i = 0; i < RBX_KEPT_VOLUMES_MAX; i++) {
		err = rbx_session_talk(listing->crowd->sessions[index], &m);
		if (err)
			return err == -ENOENT ? 0 : err;
		cursor = m.volume.next;
		if (m.volume.record.epoch)
			err = told_add(&listing->told[index], &m.volume);
		if (err)
			return err;
		m = (struct rbx_wire_message){ .type = RBX_WIRE_VOLUME_LIST,
					       .cursor = cursor };
	}
	return 0;
}

/* A server that has fallen silent counts as one that never answered. The first error else. */
static int silent_leave_out(struct listing *listing)
{
	struct rbx_crowd *crowd = listing->crowd;
	uint32_t i = 0;
	int err = 0;

	while (i < crowd->count && !err) { /* bounded: each pass takes one, or leaves one out */
		const struct rbx_at_once_result *result = &listing->asked.results[i];

		if (crowd->count > 1 && rbx_crowd_is_away(result->err)) {
			rbx_crowd_leave_out(crowd, i, result->why);
			free(listing->told[i].volumes);
			listing->told[i] = listing->told[crowd->count];
			listing->told[crowd->count] = (struct told){ 0 };
			listing->asked.results[i] = listing->asked.results[crowd->count];
			continue;
		}
		err = rbx_at_once_error(&listing->asked, i++);
	}
	return err;
}

/* In the order of the list, whichever answered first. */
static int told_join(const struct listing *listing, struct found *found)
{
	uint32_t i, j;
	int err = 0;

	found->count = 0;
	for (i = 0; i < listing->crowd->count; i++)
		for (j = 0; j < listing->told[i].count && !err; j++)
			err = volume_add(found,
					 rbx_session_incarnation(listing->crowd->sessions[i]),
					 &listing->told[i].volumes[j]);
	return err;
}

static int list_of_all(struct rbx_crowd *crowd, struct found *found)
{
	uint32_t i, count = crowd->count;
	struct listing listing = {
		.crowd = crowd,
		.told = calloc(count, sizeof(*listing.told)),
	};
	int err = listing.told ? 0 : rbx_error(-ENOMEM, "out of memory");

	if (!err)
		err = rbx_at_once_do(&listing.asked, count, false, list_of_one, &listing);
	if (!err)
		err = silent_leave_out(&listing);
	if (!err)
		err = told_join(&listing, found);
	for (i = 0; i < count && listing.told; i++)
		free(listing.told[i].volumes);
	free(listing.told);
	rbx_at_once_free(&listing.asked);
	return err;
}

/* ---- What they know together --------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct found_volume *one = a, *other = b;

	return strcmp(one->info.name, other->info.name) ?:
	       (one->info.volume_id > other->info.volume_id) -
		       (one->info.volume_id < other->info.volume_id);
}

/* Others have what an addition has left that was interrupted (named_members.c). */
static uint32_t members_there(const struct found_volume *one)
{
	uint32_t i, count = 0;

	for (i = 0; i < one->there.count; i++)
		count += rbx_record_has_member(&one->record, one->there.incarnations[i]);
	return count;
}

/*
 * A server that was killed is missing, or is another one, until a record says that it is OUT, and
 * that there are fewer copies. One that was started again with its memory is none of those where
 * the volume is open until the writer has taken it again. So the copies are never those of before.
 */
static bool is_whole(const struct found_volume *one)
{
	const struct rbx_member_set *found = one->info.is_open ? &one->open_at : &one->there;
	uint32_t i, count = 0;

	for (i = 0; i < found->count; i++)
		count += rbx_record_is_in(&one->record, found->incarnations[i]);
	return count == rbx_record_in_count(&one->record) &&
	       one->record.copies == one->record.replicas;
}

/* An open needs more than half of those that vote; and as many copies as may be missing, one more
 * than that. */
static bool is_too_few(const struct found_volume *one)
{
	const struct rbx_wire_record *record = &one->record;
	uint32_t i, missing = rbx_record_in_count(record);
	struct rbx_membership membership;

	rbx_record_get_membership(record, &membership);
	for (i = 0; i < one->there.count; i++)
		missing -= rbx_record_is_in(record, one->there.incarnations[i]);
	return !rbx_membership_can_open(&membership, &one->there) ||
	       missing >= RBX_MAX(record->copies, 1u);
}

static void infos_give(struct found *found, struct rbx_volume_info *infos, uint32_t max,
		       size_t info_bytes)
{
	uint32_t i;

	if (found->count)
		qsort(found->volumes, found->count, sizeof(*found->volumes), by_name);
	for (i = 0; i < found->count && i < max; i++) {
		found->volumes[i].info.servers_there = members_there(&found->volumes[i]);
		found->volumes[i].info.is_whole = is_whole(&found->volumes[i]);
		found->volumes[i].info.too_few = is_too_few(&found->volumes[i]);
		rbx_sized_give((char *)infos + i * info_bytes, info_bytes,
			       &found->volumes[i].info, sizeof(found->volumes[i].info));
	}
}

/* Whether a member that was asked does not have it. */
static bool is_half(const struct found_volume *one, const struct rbx_crowd *crowd)
{
	uint32_t i;

	for (i = 0; i < crowd->count; i++) {
		uint64_t incarnation = rbx_session_incarnation(crowd->sessions[i]);

		if (rbx_record_has_member(&one->record, incarnation) &&
		    !rbx_member_set_has(&one->there, incarnation))
			return true;
	}
	return false;
}

/* What cannot be removed, or is still being made, is listed. */
static bool rests_are_gone(struct rbx_crowd *crowd, const struct found *found)
{
	struct rbx_named named;
	bool any = false;
	uint32_t i;

	for (i = 0; i < found->count; i++) {
		if (!is_half(&found->volumes[i], crowd) ||
		    rbx_named_init(&named, found->volumes[i].record.name, "a list of volumes"))
			continue;
		(void)rbx_crowd_look(crowd, &named);
		any |= named.was_left;
	}
	return any;
}

int rbx_volume_list_sized(struct rbx_context *ctx, const char *servers,
			  struct rbx_volume_info *infos, uint32_t max, size_t info_bytes)
{
	struct found found = { 0 };
	struct rbx_crowd *crowd;
	int err;

	if (!ctx || !servers || (max && !infos))
		return rbx_error(-EINVAL, "context, servers and infos must be given");
	err = rbx_guard_wait(ctx, "rbx_volume_list");
	if (!err)
		err = rbx_crowd_open_there(ctx, servers, &crowd);
	if (err)
		return err;
	err = list_of_all(crowd, &found);
	if (!err && rests_are_gone(crowd, &found))
		err = list_of_all(crowd, &found);
	if (!err)
		rbx_crowd_away_tell(ctx, crowd);
	rbx_crowd_close(crowd);
	if (!err)
		infos_give(&found, infos, max, info_bytes);
	free(found.volumes);
	return err ? err : (int)found.count;
}
