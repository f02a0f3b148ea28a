/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoints.h - two programs in one process that are connected, for tests of endpoints.
 *
 * Each has a context of its own, on the fabrics named by RBX_TEST_FABRIC (soft,
 * soft:tcp, verbs; if it is not set, on both soft ones, and on one of them with a device
 * that wants all memory registered). Listens on RBX_TEST_ADDRESS.
 */
#ifndef RBX_TESTS_ENDPOINTS_H
#define RBX_TESTS_ENDPOINTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/port.h"
#include "include/rdmabox/endpoint.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/context.h"

#define MEMORY_BYTES (1u << 20)

/* One of the two. */
struct side {
	struct rbx_context *ctx;
	struct rbx_queue *queue;
	struct rbx_endpoint *endpoint;
	/*
	 * MEMORY_BYTES of zeros, twice: the device works on one mapping, and the test
	 * looks at the other. What a peer does to memory is ordered by messages, of
	 * which no tool that looks for data races knows.
	 */
	uint8_t *memory, *of_device;
	int memory_fd;
	struct rbx_region *region; /* all of it, with all rights that there are but to
				      invalidate */
	struct rbx_region_key key;
	struct rbx_endpoint_limits limits;
};

struct endpoints {
	struct rbx_endpoint_listener *listener; /* of b */
	struct side a, b;
};

/* What both ends are made with; set by the test before endpoints_open(), and by
 * endpoints_run() to depths of 64 and 4 segments. */
extern struct rbx_endpoint_options endpoint_options;

/* And an option of their contexts, "mode=hybrid" by endpoints_run(). */
extern const char *context_option;

struct rbx_context *context_open(void);
/* What its device does from here on. Nobody else is in a call of the context. */
void device_play(struct rbx_context *ctx, const struct rbx_fabric_ops *ops);
const char *listen_address(void);
void side_open(struct side *side);
void side_close(struct side *side);

/* Opens both, and a listener of b. */
void sides_open(struct endpoints *endpoints);
void sides_close(struct endpoints *endpoints);
/* And connects them. */
void endpoints_open(struct endpoints *endpoints);
void endpoints_close(struct endpoints *endpoints);

/* a connects while b listens, each with options and private data of its own. Returns
 * what rbx_endpoint_connect() does. NULL for b: it is refused with b_data. */
struct meeting {
	struct endpoints *endpoints;
	struct rbx_endpoint_options a_options;
	const struct rbx_endpoint_options *b_options;
	struct rbx_endpoint_data a_data, b_data, answer;
	uint8_t heard[512]; /* by b */
	size_t heard_bytes;
};
int meet(struct meeting *meeting);

struct rbx_segment segment_of(const struct side *side, size_t offset,
			      uint32_t length_bytes);

/* The next completion; fails the test if none comes within 20 s. */
struct rbx_completion next_of(const struct side *side);
/* And it is of that kind, user and status. */
struct rbx_completion expect(const struct side *side,
			     enum rbx_completion_kind kind, uintptr_t user,
			     int status);
/* To the memory of the other side; its user is its kind plus 1. */
struct rbx_operation operation_at(const struct side *there,
				  enum rbx_operation_kind kind, size_t offset);
/* One segment of its memory. */
void receive_at(const struct side *side, size_t offset, uint32_t length_bytes,
		uintptr_t user);
int post_one(const struct side *side, struct rbx_operation operation,
	     size_t offset, uint32_t length_bytes);

int endpoints_run(const struct CMUnitTest *tests, size_t count);

/* Soft-RoCE, the only RDMA device that tests meet, checks the rights of a window and
 * not its bounds, and does not tell user space that a peer has ended a key. */
static inline bool is_soft_roce(void)
{
	const char *fabric = getenv("RBX_TEST_FABRIC");

	return fabric && strcmp(fabric, "verbs") == 0;
}

#endif
