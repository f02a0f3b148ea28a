/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost_upkeep.c - drives the upkeep of a volume over a null host, for counting its
 * instructions.
 *
 * An event is a server that wants one slab back: memory is borrowed from another server, the
 * slab's only cell is copied, and the old memory is given back. Servers fulfil each request
 * at once, and what is sent is done at once. bench/cost runs it under callgrind for volumes
 * of different sizes: the figure must not grow.
 *
 * With `loss` a volume with two replicas loses one of 16 servers. Rounds look for what it had, and
 * slabs are rebuilt. It prints how many slabs were looked at, how many of them had lost a replica
 * and were rebuilt, and how many requests to servers that took. A small volume is lost again and
 * again. Of a large one only the first slabs were written, and the rounds are counted that look at
 * half of these: 8 slabs for each that is rebuilt, as in all sizes.
 *
 * If callgrind is told so (--instr-atstart=no), what comes before the counted part is quick.
 *
 * With `memory` it prints how many bytes of client memory a slab with two replicas takes in a
 * volume of a million slabs without checksums.
 *
 * Usage: cost_upkeep SLABS|loss SLABS|memory
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "core/asks.h"
#include "core/loans.h"
#include "core/upkeep_servers.h"

#define EVENTS 256 /* as ROUNDS of bench/cost */
/* Each lends at most as many slabs as a server may, even for the largest volume. */
#define SERVERS (2 * RBX_SLABS_MAX / RBX_LENT_SLABS_MAX)
#define PIECE_ROOM 8192 /* for one piece, and for a pool of one */
/* Of `loss`. */
#define LOSS_SERVERS 16u
#define LOSS_REPLICAS 2u
#define LOSS_WRITTEN_MAX 65536u
#define LOSS_ROUNDS_MAX (LOSS_WRITTEN_MAX / 2 / RBX_UPKEEP_LOOKS_MAX)
#define LOSS_REBUILDS_MIN 1024u /* of as many volumes as that takes */

static struct rbx_flow flow;
static struct rbx_flow_counters counters;
static struct rbx_upkeep upkeep;
static struct rbx_fragment *sent_first, *sent_last;
static uint64_t last_epoch;
static uint32_t lent_counts[SERVERS];
static bool woken, slabs_follow_each_other;

static void submit(struct rbx_flow *of, uint32_t server,
		   struct rbx_fragment *first, struct rbx_fragment *last)
{
	(void)of;
	(void)server;
	rbx_fragment_append(&sent_first, &sent_last, first, last);
}

static void end_later(struct rbx_flow *of, struct rbx_fragment *fragment)
{
	(void)of;
	fragment->done(fragment);
}

static void ended(struct rbx_flow *of, struct rbx_piece_list *pieces)
{
	(void)of;
	(void)pieces;
}

static void wake(struct rbx_flow *of)
{
	(void)of;
	woken = true;
}

static const struct rbx_flow_ops flow_ops = {
	.submit = submit,
	.end_later = end_later,
	.ended = ended,
	.wake = wake,
};

static enum rbx_call_kind kinds[SERVERS]; /* what each server is asked */
static uint32_t asks_count;

static void ask(struct rbx_upkeep *of, uint32_t server, enum rbx_call_kind kind,
		const struct rbx_loan *loan, uint64_t label)
{
	(void)of;
	(void)loan;
	(void)label;
	kinds[server] = kind;
	asks_count++;
}

/* Of `loss`: slabs of a server follow each other, as they do in its memory file. */
static uint64_t address_of(uint32_t server)
{
	return slabs_follow_each_other ?
		       (server + 1ull) << 44 |
			       (uint64_t)lent_counts[server] * RBX_SLAB_BYTES_MIN :
		       last_epoch << 20;
}

static int answer(struct rbx_upkeep *of, uint32_t server,
		  struct rbx_loan *loan)
{
	(void)of;
	if (kinds[server] != RBX_CALL_MAP)
		return 0;
	last_epoch++;
	*loan = (struct rbx_loan){
		.slab_id = ++lent_counts[server],
		.epoch = last_epoch,
		.remote_addr = address_of(server),
		.rkey = (uint32_t)last_epoch,
	};
	return 0;
}

