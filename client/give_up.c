/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* give_up.c - see give_up.h. */
#include "client/give_up.h"

#include "client/at_once.h"
#include "client/connection.h"
#include "client/returned.h"
#include "client/session.h"
#include "core/acceptor.h"
#include "core/record.h"

#define WAIT_NS 100000000u
/* Two operators may give up different servers at the same moment. Their epochs differ by that. */
#define EPOCHS_BETWEEN (1u << 20)

struct giving {
	struct rbx_named *named;
	struct rbx_crowd *crowd;
};

/* ---- What is there ------------------------------------------------------------------------ */

static int grant_at(void *user, uint32_t index)
{
	const struct giving *giving = user;

	return giving->crowd->has[index] ?
		       rbx_named_grant(giving->named, giving->crowd->sessions[index]) :
		       0;
}

/* All that are there: each of them shuts everybody else out. epochs: to be left out before ours. */
static int volume_take(struct rbx_named *named, struct rbx_crowd *crowd, bool force,
		       uint32_t epochs)
{
	struct giving giving = { named, crowd };
	int err;

	named->highest_epoch += epochs;
	err = rbx_named_begin(named, force);
	return err ? err : rbx_at_once(crowd->count, grant_at, &giving);
}

static struct rbx_member_set all_left(const struct rbx_crowd *crowd)
{
	struct rbx_member_set left = { .count = 0 };
	uint32_t i;

	for (i = 0; i < crowd->count; i++) /* a pool may have more servers than a volume */
		if (crowd->has[i])
			rbx_member_set_add(&left, rbx_session_incarnation(crowd->sessions[i]));
	return left;
}

static void gone_find(const struct rbx_named *named, const struct rbx_crowd *crowd,
		      const struct rbx_membership *membership, struct rbx_loss *loss)
{
	const struct rbx_member_set left = all_left(crowd);
	uint32_t i, named_count = rbx_crowd_absent(crowd, &named->record);

	for (i = 0; i < membership->count; i++) {
		const struct rbx_member *member = &membership->members[i];

		if (rbx_member_set_has(&left, member->incarnation))
			continue;
		rbx_member_set_add(&loss->gone, member->incarnation);
		loss->gone_in_count += member->state == RBX_MEMBER_IN;
	}
	if (loss->gone_in_count > named_count)
		loss->unnamed_count = loss->gone_in_count - named_count;
	loss->is_open = rbx_named_has_writer(named);
	/* What enough of them have accepted is what enough of them would promise to go on with. */
	loss->is_certain = rbx_membership_can_open(membership, &left);
	loss->may_lose = !loss->is_certain || loss->gone_in_count >= named->record.copies;
}

/* By what they say. Nobody is asked for the volume. */
static int loss_look(struct rbx_named *named, struct rbx_crowd *crowd, struct rbx_loss *loss)
{
	struct rbx_membership membership;
	int err = rbx_crowd_look(crowd, named);

	if (!err)
		err = rbx_named_check(named);
	if (err)
		return err;
	rbx_record_get_membership(&named->record, &membership);
	if (rbx_membership_fault(&membership))
		return rbx_error(-EPROTO, "the record of volume %s makes no sense: %s",
				 named->record.name, rbx_membership_fault(&membership));
	rbx_crowd_keep_members(crowd, &named->record);
	gone_find(named, crowd, &membership, loss);
	return 0;
}

/* What a server has that is IN, all of it. The session reads beside whoever writes. */
static int found_at(struct rbx_named *named, struct rbx_session *session, struct rbx_loss *loss)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_READ,
		.volume_id = named->record.volume_id,
	};
	struct rbx_returned told = { .slabs = NULL };
	uint32_t i;
	int err = rbx_session_talk(session, &m);

	if (!err)
		err = rbx_named_tell(named, session, &told);
	for (i = 0; i < told.count && !err; i++) {
		const struct rbx_returned_slab *slab = &told.slabs[i];

		if (!slab->is_complete || !slab->label || slab->label > loss->slabs_count)
			continue;
		loss->found_count += !loss->found[slab->label - 1];
		loss->found[slab->label - 1] = true;
	}
	rbx_returned_forget(&told);
	return err;
}

static int slabs_find(struct rbx_named *named, const struct rbx_crowd *crowd,
		      struct rbx_loss *loss)
{
	const struct rbx_wire_record *record = &named->record;
	uint64_t count = rbx_named_slabs(record->size_bytes, record->slab_bytes);
	uint32_t i;
	int err = 0;

