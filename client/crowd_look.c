/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd_look.c - looks for a volume at several servers (crowd.h).
 *
 * All are asked by the name. Those that do not know it by that, and are named by the record that
 * others have, are asked by the id: a rename may have been interrupted, or a removal. What such a
 * removal has left is removed first (removal.h), so nobody finds it: a name is that of one volume,
 * even if a server that was away is back with another one that was removed meanwhile.
 *
 * A volume has no longer the name that it is asked for if so many servers say another one, all in
 * the newest record, that this was chosen. So it is not found by the name that it has at a server
 * that was away, and another volume may have got since. As long as it is open whether it was
 * renamed, it is found by both.
 */
#include "client/at_once.h"
#include "client/crowd.h"
#include "client/removal.h"
#include "client/session.h"
#include "core/record.h"

struct looking {
	struct rbx_crowd *crowd;
	struct rbx_named *named;
	struct rbx_wire_volume *volumes; /* what each server has said */
	struct rbx_wire_volume *others; /* the same, when it was asked by the id */
	struct rbx_at_once looked;
};

static int look_at_one(void *user, uint32_t index)
{
	const struct looking *looking = user;

	return rbx_named_look(looking->named, looking->crowd->sessions[index],
			      &looking->volumes[index]);
}

/* 0: it has said none. */
static uint64_t id_at(const struct looking *looking, uint32_t index)
{
	return looking->looked.results[index].err ? 0 : looking->volumes[index].record.volume_id;
}

/* What servers have said of one volume; in the order of the list, whichever answered first. */
static int id_hear(const struct looking *looking, uint64_t volume_id)
{
	struct rbx_crowd *crowd = looking->crowd;
	uint32_t i;
	int err = 0;

	rbx_named_hear_nothing(looking->named);
	for (i = 0; i < crowd->count && !err; i++) {
		crowd->has[i] = id_at(looking, i) == volume_id;
		crowd->has_removed[i] = false;
		if (crowd->has[i])
			err = rbx_named_heard(looking->named,
					      rbx_session_incarnation(crowd->sessions[i]),
					      &looking->volumes[i]);
	}
	return err;
}

/* The newest record so far that says that the volume was removed; NULL: none does. */
static const struct rbx_wire_record *removed_newest(const struct looking *looking)
{
	const struct rbx_wire_record *record, *newest = NULL;
	uint32_t i;

	for (i = 0; i < looking->crowd->count; i++) {
		record = &looking->others[i].record;
		if (looking->crowd->has_removed[i] &&
		    (!newest || rbx_record_is_newer(record, newest)))
			newest = record;
	}
	return newest;
}

/* By any of what was heard so far. */
static bool is_member(const struct looking *looking, uint32_t index)
{
	uint64_t incarnation = rbx_session_incarnation(looking->crowd->sessions[index]);
	const struct rbx_wire_record *removed = removed_newest(looking);

	return rbx_record_has_member(&looking->named->record, incarnation) ||
	       (removed && rbx_record_has_member(removed, incarnation));
}

/* One that does not know it by the name. any_lacks: becomes true if it knows nothing of it. */
static int other_look(const struct looking *looking, uint32_t index, bool *any_lacks)
{
	struct rbx_wire_volume *volume = &looking->others[index];
	struct rbx_crowd *crowd = looking->crowd;
	struct rbx_named *named = looking->named;
	int err = rbx_named_look_for_id(named, crowd->sessions[index], volume);

	*any_lacks |= err == -ENOENT;
	if (err)
		return err == -EACCES || err == -ENOENT ? 0 : err;
	crowd->has_removed[index] = volume->record.flags & RBX_WIRE_REMOVED;
	crowd->has[index] = !crowd->has_removed[index];
	return crowd->has[index] ?
		       rbx_named_heard(named, rbx_session_incarnation(crowd->sessions[index]),
				       volume) :
		       0;
}

/* What one says may name others, whatever their order. */
static int others_look(const struct looking *looking, bool *any_lacks)
{
	struct rbx_crowd *crowd = looking->crowd;
	uint32_t i;
	int err = 0;
	bool any;

	for (i = 0; i < crowd->count; i++)
		crowd->is_asked[i] = false;
	*any_lacks = false;
	do { /* bounded: each pass asks one that was not asked, or is the last */
		any = false;
		for (i = 0; i < crowd->count && !err; i++) {
			if (crowd->has[i] || crowd->is_asked[i] || !is_member(looking, i))
				continue;
			any = crowd->is_asked[i] = true;
			err = other_look(looking, i, any_lacks);
		}
	} while (any && !err);
	return err;
}

/*
 * A removal counts if its server has a vote by the newest of the other records. One that is OUT and
 * has none was given a removal that no other server needs to have heard of: --force, and that one
 * alone was named. But its epoch is used up.
 */
static int removals_hear(const struct looking *looking)
{
	struct rbx_crowd *crowd = looking->crowd;
	struct rbx_named *named = looking->named;
	uint64_t promised_epoch;
	uint32_t i;
	int err = 0;

	for (i = 0; i < crowd->count; i++) { /* before any of them is the newest */
		if (!crowd->has_removed[i])
			continue;
		promised_epoch = looking->others[i].promised_epoch;
		named->highest_epoch = RBX_MAX(named->highest_epoch, promised_epoch);
		crowd->has_removed[i] = !rbx_record_is_gone(
			&named->record, rbx_session_incarnation(crowd->sessions[i]));
	}
	for (i = 0; i < crowd->count && !err; i++)
		if (crowd->has_removed[i])
			err = rbx_named_heard(named, rbx_session_incarnation(crowd->sessions[i]),
					      &looking->others[i]);
	return err;
}

