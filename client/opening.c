/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * opening.c - see opening.h. client/named.c asks one server, core/proposer.h decides.
 */
#include "client/opening.h"

#include "client/at_once.h"
#include "client/connection.h"
#include "client/keeper.h"
#include "client/returned.h"
#include "client/session.h"
#include "client/reconcile.h"
#include "core/extents.h"
#include "core/lost_slabs.h"

#define WAIT_NS 100000000u
#define TELL_FIRST_NS 1000000000ull
#define TELL_EVERY_NS 5000000000ull

/* ---- What takes long is told -----------------------------------------------------------*/

struct telling {
	struct rbx_volume_control *control;
	const char *what;
	uint64_t next_ns;
};

static struct telling telling_of(struct rbx_volume_control *control, const char *what)
{
	return (struct telling){ control, what, rbx_now_ns() + TELL_FIRST_NS };
}

static void tell(struct telling *telling, uint32_t slabs_count)
{
	uint64_t now_ns = rbx_now_ns();

	if (now_ns < telling->next_ns)
		return;
	telling->next_ns = now_ns + TELL_EVERY_NS;
	rbx_volume_opening_tell(telling->control, telling->what, slabs_count);
}

/* ---- What the servers know -----------------------------------------------------------*/

/* A slab that no server names was never written only if enough have been asked. */
static int all_there_check(struct rbx_named *named, const struct rbx_crowd *crowd)
{
	const struct rbx_wire_record *record = &named->record;
	const char *why = crowd->away_count ? crowd->away[0].why : NULL;
	char names[RBX_MISSING_BYTES];
	bool is_half;
	uint32_t missing = rbx_crowd_lacks(crowd, record, &is_half);

	named->absent_count = rbx_crowd_absent(crowd, record);
	if (is_half && !crowd->away_count)
		return rbx_error(-ENOENT, "volume %s was not made to its end, or not removed to its end: remove it",
				 record->name);
	if (!is_half && rbx_named_may_lack(named, missing))
		return 0;
	/* Those that are away may be missing, or be OUT. */
	if (missing > RBX_MAX(named->absent_count, crowd->away_count))
		return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are not among those given, or were restarted: name all of them, also those that are out; or, if one has lost its memory, the servers by a file (file:PATH)",
				 record->name, record->members_count, missing);
	rbx_crowd_missing_print(crowd, record, names, sizeof(names));
	return rbx_error(-EHOSTUNREACH, "volume %s lacks %u of its servers (%s), and may have data that no other one has: bring them back, or, if they will not come, rdmabox volume give-up%s%s",
			 record->name, missing, names, why ? "; " : "", why ? why : "");
}

/* Those that have it, as a list; or NULL. */
static char *members_print(const struct rbx_crowd *crowd)
{
	size_t length = 0, bytes = 1;
	char *text;
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		bytes += strlen(crowd->names[i]) + 1;
	text = rbx_memory_make(bytes);
	for (i = 0; text && i < crowd->count; i++) {
		if (!crowd->has[i])
			continue;
		if (length)
			text[length++] = ',';
		rbx_text_copy(text + length, bytes - length, crowd->names[i]);
		length += strlen(crowd->names[i]);
	}
	return text;
}

/* A volume that has replicas has a keeper. */
static int keeper_make(struct rbx_volume_control *control)
{
	if (control->named->record.replicas == 1)
		return 0;
	control->keeper = rbx_keeper_make(control, control->named);
	return control->keeper ? 0 : rbx_error(-ENOMEM, "out of memory");
}

static int named_make(struct rbx_volume_control *control, const char *name)
{
	char holder[RBX_WIRE_HOLDER_BYTES];

	control->named = rbx_memory_make(sizeof(*control->named));
	if (!control->named)
		return rbx_error(-ENOMEM, "out of memory");
	rbx_holder_describe(holder);
	return rbx_named_init(control->named, name, holder);
}

