/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scripted_host.h - a host of a flow and its upkeep that does what a test says,
 * in one thread: servers that lend, refuse, fall silent or die, parts that lie
 * where they were sent until the test lets them be done, news that are noted.
 */
#ifndef RBX_TEST_SCRIPTED_HOST_H
#define RBX_TEST_SCRIPTED_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/extents.h"
#include "core/slab_spare.h"
#include "core/upkeep_state.h"

#define HOST_SERVERS 7u
#define HOST_AREAS 4u /* that a server can lend */
#define HOST_SLAB_BYTES (2 * RBX_SLAB_BYTES_MIN) /* twice as many cells as are copied at a time */
#define HOST_CELL_BYTES 8192u
#define HOST_PIECES 16u
#define HOST_NEWS_MAX 32u
#define HOST_TIMEOUT_NS 4000000000ull

struct host_server {
	bool down; /* all that reaches it fails */
	int refuse; /* lends nothing, with this error */
	int deaf; /* takes nothing back, with this error */
	uint32_t keys[HOST_AREAS]; /* 0: not lent */
	uint64_t epochs[HOST_AREAS]; /* of the last loan of each */
	uint32_t asked_count; /* to lend */
	bool is_slow; /* answers nothing, but is not down */
	bool is_slow_to_label; /* the same, if it is asked to label a slab */
	bool is_slow_to_unlabel; /* the same, if it is asked to take that back */
	bool is_slow_to_end; /* the same, if it is given a slab back */
	int label_err; /* labels nothing, with this error */
	bool labelled[HOST_AREAS];
	bool is_asked; /* and has not answered */
	enum rbx_call_kind kind; /* what it is asked */
	struct rbx_loan loan; /* the same */
	_Alignas(RBX_PAGE_BYTES) uint8_t memory[HOST_AREAS][HOST_SLAB_BYTES];
};

struct host {
	struct rbx_flow flow;
	struct rbx_flow_counters counters;
	struct rbx_upkeep upkeep;
	struct host_server servers[HOST_SERVERS];
	uint64_t now_ns;
	uint64_t due_ns; /* when the last round wanted the next one */
	uint32_t waits_count; /* for answers, of an open */
	uint32_t waits_end_count; /* the wait that a signal ends */
	bool answers_at_wait; /* each server answers once for each wait */
	uint32_t next_key;
	uint64_t next_epoch;
	bool reuses_keys; /* an area has the same key whenever it is lent */
	uint32_t asks_count, asks_max_count; /* of servers, at a time */
	int32_t fails_here; /* what all parts end with, or 0 */
	bool notes_nothing; /* rounds do not have servers note where it is written */

	struct rbx_fragment *sent_first, *sent_last; /* to any server */
	uint32_t submits_count;
	struct rbx_fragment *later_first, *later_last; /* to be ended */
	struct rbx_piece_list ended;
	struct rbx_piece *shown; /* the last one whose checksums the device is to see */
	uint32_t wakes_count;
	bool is_short_of_memory; /* of this machine's, for lost slabs */
	uint32_t memory_count; /* lent for them */

	char news[HOST_NEWS_MAX]; /* a letter each, see host_news */
	uint32_t news_counts[HOST_NEWS_MAX]; /* of what, in the same order */
	int stuck_err;
	int said_err; /* what the last call of a server failed with */
	int refused_err; /* the same, when the upkeep wanted it kept */
	/* Called with each news, to do harm at that moment. */
	void (*harm)(struct host *host, enum rbx_news news);
};

/* Letters of the news, by enum rbx_news: down, started, full, stuck, lost. */
#define HOST_NEWS_LETTERS "DSFTL"

/* A volume of so many slabs on the first servers; nothing is borrowed yet. Of its shape
 * the sizes are set here. */
struct host *host_make_shaped(const struct rbx_volume_shape *wanted,
			      uint32_t slabs, uint32_t servers);
/* The same with all of its memory at once. */
struct host *host_make(uint32_t slabs, uint32_t replicas, uint32_t servers);
/* The same with memory on demand. */
struct host *host_make_on_demand(uint32_t slabs, uint32_t replicas,
				 uint32_t servers);
/* The same with checksums; what is read and written is whole pages. */
struct host *host_make_with_checksums(uint32_t slabs, uint32_t replicas,
				      uint32_t servers);
/* The same with all of its memory at once: one slab, whose first cell is of 7, and each
 * piece has read it. */
struct host *host_make_with_page(uint32_t replicas, uint32_t servers);
/* Abandons, lets all end, takes leave of the servers; no memory of this machine stays
 * lent. */
void host_free(struct host *host);

/* Starts a piece: length bytes at this offset of the volume. */
void host_start(struct host *host, enum rbx_piece_kind kind, uint64_t offset,
		void *buf, uint32_t length);
/* Where the device sees memory of this address. */
uint64_t host_device_addr(const void *memory);
/* How many pieces have ended, all with this status, since it was last asked. */
uint32_t host_ended(struct host *host, int32_t status);
/* What was sent is done, all of it at once, and what was to be ended later has
 * ended; false: there was nothing. */
bool host_poll(struct host *host);
/* One part of what was sent is done, the nth or the last one: with this status unless 0,
 * and then carried out or not. Without any, what was to be ended later has ended; false:
 * there was nothing. */
bool host_poll_one(struct host *host, uint32_t nth, int32_t status,
		   bool is_carried_out);
/* The first part for a slot is done that was sent; or that is of such a piece. */
void host_poll_slot(struct host *host, uint32_t slot, int32_t status,
		    bool is_carried_out);
void host_poll_slot_of(struct host *host, enum rbx_piece_kind kind, uint32_t slot,
		       int32_t status, bool is_carried_out);
/* Servers note where it is to be written, as often as there is something to note. */
void host_note(struct host *host);
/* A round; returns whether it wants another one though nothing happens. */
bool host_round(struct host *host);
/* A second later: polls and makes rounds until nothing moves; returns what the last round said. */
bool host_settle(struct host *host);
void host_server_dies(struct host *host, uint32_t server);
/* The server wants a loan back, at no time. */
void host_evict(struct host *host, uint32_t server, const struct rbx_loan *loan);

struct rbx_census host_census(struct host *host);
/* Writes a cell of this byte to the beginning of the volume; reads it, and it is all
 * that byte. */
void host_write_cell(struct host *host, uint8_t byte);
void host_assert_cell(struct host *host, uint8_t byte);

uint32_t host_lent_count(const struct host *host, uint32_t server);
/* What the server has labelled as complete. */
uint32_t host_labelled_count(const struct host *host, uint32_t server);
/* Whether the server has not revoked it. */
bool host_has_loan(const struct host *host, const struct rbx_replica *replica);
static inline struct rbx_slab *host_slab(struct host *host, uint32_t index)
{
	return rbx_slab_at(&host->flow.map->shape, index);
}

/* The server of the first live replica of a slab wants it back, at no time. */
static inline void host_evict_live(struct host *host, uint32_t slab)
{
	const struct rbx_slab *of = host_slab(host, slab);
	const struct rbx_replica *replica = rbx_slab_replica(
		of, (uint32_t)rbx_slab_find(of, RBX_REPLICA_LIVE));
	const struct rbx_loan loan = rbx_replica_loan(replica);

	host_evict(host, rbx_replica_server(replica), &loan);
}

/* The server that has the replica in a slot. */
static inline uint32_t host_server_of(struct host *host, uint32_t slab,
				      uint32_t slot)
{
	return rbx_replica_server(rbx_slab_replica(host_slab(host, slab), slot));
}

#endif
