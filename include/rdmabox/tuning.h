/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tuning.h - what this device likes.
 *
 * What rdmabox-tune(1) is made of, for programs that tune themselves.
 */
#ifndef RDMABOX_TUNING_H
#define RDMABOX_TUNING_H

#include <rdmabox/rdmabox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_buffer_cost {
	uint64_t bytes;
	/* Medians. */
	uint64_t copy_ns;
	uint64_t register_ns;
	uint64_t deregister_ns;
	/* Half the distance between the quartiles of each. */
	uint64_t copy_spread_ns;
	uint64_t register_spread_ns;
	uint64_t deregister_spread_ns;
};

#define RBX_BUFFER_COST_BYTES_MAX (64u << 20)
#define RBX_BUFFER_COST_ROUNDS_MAX 101u
#define RBX_BUFFER_COST_POINTS_MAX 32u

/**
 * rbx_buffer_cost_measure() - what it costs to copy a buffer, and to register it.
 * @bytes: its length, at most RBX_BUFFER_COST_BYTES_MAX.
 * @rounds: how often it is tried, at most RBX_BUFFER_COST_ROUNDS_MAX.
 *
 * Returns 0, -EINVAL, -ENOMEM where the memory cannot be had or pinned. Blocks.
 */
int rbx_buffer_cost_measure(struct rbx_context *ctx, size_t bytes,
			    uint32_t rounds, struct rbx_buffer_cost *cost);

/**
 * rbx_buffer_cost_break_even() - the length from which on registering and
 * deregistering cost less than copying.
 * @costs: by rising length; at most RBX_BUFFER_COST_POINTS_MAX are looked at.
 *
 * Returns UINT64_MAX where copying is cheaper as far as was measured.
 */
uint64_t rbx_buffer_cost_break_even(const struct rbx_buffer_cost costs[],
				    unsigned int count);

struct rbx_tuning {
	size_t size_bytes; /* of this struct */
	uint64_t break_even_bytes; /* for buffers=auto; UINT64_MAX: copy all;
				      0: not known */
	uint32_t queue_pairs; /* to each peer; 0: not known */
};

/**
 * rbx_tuning_save() - writes what was found out about the context's device.
 * @path: of the tuning file; NULL or "": the default one, see tune_file.
 *
 * What is not known, and what the file says of other devices, stays. The file is
 * replaced as a whole. Returns 0, -EINVAL where there is a file that is
 * something else, or another -errno.
 */
int rbx_tuning_save(struct rbx_context *ctx, const char *path,
		    const struct rbx_tuning *tuning);

#ifdef __cplusplus
}
#endif

#endif
