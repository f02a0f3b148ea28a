/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_give_up.c - goes on with a named volume without servers that are gone for good
 * (include/rdmabox/named_volume.h). client/give_up.h has how.
 */
#include <string.h>

#include "client/give_up.h"
#include "include/rdmabox/named_volume.h"
#include "lib/context.h"
#include "lib/error.h"
#include "lib/sized.h"
#include "lib/volume/named_admin.h"

RBX_STATIC_ASSERT(RBX_VOLUME_SERVERS_MAX == RBX_MEMBERS_MAX, "all may be gone but one");

/* ---- What is lost -------------------------------------------------------------------------- */

/* Slabs that follow each other and are not found are one range. Returns how many there are. */
static uint32_t ranges_give(const struct rbx_wire_record *record, const struct rbx_loss *loss,
			    struct rbx_volume_range *ranges, uint32_t max)
{
	uint32_t i, from, count = 0;

	for (i = 0; i < loss->slabs_count; i++) {
		if (loss->found[i])
			continue;
		from = i;
		while (i + 1 < loss->slabs_count && !loss->found[i + 1])
			i++;
		if (count < max) {
			uint64_t end = RBX_MIN((i + 1) * record->slab_bytes, record->size_bytes);

			ranges[count].offset = from * record->slab_bytes;
			ranges[count].length_bytes = end - ranges[count].offset;
		}
		count++;
	}
	return count;
}

static struct rbx_volume_loss loss_of(const struct rbx_wire_record *record,
				      const struct rbx_loss *loss)
{
	struct rbx_volume_loss given = {
		.size_bytes = sizeof(given),
		.servers = record->members_count,
		.servers_gone = loss->gone.count,
		.servers_unnamed = loss->unnamed_count,
		.is_open = loss->is_open,
		.may_be_old = !loss->is_certain,
		.may_lose = loss->may_lose,
		.is_lost = (record->flags & RBX_WIRE_LOST) != 0,
		.slabs = loss->slabs_count,
		.slabs_found = loss->found_count,
	};

	memcpy(given.gone, loss->gone.incarnations, loss->gone.count * sizeof(*given.gone));
	return given;
}

int rbx_volume_loss_look_sized(struct rbx_context *ctx, const char *servers, const char *name,
			       struct rbx_volume_loss *loss, struct rbx_volume_range *ranges,
			       uint32_t max, size_t loss_bytes)
{
	struct rbx_volume_loss given;
	struct rbx_crowd *crowd;
	struct rbx_named named;
	struct rbx_loss found;
	int err, count = 0;

	if (!loss || (max && !ranges))
		return rbx_error(-EINVAL, "loss and ranges must be given");
	err = rbx_admin_begin(ctx, "rbx_volume_loss_look", servers, name, rbx_crowd_open_there,
			      &named, &crowd);
	if (err)
		return err;
	err = rbx_give_up_look(&named, crowd, &found);
	if (!err) {
		given = loss_of(&named.record, &found);
		rbx_sized_give(loss, loss_bytes, &given, sizeof(given));
		count = (int)ranges_give(&named.record, &found, ranges, max);
	}
	rbx_loss_free(&found);
	rbx_crowd_close(crowd);
	return err ? err : count;
}

int rbx_admin_lost_check(const struct rbx_wire_record *record)
{
	return record->flags & RBX_WIRE_LOST ?
		       rbx_error(-EOWNERDEAD, "volume %s has lost slabs of servers that were given up, and cannot grow before they are cleared: rdmabox volume clear-lost",
				 record->name) :
		       0;
}

/* ---- What is done about it ----------------------------------------------------------------- */

int rbx_volume_give_up(struct rbx_context *ctx, const char *servers, const char *name,
		       const uint64_t *gone, uint32_t gone_count, int force)
{
	struct rbx_member_set set = { .count = 0 };
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int result;

	if ((gone_count && !gone) || gone_count > RBX_VOLUME_SERVERS_MAX)
		return rbx_error(-EINVAL, "the servers that are gone must be given, at most %u",
				 RBX_VOLUME_SERVERS_MAX);
	for (uint32_t i = 0; i < gone_count; i++)
		rbx_member_set_add(&set, gone[i]);
	result = rbx_admin_begin(ctx, "rbx_volume_give_up", servers, name, rbx_crowd_open_there,
				 &named, &crowd);
	if (result)
		return result;
	result = rbx_give_up_do(&named, crowd, rbx_context_sessions(ctx), &set, force != 0);
	rbx_crowd_close(crowd);
	return result;
}

int rbx_volume_clear_lost(struct rbx_context *ctx, const char *servers, const char *name)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err;

	err = rbx_admin_begin(ctx, "rbx_volume_clear_lost", servers, name, rbx_crowd_open_there,
			      &named, &crowd);
	if (err)
		return err;
	err = rbx_give_up_clear(&named, crowd);
	rbx_crowd_close(crowd);
	return err;
}
