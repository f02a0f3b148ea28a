/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapping.h - memory of a peer on this host, accessed by memcpy. The caller holds the lock of
 * the qp.
 */
#ifndef SOFT_MAPPING_H
#define SOFT_MAPPING_H

#include "../fabric.h"
#include "frame.h"

struct soft_mappings;
struct soft_qp;

/* None yet. */
int soft_mappings_create(struct soft_mappings **mappings);
void soft_mappings_free(struct soft_mappings *mappings); /* NULL: nothing */

/*
 * Initiator. Carries out the head of a chain while nothing is outstanding, at most `room`
 * requests; returns the first that has to be queued, or NULL.
 */
struct rbx_wr *soft_mapping_carry_out(struct soft_qp *qp, struct rbx_wr *first,
				      uint32_t room);
/* Whether a request can be carried out so; asks for the mapping if not. */
bool soft_mapping_covers(struct soft_qp *qp, const struct rbx_wr *wr,
			 uint32_t length_bytes);
/* Carries out queued requests whose turn has come. */
void soft_mapping_carry_out_queued(struct soft_qp *qp);
/* The peer's answer; body is SOFT_MAP_BYTES from the wire. */
void soft_mapping_answer(struct soft_qp *qp, const struct soft_frame *frame,
			 const uint8_t *body);

/* Initiator. The most descriptors that outstanding answers may bring. */
uint32_t soft_mapping_fds_due(const struct soft_qp *qp);

/* Target. A descriptor for the peer to map, owned by the caller; or -errno. The table of key
 * words goes with it. */
int soft_mapping_offer(struct soft_qp *qp, uint32_t rkey,
		       struct soft_map *map);

#endif
