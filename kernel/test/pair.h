/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pair.h - a pair of connected endpoints, each with its own domain and memory.
 *
 * The completions of an end are kept in order and taken by next(). A test returns 0 or
 * -errno. CHECK() logs the condition that does not hold.
 */
#ifndef RBX_KERNEL_TEST_PAIR_H
#define RBX_KERNEL_TEST_PAIR_H

#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "kernel/api_endpoint.h"

#define PAIR_DEPTH 64u
#define PAIR_MEMORY_BYTES (4 * PAGE_SIZE)
#define PAIR_WAIT_MS 20000u
#define PAIR_COMPLETIONS 512u /* the most that are kept */

#define CHECK(condition)                                                     \
	do {                                                                 \
		if (!(condition)) {                                          \
			pr_err("rdmabox_endpoint_test: %s:%d: not so: %s\n", \
			       __func__, __LINE__, #condition);              \
			return -EINVAL;                                      \
		}                                                            \
	} while (0)

struct end {
	struct rbx_protection_domain *domain;
	struct rbx_endpoint *endpoint;
	u8 *memory; /* PAIR_MEMORY_BYTES */
	u64 dma;
	struct scatterlist sg; /* of all of it, mapped */

	spinlock_t lock; /* guards what is below */
	struct rbx_completion completions[PAIR_COMPLETIONS];
	u32 told_count, taken_count;
	wait_queue_head_t told;
	/* Called with each completion, before it is kept; or NULL. */
	void (*hook)(struct end *end, const struct rbx_completion *completion);
	int hook_status;
};

struct pair {
	struct end near, far; /* the one that connects, and the one that accepts */
	struct rbx_endpoint_listener *listener;
	const char *address; /* that it listens on */
	struct rbx_endpoint_options options;

	struct work_struct answer;
	bool refuses;
	struct rbx_endpoint_data near_says, far_says;
	u8 heard[256]; /* received by the one that accepts */
	size_t heard_bytes;
	u8 answered[256]; /* received by the one that connects */
	size_t answered_bytes;
	int accept_status;
};

/* Makes both domains, a listener and memory, but no connection. pair_free() undoes it,
 * even after a failure. */
int pair_make(struct pair *pair, const char *address);
void pair_free(struct pair *pair);
/* Connects. pair.options and the private data may be changed before. Returns the result
 * of connect. */
int pair_connect(struct pair *pair);

/* The next completion, within PAIR_WAIT_MS. */
int next(struct end *end, struct rbx_completion *completion);
/* The number of completions that have not been taken. */
u32 end_told(struct end *end);

int post_receive(struct end *end, u32 offset, u32 length);
/* Posts one signaled operation with one range of the memory of an end. */
int post(struct end *end, const struct rbx_operation *operation, u32 offset,
	 u32 length);
/* Posts and takes the next completion, which must be its own; returns its status. */
int post_and_wait(struct end *end, const struct rbx_operation *operation,
		  u32 offset, u32 length);

/* Sets byte i of a range to seed + i. */
void fill(struct end *end, u32 offset, u32 length, u8 seed);
bool is_filled(struct end *end, u32 offset, u32 length, u8 seed);

/* Takes a region for all memory of an end, and exports it. */
int export(struct end *end, u32 rights, struct rbx_region **region,
	   struct rbx_region_key *key);

int test_private_data(struct pair *pair);
int test_refusal(struct pair *pair);
int test_nobody_listens(struct pair *pair);
int test_nobody_answers(struct pair *pair);
int test_bad_options(struct pair *pair);
int test_send(struct pair *pair);
int test_write_read(struct pair *pair);
int test_atomics(struct pair *pair);
int test_chain(struct pair *pair);
int test_bad_posts(struct pair *pair);
int test_too_long(struct pair *pair);
int test_key_ended(struct pair *pair);
int test_key_whose_end_fails(struct pair *pair);
int test_key_released(struct pair *pair);
int test_key_rights(struct pair *pair);
int test_key_of_other_domain(struct pair *pair);
int test_key_invalidated(struct pair *pair);
int test_key_invalidated_without_right(struct pair *pair);
int test_regions_reused(struct pair *pair);
int test_close_under_way(struct pair *pair);
int test_peer_closes_under_way(struct pair *pair);
int test_close_in_callback(struct pair *pair);
int test_domain_in_use(struct pair *pair);
int test_killed_task(struct pair *pair);
int test_paced_neighbours(struct pair *pair);
int test_paced_fence(struct pair *pair);
int test_paced_close_while_waiting(struct pair *pair);
int test_paced_peer_closes_while_waiting(struct pair *pair);
int test_paced_disconnected(struct pair *pair);
int test_paced_in_interrupt(struct pair *pair);

#endif
