/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_members.c - gives a named volume more servers (include/rdmabox/named_volume.h).
 *
 * The volume is opened as for any change, and its record is accepted as it is. Then each new
 * server makes the volume without a record (client/newcomer.h), and a record is proposed that names
 * them: the new ones accept it first, so whoever hears of them finds the volume there. If one of
 * them refuses, those before it let go. Once a server of before has accepted it, the next one who
 * comes finishes it: so a call that was interrupted is repeated, and needs not be.
 *
 * A new one may have been a server of the volume before, and have lost its memory. If the list of
 * servers shows that (client/emptied.h), the former one is put OUT by the same record, and
 * forgotten by the next one. Otherwise nobody could say later where that one is. Not if the volume
 * was left by a client that crashed: that one may still read there, so whoever opens the volume
 * waits before it puts a server OUT.
 */
#include <stdio.h>
#include <string.h>

#include "client/emptied.h"
#include "client/newcomer.h"
#include "client/session.h"
#include "core/membership_change.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/volume/named_admin.h"
#include "pool/pool.h"

struct addition {
	struct rbx_named named;
	struct rbx_crowd *crowd; /* servers of the volume */
	struct rbx_crowd *newcomers; /* those that it gets; has[]: they are members */
	bool is_new[RBX_SERVERS_MAX]; /* of newcomers: they were no members before */
	uint32_t new_count;
};

static uint64_t newcomer_at(const struct addition *a, uint32_t index)
{
	return rbx_session_incarnation(a->newcomers->sessions[index]);
}

/* ---- What there is --------------------------------------------------------------------*/

static bool is_given(const struct rbx_crowd *crowd, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		if (rbx_session_incarnation(crowd->sessions[i]) == incarnation)
			return true;
	return false;
}

/* A call that was interrupted may have left the newest record at new servers alone. */
static int newcomers_look(struct addition *a)
{
	struct rbx_wire_volume volume;
	uint32_t i;
	int err = 0;

	for (i = 0; i < a->newcomers->count && !err; i++) {
		if (is_given(a->crowd, newcomer_at(a, i)))
			continue;
		err = rbx_named_look_for_id(&a->named, a->newcomers->sessions[i], &volume);
		if (!err && volume.record.flags & RBX_WIRE_REMOVED)
			a->named.highest_epoch =
				RBX_MAX(a->named.highest_epoch, volume.promised_epoch);
		else if (!err)
			err = rbx_named_heard(&a->named, newcomer_at(a, i), &volume);
		else if (err == -ENOENT)
			err = 0;
	}
	return err;
}

/* Members among the new ones, after such a call: they have a vote. */
static void newcomers_judge(struct addition *a)
{
	uint32_t i;

	for (i = 0; i < a->newcomers->count; i++)
		a->newcomers->has[i] = rbx_record_has_member(&a->named.record, newcomer_at(a, i)) &&
				    !is_given(a->crowd, newcomer_at(a, i));
}

static int half_check(const struct addition *a)
{
	bool is_half;

	(void)rbx_crowd_lacks(a->crowd, &a->named.record, &is_half);
	if (!is_half)
		return 0;
	return rbx_error(-ENOENT, "volume %s was not made to its end, or not removed to its end: remove it",
			 a->named.record.name);
}

/* The new ones first. */
static int accept(struct addition *a)
{
	bool by_all;
	uint32_t i;

	for (i = 0; i < a->newcomers->count; i++)
		if (a->newcomers->has[i])
			(void)rbx_named_accept(&a->named, a->newcomers->sessions[i]);
	return rbx_admin_accept_all(&a->named, a->crowd, &by_all);
}

/* The volume is ours, and its record is as it was. */
static int take(struct addition *a)
{
	int err = rbx_crowd_look(a->crowd, &a->named);

	if (!err)
		err = newcomers_look(a);
	if (!err)
		err = rbx_named_begin(&a->named, false);
	if (err)
		return err;
	rbx_crowd_keep_members(a->crowd, &a->named.record);
	rbx_emptied_look(&a->named.emptied, a->crowd, &a->named.record);
	newcomers_judge(a);
	err = half_check(a);
	if (!err)
		err = rbx_admin_grant_all(&a->named, a->crowd);
	if (!err)
		err = rbx_admin_grant_all(&a->named, a->newcomers);
	if (!err)
		err = rbx_named_take_newest(&a->named);
	return err ? err : accept(a);
}

/* ---- Who comes ------------------------------------------------------------------------*/

/* 0 if it becomes a member now, or would have by a call before. */
static int place_check(struct addition *a, uint32_t index)
{
	const char *name = a->newcomers->names[index];

	switch (rbx_membership_place(&a->named.proposer.membership, newcomer_at(a, index))) {
	case RBX_PLACE_NOT:
		a->is_new[index] = true;
		a->new_count++;
		return 0;
	case RBX_PLACE_COMES:
		return 0;
	case RBX_PLACE_IN:
		return rbx_error(-EEXIST, "server %s is one of the servers of volume %s already",
				 name, a->named.record.name);
	case RBX_PLACE_OUT:
		break;
	}
	return rbx_error(-EEXIST, "server %s is one of the servers of volume %s already: it is out, and is taken in when a program opens the volume",
			 name, a->named.record.name);
}

