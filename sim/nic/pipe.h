/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pipe.h - a channel with a bandwidth that bytes pass in order: a direction of PCIe, or of a
 * link.
 *
 * A message enters when its head is there and everything before it has passed. It takes bytes
 * / bandwidth of the pipe's time, and leaves no sooner than its tail came. There is no event
 * in it: the sender knows at once when it will have passed. So messages pass in the order of
 * sending and are not interleaved: a small one waits behind all of a large one.
 */
#ifndef RBX_SIM_NIC_PIPE_H
#define RBX_SIM_NIC_PIPE_H

#include "sim/nic/span.h"

struct rbx_nic_pipe {
	uint32_t mbps;
	uint64_t free_ps; /* when all that has entered will have passed */
	uint64_t messages; /* counters */
	uint64_t bytes;
	uint64_t busy_ps;
};

static inline uint64_t rbx_nic_pipe_ps(const struct rbx_nic_pipe *pipe,
				       uint64_t bytes)
{
	return bytes * 8000000u / pipe->mbps;
}

/* bytes: with all headers; packet_bytes of them are the first, or last, packet. Returns when
 * they have passed. */
static inline struct rbx_nic_span
rbx_nic_pipe_pass(struct rbx_nic_pipe *pipe, struct rbx_nic_span span,
		  uint64_t bytes, uint64_t packet_bytes)
{
	uint64_t begin_ps = RBX_MAX(pipe->free_ps, span.head_ps);
	uint64_t packet_ps =
		rbx_nic_pipe_ps(pipe, RBX_MIN(bytes, packet_bytes));
	uint64_t all_ps = rbx_nic_pipe_ps(pipe, bytes);

	pipe->free_ps = begin_ps + all_ps;
	pipe->messages++;
	pipe->bytes += bytes;
	pipe->busy_ps += all_ps;
	return (struct rbx_nic_span){
		.head_ps = begin_ps + packet_ps,
		.tail_ps = RBX_MAX(pipe->free_ps, span.tail_ps + packet_ps),
	};
}

#endif
