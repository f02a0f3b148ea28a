/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cost_core.c - drives the core over a null fabric, for counting its instructions.
 *
 * It does the steps of the user host (lib/) in their order. To a peer: fragments are
 * submitted, combined and planned; then come the completion, and their end. To a volume,
 * around that: pieces come from the pool, are aimed and started by the flow; then the slabs
 * make their next steps, and the pieces go back. There is no device: what is posted is
 * complete at once. The host part is the minimum that the core needs, without a clock. Locks
 * are those of the C library, which are not counted.
 *
 * bench/cost runs it under callgrind, which counts from the entry to the end of round(): the
 * path of one batch from submit to completion.
 *
 * Usage: cost_core peer|volume COUNT read|write adjacent|random
 * COUNT: requests of a batch, 1 to 32
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/flow.h"
#include "core/drive.h"
#include "core/histogram.h"
#include "core/poll_policy.h"

#define ROUNDS 256 /* all alike except for the offsets */
#define BATCH_MAX 32u
#define BLOCK_BYTES 4096u
#define SLAB_BYTES (16u << 20)
#define VOLUME_BYTES ((uint64_t)1 << 30)
#define WINDOW_BYTES (4u << 20)
#define RTT_NS 10000u

RBX_STATIC_ASSERT((int)RBX_PIECE_READ == RBX_DIRECTION_READ &&
			  (int)RBX_PIECE_WRITE == RBX_DIRECTION_WRITE,
		  "one number for both");

/* A request of the program. */
struct request {
	struct rbx_fragment fragment; /* to a peer; for a volume see its piece */
	uint64_t offset;
	uint64_t submitted_ns;
	void *buf;
	uint8_t op; /* enum rbx_piece_kind, enum rbx_direction */
};

struct world {
	struct rbx_flow flow;
	struct rbx_flow_counters flow_counters;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_channel channel;
	struct rbx_work works[RBX_SEND_DEPTH];
	struct rbx_poll_policy policy;
	struct rbx_histogram latency;
	uint64_t now_ns;
	uint64_t completed;
	uint32_t posted_last; /* number of the work request posted last */
	bool posted;
};

static char memory[BATCH_MAX * 2 * BLOCK_BYTES];

static struct world world;
/* ---- To a peer and back: lib/peer/send.c, lib/poller/poller.c ---------------------*/

static uint64_t now_ns(void)
{
	return world.now_ns;
}

static uint32_t post(struct rbx_channel *channel, const struct rbx_chain *chain)
{
	(void)channel;
	world.posted_last = chain->first_number + chain->work_count - 1;
	world.posted = true;
	return 0;
}

/* Nothing fails here, and no thread waits for another. */
static void wrong(void)
{
	abort();
}

static void broken(struct rbx_channel *channel)
{
	(void)channel;
	wrong();
}

static void keep(struct rbx_channel *channel, struct rbx_harvest *harvest)
{
	(void)channel, (void)harvest;
	wrong();
}

static void end(struct rbx_channel *channel, struct rbx_fragment *list)
{
	(void)channel, (void)list;
	wrong();
}

static const struct rbx_drive drive = {
	.now_ns = now_ns,
	.post = post,
	.broken = broken,
	.keep = keep,
	.end = end,
	.wake = broken,
};

static void combine(struct rbx_channel *channel)
{
	rbx_drive_combine(&drive, channel);
}

static uint32_t slots_used(void *host)
{
	(void)host;
	return 1;
}

static struct rbx_channel *channel_at(void *host, uint32_t slot)
{
	(void)host, (void)slot;
	return &world.channel;
}

static const struct rbx_drive_channels channels = {
	.slots_used = slots_used,
	.at = channel_at,
	.combine = combine,
};

static void submit_fragments(struct rbx_fragment *first,
			     struct rbx_fragment *last)
{
	if (rbx_channel_submit(&world.channel, first, last))
		combine(&world.channel);
}

