/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.h - a session with each of several servers, which are only asked something. Named volumes
 * are looked for, made, changed and removed in this way. Sessions begin and end at all servers at
 * once, and all are asked at once for a volume (at_once.h).
 * crowd_look.c looks for a volume. A pool may have more servers than a volume.
 *
 * The host knows how servers are named: it makes a crowd, adds their names, and connects.
 */
#ifndef RBX_CLIENT_CROWD_H
#define RBX_CLIENT_CROWD_H

#include "client/named.h"

struct rbx_sessions;

struct rbx_crowd {
	char *names[RBX_SERVERS_MAX]; /* of the servers: host:port */
	struct rbx_session *sessions[RBX_SERVERS_MAX];
	bool has[RBX_SERVERS_MAX]; /* the volume that was looked for */
	bool has_removed[RBX_SERVERS_MAX]; /* the same: knows that it was removed (removal.h) */
	bool is_asked[RBX_SERVERS_MAX]; /* the same: by its id */
	uint32_t count;
	bool may_change; /* it is a pool that tells by itself which servers there are */
	uint32_t away_count;
	struct rbx_crowd_away { /* servers that were left out, as they do not answer */
		char *name;
		char *why; /* NULL: there was no memory for it */
	} away[RBX_SERVERS_MAX];
};

/* One without servers. 0, or -ENOMEM that was reported. */
int rbx_crowd_make(struct rbx_crowd **crowd);
/* Adds a server: length bytes of its name. 0; -EINVAL: there are too many; -ENOMEM; reported. */
int rbx_crowd_add(struct rbx_crowd *crowd, const char *name, size_t length);
/* Connects to all of them, none of them twice. may_lack: those that cannot be reached are left
 * out, unless none can. 0; -EUSERS: a server has no room for another client; or another -errno;
 * reported. Blocks. */
int rbx_crowd_connect(struct rbx_crowd *crowd, struct rbx_sessions *sessions, bool may_lack);
/* Whether an error of a server says that it is away: it does not answer, or not any more. */
bool rbx_crowd_is_away(int err);
/* Leaves out a server that is away, and why; the last one takes its place. Blocks. */
void rbx_crowd_leave_out(struct rbx_crowd *crowd, uint32_t index, const char *why);
/* Ends the sessions, and frees it. Blocks. */
void rbx_crowd_close(struct rbx_crowd *crowd);

/* Asks all of them for a volume. What is left of one that was removed, or was not made to its end,
 * goes first. 0; -ENOENT: none has it; -EACCES: it belongs to another credential wherever it is;
 * -EEXIST: there are two of this name; or as rbx_removal_finish(); reported. Blocks. */
int rbx_crowd_look(struct rbx_crowd *crowd, struct rbx_named *named);

/* Those that are no members have nothing that counts: what is there was left by a client that took
 * them in, and died before the others had heard of it. */
void rbx_crowd_keep_members(struct rbx_crowd *crowd, const struct rbx_wire_record *record);
/* Those that are OUT, have no vote and drain are not needed, and would be IN for a moment only. */
void rbx_crowd_leave_drained(struct rbx_crowd *crowd, const struct rbx_wire_record *record);

/* How many members of the record that are not OUT were not asked, or do not have the volume.
 * is_half: receives whether there is one of the latter that knows of no removal: a server that has
 * removed the volume in an older epoch is one that is missing. */
uint32_t rbx_crowd_lacks(const struct rbx_crowd *crowd, const struct rbx_wire_record *record,
			 bool *is_half);
/* The incarnations of these, as many as there is room for; what is behind them: "...". */
#define RBX_MISSING_BYTES 56u
void rbx_crowd_missing_print(const struct rbx_crowd *crowd, const struct rbx_wire_record *record,
			     char *text, size_t text_bytes);
/* Servers that were named and may be such a member that was not asked: they were left out, or began
 * anew; and those that have removed the volume. Those are not counted that explain where a member
 * is that is OUT. A list may have left one out by mistake; what a pool does not name any more has
 * gone: UINT32_MAX. */
uint32_t rbx_crowd_absent(const struct rbx_crowd *crowd, const struct rbx_wire_record *record);

#endif
