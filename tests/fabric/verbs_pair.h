/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_pair.h - an RDMA device with a listener, and both ends of a connection.
 *
 * For tests of what only an RDMA device can show. They need a device whose
 * address is RBX_TEST_ADDRESS ("10.9.0.1:0"); both ends of each connection are on
 * it. Without one all tests are skipped.
 */
#ifndef TEST_VERBS_PAIR_H
#define TEST_VERBS_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fabric/fabric.h"

#define HANG_MS 60000 /* nothing takes that long, the machine may be slow */
#define DEPTH 16
#define MEMORY_BYTES 65536

extern const struct rbx_fabric_ops *const ops;
extern char host[64]; /* RBX_TEST_ADDRESS without its port */
extern char error[RBX_ERROR_TEXT_MAX];

/* A device with a listener and both ends of one connection. */
struct pair {
	struct rbx_device *device;
	struct rbx_listener *listener;
	struct rbx_cq *cqs[2]; /* of the client, of the server */
	struct rbx_qp *qps[2];
	struct rbx_mr *mr;
	uint8_t *memory;
};

/* What the accepting thread does. */
struct acceptor {
	struct pair *pair;
	const struct rbx_qp_init *init;
	const void *reply;
	size_t reply_bytes;
	bool refuse;
	uint8_t got[RBX_CONNECT_DATA_MAX];
	size_t got_bytes;
	int err;
};

/* Setup and teardown of a test; the pair is *state, and not connected. */
int pair_make(void **state);
int pair_drop(void **state);
#define with_pair(test) cmocka_unit_test_setup_teardown(test, pair_make, pair_drop)

/* The queues of an end that uses this completion queue. */
struct rbx_qp_init qp_init(struct rbx_cq *cq);

/* Takes the next request; a thread's main, or called. */
void *acceptor_run(void *acceptor);
/* Connects as acceptor and connect say; returns what connect() did. */
int pair_connect_with(struct pair *pair, struct acceptor *acceptor,
		      struct rbx_connect_init *connect);
void pair_connect(struct pair *pair);
void pair_disconnect(struct pair *pair);

/* A scatter entry in the pair's memory. */
struct rbx_sge piece(const struct pair *pair, size_t offset,
		     uint32_t length_bytes);
int post_one(struct rbx_qp *qp, uint8_t opcode, uint8_t flags, uint64_t wr_id,
	     const struct rbx_sge *sge, uint32_t rkey, const void *remote);
void post_receive(const struct pair *pair, struct rbx_qp *qp, uint64_t wr_id,
		  size_t offset, uint32_t length_bytes);

/* Polls until `count` completions are there; a hang fails the test. */
void expect_completions(struct rbx_cq *cq, struct rbx_wc *wcs, int count);
void expect_one(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id,
		int status);
/* `status` is what the fabric promises, `quirk` what Soft-RoCE may make of it. */
void expect_either(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id,
		   int status, int quirk);

/* Runs the tests; the exit code of the program. */
int verbs_test_run(const struct CMUnitTest *tests, size_t count);

#endif