static int places_check(struct addition *a)
{
	uint32_t i, count = a->named.record.members_count;
	int err = 0;

	for (i = 0; i < a->newcomers->count && !err; i++)
		err = place_check(a, i);
	if (!err && a->new_count > RBX_MEMBERS_MAX - count)
		err = rbx_error(-ENOSPC, "volume %s has %u servers, and can have %u at most",
				a->named.record.name, count, RBX_MEMBERS_MAX);
	return err;
}

static int join_all(struct addition *a)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < a->newcomers->count && !err; i++)
		if (a->is_new[i])
			err = rbx_newcomer_join(&a->named, a->newcomers->sessions[i]);
	return err;
}

/* ---- The record -------------------------------------------------------------------------*/

static struct rbx_member_set all_there(const struct addition *a)
{
	struct rbx_member_set there = { .count = 0 };
	uint32_t i;

	for (i = 0; i < a->crowd->count; i++) /* a pool may have more servers than a volume */
		if (a->crowd->has[i])
			rbx_member_set_add(&there, rbx_session_incarnation(a->crowd->sessions[i]));
	for (i = 0; i < a->newcomers->count; i++)
		rbx_member_set_add(&there, newcomer_at(a, i));
	return there;
}

/* Former selves of servers: what they had, others have. */
static void emptied_put_out(struct addition *a, struct rbx_membership *next,
			    const struct rbx_member_set *there)
{
	struct rbx_wire_record *record = &a->named.record;
	struct rbx_membership without = *next;
	uint32_t count = rbx_emptied_put_out(&a->named.emptied, &without, there);

	if (!count || count >= record->copies || !(record->flags & RBX_WIRE_EVEN))
		return;
	*next = without;
	rbx_record_copies_lose(record, count);
}

static void propose(struct addition *a)
{
	const struct rbx_member_set there = all_there(a);
	struct rbx_membership next;
	uint32_t i;

	rbx_membership_next(&next, &a->named.proposer.membership);
	emptied_put_out(a, &next, &there);
	for (i = 0; i < a->newcomers->count; i++) {
		if (!a->is_new[i])
			continue;
		(void)rbx_membership_add(&next, newcomer_at(a, i)); /* there is room */
		a->newcomers->has[i] = true;
	}
	rbx_named_change_to(&a->named, &next);
}

/* None of the others has accepted it yet, if it is a new record. */
static int new_ones_accept(struct addition *a)
{
	char why[RBX_ERROR_TEXT_MAX];
	uint32_t i;
	int err = 0;

	for (i = 0; i < a->newcomers->count && !err; i++)
		if (a->is_new[i])
			err = rbx_named_accept(&a->named, a->newcomers->sessions[i]);
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	for (i = 0; i < a->newcomers->count; i++)
		if (a->is_new[i])
			rbx_newcomer_leave(a->newcomers->sessions[i]);
	return rbx_error(err, "%s", why);
}

/* Which needs no vote of those before. */
static void propose_last(struct addition *a)
{
	const struct rbx_member_set there = all_there(a);
	struct rbx_membership next;

	rbx_membership_next(&next, &a->named.proposer.membership);
	(void)rbx_emptied_forget(&a->named.emptied, &next, &there);
	rbx_named_change_to(&a->named, &next);
}

static int add(struct addition *a)
{
	int err = take(a);

	if (!err)
		err = places_check(a);
	if (!err)
		err = join_all(a);
	if (err)
		return err;
	if (a->new_count) {
		/* The record that is in force, so that none of them forgets the volume with this
		 * session: the next one names all of them, and may have been heard by one. */
		err = new_ones_accept(a);
		if (err)
			return err;
		propose(a);
		err = new_ones_accept(a);
		if (!err)
			err = accept(a);
	}
	if (err)
		return err;
	propose_last(a);
	return accept(a);
}

/* ---- For programs ---------------------------------------------------------------------*/

int rbx_volume_members_add(struct rbx_context *ctx, const char *servers, const char *name,
			   const char *new_servers)
{
	struct addition a = { 0 };
	int err;

	if (!new_servers)
		return rbx_error(-EINVAL, "the new servers must be given");
	if (rbx_pool_text_may_change(new_servers))
		return rbx_error(-EINVAL, "new servers \"%s\": they must be a list of host:port",
				 new_servers);
	err = rbx_admin_begin(ctx, "rbx_volume_members_add", servers, name, rbx_crowd_open_there,
			      &a.named, &a.crowd);
	if (err)
		return err;
	err = rbx_crowd_open(ctx, new_servers, &a.newcomers);
	if (!err) {
		err = add(&a);
		rbx_crowd_close(a.newcomers);
	}
	rbx_crowd_close(a.crowd);
	return err;
}
