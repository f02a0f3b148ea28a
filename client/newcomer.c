/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * newcomer.c - see newcomer.h.
 */
#include "client/newcomer.h"

#include "client/session.h"

static int slab_bytes_check(const struct rbx_named *named, const struct rbx_session *session)
{
	uint64_t slab_bytes = rbx_session_slab_bytes(session);

	if (slab_bytes == named->record.slab_bytes)
		return 0;
	return rbx_error(-EINVAL, "server %s lends slabs of %llu bytes, and volume %s has slabs of %llu; start it with that --slab",
			 rbx_session_name(session), (unsigned long long)slab_bytes,
			 named->record.name, (unsigned long long)named->record.slab_bytes);
}

static int open_for(const struct rbx_named *named, struct rbx_session *session,
		    enum rbx_wire_open_mode mode, struct rbx_wire_message *m)
{
	*m = (struct rbx_wire_message){
		.type = RBX_WIRE_VOLUME_OPEN,
		.volume_open = {
			.mode = mode,
			.volume_id = named->record.volume_id,
			.writer_epoch = named->epoch,
		},
	};
	rbx_port_copy(m->volume_open.name, named->record.name, sizeof(m->volume_open.name));
	rbx_port_copy(m->volume_open.holder, named->holder, sizeof(m->volume_open.holder));
	return rbx_session_talk(session, m);
}

/* What another client left there on its way, or what is OUT, counts for nothing: in a record that
 * was chosen the server is no member that is IN. So it gives that up, whoever had it open. */
static int mode_choose(struct rbx_named *named, struct rbx_session *session,
		       enum rbx_wire_open_mode *mode)
{
	struct rbx_wire_volume volume;
	int err = rbx_named_look_for_id(named, session, &volume);

	if (!err && volume.record.flags & RBX_WIRE_REMOVED) /* which the others did not hear of */
		err = -ENOENT;
	*mode = err ? RBX_WIRE_OPEN_CREATE : RBX_WIRE_OPEN_ANEW;
	if (err == -ENOENT)
		return 0;
	if (!err && !volume.record.epoch)
		err = rbx_error(-EBUSY, "server %s is being given to volume %s by %s: try again, or when the lease of that one is over if it has died",
				rbx_session_name(session), named->record.name, volume.holder);
	return err;
}

static int owner_check(const struct rbx_named *named, const struct rbx_session *session,
		       const struct rbx_wire_record *record)
{
	if (!strcmp(record->owner, named->record.owner))
		return 0;
	return rbx_error(-EPROTO, "server %s says that volume %s belongs to another credential",
			 rbx_session_name(session), named->record.name);
}

static int room_try(const struct rbx_named *named, struct rbx_session *session)
{
	const struct rbx_wire_map map = { .label = 1, .has_tail = rbx_named_has_tails(named) };
	struct rbx_loan loan;
	int err = rbx_session_map_for(session, &map, &loan);

	return err ? err : rbx_session_unmap(session, &loan);
}

int rbx_newcomer_join(struct rbx_named *named, struct rbx_session *session)
{
	enum rbx_wire_open_mode mode;
	struct rbx_wire_message m;
	int err = slab_bytes_check(named, session);

	if (!err)
		err = mode_choose(named, session, &mode);
	if (!err)
		err = open_for(named, session, mode, &m);
	if (!err)
		err = owner_check(named, session, &m.volume.record);
	if (!err)
		err = room_try(named, session);
	return err;
}

int rbx_newcomer_return(struct rbx_named *named, struct rbx_session *session,
			struct rbx_returned *returned)
{
	enum rbx_wire_open_mode mode;
	struct rbx_wire_message m;
	int err = slab_bytes_check(named, session);

	if (!err)
		err = mode_choose(named, session, &mode);
	if (!err && mode == RBX_WIRE_OPEN_CREATE) /* it was removed there, or not opened for long */
		return rbx_newcomer_join(named, session);
	if (!err)
		err = open_for(named, session, RBX_WIRE_OPEN_RETURN, &m);
	if (!err)
		err = owner_check(named, session, &m.volume.record);
	if (!err)
		err = rbx_named_return(named, session, returned);
	/* One that is full of what it had would lend nothing. */
	return err || returned->count ? err : room_try(named, session);
}

void rbx_newcomer_spare(struct rbx_named *named, struct rbx_session *session)
{
	enum rbx_wire_open_mode mode;
	struct rbx_wire_message m;

	if (!mode_choose(named, session, &mode) && mode == RBX_WIRE_OPEN_ANEW)
		(void)open_for(named, session, RBX_WIRE_OPEN_RETURN, &m);
}

int rbx_newcomer_again(struct rbx_named *named, struct rbx_session *session)
{
	struct rbx_wire_message m;
	int err = slab_bytes_check(named, session);

	if (!err)
		err = open_for(named, session, RBX_WIRE_OPEN_AGAIN, &m);
	if (err == -ESTALE) {
		rbx_lock(&named->lock);
		rbx_proposer_refused(&named->proposer);
		rbx_unlock(&named->lock);
	}
	if (err == -ESTALE || err == -ENOENT)
		err = rbx_named_stopped_by(named, session, err);
	return err;
}

void rbx_newcomer_leave(struct rbx_session *session)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_REMOVE };

	(void)rbx_session_talk(session, &m);
}