int rbx_opening_begin(struct rbx_volume_control *control, struct rbx_crowd *crowd,
		      const char *name, bool take_over, char **members)
{
	int err = named_make(control, name);

	*members = NULL;
	if (!err)
		err = rbx_crowd_look(crowd, control->named);
	if (err)
		return err;
	rbx_crowd_keep_members(crowd, &control->named->record);
	rbx_crowd_leave_drained(crowd, &control->named->record);
	rbx_emptied_look(&control->named->emptied, crowd, &control->named->record);
	err = all_there_check(control->named, crowd);
	if (!err)
		err = rbx_named_begin(control->named, take_over);
	if (!err)
		err = keeper_make(control);
	if (err)
		return err;
	*members = members_print(crowd);
	return *members ? 0 : rbx_error(-ENOMEM, "out of memory");
}

/* ---- With the servers connected ------------------------------------------------------*/

static struct rbx_session *session_at(const struct rbx_volume_control *control, uint32_t index)
{
	return rbx_peer_session(control->servers[index].peer);
}

static uint64_t incarnation_at(const struct rbx_volume_control *control, uint32_t index)
{
	return rbx_peer_incarnation(control->servers[index].peer);
}

static int accept_at(void *user, uint32_t index)
{
	struct rbx_volume_control *control = user;

	return rbx_named_accept(control->named, session_at(control, index));
}

static int all_accept(struct rbx_volume_control *control)
{
	struct rbx_named *named = control->named;
	int err = rbx_at_once(control->server_count, accept_at, control);

	if (!err && !rbx_named_is_chosen(named))
		err = rbx_error(-EHOSTUNREACH, "volume %s: too few of its servers accept this client",
				named->record.name);
	return err;
}

/* The former name: a rename that was interrupted is finished now. */
static int release_at(void *user, uint32_t index)
{
	rbx_named_release(session_at(user, index));
	return 0;
}

static struct rbx_member_set connected(const struct rbx_volume_control *control)
{
	struct rbx_member_set there = { .count = 0 };
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		rbx_member_set_add(&there, incarnation_at(control, i));
	return there;
}

/* Which needs no vote of those before. Now those can be forgotten that were started anew. */
static int members_changed(struct rbx_volume_control *control)
{
	const struct rbx_member_set there = connected(control);
	struct rbx_named *named = control->named;
	struct rbx_membership next;

	rbx_membership_next(&next, &named->proposer.membership);
	(void)rbx_emptied_forget(&named->emptied, &next, &there);
	rbx_named_change_to(named, &next);
	return all_accept(control);
}

/* Servers that were OUT and are there again: what they have may be old, and is not complete any
 * more. From here on they are servers like the others. Those that are missing are OUT. */
static int members_change(struct rbx_volume_control *control)
{
	const struct rbx_member_set there = connected(control);
	struct rbx_named *named = control->named;
	uint32_t i, fewest, changes_count = 0, lost_count = 0, forgotten_count;
	struct rbx_membership next;
	int err;

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
	fewest = rbx_upkeep_fewest_copies(&control->upkeep);
	forgotten_count = rbx_emptied_forget(&named->emptied, &next, &there);
	if (!changes_count && !forgotten_count && named->record.copies <= fewest)
		return 0;
	if (lost_count)
		rbx_record_copies_lose(&named->record, lost_count);
	named->record.copies = RBX_MIN(named->record.copies, fewest);
	rbx_named_change_to(named, &next);
	err = all_accept(control);
	return err || !changes_count ? err : members_changed(control);
}

/* Members that are not OUT, and were not connected. */
static uint32_t missing_count(struct rbx_volume_control *control)
{
	const struct rbx_wire_record *record = &control->named->record;
	uint32_t i, missing = rbx_record_in_count(record);

	for (i = 0; i < control->server_count; i++)
		missing -= rbx_record_is_in(record, incarnation_at(control, i));
	return missing;
}