/* is_left: receives whether the volume is none. Then what was left of it has gone now, or an error
 * says why not. */
static int id_judge(const struct looking *looking, uint64_t volume_id, bool *is_left)
{
	bool any_lacks;
	int err = id_hear(looking, volume_id);

	*is_left = false;
	if (!err)
		err = others_look(looking, &any_lacks);
	if (!err)
		err = removals_hear(looking);
	if (err)
		return err;
	*is_left = rbx_removal_is_left(looking->named, looking->crowd, any_lacks);
	return *is_left ? rbx_removal_finish(looking->named, looking->crowd) : 0;
}

/* What a server has said of the volume that was heard of, and has. */
static const struct rbx_wire_record *record_at(const struct looking *looking, uint32_t index)
{
	return id_at(looking, index) == looking->named->record.volume_id ?
		       &looking->volumes[index].record :
		       &looking->others[index].record;
}

/* Whether it has another name for certain: see above. Who is to give it that name goes on. */
static bool is_renamed(const struct looking *looking)
{
	const struct rbx_wire_record *newest = &looking->named->record;
	const struct rbx_crowd *crowd = looking->crowd;
	struct rbx_member_set accepted = { .count = 0 };
	struct rbx_membership membership;
	uint32_t i;

	if (!strcmp(newest->name, looking->named->name) ||
	    !strcmp(newest->name, looking->named->next_name))
		return false;
	for (i = 0; i < crowd->count; i++)
		if (crowd->has[i] && !rbx_record_is_newer(newest, record_at(looking, i)))
			rbx_member_set_add(&accepted,
					   rbx_session_incarnation(crowd->sessions[i]));
	rbx_record_get_membership(newest, &membership);
	return rbx_membership_can_change(&membership, &accepted);
}

static void id_drop(struct looking *looking, uint64_t volume_id)
{
	uint32_t i;

	for (i = 0; i < looking->crowd->count; i++)
		if (id_at(looking, i) == volume_id)
			looking->looked.results[i].err = -ENOENT;
}

static bool is_first_of_id(const struct looking *looking, uint32_t index)
{
	uint32_t i = 0;

	while (id_at(looking, i) != id_at(looking, index))
		i++;
	return i == index;
}

/* volume_id: receives that of the only one that is there; 0: none is. What is left of another one,
 * and cannot be removed now, is in the way only if there is none. */
static int ids_judge(struct looking *looking, uint64_t *volume_id)
{
	char why[RBX_ERROR_BYTES] = "";
	uint64_t heard_id = 0;
	int err, left_err = 0;
	bool is_left;
	uint32_t i;

	*volume_id = 0;
	for (i = 0; i < looking->crowd->count; i++) {
		uint64_t id = id_at(looking, i);

		if (!id || !is_first_of_id(looking, i))
			continue;
		heard_id = id;
		err = id_judge(looking, id, &is_left);
		if (err && !is_left)
			return err;
		if (err) {
			left_err = err;
			rbx_text_copy(why, sizeof(why), rbx_error_text());
		}
		if (is_left || is_renamed(looking))
			id_drop(looking, id);
		else if (*volume_id)
			return rbx_error(-EEXIST, "there are two volumes %s on these servers: name the servers of one of them",
					 looking->named->name);
		else
			*volume_id = id;
	}
	if (*volume_id)
		return heard_id != *volume_id ? id_judge(looking, *volume_id, &is_left) : 0;
	return left_err ? rbx_error_again(left_err, why) : 0;
}

/* Another client may have one of the same name, at servers that ours does not need: -EACCES in
 * none_err. */
static int errors_check(const struct looking *looking, int *none_err)
{
	uint32_t i;
	int err;

	*none_err = -ENOENT;
	for (i = 0; i < looking->crowd->count; i++) {
		err = looking->looked.results[i].err;
		if (err == -EACCES)
			*none_err = err;
		else if (err && err != -ENOENT)
			return rbx_at_once_error(&looking->looked, i);
	}
	return 0;
}

static int look(struct looking *looking)
{
	const char *name = looking->named->name;
	uint64_t volume_id;
	int none_err, err;

	looking->others = looking->volumes + looking->crowd->count;
	err = rbx_at_once_do(&looking->looked, looking->crowd->count, false,
			     look_at_one, looking);
	if (!err)
		err = errors_check(looking, &none_err);
	if (!err)
		err = ids_judge(looking, &volume_id);
	if (err || volume_id)
		return err;
	if (none_err == -EACCES)
		return rbx_error(none_err, "volume %s belongs to another credential; use that one",
				 name);
	if (looking->crowd->away_count)
		return rbx_error(none_err, "there is no volume %s on the servers that answer; it may be on those that do not, %u in number",
				 name, looking->crowd->away_count);
	return rbx_error(none_err, "there is no volume %s on these servers", name);
}

int rbx_crowd_look(struct rbx_crowd *crowd, struct rbx_named *named)
{
	struct looking looking = {
		.crowd = crowd,
		.named = named,
		.volumes = rbx_memory_make(2 * crowd->count * sizeof(*looking.volumes)),
	};
	int err = looking.volumes ? look(&looking) : rbx_error(-ENOMEM, "out of memory");

	rbx_at_once_free(&looking.looked);
	rbx_memory_free(looking.volumes);
	return err;
}
