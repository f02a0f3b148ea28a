/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_remove.c - tells which servers a named volume has, and takes those from it that are out or
 * have nothing of it (include/rdmabox/named_volume.h).
 *
 * A server that is IN and has no slab is put OUT at first: nothing was had from it since, as the
 * volume is ours. A server that is OUT has nothing that counts, and no vote once the record is not
 * joint any more. So it goes by one more record, and then gives up what it has if it is there. A
 * call that was interrupted before that leaves memory at a server that is no member: whoever names
 * it in a rbx_volume_members_add() or rbx_volume_remove() gets it back.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/newcomer.h"
#include "client/session.h"
#include "core/membership_change.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/sized.h"
#include "lib/volume/named_admin.h"

#define INCARNATION_DIGITS 16u

/* ---- Which there are --------------------------------------------------------------------*/

static uint32_t index_of(const struct rbx_crowd *crowd, uint64_t incarnation)
{
	uint32_t i = 0;

	while (i < crowd->count && rbx_session_incarnation(crowd->sessions[i]) != incarnation)
		i++;
	return i;
}

static struct rbx_volume_member member_at(const struct rbx_named *named,
					  const struct rbx_crowd *crowd, uint32_t index)
{
	struct rbx_volume_member member = {
		.size_bytes = sizeof(member),
		.incarnation = named->record.incarnations[index],
		.is_out = named->record.member_flags[index] & RBX_WIRE_MEMBER_OUT,
	};
	uint32_t i = index_of(crowd, member.incarnation);

	if (i < crowd->count) {
		member.is_there = crowd->has[i];
		rbx_text_copy(member.address, sizeof(member.address), crowd->names[i]);
	}
	return member;
}

int rbx_volume_members_list_sized(struct rbx_context *ctx, const char *servers, const char *name,
				  struct rbx_volume_member *members, uint32_t max,
				  size_t member_bytes)
{
	struct rbx_volume_member member;
	struct rbx_crowd *crowd;
	struct rbx_named named;
	uint32_t i;
	int err;

	if (max && !members)
		return rbx_error(-EINVAL, "members must be given");
	err = rbx_admin_begin(ctx, "rbx_volume_members_list", servers, name, rbx_crowd_open_there,
			      &named, &crowd);
	if (err)
		return err;
	err = rbx_crowd_look(crowd, &named);
	if (!err)
		rbx_crowd_away_tell(ctx, crowd);
	for (i = 0; !err && i < named.record.members_count && i < max; i++) {
		member = member_at(&named, crowd, i);
		rbx_sized_give((char *)members + i * member_bytes, member_bytes, &member,
			       sizeof(member));
	}
	rbx_crowd_close(crowd);
	return err ? err : (int)named.record.members_count;
}

/* ---- Taking one away ----------------------------------------------------------------------*/

uint64_t rbx_incarnation_of_text(const char *text)
{
	if (strlen(text) != INCARNATION_DIGITS ||
	    strspn(text, "0123456789abcdef") != INCARNATION_DIGITS)
		return 0;
	return strtoull(text, NULL, 16);
}

/* 16 digits, or the address of a server that is there. 0: it is none of them. */
static uint64_t incarnation_of(const struct rbx_crowd *crowd, const char *server)
{
	uint64_t incarnation = rbx_incarnation_of_text(server);
	uint32_t i;

	if (incarnation)
		return incarnation;
	for (i = 0; i < crowd->count; i++)
		if (!strcmp(crowd->names[i], server))
			return rbx_session_incarnation(crowd->sessions[i]);
	return 0;
}

/* A server that is IN may go if it is there and has no slab, and if it can be done without. */
static int empty_check(struct rbx_named *named, const struct rbx_crowd *crowd,
		       uint64_t incarnation, const char *server)
{
	uint32_t there = index_of(crowd, incarnation);
	uint32_t others_count = rbx_record_in_count(&named->record) - 1;
	int slabs;

	if (there == crowd->count || !crowd->has[there])
		return rbx_error(-EHOSTUNREACH, "server %s is in use by volume %s, and is not there: only one that is there, or out, can be removed; it is out when a program has opened the volume without it",
				 server, named->record.name);
	slabs = rbx_named_trim(named, crowd->sessions[there]);
	if (slabs < 0)
		return slabs;
	if (slabs)
		return rbx_error(-EADDRINUSE, "server %s is in use by volume %s, and has slabs of it: they have to be moved before, and one replica cannot be moved",
				 server, named->record.name);
	if (others_count < named->record.replicas)
		return rbx_error(-ENOSPC, "without server %s volume %s has %u server%s for %u replicas: add one first",
				 server, named->record.name, others_count,
				 others_count == 1 ? "" : "s", named->record.replicas);
	return 0;
}