static void poll(void)
{
	struct rbx_harvest harvest = { 0 };

	while (world.posted) {
		world.posted = false;
		world.now_ns += RTT_NS;
		rbx_drive_completed(&drive, &world.channel, 0,
				    world.posted_last, 0, world.now_ns,
				    &harvest);
		rbx_harvest_settle(&harvest, &world.window, world.now_ns);
		rbx_drive_done(harvest.done_first);
		harvest = (struct rbx_harvest){ 0 };
		(void)rbx_drive_unpark(&channels, NULL, &world.window.turns);
		(void)rbx_poll_policy_next(&world.policy, 1, world.now_ns);
	}
}

static void request_done(const struct request *request)
{
	rbx_histogram_add(&world.latency,
			  world.now_ns - request->submitted_ns);
	world.completed++;
}

static struct rbx_fragment *fragments_done(struct rbx_fragment *list)
{
	for (; list && list->done == fragments_done;
	     list = rbx_fragment_next(list))
		request_done(RBX_CONTAINER_OF(list, struct request, fragment));
	return list;
}

static void submit_to_peer(struct request *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct request *request = &requests[i];

		request->submitted_ns = world.now_ns;
		request->fragment = (struct rbx_fragment){
			.direction = request->op,
			.remote_addr = request->offset,
			.local_addr = (uintptr_t)request->buf,
			.length_bytes = BLOCK_BYTES,
			.done = fragments_done,
		};
		if (i != 0)
			requests[i - 1].fragment.node.next =
				&request->fragment.node;
	}
	submit_fragments(&requests[0].fragment, &requests[count - 1].fragment);
}

/* ---- To a volume and back: lib/volume/submit.c, lib/join.c -----------------*/

/* What the host makes of one request: a piece that knows its slab. */
static void fill(const struct request *request, struct rbx_piece *piece)
{
	piece->user = (void *)request;
	piece->kind = request->op;
	piece->fragment_flags = 0;
	piece->local_addr = (uintptr_t)request->buf;
	piece->lkey = 0;
	(void)rbx_volume_map_aim(world.flow.map, piece, request->offset,
				 BLOCK_BYTES);
}

static void submit_to_volume(struct request *requests, uint32_t count)
{
	struct rbx_piece_list pieces = { 0 };
	struct rbx_node *node;

	if (rbx_piece_pool_take(&world.flow.pool, count, &pieces))
		abort();
	for (node = pieces.first; node; node = node->next, requests++) {
		requests->submitted_ns = world.now_ns;
		fill(requests, rbx_piece_of(node));
	}
	rbx_flow_start(&world.flow, &pieces);
}

static void flow_submits(struct rbx_flow *flow, uint32_t server,
			 struct rbx_fragment *first, struct rbx_fragment *last)
{
	(void)flow;
	(void)server;
	submit_fragments(first, last);
}

static void flow_ended(struct rbx_flow *flow, struct rbx_piece_list *pieces)
{
	for (struct rbx_node *node = pieces->first; node; node = node->next)
		request_done(rbx_piece_of(node)->user);
	(void)rbx_piece_pool_give(&flow->pool, pieces);
}

/* Nothing fails here; slabs want attention once, because they were borrowed. */
static void flow_ends_later(struct rbx_flow *flow,
			    struct rbx_fragment *fragment)
{
	(void)flow;
	(void)fragment;
	abort();
}

static void flow_wakes(struct rbx_flow *flow)
{
	(void)flow;
}

static const struct rbx_flow_ops flow_ops = {
	.submit = flow_submits,
	.end_later = flow_ends_later,
	.ended = flow_ended,
	.wake = flow_wakes,
};

/* The counted part. Not inlined, so that callgrind finds its beginning. */
__attribute__((noinline)) static void
round_trip(void (*submit)(struct request *requests, uint32_t count),
	   struct request *requests, uint32_t count)
{
	submit(requests, count);
	poll();
}