static void refused(struct rbx_upkeep *of)
{
	(void)of;
}

/* The server that was asked has answered. */
static int answers_wait(struct rbx_upkeep *of)
{
	(void)of;
	abort();
}

static uint64_t free_bytes(struct rbx_upkeep *of, uint32_t server)
{
	(void)of;
	(void)server;
	return UINT64_MAX;
}

static void tell(struct rbx_upkeep *of, enum rbx_news news, uint32_t count,
		 uint32_t server, int err)
{
	(void)of;
	(void)news;
	(void)count;
	(void)server;
	(void)err;
}

/* No slab is lost here. */
static void *memory_lend(struct rbx_upkeep *of, size_t size)
{
	(void)of;
	(void)size;
	return NULL;
}

static void memory_take_back(struct rbx_upkeep *of, void *memory)
{
	(void)of;
	(void)memory;
}

static const struct rbx_upkeep_ops upkeep_ops = {
	.ask = ask,
	.answer = answer,
	.refused = refused,
	.wait = answers_wait,
	.memory_lend = memory_lend,
	.memory_take_back = memory_take_back,
	.free_bytes = free_bytes,
	.tell = tell,
};

/* What was sent is done, and a round follows. */
static void step(void)
{
	struct rbx_fragment *sent = sent_first;

	sent_first = NULL;
	woken = false;
	if (sent)
		sent->done(sent);
	(void)rbx_upkeep_round(&upkeep, 1);
}

static void settle(void)
{
	while (woken || sent_first)
		step();
}

/* The counted part. Not inlined, so that callgrind finds its beginning. */
__attribute__((noinline)) static void
round_trip(uint32_t server, const struct rbx_eviction *eviction)
{
	rbx_upkeep_evict(&upkeep, server, eviction);
	settle();
}

/* on_demand: without memory. */
static void open_volume(uint32_t slabs, uint32_t replicas, uint32_t servers, bool on_demand)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = (uint64_t)slabs * RBX_SLAB_BYTES_MIN,
		.slab_bytes = RBX_SLAB_BYTES_MIN,
		.fragment_bytes = RBX_SLAB_BYTES_MIN,
		.replicas = replicas,
		.on_demand = on_demand,
	};

	memset(lent_counts, 0, sizeof(lent_counts));
	rbx_flow_init(&flow, &flow_ops, &counters);
	rbx_upkeep_init(&upkeep, &flow, &upkeep_ops, 1000000000);
	rbx_flow_open(&flow, &shape, calloc(1, rbx_volume_map_size(&shape)), 1,
		      servers, calloc(1, PIECE_ROOM), 1);
	for (uint32_t i = 0; i < RBX_COPIES_MAX; i++)
		rbx_rebuild_lend(&flow, i, calloc(1, PIECE_ROOM), 0);
	if (rbx_upkeep_borrow_all(&upkeep))
		abort();
	woken = true;
	settle();
}

/* ---- One of 16 servers is lost --------------------------------------------------------------- */

static uint32_t lacking_count(void)
{
	return rbx_upkeep_lacking(&flow.map->attention);
}

static void slab_write(struct rbx_slab *slab)
{
	struct rbx_server_set others = { 0 };

	slab->blank = false;
	for (uint32_t i = 0; i < LOSS_REPLICAS; i++) {
		uint32_t server = (uint32_t)rbx_asks_draw(&upkeep, &others);

		rbx_server_set_add(&others, server);
		(void)rbx_loans_ask(&upkeep, slab, server);
		(void)rbx_loans_take(&upkeep);
	}
}

/* Rounds look for what the server had; copies take longer than that. */
static void rounds_look(uint32_t rounds_max)
{
	do {
		woken = false;
		(void)rbx_upkeep_round(&upkeep, 1);
	} while ((upkeep.lost.is_on || upkeep.any_went_down) && --rounds_max);
}

