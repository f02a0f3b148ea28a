/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tuning.h - what this device likes.
 *
 * rdmabox-tune(1) is made of these calls; a program can tune itself with them.
 */
#ifndef RDMABOX_TUNING_H
#define RDMABOX_TUNING_H

#include <rdmabox/rdmabox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rbx_buffer_cost {
	uint64_t bytes; /* the length of the buffer */
	uint64_t copy_ns; /* median time of a copy */
	uint64_t register_ns; /* median time of a registration */
	uint64_t deregister_ns; /* median time of its end */
	/* Half the distance between the quartiles of the copies; so for the two below. */
	uint64_t copy_spread_ns;
	uint64_t register_spread_ns; /* of the registrations */
	uint64_t deregister_spread_ns; /* of their ends */
};

#define RBX_BUFFER_COST_BYTES_MAX (64u << 20)
#define RBX_BUFFER_COST_ROUNDS_MAX 101u
#define RBX_BUFFER_COST_POINTS_MAX 32u

/**
 * rbx_buffer_cost_measure() - measures what it costs to copy a buffer, and to register it.
 * @bytes: its length, 1 to RBX_BUFFER_COST_BYTES_MAX
 * @rounds: how often it is tried, 1 to RBX_BUFFER_COST_ROUNDS_MAX
 * @cost: receives medians and spreads
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL or out of range
 *	-ENOMEM: the memory cannot be had or pinned
 *	-ENOSPC: all keys of the soft device are in use
 * Context: any thread; blocks while it measures.
 */
int rbx_buffer_cost_measure(struct rbx_context *ctx, size_t bytes,
			    uint32_t rounds, struct rbx_buffer_cost *cost);

/**
 * rbx_buffer_cost_break_even() - finds from which length on registering costs less than copying.
 * @costs: by rising length
 * @count: at most RBX_BUFFER_COST_POINTS_MAX are looked at
 *
 * Deregistering counts as part of registering. At every length measured above the one that
 * is returned, registering costs less too.
 *
 * Returns bytes, or UINT64_MAX if copying is cheaper as far as was measured.
 * Context: any thread, callbacks too; never blocks.
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
 * rbx_tuning_default_path() - tells where the default tuning file lies, be it there or not.
 * @path: receives the path with its NUL
 * @size_bytes: the room there
 *
 * It is rdmabox/tune.json below $XDG_CONFIG_HOME, or else below $HOME/.config.
 *
 * Returns 0, or:
 *	-EINVAL: an argument is NULL, or there is no home folder
 *	-ENAMETOOLONG: there is not so much room
 * Context: any thread, callbacks too; never blocks.
 */
int rbx_tuning_default_path(char *path, size_t size_bytes);

/**
 * rbx_tuning_save() - writes what was found out about the device of the context.
 * @path: of the tuning file; NULL or "": the one of rbx_tuning_default_path()
 * @tuning: its size_bytes is set before
 *
 * What is not known, and what the file says of other devices, stays. The file is replaced
 * as a whole.
 *
 * Returns 0, or:
 *	-EINVAL: a number is out of range, there is no home folder, or the file that is
 *		there is something else, which is not overwritten
 *	-ENOMEM: memory ran out
 *	-ENOENT: there is no such folder
 *	-EACCES: the process may not write there
 *	-ENOSPC, -EROFS, -EIO: the file cannot be written
 * Context: any thread; blocks for file I/O.
 */
int rbx_tuning_save(struct rbx_context *ctx, const char *path,
		    const struct rbx_tuning *tuning);

#ifdef __cplusplus
}
#endif

#endif
