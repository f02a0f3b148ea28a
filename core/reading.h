/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reading.h - what a client that only reads a named volume, beside its writer, may believe.
 *
 * It asks each server again and again for the record and for the labels of its slabs, and reads at
 * servers that are IN and have a slab complete. A write is acknowledged when all of those have it.
 * So a read sees all that was acknowledged until the moment from which on record and labels were
 * asked, if nothing old was believed. These rules see to that:
 *
 * - The record is the newest that the servers of a quorum tell that could open the volume, all of
 *   them asked after that moment. So it is as new as each that was chosen before. It may be one
 *   that was never chosen; that only makes servers OUT, or IN that have nothing complete.
 * - The labels of a server count if they were asked after that record was heard. For a server that
 *   returns calls nothing complete any more before any server accepts the record in which it is
 *   IN: labels that were told before are those of a server that is OUT, and may be old.
 * - A slab was never written by then if no server has it complete. But servers are not asked at
 *   the same moment, and a slab may move from one that was not asked yet to one that was. So none
 *   of these may have lost any slab since a moment before which all of them were asked first, and
 *   until they were asked for their labels after it. And fewer servers may be missing than the
 *   record says copies of each slab: else the others may lack what they have.
 *
 * The host asks, keeps what it hears in these structures, and reads for as long after that moment
 * as it has promised.
 */
#ifndef RBX_READING_H
#define RBX_READING_H

#include "core/membership.h"

/* What was heard of a server. All times are of before it was asked, unless they say otherwise. */
struct rbx_reading_server {
	bool is_there; /* else nothing below counts */
	uint64_t incarnation;
	uint64_t seen_ns; /* each slab that is noted was complete there after this; 0: none is */
	/* No slab has ceased to be complete there from since_ns on, which is of after an answer.
	 * Those are noted that were complete at a moment between the two; all_ns 0: there is
	 * none. */
	uint64_t since_ns, all_ns;
	struct rbx_membership membership; /* without a fault */
	uint32_t copies; /* of the same record */
	bool has_lost; /* the same: it has the flag LOST */
};

struct rbx_reading {
	/* The record that counts; its epoch 0: nothing was heard yet. */
	struct rbx_membership membership;
	uint64_t heard_ns; /* when it was heard first: of after the answer */
	uint64_t at_ns; /* what was acknowledged before is seen; 0: nothing may be read */
	/* The same of slabs that no server has; 0: these may not be read. */
	uint64_t zeros_at_ns;
	/* Servers were given up: a slab that no server has may be lost, and is no zeros
	 * (client/give_up.h). */
	bool has_lost;
};

/* Something was heard of a server of this table, or one has gone. since_ns: labels that were asked
 * before count for nothing. */
void rbx_reading_judge(struct rbx_reading *reading, const struct rbx_reading_server *servers,
		       uint32_t count, uint64_t since_ns, uint64_t now_ns);

/* Until which moment what is noted of a server is the state; 0: nothing there may be read. */
uint64_t rbx_reading_server_at(const struct rbx_reading *reading,
			       const struct rbx_reading_server *server);

/* Whether it has replicas that count, by the record. */
bool rbx_reading_is_in(const struct rbx_reading *reading, const struct rbx_reading_server *server);

/* Whether so many servers that tell that there is no such volume are enough to believe it. */
bool rbx_reading_is_gone(const struct rbx_reading *reading, const struct rbx_member_set *tell);

#endif