static bool all_are_members(struct rbx_volume_control *control)
{
	const struct rbx_wire_record *record = &control->named->record;
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (!rbx_record_has_member(record, incarnation_at(control, i)))
			return false;
	return true;
}

/* The servers were chosen by what was heard of first, and the record may be another one. */
static int connected_check(struct rbx_volume_control *control)
{
	const struct rbx_named *named = control->named;

	return rbx_named_may_lack(named, missing_count(control)) && all_are_members(control) ?
		       0 :
		       rbx_error(-ESTALE, "volume %s: its record has changed meanwhile; open it again",
				 named->record.name);
}

/*
 * The servers that are missing may still serve the former writer. It ends by itself three quarters
 * of a lease after enough of the others have answered it (client/keeper.c), and they do not any
 * more. If it is stopped just before, those servers end its session a lease after that. The last
 * quarter is for clocks that differ, and for its threads, which do not all go on at once.
 */
static int former_writer_wait(struct rbx_volume_control *control, struct rbx_sessions *sessions)
{
	struct telling telling = telling_of(control, "servers are missing, and may still serve a client that had it before: that ends within two leases");
	uint64_t lease_ns = 0, until_ns;
	uint32_t i;
	int err = 0;

	for (i = 0; i < control->server_count; i++)
		lease_ns = RBX_MAX(lease_ns, rbx_session_lease_ns(session_at(control, i)));
	until_ns = rbx_now_ns() + 2 * lease_ns;
	while (!err && rbx_now_ns() < until_ns) {
		tell(&telling, 0);
		err = rbx_sessions_pause(sessions, WAIT_NS);
	}
	return err;
}

static int slabs_find_at(void *user, uint32_t index)
{
	struct rbx_volume_control *control = user;
	struct rbx_named *named = control->named;
	struct rbx_session *session = session_at(control, index);

	if (rbx_record_is_in(&named->record, rbx_session_incarnation(session)))
		return rbx_named_find(named, session, &control->upkeep, index);
	return rbx_named_return(named, session, &control->servers[index].returned);
}

static int returned_give_back_at(void *user, uint32_t index)
{
	struct rbx_volume_control *control = user;

	rbx_returned_give_back(&control->servers[index].returned, session_at(control, index));
	return 0;
}

/* ---- The steps ------------------------------------------------------------------------------ */

struct taking {
	struct rbx_volume_control *control;
	struct rbx_sessions *sessions;
	bool is_even; /* the former client has closed it */
};

/* From here on it is not EVEN any more, in what is accepted. */
static int newest_take(struct taking *taking)
{
	struct rbx_named *named = taking->control->named;
	int err = rbx_named_take_newest(named);

	taking->is_even = named->record.flags & RBX_WIRE_EVEN;
	named->record.flags &= ~(uint32_t)RBX_WIRE_EVEN;
	return err ? err : connected_check(taking->control);
}

static int writer_become(struct taking *taking)
{
	return all_accept(taking->control);
}

/* Who has closed it does not read any more. */
static int former_writer_end(struct taking *taking)
{
	return !taking->is_even && missing_count(taking->control) ?
		       former_writer_wait(taking->control, taking->sessions) :
		       0;
}

static int former_name_release(struct taking *taking)
{
	struct rbx_volume_control *control = taking->control;

	return control->named->has_two_names ?
		       rbx_at_once(control->server_count, release_at, control) :
		       0;
}

static int slabs_find(struct taking *taking)
{
	return rbx_at_once(taking->control->server_count, slabs_find_at, taking->control);
}

/* The words that were found say what servers lack that were OUT before, if any was. And if all
 * replicas were equal, those that are lost now lack nothing. */
static int found_judge(struct taking *taking)
{
	struct rbx_volume_control *control = taking->control;

	if (!control->keeper || rbx_keeper_any_is_out(control->named))
		return 0;
	rbx_extents_track(&control->flow, false);
	if (taking->is_even)
		rbx_extents_forget_found(&control->flow);
	return 0;
}