/* Counted. */
__attribute__((noinline)) static void loss_begins(void)
{
	rbx_upkeep_server_down(&upkeep, 0);
	rounds_look(LOSS_ROUNDS_MAX);
}

/* Counted. */
__attribute__((noinline)) static void loss_is_healed(uint32_t until_lacking)
{
	while (lacking_count() > until_lacking)
		step();
}

static int lose(uint32_t slabs)
{
	uint32_t looked = 0, rebuilt = 0, asked = 0, lost, lacking;
	bool is_large = slabs > LOSS_WRITTEN_MAX;

	slabs_follow_each_other = true;
	do {
		open_volume(slabs, LOSS_REPLICAS, LOSS_SERVERS, true);
		for (uint32_t i = 0; i < RBX_MIN(slabs, LOSS_WRITTEN_MAX); i++)
			slab_write(rbx_slab_at(&flow.map->shape, i));
		asks_count = 0;
		CALLGRIND_START_INSTRUMENTATION;
		loss_begins();
		if (is_large) /* each stop costs a second of valgrind */
			CALLGRIND_STOP_INSTRUMENTATION;
		looked += RBX_MIN(slabs, LOSS_ROUNDS_MAX * RBX_UPKEEP_LOOKS_MAX);
		lost = lacking_count();
		rounds_look(UINT32_MAX);
		lacking = lacking_count();
		CALLGRIND_START_INSTRUMENTATION;
		loss_is_healed(lacking - lost);
		rebuilt += lost;
		asked += asks_count;
	} while (rebuilt < LOSS_REBUILDS_MIN);
	printf("%u %u %u\n", looked, rebuilt, asked);
	return 0;
}

/* ---- Memory ----------------------------------------------------------------------------- */

static size_t map_size(uint32_t slabs)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = (uint64_t)slabs * RBX_SLAB_BYTES_MIN,
		.slab_bytes = RBX_SLAB_BYTES_MIN,
		.fragment_bytes = RBX_SLAB_BYTES_MIN,
		.replicas = 2,
	};

	return rbx_volume_map_size(&shape);
}

/* Without what a volume takes for any number of slabs. */
static size_t slab_bytes(void)
{
	uint32_t slabs = 1u << 20;

	return (map_size(2 * slabs) - map_size(slabs) + slabs - 1) / slabs;
}

static int evict(uint32_t slabs)
{
	struct rbx_census census;

	open_volume(slabs, 1, SERVERS, false);
	CALLGRIND_START_INSTRUMENTATION; /* not for a million slabs that are borrowed */
	for (uint32_t i = 0; i < EVENTS; i++) {
		const struct rbx_replica *replica = rbx_slab_replica(
			rbx_slab_at(&flow.map->shape, slabs / EVENTS * i), 0);
		const struct rbx_eviction eviction = {
			.slab_id = replica->slab_id,
			.epoch = replica->epoch,
			.until_ns = i,
		};

		round_trip(rbx_replica_server(replica), &eviction);
	}
	rbx_upkeep_census(&upkeep, &census);
	printf("%u\n", census.whole);
	return census.whole == slabs && last_epoch == slabs + EVENTS ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint32_t slabs = argc > 1 ? (uint32_t)atoi(argv[argc - 1]) : 0;

	if (argc == 2 && strcmp(argv[1], "memory") == 0) {
		printf("%zu\n", slab_bytes());
		return 0;
	}
	if (argc == 2 && slabs >= EVENTS && slabs <= RBX_SLABS_MAX)
		return evict(slabs);
	if (argc == 3 && strcmp(argv[1], "loss") == 0 && slabs >= LOSS_SERVERS &&
	    slabs <= RBX_SLABS_MAX)
		return lose(slabs);
	fprintf(stderr, "usage: cost_upkeep %u..%u|loss %u..%u|memory\n", EVENTS, RBX_SLABS_MAX,
		LOSS_SERVERS, RBX_SLABS_MAX);
	return 2;
}
