/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_slab.h - what a round does for a slab, and what follows when servers have answered.
 *
 *	upkeep_slab.c     one task of a slab after another; one more replica
 *	upkeep_first.c    its first writes: as many replicas as there are to be
 *
 * A step that cannot be made now says why, and that decides where the slab is parked
 * (attention.h).
 */
#ifndef RBX_UPKEEP_SLAB_H
#define RBX_UPKEEP_SLAB_H

#include "core/upkeep_state.h"

/* The result of a step for a slab. */
enum rbx_slab_outcome {
	RBX_OUTCOME_DONE,
	RBX_OUTCOME_STUCK, /* nothing more can be done for it now */
	RBX_OUTCOME_SHORT, /* too few servers have lent; a record may allow that */
	RBX_OUTCOME_WAITS, /* nothing can be done for it now, for a reason that passes by itself */
	RBX_OUTCOME_LACKS_SERVERS, /* servers to be asked next have not answered yet */
};

/* Does what is needed for a slab at the head of a list. Borrowed memory is copied to when its
 * turn comes. */
void rbx_upkeep_tend(struct rbx_upkeep *upkeep, struct rbx_slab *slab,
		     enum rbx_attention_list list);
/* Nothing is out for it any more. */
void rbx_upkeep_borrowed(struct rbx_upkeep *upkeep, struct rbx_borrowing *borrowing);
/* Gives the host's memory for a slab's lost pages back. */
void rbx_upkeep_pages_free(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Of a step that returned err: -EBUSY: it waits; -EAGAIN: servers are busy. */
enum rbx_slab_outcome rbx_upkeep_outcome(struct rbx_upkeep *upkeep, int err);

/* ---- upkeep_first.c ----------------------------------------------------------------*/

/* The first writes of a blank or dead slab wait: servers are asked. */
enum rbx_slab_outcome rbx_upkeep_lend(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* Nothing is out any more for first writes. One replica is enough for them to begin, unless the
 * record says that there are more. The others are made like lost ones. */
enum rbx_slab_outcome rbx_upkeep_lend_over(struct rbx_upkeep *upkeep,
					   const struct rbx_borrowing *borrowing);
/* Ends first writes that have waited too long, or all when the volume is being closed.
 * Returns when to check again; *more: there was too much for one round. */
uint64_t rbx_upkeep_waits_tick(struct rbx_upkeep *upkeep, bool *more);

#endif
