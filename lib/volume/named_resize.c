/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_resize.c - makes a named volume larger, which no program has open
 * (include/rdmabox/named_volume.h).
 *
 * It needs as many of its servers as an open does. Those that are away have the former size in
 * their record; whoever opens the volume next hears the new one from one of the others, and has all
 * accept it. What is new was never written, so it does not matter what those have that are away.
 *
 * That is not so if the volume is reserved. A grow that was interrupted may have left slabs beyond
 * the end, which are called complete. They are given up before new ones are borrowed, at all
 * servers but those that are OUT: at one that is away they would count later, and miss what was
 * written.
 */
#include <stdio.h>

#include "client/session.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/volume/named.h"
#include "lib/volume/named_admin.h"
#include "lib/volume/named_memory.h"

/* What lies beyond the end, at all servers. Those that can give it up do so, whatever the others
 * do. The first error. */
static int trim(struct rbx_named *named, const struct rbx_crowd *crowd)
{
	int rc, first_err = 0;
	uint32_t i;

	for (i = 0; i < crowd->count; i++) {
		rc = crowd->has[i] ? rbx_named_trim(named, crowd->sessions[i]) : 0;
		first_err = first_err ? first_err : RBX_MIN(rc, 0);
	}
	return first_err;
}

/* Of a volume that is reserved. What a call before has left that died comes first; and if the
 * servers have not enough, what was borrowed goes back. */
static int memory_add(struct rbx_named *named, struct rbx_crowd *crowd, const char *servers,
		      uint64_t size)
{
	struct rbx_memory_wanted memory = {
		.size_bytes = size,
		.from_slab = rbx_named_slabs(named->record.size_bytes, named->record.slab_bytes),
	};
	char why[RBX_ERROR_TEXT_MAX];
	int err;

	if (!(named->record.flags & RBX_WIRE_RESERVED))
		return 0;
	/* One that is not asked could have a slab that is now lent at another one as well. */
	err = rbx_admin_members_check(&named->record, crowd, "memory is reserved when all are there, as a grow before may have left some at another one; a program that opens the volume without them puts them out");
	rbx_crowd_narrow(crowd);
	if (!err)
		err = trim(named, crowd);
	if (!err)
		err = rbx_named_borrow_of(crowd, named, servers, &memory);
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	(void)trim(named, crowd);
	return rbx_error(err, "%s", why);
}

/* It is ours, and what was found is in force. */
static int take(struct rbx_named *named, struct rbx_crowd *crowd)
{
	bool by_all;
	int err = rbx_crowd_look(crowd, named);

	if (err)
		return err;
	rbx_crowd_keep_members(crowd, &named->record);
	err = rbx_named_begin(named, false);
	if (err == -EBUSY)
		err = rbx_error(-EBUSY, "volume %s is open by %s; close it there, or have that program grow it: rbx_volume_extend()",
				named->record.name, named->writer);
	if (!err)
		err = rbx_admin_enough_check(&named->record, crowd);
	if (!err)
		err = rbx_admin_grant_all(named, crowd);
	if (!err)
		err = rbx_named_take_newest(named);
	return err ? err : rbx_admin_accept_all(named, crowd, &by_all);
}

static int size_check(const struct rbx_named *named, const struct rbx_crowd *crowd, uint64_t size,
		      bool overcommit)
{
	const struct rbx_wire_record *record = &named->record;
	int err = rbx_admin_size_check(size, record->slab_bytes);

	if (!err && size < record->size_bytes)
		err = rbx_error(-EINVAL, "volume %s has %llu bytes already, and cannot become smaller",
				record->name, (unsigned long long)record->size_bytes);
	if (!err)
		err = rbx_admin_lost_check(record);
	/* It may be larger than that already. What is reserved is planned server by server. */
	if (!err && !overcommit && size > record->size_bytes &&
	    !(record->flags & RBX_WIRE_RESERVED))
		err = rbx_named_fit_check(crowd, named, size);
	return err;
}

/* The record that was found is made valid first, and then the change. A process that dies in
 * between leaves the one or the other: the next open takes the newest, and has all accept it. */
static int grow(struct rbx_named *named, struct rbx_crowd *crowd, const char *servers,
		uint64_t size, bool overcommit)
{
	bool by_all;
	int err = take(named, crowd);

	if (!err)
		err = size_check(named, crowd, size, overcommit);
	if (!err)
		err = memory_add(named, crowd, servers, size);
	if (err)
		return err;
	named->record.size_bytes = size;
	rbx_named_change(named);
	return rbx_admin_accept_all(named, crowd, &by_all);
}

static int grow_call(struct rbx_context *ctx, const char *call, const char *servers,
		     const char *name, uint64_t size, bool overcommit)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err = rbx_admin_begin(ctx, call, servers, name, rbx_crowd_open_there, &named, &crowd);

	if (err)
		return err;
	err = grow(&named, crowd, servers, size, overcommit);
	if (!err)
		rbx_crowd_away_tell(ctx, crowd);
	rbx_crowd_close(crowd);
	return err;
}

int rbx_volume_grow(struct rbx_context *ctx, const char *servers, const char *name, uint64_t size)
{
	return grow_call(ctx, "rbx_volume_grow", servers, name, size, false);
}

int rbx_volume_grow_beyond(struct rbx_context *ctx, const char *servers, const char *name,
			   uint64_t size)
{
	return grow_call(ctx, "rbx_volume_grow_beyond", servers, name, size, true);
}
