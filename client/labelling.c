/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labelling.c - see labelling.h.
 */
#include "client/labelling.h"

#include "core/status.h"

static void complete_ask(struct rbx_labelling *labelling, struct rbx_peer *peer,
			 struct rbx_ask *ask)
{
	labelling->message = (struct rbx_wire_message){
		.type = RBX_WIRE_SLAB_COMPLETE,
		.epoch = labelling->loan.epoch,
		.slab_id = labelling->loan.slab_id,
	};
	ask->kind = RBX_CALL_TALK;
	ask->message = &labelling->message;
	rbx_peer_ask(peer, ask);
}

int rbx_labelling_answer(struct rbx_labelling *labelling, struct rbx_peer *peer,
			 struct rbx_ask *ask, bool may_wait, struct rbx_loan *loan)
{
	int err = rbx_peer_answer(peer, ask, loan);

	if (err == -EAGAIN)
		return err;
	if (labelling->stage == RBX_LABELLING_MAP) {
		if (err)
			return err;
		labelling->stage = RBX_LABELLING_COMPLETE;
		labelling->loan = *loan;
		complete_ask(labelling, peer, ask);
		return -EAGAIN;
	}
	if (rbx_status_is_away(err) && may_wait) {
		complete_ask(labelling, peer, ask);
		return -EAGAIN;
	}
	*loan = labelling->loan;
	if (!err || err == -ESTALE || err == -EPERM)
		return err; /* it is ours; or it is gone, and so is its label */
	return -ENODATA;
}
