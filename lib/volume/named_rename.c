/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_rename.c - gives a named volume another name (include/rdmabox/named_volume.h).
 *
 * The new name is reserved at its servers before any of them hears of it in the record: a name is
 * that of one volume. A call that is interrupted leaves the volume with either name, and the other
 * one reserved; the next one who changes it goes on from there.
 *
 * As many servers are needed as to open the volume. One that is away knows the former name when it
 * is back, and has nothing reserved. So nobody can get the former name there, and the volume is not
 * found by it, as the others say that it has another one (client/crowd_look.c).
 */
#include <string.h>

#include "client/session.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/volume/named.h"
#include "lib/volume/named_admin.h"

/* Members that were not heard of; each of them may be a server that is away. */
static uint32_t unheard_count(const struct rbx_named *named, const struct rbx_crowd *crowd)
{
	uint32_t i, count = named->record.members_count;

	for (i = 0; i < crowd->count; i++)
		count -= rbx_record_has_member(&named->record,
					       rbx_session_incarnation(crowd->sessions[i]));
	return count;
}

/* A server that is none of its members may have a volume of that name, of which no member knows. */
static int away_check(const struct rbx_named *named, const struct rbx_crowd *crowd)
{
	if (crowd->away_count <= unheard_count(named, crowd))
		return 0;
	return rbx_error(-EHOSTUNREACH, "%s is away (%s), may be none of the servers of volume %s, and have a volume with the new name: name only servers of %s, or wait",
			 crowd->away[0].name, crowd->away[0].why ?: "it does not answer",
			 named->record.name, named->record.name);
}

/* Volumes of servers that do not have this one: two would have one name. */
static int free_check(const struct rbx_crowd *crowd, const char *name)
{
	struct rbx_wire_volume volume;
	struct rbx_named wanted;
	uint32_t i;
	int err = rbx_named_init(&wanted, name, "");

	for (i = 0; i < crowd->count && !err; i++) {
		if (crowd->has[i])
			continue;
		err = rbx_named_look(&wanted, crowd->sessions[i], &volume);
		if (!err)
			return rbx_error(-EEXIST, "%s has a volume %s already: choose another name, or remove it",
					 crowd->names[i], name);
		if (err == -ENOENT || err == -EACCES)
			err = 0;
	}
	return err;
}

/* What is reserved at the first ones of the servers. */
static void release(const struct rbx_crowd *crowd, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (crowd->has[i])
			rbx_named_release(crowd->sessions[i]);
}

/* One that has fallen silent is asked no more. */
static int reserve_at(struct rbx_crowd *crowd, uint32_t index,
		      const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	int err = crowd->has[index] ? rbx_named_reserve(crowd->sessions[index], name) : 0;

	if (!rbx_crowd_is_away(err))
		return err;
	crowd->has[index] = false;
	return 0;
}

static int reserve(struct rbx_crowd *crowd, const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	char why[RBX_ERROR_TEXT_MAX];
	uint32_t i;
	int err = 0;

	for (i = 0; i < crowd->count && !err; i++)
		err = reserve_at(crowd, i, name);
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	release(crowd, i);
	return rbx_error(err, "%s", why);
}

/* The new name is kept free at all servers that are there, and only then it is proposed to these:
 * so none of them can refuse it later, when another one has accepted it. */
static int change_name(struct rbx_named *named, struct rbx_crowd *crowd,
		       const char name[RBX_WIRE_VOLUME_NAME_BYTES], bool *by_all)
{
	int err = reserve(crowd, name);

	if (err)
		return err;
	memcpy(named->record.name, name, sizeof(named->record.name));
	rbx_named_change(named);
	return rbx_admin_accept_all(named, crowd, by_all);
}

/* What was found is made valid first: also the name, if a rename before this one was
 * interrupted. */
static int rename_to(struct rbx_named *named, struct rbx_crowd *crowd,
		     const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	bool by_all, is_half;
	int err;

	memcpy(named->next_name, name, sizeof(named->next_name));
	err = rbx_crowd_look(crowd, named);
	rbx_crowd_keep_members(crowd, &named->record);
	if (!err)
		err = rbx_named_begin(named, false);
	if (!err)
		err = rbx_admin_enough_check(&named->record, crowd);
	if (!err)
		err = away_check(named, crowd);
	if (!err)
		err = free_check(crowd, name);
	if (!err)
		err = rbx_admin_grant_all(named, crowd);
	if (!err)
		err = rbx_named_take_newest(named);
	if (!err)
		err = rbx_admin_accept_all(named, crowd, &by_all);
	if (!err && strcmp(named->record.name, name))
		err = change_name(named, crowd, name, &by_all);
	/* A server that has not accepted it has the former name, which nobody else may get. */
	if (!err && by_all && !rbx_crowd_lacks(crowd, &named->record, &is_half))
		release(crowd, crowd->count);
	return err;
}

int rbx_volume_rename(struct rbx_context *ctx, const char *servers, const char *name,
		      const char *new_name)
{
	char taken[RBX_WIRE_VOLUME_NAME_BYTES];
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err = new_name ? rbx_named_name_take(taken, new_name) :
			     rbx_error(-EINVAL, "the new name must be given");

	if (!err)
		err = rbx_admin_begin(ctx, "rbx_volume_rename", servers, name,
				      rbx_crowd_open_there, &named, &crowd);
	if (err)
		return err;
	if (!strcmp(named.name, taken))
		err = rbx_error(-EINVAL, "the new name is the one that volume %s has", taken);
	if (!err)
		err = rbx_admin_name_clear(crowd, taken);
	if (!err)
		err = rename_to(&named, crowd, taken);
	if (!err)
		rbx_crowd_away_tell(ctx, crowd);
	rbx_crowd_close(crowd);
	return err;
}
