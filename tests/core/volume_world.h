/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_world.h - a whole world for core/volume in one thread: memory servers,
 * a network that delays, reorders and fails, a host that does what it is told,
 * and a judge.
 *
 * Parts that are sent lie in a heap until world_step() picks one at random and
 * carries it out. A server is an array of areas that are lent, zeroed, checked
 * by a key at every access, and given back. The judge knows all writes
 * (history.h) and looks at every read.
 */
#ifndef RBX_TEST_VOLUME_WORLD_H
#define RBX_TEST_VOLUME_WORLD_H

#include "core/checksum.h"
#include "core/volume.h"
#include "tests/core/history.h"

#define WORLD_SERVERS_MAX 6u
#define WORLD_AREAS 8u
#define WORLD_PIECES 48u
#define WORLD_SLAB_BYTES RBX_SLAB_BYTES_MIN
#define WORLD_CELL_BYTES 8192u

struct world_server {
	bool down;
	bool full; /* lends nothing more */
	uint32_t lends_count; /* ever */
	uint32_t keys[WORLD_AREAS]; /* 0: not lent */
	uint64_t free_bytes;
	uint8_t *memory;
};

/* What the host knows of a piece. */
struct world_piece {
	struct rbx_piece *piece;
	bool busy;
	bool copying;
	uint32_t write_number;
	uint64_t offset;
	uint64_t *floors;
	uint8_t *buf;
};

struct world_options {
	uint64_t seed;
	uint32_t slabs;
	uint32_t replicas;
	uint32_t servers;
	bool checksums;
	uint32_t cell_bytes; /* 0: WORLD_CELL_BYTES */
	bool on_demand;
};

struct world {
	struct rbx_random random;
	struct rbx_volume_map *map;
	struct world_server servers[WORLD_SERVERS_MAX];
	uint32_t server_count;
	uint32_t next_key;
	struct world_piece pieces[WORLD_PIECES];
	struct rbx_part *sent[WORLD_PIECES * RBX_SLOTS_MAX];
	uint32_t sent_count;
	struct history history;
	/* Of 1000 parts so many fail with -EREMOTEIO, so many with -EFAULT. */
	uint32_t fail_remote_permille;
	uint32_t fail_local_permille;
	bool fails_before_it_sends; /* the latter */
	/* What was seen. */
	uint64_t ended_count;
	uint64_t failed_count;
	uint64_t failed_local_count;
	uint64_t rebuilt_count;
	uint64_t settled_count; /* records that went back */
	uint64_t revived_count; /* slabs that were placed anew */
	uint64_t mismatch_count;
};

/* How many worlds each property is tried in; a test program's first argument. */
extern uint64_t seeds_count;

void world_open(struct world *world, const struct world_options *options);
/* Lets everything end, checks that nothing is left over, frees all. */
void world_close(struct world *world);

/* Submits a random request of one piece; false: no piece was free. */
bool world_submit_random(struct world *world);
/* The same for this request; length in units within a cell. */
bool world_submit(struct world *world, enum rbx_piece_kind kind,
		  uint64_t offset, uint32_t length);
/* Carries out a random part; false: none was sent. */
bool world_step(struct world *world);
/* Does the next task of a slab; false: there was none, or nobody lends. */
bool world_tend(struct world *world, uint32_t slab);
/* Steps and tends until nothing moves. */
void world_settle(struct world *world);
void world_server_down(struct world *world, uint32_t server);
void world_evict(struct world *world, uint32_t slab, uint32_t slot);
void world_discard(struct world *world, uint32_t slab);
uint32_t world_server_add(struct world *world);
/* So many random things: requests, steps, tasks, and evictions. */
void world_live(struct world *world, uint32_t steps, uint32_t evict_permille);

/* The memory of a replica. */
uint8_t *world_replica(struct world *world, const struct rbx_slab *slab,
		       uint32_t slot);
/* How many slabs have all of their replicas. */
uint32_t world_whole_count(const struct world *world);
/* Fails the test unless all live replicas are the same and every unit of the
 * volume reads as it may. To be called when settled. */
void world_judge(struct world *world);

#endif