	if (!count || count > RBX_SLABS_MAX)
		return rbx_error(-EPROTO, "a server says that volume %s has %llu slabs",
				 record->name, (unsigned long long)count);
	loss->slabs_count = (uint32_t)count;
	loss->found = rbx_memory_make(count * sizeof(*loss->found));
	if (!loss->found)
		return rbx_error(-ENOMEM, "out of memory");
	for (i = 0; i < crowd->count && !err; i++)
		if (crowd->has[i] &&
		    rbx_record_is_in(record, rbx_session_incarnation(crowd->sessions[i])))
			err = found_at(named, crowd->sessions[i], loss);
	return err;
}

int rbx_give_up_look(struct rbx_named *named, struct rbx_crowd *crowd, struct rbx_loss *loss)
{
	int err;

	*loss = (struct rbx_loss){ .gone_in_count = 0 };
	err = loss_look(named, crowd, loss);
	return err ? err : slabs_find(named, crowd, loss);
}

void rbx_loss_free(struct rbx_loss *loss)
{
	rbx_memory_free(loss->found);
	loss->found = NULL;
}

/* ---- Whether it may be --------------------------------------------------------------------- */

/* An operator gives up those that were seen as gone, and no other one that does not answer now. */
static int gone_check(const struct rbx_named *named, const struct rbx_crowd *crowd,
		      const struct rbx_loss *loss, const struct rbx_member_set *gone)
{
	const struct rbx_wire_record *record = &named->record;
	const struct rbx_member_set left = all_left(crowd);
	uint32_t i;

	for (i = 0; i < gone->count; i++) {
		/* If all are there, those that are named may have been given up before. */
		if (loss->gone.count && !rbx_record_has_member(record, gone->incarnations[i]))
			return rbx_error(-ENODEV, "volume %s: %016llx is none of its servers: look once more",
					 record->name, (unsigned long long)gone->incarnations[i]);
		if (rbx_member_set_has(&left, gone->incarnations[i]))
			return rbx_error(-EISCONN, "volume %s: server %016llx is there, and is not given up",
					 record->name, (unsigned long long)gone->incarnations[i]);
	}
	for (i = 0; i < loss->gone.count; i++)
		if (!rbx_member_set_has(gone, loss->gone.incarnations[i]))
			return rbx_error(-ENOTCONN, "volume %s: server %016llx is not there either, and was not named as gone: bring it back, or look once more, and name all that are gone",
					 record->name,
					 (unsigned long long)loss->gone.incarnations[i]);
	return 0;
}

static int left_check(const struct rbx_named *named, const struct rbx_loss *loss, bool force)
{
	const struct rbx_wire_record *record = &named->record;
	uint32_t in_count = rbx_record_in_count(record);

	if (loss->unnamed_count)
		return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are not among those given, and may be there: name all, also those that are out or gone; or those that are left by a file (file:PATH)",
				 record->name, record->members_count, loss->unnamed_count);
	if (loss->gone_in_count == in_count)
		return rbx_error(-EHOSTUNREACH, "volume %s: none of its servers is there that is not out",
				 record->name);
	if (named->highest_epoch > RBX_MEMBERSHIP_STEP_MAX - 2 * RBX_GIVE_UP_EPOCHS)
		return rbx_error(-EPROTO, "volume %s: its servers were given up too often",
				 record->name);
	if (loss->is_certain || force)
		return 0;
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are not there: the others are too few to know whether they were put out, so what they have may be old",
			 record->name, in_count, loss->gone_in_count);
}

/* What was judged is what there is. */
static int same_check(const struct rbx_named *named, const struct rbx_wire_record *judged)
{
	return named->record.epoch == judged->epoch && named->record.version == judged->version ?
		       0 :
		       rbx_error(-ESTALE, "volume %s: its record has changed meanwhile; look once more",
				 judged->name);
}

/* ---- The record --------------------------------------------------------------------------- */

static int accept_at(void *user, uint32_t index)
{
	const struct giving *giving = user;

	return giving->crowd->has[index] ?
		       rbx_named_accept(giving->named, giving->crowd->sessions[index]) :
		       0;
}

/* Each of them: one that does not know of it could be opened together with those given up. */
static int all_accept(struct rbx_named *named, struct rbx_crowd *crowd)
{
	struct giving giving = { named, crowd };

	return rbx_at_once(crowd->count, accept_at, &giving);
}

/* The last client may still have sessions with those given up, and read there. It ends by itself
 * (client/opening.c, former_writer_wait()). */
static int former_writer_wait(const struct rbx_crowd *crowd, struct rbx_sessions *sessions)
{
	uint64_t lease_ns = 0, until_ns;
	uint32_t i;
	int err = 0;

	for (i = 0; i < crowd->count; i++)
		lease_ns = RBX_MAX(lease_ns, rbx_session_lease_ns(crowd->sessions[i]));
	until_ns = rbx_now_ns() + 2 * lease_ns;
	while (!err && rbx_now_ns() < until_ns)
		err = rbx_sessions_pause(sessions, WAIT_NS);
	return err;
}

