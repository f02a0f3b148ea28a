/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.h - makes and opens a named volume, together with its servers
 * (docs/named-volumes.md).
 *
 *	rbx_named_heard()     what each server says of the volume: its record, the last epoch
 *	rbx_named_begin()     an epoch above all that were heard of
 *	rbx_named_grant()     asks a server for the volume, in that epoch; of all servers
 *	rbx_named_take_newest()   the newest record that they have, under our epoch, is ours to
 *	                      propose
 *	rbx_named_accept()    each of them accepts it: when enough have, we are the writer
 *	rbx_named_find()      which slabs each of them has
 *
 * A volume that is made has no record that could be heard; all else is the same.
 *
 * Servers that are OUT are not needed to open it. Of the others so many may be missing as each slab
 * that was written has replicas less one (keeper.h): then what no server names was never written.
 * They are OUT from then on.
 */
#ifndef RBX_CLIENT_NAMED_H
#define RBX_CLIENT_NAMED_H

#include "client/emptied.h"
#include "client/host.h"
#include "core/proposer.h"
#include "wire/message.h"

#define RBX_STOP_SERVER_BYTES 128u

struct rbx_returned;
struct rbx_session;
struct rbx_upkeep;

struct rbx_named {
	char name[RBX_WIRE_VOLUME_NAME_BYTES]; /* that it is looked for by */
	/* That it is to get: if it has it already, it is found by `name` all the same. "": none. */
	char next_name[RBX_WIRE_VOLUME_NAME_BYTES];
	char holder[RBX_WIRE_HOLDER_BYTES]; /* who we are, for people */
	struct rbx_wire_record record; /* the newest that was heard; or of the one to be made */
	/* The newest that any server has told, though it may not be the one that is proposed. What
	 * others tell is compared with it. */
	struct rbx_wire_record told;
	char writer[RBX_WIRE_HOLDER_BYTES]; /* the last one that was heard of */
	struct rbx_member_set open_at; /* servers that say that it is open */
	uint32_t absent_count; /* servers that were named and are not there (lib/volume/crowd.h) */
	struct rbx_emptied emptied; /* the same: which of them were started anew */
	bool has_two_names; /* servers know it by different ones: a rename was interrupted */
	uint64_t highest_epoch; /* that was heard of */
	uint64_t epoch; /* ours */
	bool is_made; /* it does not exist yet */
	bool is_removed; /* it is opened for that alone; the caller sets it */
	bool needs_few; /* the same: for that any servers are enough (removal.h) */
	bool was_left; /* what was left of one that was removed before has gone now */
	/* Guards what follows, and record: servers are asked in parallel. Taken before a slab's. */
	struct rbx_lock lock;
	struct rbx_proposer proposer;
	/* One server was told this version of the record with other members. So nobody else hears
	 * of it before the next change. */
	bool is_withdrawn;
	/* While it is open: why it is read and written no more; "": it is, or it is not known yet */
	char stop_why[RBX_ERROR_BYTES];
	char stop_server[RBX_STOP_SERVER_BYTES]; /* that was lost, or says so; or "" */
	bool stop_is_certain; /* a server has said it */
	bool stop_is_news; /* the host was not told */
};

/* name: of wire/record.h. holder: any text. -EINVAL, which was reported. */
int rbx_named_init(struct rbx_named *named, const char *name, const char *holder);
/* The same for a name alone. */
int rbx_named_name_take(char taken[RBX_WIRE_VOLUME_NAME_BYTES], const char *name);

/* Asks what a server knows of the volume. 0, or -errno that was reported; -ENOENT: nothing. */
int rbx_named_look(struct rbx_named *named, struct rbx_session *session,
		   struct rbx_wire_volume *volume);
/* The same for the volume that was heard of, whatever name it has there: after a rename that was
 * interrupted the servers know different ones. */
int rbx_named_look_for_id(struct rbx_named *named, struct rbx_session *session,
			  struct rbx_wire_volume *volume);
/* Forgets what was heard. One thread. */
void rbx_named_hear_nothing(struct rbx_named *named);
/* Takes what the server of this incarnation said. One thread. 0; -EEXIST: it is another volume
 * than that of the servers before, and has the same name; reported. */
int rbx_named_heard(struct rbx_named *named, uint64_t incarnation,
		    const struct rbx_wire_volume *volume);

/* Whether what was heard can be a volume. 0; -ENOENT: it has no record; -EPROTO; reported. */
int rbx_named_check(const struct rbx_named *named);
/* Whether a client has it open. */
bool rbx_named_has_writer(const struct rbx_named *named);
/* To open it. 0; -EBUSY: another client has it open, unless take_over; -ENOENT: it has no record;
 * -EPROTO: a server says what cannot be; reported. */
int rbx_named_begin(struct rbx_named *named, bool take_over);
/* To make it, on servers of these incarnations. The record has size and options. */
void rbx_named_make(struct rbx_named *named, uint64_t volume_id, const uint64_t *incarnations,
		    uint32_t count);

