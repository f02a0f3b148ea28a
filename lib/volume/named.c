/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.c - opens a named volume, see named.h.
 *
 * The servers are asked what they know of it before any of them is connected as a peer: for the
 * epoch, and which of them have it. Then each peer is granted the volume as it is connected
 * (client/servers.c), the record is accepted, and the slabs are found.
 *
 * Each of these steps is taken at all servers at once, and is over at all of them before the next
 * one begins. So the rules for their order (docs/named-volumes.md) say all that has to be known.
 */
#include "lib/volume/named.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/keeper.h"
#include "client/queue_pairs.h"
#include "include/rdmabox/pool.h"
#include "lib/volume/at_once.h"
#include "lib/volume/crowd.h"

#define WAIT_US 100000u

/* ---- What the servers know -----------------------------------------------------------*/

/* A slab that no server names was never written only if enough have been asked. */
static int all_there_check(struct rbx_named *named, const struct rbx_crowd *crowd)
{
	const struct rbx_wire_record *record = &named->record;
	bool is_half;
	uint32_t missing = rbx_crowd_lacks(crowd, record, &is_half);

	named->absent_count = rbx_crowd_absent(crowd, record);
	if (is_half && !crowd->away_count)
		return rbx_error(-ENOENT, "volume %s was not made to its end, or not removed to its end: remove it",
				 record->name);
	if (!is_half && rbx_named_may_lack(named, missing))
		return 0;
	if (crowd->away_count)
		return rbx_error(-EHOSTUNREACH, "volume %s lacks %u of its servers, and may have data that no other one has: %s",
				 record->name, missing, crowd->why_away);
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are not among those given, or were restarted: name all of them, also those that are out",
			 record->name, record->members_count, missing);
}

/* Those that have it, as a list; or NULL. */
static char *members_print(const struct rbx_crowd *crowd)
{
	char *text = calloc(crowd->count, RBX_POOL_ADDRESS_BYTES);
	uint32_t i;

	for (i = 0; text && i < crowd->count; i++) {
		if (!crowd->has[i])
			continue;
		if (*text)
			strcat(text, ",");
		strcat(text, crowd->names[i]);
	}
	return text;
}

void rbx_holder_describe(char holder[RBX_WIRE_HOLDER_BYTES])
{
	char host[40] = "";

	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "?");
	snprintf(holder, RBX_WIRE_HOLDER_BYTES, "%s, process %d", host, (int)getpid());
}

static int begin(struct rbx_named *named, struct rbx_crowd *crowd, bool take_over, char **members)
{
	int err = rbx_crowd_look(crowd, named);

	if (err)
		return err;
	rbx_crowd_keep_members(crowd, &named->record);
	err = all_there_check(named, crowd);
	if (!err)
		err = rbx_named_begin(named, take_over);
	if (err)
		return err;
	*members = members_print(crowd);
	return *members ? 0 : rbx_error(-ENOMEM, "out of memory");
}

/* The volume has as many replicas as it was made with. */
static int replicas_prepare(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;

	volume->options.replicas = control->named->record.replicas;
	if (volume->options.replicas == 1)
		return 0;
	control->keeper = calloc(1, sizeof(*control->keeper));
	if (!control->keeper)
		return rbx_error(-ENOMEM, "out of memory");
	rbx_keeper_init(control->keeper, control, control->named);
	return 0;
}

int rbx_volume_named_begin(struct rbx_volume *volume, const char *servers, char **members)
{
	struct rbx_named *named = calloc(1, sizeof(*named));
	char holder[RBX_WIRE_HOLDER_BYTES];
	struct rbx_crowd *crowd;
	int err;

	*members = NULL;
	if (!named)
		return rbx_error(-ENOMEM, "out of memory");
	volume->control.named = named;
	rbx_holder_describe(holder);
	err = rbx_named_init(named, volume->options.name, holder);
	if (!err)
		err = rbx_crowd_open_there(volume->ctx, servers, &crowd);
	if (err)
		return err;
	err = begin(named, crowd, volume->options.take_over, members);
	rbx_crowd_close(crowd);
	if (!err)
		err = replicas_prepare(volume);
	if (err) {
		free(*members);
		*members = NULL;
	}
	return err;
}

/* ---- With the servers connected ------------------------------------------------------*/

static struct rbx_session *session_at(struct rbx_volume *volume, uint32_t index)
{
	return rbx_peer_session(volume->control.servers[index].peer);
}

static int accept_at(void *user, uint32_t index)
{
	struct rbx_volume *volume = user;

	return rbx_named_accept(volume->control.named, session_at(volume, index));
}

static int all_accept(struct rbx_volume *volume)
{
	struct rbx_named *named = volume->control.named;
	int err = rbx_at_once(volume->control.server_count, accept_at, volume);

	if (!err && !rbx_named_is_chosen(named))
		err = rbx_error(-EBUSY, "volume %s: too few of its servers accept this client",
				named->record.name);
	return err;
}

/* The former name: a rename that was interrupted is finished now. */
static int release_at(void *user, uint32_t index)
{
	rbx_named_release(session_at(user, index));
	return 0;
}

/* Servers that were OUT and are there again: what they have may be old, and was forgotten. From
 * here on they are servers like the others. Those that are missing are OUT. */
