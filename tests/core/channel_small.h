/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * channel_small.h - a channel with one ring and a handful of fragments of a page,
 * for tests that look at single steps. To be included after cmocka.h.
 */
#ifndef RBX_TEST_CHANNEL_SMALL_H
#define RBX_TEST_CHANNEL_SMALL_H

#include <string.h>

#include "core/harvest.h"

#define SMALL_DEPTH 64u
#define SMALL_FRAGMENTS 8

struct small {
	struct rbx_channel channel;
	struct rbx_planner planner;
	struct rbx_window window;
	struct rbx_work works[SMALL_DEPTH];
	struct rbx_fragment fragments[SMALL_FRAGMENTS];
	struct rbx_chain chain;
	struct rbx_harvest harvest; /* of the last completion */
};

/* Neighbours in remote memory, not in local memory. */
static inline void small_setup(struct small *small)
{
	memset(small, 0, sizeof(*small));
	small->planner = (struct rbx_planner){
		.merge = true,
		.chain_max = RBX_CHAIN_MAX,
		.sge_max = RBX_SGE_MAX,
		.message_bytes_max = RBX_MERGE_BYTES_MAX,
		.has_any_lkey = true,
	};
	rbx_window_init(&small->window, 0, 0);
	rbx_channel_init(&small->channel, &small->planner, &small->window);
	rbx_channel_add_ring(&small->channel, small->works, SMALL_DEPTH);
	for (int i = 0; i < SMALL_FRAGMENTS; i++) {
		small->fragments[i].direction = RBX_DIRECTION_WRITE;
		small->fragments[i].remote_addr = (uint64_t)i * RBX_PAGE_BYTES;
		small->fragments[i].local_addr =
			(uint64_t)i * 2 * RBX_PAGE_BYTES;
		small->fragments[i].length_bytes = RBX_PAGE_BYTES;
	}
}

/* Submits fragments from..to as one list; true: combine. */
static inline bool small_submit(struct small *small, int from, int to)
{
	for (int i = from; i < to; i++)
		small->fragments[i].node.next = &small->fragments[i + 1].node;
	return rbx_channel_submit(&small->channel, &small->fragments[from],
				  &small->fragments[to]);
}

static inline bool small_combine(struct small *small)
{
	return rbx_channel_combine(&small->channel, 0, &small->chain);
}

/* The harvest of one completion; its credit goes back to the window. */
static inline void small_complete(struct small *small, uint32_t number,
				  int32_t status)
{
	small->harvest = (struct rbx_harvest){ 0 };
	rbx_channel_complete(&small->channel, 0, number, status, 1,
			     &small->harvest);
	rbx_window_give(&small->window, small->harvest.work_requests,
			small->harvest.bytes);
}

static inline int small_count(const struct rbx_fragment *list)
{
	int count = 0;

	for (; list; list = rbx_fragment_next(list))
		count++;
	return count;
}

static inline void small_halt(struct small *small)
{
	rbx_channel_set_state(&small->channel, RBX_CHANNEL_HALTED);
}

/* As after a repair of the connection: what is to be sent again goes out. */
static inline void small_reopen(struct small *small, struct rbx_fragment *again)
{
	assert_true(rbx_channel_seize(&small->channel));
	assert_null(rbx_channel_send_again(&small->channel, again));
	rbx_channel_set_state(&small->channel, RBX_CHANNEL_OPEN);
}

static inline void small_expect_at_rest(const struct small *small)
{
	assert_true(rbx_channel_idle(&small->channel));
	assert_int_equal(rbx_window_in_flight_bytes(&small->window), 0);
	assert_int_equal(rbx_window_in_flight_work_requests(&small->window), 0);
}

#endif