/* ---- Before and after ------------------------------------------------------*/

static void open_volume(void)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = VOLUME_BYTES,
		.slab_bytes = SLAB_BYTES,
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.replicas = 1,
	};

	rbx_flow_init(&world.flow, &flow_ops, &world.flow_counters);
	rbx_flow_open(&world.flow, &shape,
		      calloc(1, rbx_volume_map_size(&shape)), 1, 1,
		      calloc(1, rbx_flow_pool_size(&shape, BATCH_MAX * 2)),
		      BATCH_MAX * 2);
	for (uint32_t i = 0; i < world.flow.map->slab_count; i++) {
		struct rbx_slab *slab = rbx_slab_at(&world.flow.map->shape, i);
		const struct rbx_loan loan = {
			.slab_id = i,
			.remote_addr = (uint64_t)i << 32,
			.rkey = i,
		};

		rbx_slab_lent(slab, rbx_slab_borrow(slab, 0), &loan,
			      RBX_REPLICA_LIVE);
		(void)rbx_attention_note(&world.flow.map->attention, slab);
	}
}

static void open_channel(void)
{
	const struct rbx_poll_rule rule = {
		.retry_max = RBX_POLL_RETRY_PAPER,
		.batch_max = RBX_POLL_BATCH,
		.event_max = RBX_POLL_EVENT_UNBOUNDED,
	};

	world.planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&world.window, WINDOW_BYTES, 0);
	rbx_channel_init(&world.channel, &world.planner, &world.window);
	rbx_channel_add_ring(&world.channel, world.works, RBX_SEND_DEPTH);
	rbx_poll_policy_init(&world.policy, &rule);
}

static bool is_taken(const struct request *requests, uint32_t count,
		     uint64_t offset)
{
	for (uint32_t i = 0; i < count; i++) {
		if (requests[i].offset == offset)
			return true;
	}
	return false;
}

/* A batch with distinct offsets: neighbours in a row, or anywhere. The buffers are apart, so
 * neighbours need a scatter entry each. */
static void fill_batch(struct rbx_random *random, struct request *requests,
		       uint32_t count, uint8_t op, bool adjacent)
{
	uint32_t blocks = VOLUME_BYTES / BLOCK_BYTES;
	uint32_t at = rbx_random_below(random, blocks / BATCH_MAX) * BATCH_MAX;

	for (uint32_t i = 0; i < count; i++) {
		requests[i] = (struct request){
			.buf = memory + (size_t)i * 2 * BLOCK_BYTES,
			.op = op,
		};
		do
			requests[i].offset = (uint64_t)at++ * BLOCK_BYTES;
		while (is_taken(requests, i, requests[i].offset));
		if (!adjacent)
			at = rbx_random_below(random, blocks);
	}
}

int main(int argc, char **argv)
{
	struct request requests[BATCH_MAX];
	struct rbx_random random;
	uint32_t count = argc == 5 ? (uint32_t)atoi(argv[2]) : 0;
	uint8_t op;

	if (count < 1 || count > BATCH_MAX) {
		fprintf(stderr, "usage: cost_core peer|volume 1..%u read|write adjacent|random\n",
			BATCH_MAX);
		return 2;
	}
	op = strcmp(argv[3], "read") ? RBX_PIECE_WRITE : RBX_PIECE_READ;
	open_volume();
	open_channel();
	rbx_random_seed(&random, 1);
	for (int i = 0; i < ROUNDS; i++) {
		fill_batch(&random, requests, count, op,
			   strcmp(argv[4], "adjacent") == 0);
		round_trip(strcmp(argv[1], "peer") ? submit_to_volume :
						     submit_to_peer,
			   requests, count);
	}
	printf("%llu\n", (unsigned long long)world.completed);
	return world.completed == ROUNDS * (uint64_t)count ? 0 : 1;
}