static int members_change(struct rbx_volume *volume)
{
	struct rbx_named *named = volume->control.named;
	struct rbx_member_set there = { .count = 0 };
	uint32_t i, fewest, changes_count = 0, lost_count = 0;
	struct rbx_membership next;
	int err;

	for (i = 0; i < volume->control.server_count; i++)
		rbx_member_set_add(&there, rbx_session_incarnation(session_at(volume, i)));
	rbx_membership_next(&next, &named->proposer.membership);
	for (i = 0; i < next.count; i++) {
		struct rbx_member *member = &next.members[i];
		bool is_there = rbx_member_set_has(&there, member->incarnation);

		changes_count += is_there != (member->state == RBX_MEMBER_IN);
		lost_count += !is_there && member->state == RBX_MEMBER_IN;
		member->state = is_there ? RBX_MEMBER_IN : RBX_MEMBER_OUT;
	}
	/* Also a slab that its client did not come to write to, if one server alone has it: it is
	 * written to from now on. */
	fewest = rbx_upkeep_fewest_copies(&volume->control.upkeep);
	if (!changes_count && named->record.copies <= fewest)
		return 0;
	if (lost_count)
		rbx_record_copies_lose(&named->record, lost_count);
	named->record.copies = RBX_MIN(named->record.copies, fewest);
	rbx_named_change_to(named, &next);
	err = all_accept(volume);
	if (err || !changes_count)
		return err;
	rbx_named_change(named); /* which needs no vote of those before */
	return all_accept(volume);
}

/* Members that are not OUT, and were not connected. */
static uint32_t missing_count(struct rbx_volume *volume)
{
	const struct rbx_wire_record *record = &volume->control.named->record;
	uint32_t i, missing = rbx_record_in_count(record);

	for (i = 0; i < volume->control.server_count; i++)
		missing -= rbx_record_is_in(record, rbx_session_incarnation(session_at(volume, i)));
	return missing;
}

static bool all_are_members(struct rbx_volume *volume)
{
	const struct rbx_wire_record *record = &volume->control.named->record;
	uint32_t i;

	for (i = 0; i < volume->control.server_count; i++)
		if (!rbx_record_has_member(record, rbx_session_incarnation(session_at(volume, i))))
			return false;
	return true;
}

/* The servers were chosen by what was heard of first, and the record may be another one. */
static int connected_check(struct rbx_volume *volume)
{
	const struct rbx_named *named = volume->control.named;

	return rbx_named_may_lack(named, missing_count(volume)) && all_are_members(volume) ?
		       0 :
		       rbx_error(-EBUSY, "volume %s: its record has changed meanwhile; open it again",
				 named->record.name);
}

/*
 * The servers that are missing may still serve the former writer. It ends by itself three quarters
 * of a lease after enough of the others have answered it (client/keeper.c), and they do not any
 * more. If it is stopped then, those servers end its session a lease after they have heard of it.
 */
static void former_writer_wait(struct rbx_volume *volume)
{
	uint64_t lease_ns = 0, until_ns;
	uint32_t i;

	for (i = 0; i < volume->control.server_count; i++)
		lease_ns = RBX_MAX(lease_ns, rbx_session_lease_ns(session_at(volume, i)));
	until_ns = rbx_now_ns() + lease_ns + lease_ns / 2;
	while (rbx_now_ns() < until_ns)
		usleep(WAIT_US);
}

static int slabs_find_at(void *user, uint32_t index)
{
	struct rbx_volume_control *control = &((struct rbx_volume *)user)->control;
	struct rbx_named *named = control->named;
	struct rbx_session *session = session_at(user, index);

	if (rbx_record_is_in(&named->record, rbx_session_incarnation(session)))
		return rbx_named_find(named, session, &control->upkeep, index);
	return rbx_named_forget(named, session);
}

int rbx_volume_named_take(struct rbx_volume *volume)
{
	struct rbx_named *named = volume->control.named;
	int err = rbx_named_settle(named);
	bool is_even = named->record.flags & RBX_WIRE_EVEN;

	named->record.flags &= ~(uint32_t)RBX_WIRE_EVEN;
	if (!err)
		err = connected_check(volume);
	if (!err)
		err = all_accept(volume);
	if (!err && !is_even && missing_count(volume))
		former_writer_wait(volume);
	if (!err && named->has_two_names)
		err = rbx_at_once(volume->control.server_count, release_at, volume);
	if (!err)
		err = rbx_at_once(volume->control.server_count, slabs_find_at, volume);
	if (!err)
		err = members_change(volume);
	if (!err && !is_even)
		rbx_upkeep_even_out(&volume->control.upkeep);
	volume->control.upkeep.copies_least =
		volume->control.keeper ? named->record.copies : 0;
	if (!err && volume->control.keeper)
		rbx_keeper_begin(volume->control.keeper);
	return err;
}

int rbx_volume_named_wait_even(struct rbx_volume *volume)
{
	uint32_t next = 0;
	int err;

	if (!volume->control.keeper)
		return 0;
	while ((err = rbx_upkeep_evened_out(&volume->control.upkeep, &next)) == -EAGAIN)
		rbx_volume_turn_wait(volume);
	return err ? rbx_error(err, "volume %s: its replicas cannot be made equal after a crash, because a server or this machine fails: open it again",
			       volume->control.named->record.name) :
		     0;
}

void rbx_volume_named_close(struct rbx_volume *volume)
{
	if (!volume->control.keeper)
		return;
	rbx_keeper_end(volume->control.keeper);
	rbx_keeper_close(volume->control.keeper);
}

void rbx_volume_named_free(struct rbx_volume *volume)
{
	if (volume->control.keeper)
		rbx_keeper_destroy(volume->control.keeper);
	free(volume->control.keeper);
	free(volume->control.named);
}
