/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flagged.h - requests with flags, and receives for them, between two ends that have
 * written a little before, so that a mapping, if there is one, is in use.
 */
#ifndef TEST_FLAGGED_H
#define TEST_FLAGGED_H

#include <string.h>

#include "tests/fabric/endpoint.h"

#define RECEIVES_AT (4u << 20) /* in the target's memory */
#define RECEIVE_BYTES 4096u

/* One that has written. */
static inline void open_pair(struct test_pair *pair)
{
	int i;

	test_pair_open(pair, NULL);
	for (i = 0; i < 4; i++)
		assert_int_equal(test_do(pair, RBX_OP_WRITE, 0, 0, 64), 0);
	memset(pair->target, 0, TARGET_BYTES);
	test_fill(pair->local, LOCAL_BYTES, 7);
}

static inline int post_list(struct test_pair *pair, struct rbx_qp *qp,
			    const struct rbx_sge *sges, uint32_t count)
{
	struct rbx_recv_wr wr = { .wr_id = 9, .sges = sges, .sge_count = count };
	struct rbx_recv_wr *bad;

	return pair->ops->post_recv(qp, &wr, &bad);
}

static inline struct rbx_sge at_target(const struct test_pair *pair,
				       uint64_t offset, uint32_t length_bytes)
{
	return (struct rbx_sge){
		.addr = (uintptr_t)pair->target_memory + offset,
		.length_bytes = length_bytes,
		.lkey = pair->target_mr->lkey,
	};
}

static inline void receive_one(struct test_pair *pair)
{
	const struct rbx_sge sge = at_target(pair, RECEIVES_AT, RECEIVE_BYTES);

	assert_int_equal(post_list(pair, pair->server, &sge, 1), 0);
}

/* A work request with flags, posted and done; its status. */
static inline int do_flagged(struct test_pair *pair, uint8_t opcode,
			     uint8_t flags, uint32_t number,
			     uint32_t length_bytes)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, opcode, &sge, 0, 0, length_bytes);

	wr.flags |= flags;
	wr.immediate = number;
	test_post(pair, &wr);
	return test_wait(pair, pair->client_cq).status;
}

#endif
