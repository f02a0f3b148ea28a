/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * oracle.h - what a read may return, according to a plain array.
 *
 * The array has a unit for each 512 bytes of a volume, and each write fills its units with
 * words that name the client, the write and the unit. The promise is weaker than "a read
 * returns the last write": if several writes are outstanding together, each word is from one
 * of them, and so is what a read returns that is outstanding with them. So a unit keeps the
 * writes that may still be found in it. A write that has succeeded supersedes those that had
 * completed before it was submitted; later reads must not find these. A discard is a write of
 * zeros.
 *
 * The order is that of calls and callbacks, counted.
 */
#ifndef RBX_SIM_ORACLE_H
#define RBX_SIM_ORACLE_H

#include "core/port.h"

#define RBX_SIM_UNIT_BYTES 512u

struct rbx_sim_oracle;

struct rbx_sim_oracle *rbx_sim_oracle_make(uint32_t client, uint64_t size_bytes);
void rbx_sim_oracle_free(struct rbx_sim_oracle *oracle);

/* The next position in the order of all events. */
uint64_t rbx_sim_oracle_moment(struct rbx_sim_oracle *oracle);

/* Before a submit: fills the buffer, returns the number of the write. */
uint32_t rbx_sim_oracle_write(struct rbx_sim_oracle *oracle, uint64_t offset,
			      void *buf, uint32_t length_bytes);
/* Before a discard: as a write of zeros. */
uint32_t rbx_sim_oracle_discard(struct rbx_sim_oracle *oracle, uint64_t offset,
				uint64_t length_bytes);
/* After its completion. A failed write may be there or not. */
void rbx_sim_oracle_written(struct rbx_sim_oracle *oracle, uint64_t offset,
			    uint64_t length_bytes, uint32_t number,
			    int32_t status);
/* After the completion of a read that was submitted at a moment. Ends the run if it returned
 * something that is not allowed. */
void rbx_sim_oracle_read(struct rbx_sim_oracle *oracle, uint64_t offset,
			 const void *buf, uint32_t length_bytes,
			 uint64_t submitted);
/* Whether a unit may hold this after a write: words of that write, or of one that had not completed
 * when it was submitted. */
bool rbx_sim_oracle_may_follow(const struct rbx_sim_oracle *oracle, uint64_t offset,
			       const void *unit, uint32_t number);
/* Whether a write to a part of this has succeeded. */
bool rbx_sim_oracle_has_writes(const struct rbx_sim_oracle *oracle, uint64_t offset,
			       uint64_t length_bytes);
/* No outstanding read was submitted before this moment. */
void rbx_sim_oracle_forget(struct rbx_sim_oracle *oracle, uint64_t before);

#endif
