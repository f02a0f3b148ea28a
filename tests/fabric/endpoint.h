/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - two connected ends of whichever fabric is tested.
 *
 * The tests that use it are written against struct rbx_fabric_ops alone. They
 * run on the fabrics named by RBX_TEST_FABRIC (soft, soft:tcp, soft:tls, verbs; when it
 * is not set, on the first two) and listen on RBX_TEST_ADDRESS (host:0).
 */
#ifndef TEST_ENDPOINT_H
#define TEST_ENDPOINT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fabric/fabric.h"

#define TARGET_BYTES (8u << 20)
#define LOCAL_BYTES (8u << 20)

struct test_pair {
	const struct rbx_fabric_ops *ops;
	struct rbx_device *client_device;
	struct rbx_device *server_device;
	struct rbx_listener *listener;
	struct rbx_cq *client_cq;
	struct rbx_cq *server_cq;
	struct rbx_qp *client;
	struct rbx_qp *server;
	bool server_polls; /* its end works only when it is polled */
	/*
	 * The server's memory, backed by a file, open to both directions. The
	 * fabric reaches it at target_memory. The test looks at it through
	 * another mapping: what a peer does to memory is ordered by messages,
	 * of which no tool that looks for data races knows.
	 */
	uint8_t *target_memory;
	uint8_t *target;
	int target_fd;
	struct rbx_mr *target_mr;
	/* The client's, registered for local use. */
	uint8_t *local;
	struct rbx_mr *local_mr;
};

struct test_options {
	uint32_t send_depth_count; /* 0: 64 */
	uint32_t recv_depth_count; /* 0: 16 */
	bool server_polls; /* the server's end is not served */
};

/* The fabric of this run, set by test_run(). */
extern const char *test_fabric;

/*
 * What of it depends on the world that the fabric lives in: endpoint_world.c for
 * this machine, tests/sim/nic_endpoint.c for a simulated one. test_connect(),
 * test_wait() and test_run() below are of it, too.
 */
const struct rbx_fabric_ops *test_ops(void);
struct rbx_device *test_device_open(void);
const char *test_address(void);
struct rbx_conn_request *test_request_wait(struct rbx_listener *listener);

void test_pair_open(struct test_pair *pair, const struct test_options *options);
void test_pair_close(struct test_pair *pair);

/* Connects one more pair of ends, on the queues that `init` names for each. */
void test_connect(struct test_pair *pair, const struct rbx_qp_init *client_init,
		  const struct rbx_qp_init *server_init, struct rbx_qp **client,
		  struct rbx_qp **server);

/* Work requests of one piece. */
struct rbx_wr test_wr(const struct test_pair *pair, uint8_t opcode,
		      struct rbx_sge *sge, uint64_t local_offset,
		      uint64_t target_offset, uint32_t length_bytes);
void test_post(const struct test_pair *pair, struct rbx_wr *first);
void test_post_recv(const struct test_pair *pair, struct rbx_qp *qp,
		    uint64_t wr_id, void *addr, uint32_t length_bytes,
		    uint32_t lkey);
/* The next completion; fails the test if none comes. */
struct rbx_wc test_wait(const struct test_pair *pair, struct rbx_cq *cq);
/* Posts one and waits for it; returns its status. */
int test_do(const struct test_pair *pair, uint8_t opcode, uint64_t local_offset,
	    uint64_t target_offset, uint32_t length_bytes);
/* Asserts that no completion is there. */
void test_nothing(const struct test_pair *pair, struct rbx_cq *cq);

void test_fill(uint8_t *bytes, size_t length_bytes, uint32_t seed);
bool test_is_zero(const uint8_t *bytes, size_t length_bytes);
uint64_t test_now_ms(void);

/* Runs the tests on each fabric; the exit code of the program. */
int test_run(const struct CMUnitTest *tests, size_t count);

#endif
