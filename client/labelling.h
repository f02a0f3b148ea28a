/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labelling.h - borrows a slab for a named volume, and has it labelled as complete.
 *
 * Two requests follow one another: SLAB_MAP, and then SLAB_COMPLETE. Only after that may the
 * slab be written, and a later client finds it there. In between nobody knows of it but the
 * server, which takes it back if the session ends. So if SLAB_MAP fails another server can be
 * asked. If SLAB_COMPLETE has no answer it is sent again, until there is one or the server is
 * dead.
 */
#ifndef RBX_CLIENT_LABELLING_H
#define RBX_CLIENT_LABELLING_H

#include "client/peer.h"
#include "wire/message.h"

enum rbx_labelling_stage {
	RBX_LABELLING_NONE, /* the ask is for something else */
	RBX_LABELLING_MAP,
	RBX_LABELLING_COMPLETE,
};

struct rbx_labelling {
	enum rbx_labelling_stage stage;
	struct rbx_loan loan; /* COMPLETE: what was lent */
	struct rbx_wire_message message; /* COMPLETE: the request, then its answer */
};

/* A slab is being asked for, with this label; 0: something else is asked. */
static inline void rbx_labelling_begin(struct rbx_labelling *labelling, uint64_t label)
{
	labelling->stage = label ? RBX_LABELLING_MAP : RBX_LABELLING_NONE;
}

/* Goes on after what was asked. Returns -EAGAIN: more is asked, or is to be asked soon; else as
 * answer() of the upkeep. may_wait: the server is not dead, and the volume is not being closed. */
int rbx_labelling_answer(struct rbx_labelling *labelling, struct rbx_peer *peer,
			 struct rbx_ask *ask, bool may_wait, struct rbx_loan *loan);

#endif
