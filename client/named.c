/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.c - see named.h. proposer.h decides; this asks.
 */
#include "client/named.h"

#include "client/session.h"
#include "core/record.h"

int rbx_named_name_take(char taken[RBX_WIRE_VOLUME_NAME_BYTES], const char *name)
{
	size_t length = strlen(name);

	rbx_port_fill(taken, 0, RBX_WIRE_VOLUME_NAME_BYTES);
	if (length < RBX_WIRE_VOLUME_NAME_BYTES)
		rbx_port_copy(taken, name, length);
	if (rbx_wire_volume_name_makes_sense(taken))
		return 0;
	return rbx_error(-EINVAL, "a volume cannot have the name \"%s\": it must be 1 to %u of A-Z a-z 0-9 . _ -, and begin with a letter or a digit",
			 name, RBX_WIRE_VOLUME_NAME_BYTES - 1);
}

int rbx_named_init(struct rbx_named *named, const char *name, const char *holder)
{
	rbx_port_fill(named, 0, sizeof(*named));
	rbx_lock_init(&named->lock);
	rbx_text_copy(named->holder, sizeof(named->holder), holder);
	rbx_wire_text_clean(named->holder);
	if (rbx_named_name_take(named->name, name))
		return -EINVAL;
	rbx_port_copy(named->record.name, named->name, sizeof(named->record.name));
	return 0;
}

static struct rbx_wire_message open_request(const struct rbx_named *named,
					    enum rbx_wire_open_mode mode)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open.mode = mode,
	};

	rbx_port_copy(m.volume_open.name, named->name, sizeof(named->name));
	if (mode == RBX_WIRE_OPEN_LOOK)
		return m;
	rbx_port_copy(m.volume_open.holder, named->holder, sizeof(named->holder));
	m.volume_open.writer_epoch = named->epoch;
	m.volume_open.volume_id = named->record.volume_id;
	return m;
}

/* ---- What there is ------------------------------------------------------------------ */

static int look(const struct rbx_named *named, struct rbx_session *session, uint64_t volume_id,
		struct rbx_wire_volume *volume)
{
	struct rbx_wire_message m = open_request(named, RBX_WIRE_OPEN_LOOK);
	int err;

	m.volume_open.volume_id = volume_id;
	err = rbx_session_talk(session, &m);
	if (err)
		return err;
	/* A volume that was removed has no name any more. */
	if (!volume_id && m.volume.record.flags & RBX_WIRE_REMOVED)
		return rbx_error(-EPROTO, "%s says that volume %s is there, and that it was removed",
				 rbx_session_name(session), named->name);
	*volume = m.volume;
	return 0;
}

int rbx_named_look(struct rbx_named *named, struct rbx_session *session,
		   struct rbx_wire_volume *volume)
{
	return look(named, session, 0, volume);
}

int rbx_named_look_for_id(struct rbx_named *named, struct rbx_session *session,
			  struct rbx_wire_volume *volume)
{
	return look(named, session, named->record.volume_id, volume);
}

void rbx_named_hear_nothing(struct rbx_named *named)
{
	rbx_port_fill(&named->record, 0, sizeof(named->record));
	rbx_port_copy(named->record.name, named->name, sizeof(named->record.name));
	rbx_port_fill(&named->told, 0, sizeof(named->told));
	rbx_port_fill(named->writer, 0, sizeof(named->writer));
	named->open_at.count = 0;
	named->has_two_names = false;
	named->highest_epoch = 0;
}

int rbx_named_heard(struct rbx_named *named, uint64_t incarnation,
		    const struct rbx_wire_volume *volume)
{
	if (named->record.volume_id && volume->record.volume_id != named->record.volume_id)
		return rbx_error(-EEXIST, "there are two volumes %s on these servers: name the servers of one of them",
				 named->name);
	if (named->record.epoch && volume->record.epoch &&
	    !(volume->record.flags & RBX_WIRE_REMOVED))
		named->has_two_names |= strcmp(volume->record.name, named->record.name) != 0;
	named->record.volume_id = volume->record.volume_id;
	if (rbx_record_is_newer(&volume->record, &named->record))
		named->record = named->told = volume->record;
	if (volume->is_open)
		rbx_member_set_add(&named->open_at, incarnation);
	if (volume->promised_epoch < named->highest_epoch)
		return 0;
	named->highest_epoch = volume->promised_epoch;
	rbx_port_copy(named->writer, volume->holder, sizeof(named->writer));
	return 0;
}

/* ---- Our epoch ---------------------------------------------------------------------- */

