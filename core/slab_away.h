/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_away.h - replicas of a volume without a name whose server is silent, and may be back.
 *
 * A server that has not answered for the peer timeout keeps what it has lent until our lease ends.
 * So a slab that has another copy is used without it meanwhile, as if it were lost. But it is not
 * given back, and what is written meanwhile is noted (docs/architecture.md, "A server that was
 * silent"):
 *
 *	LIVE       nothing else is under way in the slab, and the server is silent
 *	AWAY       takes nothing. What is written is noted as missed, by extents (extents.h)
 *	RETURNED   the server has taken our session up again, and no part is under way that was sent
 *	           before: takes every write. What it has missed is copied to it (slab_rebuild.c);
 *	           if that is nothing, it is LIVE at once
 *
 * A replica that is AWAY does not count as a copy. So the slab is rebuilt elsewhere as soon as
 * without it, and what comes first wins: each replica that is complete elsewhere costs one that is
 * AWAY. If its server is back before that, it is the newcomer that is given up, even if it will be
 * needed as well: what was missed is copied first, as it is less, and a slab that still lacks a
 * replica borrows again. While one is being borrowed the server is not back: that may come from
 * several servers, asked one after another. So a slab never has more replicas that are or become
 * complete than it is to have, but for one that leaves.
 *
 * A replica that is AWAY is LOST, too, if the slab is discarded, if its server wants the memory
 * back, or is given up when half of the lease is over (peer_state.h). It is LOST with the last
 * readable replica if anything was missed. If nothing was, it has all that was acknowledged, and is
 * LIVE at once: requests wait for its server, as for any that has the last copy (last_copies.h).
 *
 * Nor does it count where another replica is placed, but for its own server. If that is back, two
 * replicas of three may share a failure domain then, and one moves (balance.h).
 *
 * A part that was sent before the replica was AWAY may still succeed, but no later write is done
 * over it before that: it holds its granules. If it fails, its write is noted as missed. If a write
 * fails at all, or at some other replica, it is noted as well, whatever has arrived.
 *
 * The word of a slab is all that its replicas have missed that are AWAY or RETURNED. It is emptied
 * when there are none. When the first server of a volume falls silent, the host lends the words of
 * all slabs, until the volume is closed: so no slab has to be lent one, nor to give it back. If it
 * lends none, replicas are lost as if they could not be AWAY.
 *
 * All with the slab's lock held.
 */
#ifndef RBX_SLAB_AWAY_H
#define RBX_SLAB_AWAY_H

#include "core/slab.h"

/* Its server is silent: a replica there is AWAY from now on if it can be, or else lost. Returns
 * whether one was in use. */
bool rbx_slab_server_silent(struct rbx_slab *slab, uint32_t server);
/* Whether a replica of this server is AWAY. */
bool rbx_slab_is_away(const struct rbx_slab *slab, uint32_t server);

/* The server is back: its replica that is AWAY has RETURNED, or is LIVE. 0: it may lack these
 * extents, and is LIVE if they are none; -ENOENT: there is none; -EAGAIN: it is still AWAY, as
 * parts are under way to it, or another replica is being borrowed. */
int rbx_slab_server_back(struct rbx_slab *slab, uint32_t server, uint64_t *missed);

/* A part that was sent to a slot has failed, by no fault of this machine: the replica is lost,
 * unless it is AWAY. */
void rbx_slab_part_lost(struct rbx_slab *slab, uint32_t slot);
/* This range is written, or has failed to be, and may not be the same at all replicas. */
void rbx_slab_missed(struct rbx_slab *slab, uint32_t offset_bytes, uint32_t length_bytes);
/* What those that have RETURNED lack, which is copied to them from here on. */
uint64_t rbx_slab_missed_take(struct rbx_slab *slab);

/* All that is AWAY is lost. */
void rbx_slab_away_lose(struct rbx_slab *slab);
/* The last replica that could be read is lost: those that are AWAY are LIVE again if they have
 * missed nothing, and else they are lost, too. */
void rbx_slab_away_serve(struct rbx_slab *slab);
/* Replicas have become complete: as many that are AWAY are lost as there are too many. */
void rbx_slab_away_replaced(struct rbx_slab *slab);

#endif
