/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * storm_io.h - requests to a volume of the scripted host, and what they may end with.
 *
 * Each reads or writes one cell. What is read is held against all that was written
 * (history.h); why a request may fail follows from the harm that was done, of which the
 * test says what there is to know.
 */
#ifndef RBX_TEST_STORM_IO_H
#define RBX_TEST_STORM_IO_H

#include "tests/core/history.h"
#include "tests/core/scripted_host.h"

#define STORM_SLABS_MAX 4u
#define STORM_CELLS (HOST_SLAB_BYTES / HOST_CELL_BYTES)
#define STORM_REQUESTS 14u /* at a time; a slab that is judged needs one more */
#define STORM_FLOORS (HOST_CELL_BYTES / HISTORY_UNIT_BYTES)

struct storm_request {
	bool is_busy, is_read;
	uint32_t slab;
	uint64_t offset; /* in the volume */
	uint32_t number; /* of a write, in the history */
	uint64_t floors[STORM_FLOORS]; /* of a read */
	_Alignas(RBX_PAGE_BYTES) uint8_t buf[HOST_CELL_BYTES];
};

struct storm_io {
	struct host *host;
	struct history history;
	struct storm_request requests[STORM_REQUESTS];
	bool may_be_lost[STORM_SLABS_MAX]; /* harm was done that may cost what is there */
	bool faults_here; /* of this machine */
	bool closes; /* the volume */
};

void storm_io_begin(struct storm_io *io, struct host *host, uint64_t size_bytes);
void storm_io_end(struct storm_io *io);

/* Starts one, unless too many are outstanding. */
void storm_io_start(struct storm_io *io, bool is_read, uint32_t slab,
		    uint32_t cell);
/* Holds those that have ended against the history. */
void storm_io_reap(struct storm_io *io);
/* How many are outstanding, in all and of those that read or write a slab. */
uint32_t storm_io_busy(const struct storm_io *io);
bool storm_io_is_busy_at(const struct storm_io *io, uint32_t slab);
/* Of a slab in which nothing is outstanding. */
void storm_io_discard(struct storm_io *io, uint32_t slab);
/* Memory of a replica has what a read of the slab may return, where it is good. */
void storm_io_judge(struct storm_io *io, const struct rbx_slab *slab,
		    const uint8_t *memory);

#endif