/* A server that is OUT, or is no member, has not heard of the end of a writer. */
bool rbx_named_has_writer(const struct rbx_named *named)
{
	uint32_t i;

	for (i = 0; i < named->open_at.count; i++)
		if (rbx_record_is_in(&named->record, named->open_at.incarnations[i]))
			return true;
	return false;
}

int rbx_named_check(const struct rbx_named *named)
{
	if (!named->record.epoch)
		return rbx_error(-ENOENT, "volume %s was never made to its end", named->record.name);
	if (!named->is_removed &&
	    (!named->record.replicas || named->record.replicas > RBX_REPLICAS_MAX))
		return rbx_error(-EPROTO, "a server says that volume %s has %u replicas",
				 named->record.name, named->record.replicas);
	if (!named->is_removed && rbx_named_has_tails(named) && named->record.replicas == 1)
		return rbx_error(-EPROTO, "a server says that volume %s has checksums, and one replica",
				 named->record.name);
	return 0;
}

int rbx_named_begin(struct rbx_named *named, bool take_over)
{
	int err = rbx_named_check(named);

	if (err)
		return err;
	if (rbx_named_has_writer(named) && !take_over)
		return rbx_error(-EBUSY, "volume %s is open by %s; close it there",
				 named->record.name, named->writer);
	if (named->highest_epoch > UINT64_MAX / 2)
		return rbx_error(-EPROTO, "a server says that volume %s was opened more often than can be",
				 named->record.name);
	named->epoch = named->highest_epoch + 1;
	rbx_proposer_open(&named->proposer, named->epoch);
	return 0;
}

void rbx_named_make(struct rbx_named *named, uint64_t volume_id, const uint64_t *incarnations,
		    uint32_t count)
{
	named->record.volume_id = volume_id;
	named->epoch = 1;
	named->is_made = true;
	rbx_proposer_create(&named->proposer, named->epoch, incarnations, count);
}

/* Nobody changes these, and volumes only grow. A server that says otherwise would have the others
 * drop the volume, or what is beyond its end. */
static bool is_otherwise(const struct rbx_wire_record *record, const struct rbx_wire_record *before)
{
	if (record->keep_s != before->keep_s || strcmp(record->owner, before->owner) ||
	    (record->flags ^ before->flags) & (RBX_WIRE_CHECKSUMS | RBX_WIRE_RESERVED))
		return true;
	return rbx_record_is_newer(record, before) && record->size_bytes < before->size_bytes;
}

static bool is_same_version(const struct rbx_wire_record *a, const struct rbx_wire_record *b)
{
	return a->epoch == b->epoch && a->version == b->version;
}

/* One client proposes a version, and tells all servers the same: so one of two that differ was
 * made up, and nobody knows which. */
static bool is_contradicted(const struct rbx_named *named, const struct rbx_wire_record *record)
{
	return (is_same_version(record, &named->told) &&
		!rbx_record_is_equal(record, &named->told)) ||
	       (is_same_version(record, &named->record) &&
		!rbx_record_is_equal(record, &named->record));
}

/* What is wrong with a record, or NULL. One that is being made has no membership. */
static const char *record_fault(const struct rbx_named *named,
				const struct rbx_wire_record *record,
				const struct rbx_membership *membership)
{
	if (record->volume_id != named->record.volume_id)
		return "it is of another volume";
	if (record->flags & RBX_WIRE_REMOVED)
		return "it says that the volume was removed";
	if (membership->epoch >= named->epoch)
		return "it is of a later epoch";
	if (!membership->epoch)
		return NULL;
	if (!named->is_made && !named->is_removed) {
		if (record->replicas != named->record.replicas ||
		    record->slab_bytes != named->record.slab_bytes)
			return "it has other replicas or slabs than before";
		if (is_otherwise(record, &named->told) || is_otherwise(record, &named->record))
			return "it has another owner, keep time, checksums or reservation than before, or is smaller";
		if (is_contradicted(named, record))
			return "it is not what another server says of the same version";
	}
	return rbx_membership_fault(membership);
}

/* Under the lock. */
static int granted(struct rbx_named *named, uint64_t incarnation,
		   const struct rbx_wire_volume *volume)
{
	struct rbx_membership membership;
	const char *fault;

	rbx_record_get_membership(&volume->record, &membership);
	fault = record_fault(named, &volume->record, &membership);
	if (fault)
		return rbx_error(-EPROTO, "the record of volume %s makes no sense: %s",
				 named->record.name, fault);
	rbx_proposer_promised(&named->proposer, incarnation, &membership);
	if (rbx_record_is_newer(&volume->record, &named->told))
		named->told = volume->record;
	/* The rest of the record is of the membership that is proposed again. */
	if (membership.epoch && membership.epoch == named->proposer.membership.epoch &&
	    membership.version == named->proposer.membership.version)
		named->record = volume->record;
	if (named->is_made) /* the server knows who we are */
		rbx_port_copy(named->record.owner, volume->record.owner,
			      sizeof(named->record.owner));
	return 0;
}