static int decree(struct rbx_named *named, struct rbx_crowd *crowd, const struct rbx_loss *loss)
{
	const struct rbx_member_set left = all_left(crowd);

	if (!rbx_proposer_overrule(&named->proposer, &left))
		return rbx_error(-EPROTO, "volume %s: a server says now that none of those that are left is a server of it that is not out",
				 named->record.name);
	rbx_record_put_membership(&named->record, &named->proposer.membership);
	rbx_record_copies_lose(&named->record, loss->gone_in_count);
	if (loss->may_lose)
		named->record.flags |= RBX_WIRE_LOST;
	/* One of them may have been OUT by what others have accepted. */
	if (!loss->is_certain) {
		named->record.flags &= ~(uint32_t)RBX_WIRE_EVEN;
		named->record.flags |= RBX_WIRE_UNSURE;
	}
	return all_accept(named, crowd);
}

static int epochs_draw(uint32_t *epochs)
{
	uint32_t random = 0;
	int err = rbx_random(&random, sizeof(random));

	*epochs = RBX_GIVE_UP_EPOCHS + random % EPOCHS_BETWEEN;
	return err;
}

/* Nobody has asked for it since we have it. Those that have changed it are not shut out. */
static int ours_check(struct rbx_named *named, struct rbx_crowd *crowd,
		      const struct rbx_wire_record *judged)
{
	uint64_t epoch = named->epoch;
	int err = rbx_crowd_look(crowd, named);

	if (err)
		return err;
	rbx_crowd_keep_members(crowd, &named->record);
	if (named->highest_epoch != epoch)
		return rbx_error(-ESTALE, "volume %s: another client has opened it meanwhile",
				 judged->name);
	return same_check(named, judged);
}

/* The volume is ours in the next epoch. What takes long, or is refused, comes before its epochs are
 * used up. */
static int jump(struct rbx_named *named, struct rbx_crowd *crowd, struct rbx_sessions *sessions,
		const struct rbx_wire_record *judged)
{
	uint32_t epochs;
	int err = epochs_draw(&epochs);

	if (!err && !(judged->flags & RBX_WIRE_EVEN))
		err = former_writer_wait(crowd, sessions);
	if (!err)
		err = ours_check(named, crowd, judged);
	if (!err)
		err = volume_take(named, crowd, true, epochs);
	return err ? err : same_check(named, judged);
}

static int all_there_agree(struct rbx_named *named, struct rbx_crowd *crowd)
{
	int err = rbx_named_take_newest(named);

	return err ? err : all_accept(named, crowd);
}

int rbx_give_up_do(struct rbx_named *named, struct rbx_crowd *crowd, struct rbx_sessions *sessions,
		   const struct rbx_member_set *gone, bool force)
{
	struct rbx_loss loss = { .gone_in_count = 0 };
	struct rbx_wire_record judged;
	int err = loss_look(named, crowd, &loss);

	if (!err)
		err = gone_check(named, crowd, &loss, gone);
	if (!err && loss.gone.count)
		err = left_check(named, &loss, force);
	judged = named->record;
	if (!err)
		err = volume_take(named, crowd, force, 0);
	if (!err)
		err = same_check(named, &judged);
	if (!err && !loss.gone.count)
		return all_there_agree(named, crowd);
	if (!err)
		err = jump(named, crowd, sessions, &judged);
	if (!err)
		err = decree(named, crowd, &loss);
	return err ? err : (int)loss.gone.count;
}

/* ---- What is lost becomes zeros ----------------------------------------------------------- */

int rbx_give_up_clear(struct rbx_named *named, struct rbx_crowd *crowd)
{
	struct giving giving = { named, crowd };
	int err = rbx_crowd_look(crowd, named);

	if (err)
		return err;
	rbx_crowd_keep_members(crowd, &named->record);
	err = volume_take(named, crowd, false, 0);
	if (!err)
		err = rbx_named_take_newest(named);
	if (err)
		return err;
	(void)rbx_at_once(crowd->count, accept_at, &giving);
	if (rbx_named_is_chosen(named) && named->record.flags & RBX_WIRE_LOST) {
		named->record.flags &= ~(uint32_t)RBX_WIRE_LOST;
		rbx_named_change(named);
		(void)rbx_at_once(crowd->count, accept_at, &giving);
	}
	return rbx_named_is_chosen(named) ? 0 :
		       rbx_error(-EHOSTUNREACH, "volume %s: too few of its servers are there to change it",
				 named->record.name);
}
