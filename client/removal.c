/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * removal.c - see removal.h. proposer.h decides whether enough servers have granted it, and
 * membership.h whether enough have removed it.
 */
#include "client/removal.h"

#include "client/session.h"
#include "core/record.h"

static uint64_t incarnation_at(const struct rbx_crowd *crowd, uint32_t index)
{
	return rbx_session_incarnation(crowd->sessions[index]);
}

static int remove_at(struct rbx_session *session)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_REMOVE };

	return rbx_session_talk(session, &m);
}

/* Those that know of a removal, and those that have the volume as well if with_has. */
static struct rbx_member_set set_of(const struct rbx_crowd *crowd, bool with_has)
{
	struct rbx_member_set set = { .count = 0 };
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		if (crowd->has_removed[i] || (with_has && crowd->has[i]))
			rbx_member_set_add(&set, incarnation_at(crowd, i));
	return set;
}

/* Before anybody is shut out. */
static int enough_check(const struct rbx_named *named, const struct rbx_crowd *crowd)
{
	const struct rbx_member_set there = set_of(crowd, true);
	const struct rbx_wire_record *record = &named->record;
	struct rbx_membership membership;
	uint32_t i, count = 0;

	rbx_record_get_membership(record, &membership);
	if (named->needs_few || rbx_membership_can_open(&membership, &there))
		return 0;
	for (i = 0; i < there.count; i++)
		count += rbx_record_is_in(record, there.incarnations[i]);
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are away, were restarted, or are not among those given: too few are left to remove it",
			 record->name, record->members_count, rbx_record_in_count(record) - count);
}

/* A server that has removed it grants it to nobody any more: that is as good as a promise. It comes
 * before what others promise, who may have an older record. */
static int all_grant(struct rbx_named *named, const struct rbx_crowd *crowd)
{
	struct rbx_membership removed;
	uint32_t i;
	int err = 0;

	rbx_record_get_membership(&named->record, &removed);
	for (i = 0; i < crowd->count && named->record.flags & RBX_WIRE_REMOVED; i++)
		if (crowd->has_removed[i])
			rbx_proposer_promised(&named->proposer, incarnation_at(crowd, i), &removed);
	for (i = 0; i < crowd->count && !err; i++)
		if (crowd->has[i])
			err = rbx_named_grant(named, crowd->sessions[i]);
	if (err || named->needs_few || named->proposer.state == RBX_PROPOSER_OPENED)
		return err;
	return rbx_error(-ESTALE, "volume %s: another client has opened it meanwhile",
			 named->record.name);
}

/* Whatever the others do. */
static int all_remove(struct rbx_named *named, struct rbx_crowd *crowd)
{
	struct rbx_member_set removed;
	int err, first_err = 0;
	uint32_t i;

	for (i = 0; i < crowd->count; i++) {
		if (!crowd->has[i])
			continue;
		err = remove_at(crowd->sessions[i]);
		crowd->has_removed[i] = !err;
		crowd->has[i] = err;
		first_err = first_err ? first_err : err;
	}
	removed = set_of(crowd, false);
	return rbx_membership_can_change(&named->proposer.membership, &removed) ? 0 : first_err;
}

int rbx_removal_do(struct rbx_named *named, struct rbx_crowd *crowd)
{
	int err = enough_check(named, crowd);

	if (!err)
		err = all_grant(named, crowd);
	return err ? err : all_remove(named, crowd);
}

static bool all_are_there(const struct rbx_wire_record *record, const struct rbx_crowd *crowd)
{
	uint32_t i, count = 0;

	for (i = 0; i < crowd->count; i++) /* none of them twice */
		count += rbx_record_has_member(record, incarnation_at(crowd, i));
	return count == record->members_count;
}

/*
 * The first record, and nobody was a writer: no server has granted the volume to anybody but its
 * maker, or else all members say that they have no later record. In the second case a client was
 * granted it that came to nothing, such as one that was to have it forgotten and died.
 */
static bool is_half_made(const struct rbx_named *named, const struct rbx_crowd *crowd)
{
	const struct rbx_wire_record *record = &named->record;

	return record->epoch == 1 && record->version == 1 &&
	       (named->highest_epoch == 1 || all_are_there(record, crowd));
}

bool rbx_removal_is_left(const struct rbx_named *named, const struct rbx_crowd *crowd,
			 bool any_lacks)
{
	return named->record.flags & RBX_WIRE_REMOVED ||
	       (any_lacks && is_half_made(named, crowd));
}

/* Nothing was ever written there. The servers forget it, and need not know that they had it. */
static int half_made_forget(struct rbx_named *named, struct rbx_crowd *crowd)
{
	int err = rbx_named_begin(named, true);
	uint32_t i;

	for (i = 0; i < crowd->count && !err; i++) {
		if (!crowd->has[i])
			continue;
		err = rbx_named_grant(named, crowd->sessions[i]);
		if (!err)
			err = remove_at(crowd->sessions[i]);
		if (err == -ENOENT) /* it is only being made there, and ends with its maker */
			err = 0;
	}
	return err;
}

static int removal_go_on(struct rbx_named *named, struct rbx_crowd *crowd)
{
	bool was_removed = named->is_removed;
	int err;

	named->is_removed = true;
	err = rbx_named_begin(named, true);
	if (!err)
		err = rbx_removal_do(named, crowd);
	named->is_removed = was_removed;
	return err;
}

int rbx_removal_finish(struct rbx_named *named, struct rbx_crowd *crowd)
{
	int err = named->record.flags & RBX_WIRE_REMOVED ? removal_go_on(named, crowd) :
							   half_made_forget(named, crowd);

	named->was_left |= !err;
	return err;
}