static enum rbx_wire_open_mode mode_of(const struct rbx_named *named)
{
	if (named->is_made)
		return RBX_WIRE_OPEN_CREATE;
	return named->is_removed ? RBX_WIRE_OPEN_REMOVE : RBX_WIRE_OPEN_WRITE;
}

int rbx_named_grant(struct rbx_named *named, struct rbx_session *session)
{
	struct rbx_wire_message m;
	int err;

	rbx_lock(&named->lock); /* others may hear a newer record meanwhile */
	m = open_request(named, mode_of(named));
	rbx_unlock(&named->lock);
	err = rbx_session_talk(session, &m);
	rbx_lock(&named->lock);
	if (!err)
		err = granted(named, rbx_session_incarnation(session), &m.volume);
	else if (err == -ESTALE)
		rbx_proposer_refused(&named->proposer);
	rbx_unlock(&named->lock);
	return err;
}

/* ---- The record --------------------------------------------------------------------- */

int rbx_named_take_newest(struct rbx_named *named)
{
	struct rbx_proposer *proposer = &named->proposer;

	if (proposer->state == RBX_PROPOSER_SHUT_OUT)
		return rbx_error(-ESTALE, "volume %s: another client has opened it meanwhile",
				 named->record.name);
	if (proposer->state != RBX_PROPOSER_OPENED)
		return rbx_error(-EHOSTUNREACH, "volume %s: too few of its servers are there to open it: if the others will not come back, rdmabox volume give-up",
				 named->record.name);
	rbx_proposer_adopt(proposer);
	rbx_record_put_membership(&named->record, &proposer->membership);
	return 0;
}

bool rbx_named_may_lack(const struct rbx_named *named, uint32_t missing_count)
{
	/* One that was not named may be there: who forgot it does not give it up. */
	return !missing_count || (missing_count < named->record.copies &&
				  missing_count <= named->absent_count);
}

struct rbx_wire_message rbx_named_accept_request(const struct rbx_named *named)
{
	return (struct rbx_wire_message){
		.type = RBX_WIRE_VOLUME_ACCEPT,
		.record = named->record,
	};
}

void rbx_named_accepted(struct rbx_named *named, uint64_t incarnation, uint64_t version, int err)
{
	rbx_lock(&named->lock);
	if (!err)
		rbx_proposer_accepted(&named->proposer, incarnation, version);
	else if (err == -ESTALE)
		rbx_proposer_refused(&named->proposer);
	rbx_unlock(&named->lock);
}

int rbx_named_accept(struct rbx_named *named, struct rbx_session *session)
{
	struct rbx_wire_message m = rbx_named_accept_request(named);
	int err = rbx_session_talk(session, &m);

	rbx_named_accepted(named, rbx_session_incarnation(session), named->record.version, err);
	return err;
}

void rbx_named_change_to(struct rbx_named *named, const struct rbx_membership *next)
{
	rbx_lock(&named->lock);
	rbx_proposer_propose(&named->proposer, next);
	rbx_record_put_membership(&named->record, next);
	named->is_withdrawn = false;
	rbx_unlock(&named->lock);
}

void rbx_named_withdraw(struct rbx_named *named, const struct rbx_membership *before)
{
	rbx_lock(&named->lock);
	rbx_proposer_withdraw(&named->proposer, before);
	rbx_record_put_membership(&named->record, &named->proposer.membership);
	named->is_withdrawn = true;
	rbx_unlock(&named->lock);
}

void rbx_named_change(struct rbx_named *named)
{
	struct rbx_membership next;

	rbx_membership_next(&next, &named->proposer.membership);
	rbx_named_change_to(named, &next);
}

bool rbx_named_is_shut_out(const struct rbx_named *named)
{
	return named->proposer.state == RBX_PROPOSER_SHUT_OUT;
}

int rbx_named_reserve(struct rbx_session *session, const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_RESERVE };

	rbx_port_copy(m.name, name, sizeof(m.name));
	return rbx_session_talk(session, &m);
}

void rbx_named_release(struct rbx_session *session)
{
	static const char none[RBX_WIRE_VOLUME_NAME_BYTES];

	(void)rbx_named_reserve(session, none);
}

bool rbx_named_is_chosen(const struct rbx_named *named)
{
	return named->proposer.state == RBX_PROPOSER_CHOSEN;
}
