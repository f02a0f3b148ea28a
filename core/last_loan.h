/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * last_loan.h - the epoch of the last loan of a session, as its client knows it.
 *
 * A resume sends that epoch, and the server takes back all that it lent later
 * (wire/PROTOCOL.md, "Resume"). So the epoch must never be too low: slabs in use would be
 * taken. SLAB_LOAN answers two requests, and only one of them lends:
 *
 *	SLAB_MAP    rbx_last_loan_map()    lends; the epoch grows, once all was checked
 *	SLAB_QUERY  rbx_last_loan_query()  tells of a loan of before; the epoch stays
 *
 * Epochs grow with each loan of a server, and answers come in order. An answer that lends
 * with an epoch not above all earlier ones is refused like any other that makes no sense. The
 * epoch stays, so the next resume ends that loan.
 *
 * The owner is a session, which calls both with its lock for calls held.
 */
#ifndef RBX_LAST_LOAN_H
#define RBX_LAST_LOAN_H

#include "core/slab.h"
#include "wire/message.h"

/* Zeroed: nothing was lent. */
struct rbx_last_loan {
	uint64_t epoch; /* 0: none */
};

/* The answer to SLAB_MAP, which asked for so many bytes (wire/terms.h). 0: the loan is
 * ours, and noted. -EPROTO: no such loan can exist, or it does not fit in a volume's tables
 * (loan.h). */
int rbx_last_loan_map(struct rbx_last_loan *last_loan,
		      const struct rbx_wire_message *answer,
		      uint64_t lent_bytes, struct rbx_loan *loan);

/* The answer to SLAB_QUERY of a loan. 0: the loan is unchanged. -ESTALE: it is another one. */
int rbx_last_loan_query(const struct rbx_wire_message *answer,
			const struct rbx_loan *loan);

#endif
