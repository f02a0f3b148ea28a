/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* endpoint_end.h - what the two files of an end share, see endpoint.h. */
#ifndef RBX_SIM_ENDPOINT_END_H
#define RBX_SIM_ENDPOINT_END_H

#include "sim/endpoint.h"
#include "sim/world.h"

#define RBX_SIM_RECEIVES 16u
#define RBX_SIM_CHAIN 6u
/* More than the depth: silent operations are known to have ended when there is room again. */
#define RBX_SIM_OPS 128u
/* No posted operation takes longer, including stalls of a machine. */
#define RBX_SIM_ENDS_NS (20000 * RBX_SIM_MS)
enum rbx_sim_op_kind {
	OP_MESSAGE,
	OP_SCRATCH_WRITE,
	OP_SCRATCH_READ,
	OP_ATOMIC,
	OP_GIFT, /* a WRITE to memory whose key may have ended */
};

struct rbx_sim_op {
	enum rbx_sim_op_kind kind;
	bool is_silent;
	bool must_fail;
	bool has_ended; /* of a paced end: earlier ones may not have ended yet */
	uint32_t number; /* of the message, text or atomic */
	union {
		uint8_t text[RBX_SIM_TEXT_BYTES];
		uint64_t before;
	};
};

struct rbx_sim_receive {
	uint8_t text[RBX_SIM_TEXT_BYTES];
	bool is_posted;
};

/* Memory for the device: operations and receives point into it. */
struct rbx_sim_buffers {
	struct rbx_sim_op ops[RBX_SIM_OPS];
	struct rbx_sim_receive receives[RBX_SIM_RECEIVES];
};

struct rbx_sim_end {
	struct rbx_context *ctx;
	uint32_t side;
	struct rbx_random random;
	struct rbx_endpoint_options options;
	struct rbx_protection_domain *domain;
	struct rbx_region *local, *export, *gift_region; /* export: NULL, ended */
	struct rbx_sim_buffers *buffers;
	struct rbx_sim_exported *exported;
	uint8_t *gift; /* a page */
	uint32_t gift_key;

	struct rbx_endpoint *endpoint;
	uint32_t connection;
	struct rbx_sim_hello other;
	uint32_t first, posted; /* of ops, from the start */
	uint32_t scratches; /* written so far */
	uint32_t messages_most;
	uint64_t heard_at_ns; /* or begun */
	uint64_t full_since_ns; /* since when there is no room to post; 0: there is room */
	bool is_over; /* something has failed */
	bool is_cut_short; /* the device took a part of a chain, and it is not known which */
	bool says_last;
};


static inline struct rbx_sim_stream *
rbx_sim_end_stream(const struct rbx_sim_end *end)
{
	return &rbx_sim_connections[end->connection].streams[end->side];
}

/* Posts a chain of operations that are still to be done, if there is room. */
void rbx_sim_ops_post(struct rbx_sim_end *end);
/* Writes to the gift of the other end. */
void rbx_sim_ops_post_gift(struct rbx_sim_end *end, bool must_fail);
/* An operation has ended. */
void rbx_sim_ops_ended(struct rbx_sim_end *end,
		       const struct rbx_completion *completion);
/* Whether an operation will still be reported. */
bool rbx_sim_ops_wait(const struct rbx_sim_end *end);
/* Nothing more is reported: what is left was silent, and has succeeded. */
void rbx_sim_ops_drained(struct rbx_sim_end *end);

#endif
