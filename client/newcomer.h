/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * newcomer.h - a server that a named volume takes as a new one (core/membership_change.h).
 *
 *	rbx_newcomer_join()    the server makes the volume, without a record, for the writer
 *	...                    the record in which it is a member is proposed
 *	...                    the server accepts it, before all others (keeper_newcomer.c)
 *
 * Until it has accepted a record, the server forgets the volume when the session ends. So a client
 * that dies on the way leaves nothing there. One that dies later leaves a volume at the new server
 * whose record the others perhaps never saw. If so, the next one to take it in throws that away.
 *
 * A server that is OUT in a record which was chosen keeps the volume: rbx_newcomer_return(). It may
 * have missed writes, so it calls nothing of that complete any more (docs/named-volumes.md, "A server
 * that returns"). If it has nothing, it comes as a new one does.
 */
#ifndef RBX_CLIENT_NEWCOMER_H
#define RBX_CLIENT_NEWCOMER_H

#include "client/named.h"
#include "client/returned.h"

/*
 * The writer of the volume makes a server ready that is no member; its record was accepted by
 * enough of them. A slab is borrowed and given back at once: only that tells that the server would
 * lend one. 0; -EINVAL: it lends slabs of another length; -EEXIST: it has another volume of that
 * name; -EBUSY: another client is about to do the same; -ESTALE: a later client was there; -ENOSPC,
 * -EDQUOT: it has no room for a slab or for a volume, for this owner; -errno; reported. Blocks.
 */
int rbx_newcomer_join(struct rbx_named *named, struct rbx_session *session);

/* The same of a server that is OUT in a record which was chosen, and in the one before. What it has
 * is noted. Errors of rbx_newcomer_join(). */
int rbx_newcomer_return(struct rbx_named *named, struct rbx_session *session,
			struct rbx_returned *returned);
/* One that is OUT in the same way drains, and may wait to hear of it: by its own record it may be
 * needed. It does not return, and what it has stays as it is. Blocks. */
void rbx_newcomer_spare(struct rbx_named *named, struct rbx_session *session);
/*
 * A server of the volume that has FAILED (core/held.h) is there again, with what it had. 0;
 * -ESTALE: another client has opened the volume; -errno; reported. Blocks.
 */
int rbx_newcomer_again(struct rbx_named *named, struct rbx_session *session);

/* It forgets the volume; no other server has accepted the record that names it. Blocks. */
void rbx_newcomer_leave(struct rbx_session *session);

#endif
