/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * acceptor.h - a server's part in the membership of a volume: what it has promised, and
 * what it has accepted. See membership.h.
 *
 * A promise shuts out each writer of an older epoch, so the host ends the keys and queue pairs
 * of the one before, and only then says that it has promised.
 */
#ifndef RBX_ACCEPTOR_H
#define RBX_ACCEPTOR_H

#include "core/membership.h"

/* Epochs and versions grow by one. One that is far above all that a server has heard is a mistake,
 * and accepting it would use up the numbers: nobody could open the volume after it. */
#define RBX_MEMBERSHIP_STEP_MAX (1ull << 32)

struct rbx_acceptor {
	uint64_t promised_epoch; /* 0: none yet */
	struct rbx_membership membership; /* that was accepted last */
};

/* A client wants to write in this epoch. False: a writer of this or a later epoch is there, or
 * it is out of reach. */
static inline bool rbx_acceptor_promise(struct rbx_acceptor *acceptor, uint64_t epoch)
{
	if (epoch <= acceptor->promised_epoch ||
	    epoch - acceptor->promised_epoch > RBX_MEMBERSHIP_STEP_MAX)
		return false;
	acceptor->promised_epoch = epoch;
	return true;
}

/* A writer changes the membership. False: its epoch is not the one that was promised, or its
 * version is out of reach. One that is not newer comes late, and changes nothing. */
static inline bool rbx_acceptor_accept(struct rbx_acceptor *acceptor,
				       const struct rbx_membership *membership)
{
	if (membership->epoch != acceptor->promised_epoch ||
	    membership->version > acceptor->membership.version + RBX_MEMBERSHIP_STEP_MAX)
		return false;
	if (rbx_membership_is_newer(membership, &acceptor->membership))
		acceptor->membership = *membership;
	return true;
}

#endif
