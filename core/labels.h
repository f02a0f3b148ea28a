/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labels.h - the labels by which the next client of a named volume finds its slabs: when servers
 * are asked to make one, or to take one back. For loans.c and upkeep_slab.c; what a client finds
 * when it opens the volume is in upkeep.h.
 */
#ifndef RBX_LABELS_H
#define RBX_LABELS_H

#include "core/upkeep_state.h"

/* What was just lent for first writes is to be labelled before it is used. */
void rbx_labels_ask(struct rbx_upkeep *upkeep, const struct rbx_asked *lent,
		    const struct rbx_loan *loan);
/* Does RBX_TASK_LABEL or RBX_TASK_UNLABEL. -EAGAIN: its server does something else; -EBUSY: the
 * label must not be taken back now, as a server of the slab is judged or has FAILED. */
int rbx_labels_task(struct rbx_upkeep *upkeep, struct rbx_slab *slab, enum rbx_slab_task task);
/* Whether what a slab has is to stay where it is: it lacks nothing but what is at servers that have
 * FAILED, which take no label back. */
bool rbx_labels_keep(struct rbx_upkeep *upkeep, struct rbx_slab *slab);
/* A server was asked to label a slab, or to take that back, and has answered. */
void rbx_labels_over(struct rbx_upkeep *upkeep, const struct rbx_asked *asked, int err);

/* What a server says that it has. */
struct rbx_labels_told {
	struct rbx_loan loan;
	uint64_t label;
	bool is_complete;
};

/*
 * A server that has FAILED (held.h) is there again, in another place of the table, and says that
 * it has this slab. If the slab has it from the former place, it is read and written at the new one
 * from now on; it leaves if its label was taken back. What it owes it still owes. 0; -EAGAIN: parts
 * are under way to the former place; -EINVAL: there is no such slab or loan; -EEXIST: its memory
 * was had already. By the thread that makes rounds.
 */
int rbx_labels_again(struct rbx_upkeep *upkeep, uint32_t former, uint32_t server,
		     const struct rbx_labels_told *told);

#endif