static int member_check(struct rbx_named *named, const struct rbx_crowd *crowd,
			uint64_t incarnation, const char *server, bool *is_in)
{
	*is_in = false;
	switch (rbx_membership_place(&named->proposer.membership, incarnation)) {
	case RBX_PLACE_OUT:
		return 0;
	case RBX_PLACE_NOT:
		break;
	case RBX_PLACE_IN:
	case RBX_PLACE_COMES:
		*is_in = true;
		return empty_check(named, crowd, incarnation, server);
	}
	return rbx_error(-ENODEV, "server %s is none of volume %s: rdmabox volume show lists those that it has",
			 server, named->record.name);
}

/* The volume is ours, and those that are out have no vote. */
static int take(struct rbx_named *named, struct rbx_crowd *crowd)
{
	bool by_all;
	int err = rbx_crowd_look(crowd, named);

	if (!err)
		err = rbx_named_begin(named, false);
	if (err)
		return err;
	rbx_crowd_keep_members(crowd, &named->record);
	err = rbx_admin_grant_all(named, crowd);
	if (!err)
		err = rbx_named_take_newest(named);
	if (!err)
		err = rbx_admin_accept_all(named, crowd, &by_all);
	if (err || !rbx_membership_is_joint(&named->proposer.membership))
		return err;
	rbx_named_change(named);
	return rbx_admin_accept_all(named, crowd, &by_all);
}

/* It has nothing, so each slab has as many copies without it. Then its vote is not needed. */
static int put_out(struct rbx_named *named, struct rbx_crowd *crowd, uint64_t incarnation)
{
	struct rbx_membership next;
	bool by_all;
	int err;

	rbx_membership_next(&next, &named->proposer.membership);
	rbx_membership_find(&next, incarnation)->state = RBX_MEMBER_OUT;
	rbx_named_change_to(named, &next);
	err = rbx_admin_accept_all(named, crowd, &by_all);
	if (err)
		return err;
	rbx_named_change(named);
	return rbx_admin_accept_all(named, crowd, &by_all);
}

/* It is OUT, and has no vote. */
static int forget(struct rbx_named *named, struct rbx_crowd *crowd, uint64_t incarnation)
{
	uint32_t there = index_of(crowd, incarnation);
	struct rbx_membership next;
	bool by_all, gives_up = there < crowd->count && crowd->has[there];
	int err;

	rbx_membership_next(&next, &named->proposer.membership);
	rbx_membership_forget(&next, incarnation);
	rbx_named_change_to(named, &next);
	if (gives_up)
		crowd->has[there] = false;
	err = rbx_admin_accept_all(named, crowd, &by_all);
	if (!err && gives_up)
		rbx_newcomer_leave(crowd->sessions[there]);
	return err;
}

static int remove_server(struct rbx_named *named, struct rbx_crowd *crowd, const char *server)
{
	uint64_t incarnation;
	bool is_in;
	int err = take(named, crowd);

	if (err)
		return err;
	incarnation = incarnation_of(crowd, server);
	err = member_check(named, crowd, incarnation, server, &is_in);
	if (!err && is_in)
		err = put_out(named, crowd, incarnation);
	return err ? err : forget(named, crowd, incarnation);
}

int rbx_volume_members_remove(struct rbx_context *ctx, const char *servers, const char *name,
			      const char *server)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err;

	if (!server || !*server)
		return rbx_error(-EINVAL, "the server to remove must be given");
	err = rbx_admin_begin(ctx, "rbx_volume_members_remove", servers, name, rbx_crowd_open_there,
			      &named, &crowd);
	if (err)
		return err;
	err = remove_server(&named, crowd, server);
	rbx_crowd_close(crowd);
	return err;
}