static int missing_put_out(struct taking *taking)
{
	return members_change(taking->control);
}

/* Servers were given up, and what nobody has may have been theirs. */
static int lost_note(struct taking *taking)
{
	struct rbx_volume_control *control = taking->control;

	if (control->named->record.flags & RBX_WIRE_LOST)
		(void)rbx_upkeep_lost_slabs(&control->upkeep);
	return 0;
}

/* Before anything else is read of them. What is equal then at those that are there may differ at
 * those that are not, or return. */
static int pages_reconcile(struct taking *taking)
{
	struct rbx_volume_control *control = taking->control;

	if (!control->flow.map->shape.has_tails)
		return 0;
	rbx_extents_track(&control->flow, true);
	return rbx_reconcile(control, taking->is_even);
}

/* All that counts was found. What servers that were OUT have still takes the place of what is
 * lacking now, and what it has missed is copied later. */
static int returned_take(struct taking *taking)
{
	struct rbx_volume_control *control = taking->control;
	uint32_t i;

	if (!control->keeper)
		return 0;
	for (i = 0; i < control->server_count; i++)
		(void)rbx_returned_take(&control->servers[i].returned, &control->upkeep, i);
	rbx_extents_track(&control->flow, rbx_keeper_any_is_out(control->named));
	return rbx_at_once(control->server_count, returned_give_back_at, control);
}

/* Whoever comes to the address of a member that is away, and is another one, takes its place. */
static void former_note(struct rbx_volume_control *control)
{
	const struct rbx_member_set there = connected(control);
	const struct rbx_named *named = control->named;
	uint64_t incarnation = rbx_emptied_member_away(&named->emptied,
						       &named->proposer.membership, &there);

	if (incarnation)
		rbx_keeper_former_note(control->keeper, named->emptied.away, incarnation);
}

static int upkeep_begin(struct taking *taking)
{
	struct rbx_volume_control *control = taking->control;

	if (!taking->is_even)
		rbx_upkeep_even_out(&control->upkeep);
	rbx_upkeep_set_copies_least(&control->upkeep,
				    control->keeper ? control->named->record.copies : 0);
	if (control->keeper) {
		former_note(control);
		rbx_keeper_begin(control->keeper);
	}
	return 0;
}

int rbx_opening_take(struct rbx_volume_control *control, struct rbx_sessions *sessions)
{
	static int (*const steps[])(struct taking *taking) = {
		newest_take,
		writer_become,
		former_writer_end,
		former_name_release,
		slabs_find,
		found_judge,
		missing_put_out,
		lost_note,
		pages_reconcile,
		returned_take,
		upkeep_begin,
	};
	struct taking taking = { .control = control, .sessions = sessions };
	uint32_t i;
	int err = 0;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && !err; i++)
		err = steps[i](&taking);
	return err;
}

int rbx_opening_wait_even(struct rbx_volume_control *control)
{
	struct telling telling = telling_of(control, "replicas are made equal, as its last client has crashed");
	uint32_t next = 0;
	int err;

	if (!control->keeper)
		return 0;
	while ((err = rbx_upkeep_evened_out(&control->upkeep, &next)) == -EAGAIN) {
		tell(&telling, rbx_upkeep_lacking(&control->flow.map->attention));
		err = rbx_volume_turn_wait(control);
		if (err)
			return err;
	}
	return err ? rbx_error(err, "volume %s: its replicas cannot be made equal after a crash, because a server or this machine fails: open it again",
			       control->named->record.name) :
		     0;
}

void rbx_opening_close(struct rbx_volume_control *control)
{
	if (!control->keeper)
		return;
	rbx_keeper_end(control->keeper);
	rbx_keeper_close(control->keeper);
}

void rbx_opening_free(struct rbx_volume_control *control)
{
	if (control->keeper)
		rbx_keeper_free(control->keeper);
	rbx_memory_free(control->named);
}
