/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fence.c - waits for earlier operations, and not for later ones.
 *
 * Each operation is counted on one of two sides. A wait makes the other side the current
 * one, and ends when the old side has no operations left. Only one wait runs at a time,
 * so a side is empty before it is used again. An operation that another thread submits at
 * the same moment may count on either side.
 *
 * Looking up the side and counting are two steps, so the side is looked up once more
 * afterwards. All these steps are sequentially consistent: all threads see them in one
 * order. If the side is still the current one, the count comes before the wait that
 * leaves this side, and that wait sees it. If not, the operation would be counted on a
 * side that the next wait does not look at, so it is counted again. A wait that sees the
 * count of the first try looks again later. Each new try needs one more wait.
 */
#include "native.h"

#include <stdlib.h>
#include <time.h>

#define LOOK_NS 100000

struct rbxpy_fence {
	atomic_uint side; /* 0 or 1 */
	atomic_long outstanding[2];
};

struct rbxpy_fence *rbxpy_fence_new(void)
{
	return calloc(1, sizeof(struct rbxpy_fence));
}

void rbxpy_fence_free(struct rbxpy_fence *fence)
{
	free(fence);
}

unsigned int rbxpy_fence_enter(struct rbxpy_fence *fence)
{
	for (;;) {
		unsigned int side = atomic_load(&fence->side);

		atomic_fetch_add(&fence->outstanding[side], 1);
		if (atomic_load(&fence->side) == side)
			return side;
		/* A wait came in between, and may have found this side empty. */
		atomic_fetch_sub(&fence->outstanding[side], 1);
	}
}

void rbxpy_fence_leave(struct rbxpy_fence *fence, unsigned int side)
{
	atomic_fetch_sub(&fence->outstanding[side], 1);
}

long rbxpy_fence_outstanding(struct rbxpy_fence *fence)
{
	return atomic_load(&fence->outstanding[0]) +
	       atomic_load(&fence->outstanding[1]);
}

void rbxpy_fence_wait(struct rbxpy_fence *fence)
{
	unsigned int side = atomic_fetch_xor(&fence->side, 1);
	struct timespec look = { .tv_nsec = LOOK_NS };

	while (atomic_load(&fence->outstanding[side]))
		nanosleep(&look, NULL);
}