/* The server of this session shuts the former writer out, and serves us. Several threads. 0,
 * or -errno that was reported. */
int rbx_named_grant(struct rbx_named *named, struct rbx_session *session);

/* What is to be accepted by all, after all were granted. 0; -EHOSTUNREACH: too few servers were
 * granted; -ESTALE: another client has opened it meanwhile; reported. */
int rbx_named_take_newest(struct rbx_named *named);
/* Whether the volume can be opened without so many of its servers that are not OUT. */
bool rbx_named_may_lack(const struct rbx_named *named, uint32_t missing_count);
/* A server accepts it. Several threads. 0, or -errno that was reported. */
int rbx_named_accept(struct rbx_named *named, struct rbx_session *session);
/* The same without waiting: the request, and what its answer means. err: 0, or why the server has
 * not accepted this version. */
struct rbx_wire_message rbx_named_accept_request(const struct rbx_named *named);
void rbx_named_accepted(struct rbx_named *named, uint64_t incarnation, uint64_t version, int err);
/* What enough have accepted is changed: the caller has written its part of the record, which is
 * to be accepted by all once more. */
void rbx_named_change(struct rbx_named *named);
/* The same, and the membership is this one, made by rbx_membership_next(). */
void rbx_named_change_to(struct rbx_named *named, const struct rbx_membership *next);
/* The change is taken back (rbx_proposer_withdraw()). */
void rbx_named_withdraw(struct rbx_named *named, const struct rbx_membership *before);
/* Before the name is changed: a server keeps this one for the volume, in place of the one that
 * was reserved before; "": none. 0; -EEXIST: another volume has it there; -errno; reported. */
int rbx_named_reserve(struct rbx_session *session, const char name[RBX_WIRE_VOLUME_NAME_BYTES]);
/* All servers have accepted one name: nothing else is reserved there any more. If it fails, the
 * next client does it. */
void rbx_named_release(struct rbx_session *session);
/* Whether enough have accepted. */
bool rbx_named_is_chosen(const struct rbx_named *named);
/* Whether another client has opened it. */
bool rbx_named_is_shut_out(const struct rbx_named *named);

/* ---- stopped.c: why a volume that was open is read and written no more. Any thread. --------- */

/* server: the name of one that has said so, or was lost; "": none. is_certain: it was said by a
 * server, and is not overruled by what follows from that. */
void rbx_named_stopped(struct rbx_named *named, const char *server, const char *why,
		       bool is_certain);
/* A server that was asked for it once more has refused. Asks it who has the volume. Returns err,
 * which was reported. Blocks. */
int rbx_named_stopped_by(struct rbx_named *named, struct rbx_session *session, int err);
/* It goes on. */
void rbx_named_not_stopped(struct rbx_named *named);
/* Reports why it is stopped, after what has failed, and returns err. 0: nothing is known. */
int rbx_named_stop_error(struct rbx_named *named, int err, const char *what);
/* What there is to tell, once. server, why: of the sizes above. */
bool rbx_named_stop_take(struct rbx_named *named, char *server, char *why);

/* A server that is OUT is there again: what it has of the volume may be old. It calls nothing of
 * that complete from now on; what was complete is noted, and the rest is given up. 0, or -errno
 * that was reported. */
int rbx_named_return(struct rbx_named *named, struct rbx_session *session,
		     struct rbx_returned *returned);
/* Takes the slabs that a server of the volume has. What lies beyond the end of a reserved volume
 * was left by a client that died while it grew, and is given up. Several threads. 0, or -errno that
 * was reported. */
int rbx_named_find(struct rbx_named *named, struct rbx_session *session,
		   struct rbx_upkeep *upkeep, uint32_t server);
/* Only notes them, complete or not. 0; or -errno that was reported. */
int rbx_named_tell(struct rbx_named *named, struct rbx_session *session,
		   struct rbx_returned *returned);
/* Only gives up what is beyond the end, or not complete. How many slabs it has besides; or -errno
 * that was reported. */
int rbx_named_trim(struct rbx_named *named, struct rbx_session *session);

/* Of a volume that is open and has so many slabs: only gives up what is beyond these, and was left
 * by a growth that failed. 0, or -errno that was reported. */
int rbx_named_trim_beyond(struct rbx_named *named, struct rbx_session *session,
			  uint64_t slabs_count);

/* Whether its slabs are lent with room for checksums. */
static inline bool rbx_named_has_tails(const struct rbx_named *named)
{
	return named->record.flags & RBX_WIRE_CHECKSUMS;
}

/* How many slabs a volume of this size has; a server may have said both numbers. */
static inline uint64_t rbx_named_slabs(uint64_t size_bytes, uint64_t slab_bytes)
{
	return slab_bytes ? size_bytes / slab_bytes + (size_bytes % slab_bytes != 0) : 0;
}

#endif
