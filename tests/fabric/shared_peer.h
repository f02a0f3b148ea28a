/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shared_peer.h - peers by hand of queue pairs that take from one shared receive queue. */
#ifndef RBX_TESTS_SHARED_PEER_H
#define RBX_TESTS_SHARED_PEER_H

#include <poll.h>
#include <unistd.h>

#include "fabric/soft/queue_pair.h"
#include "tests/fabric/bare_socket.h"

#define DEPTH 4

struct world {
	struct test_pair pair;
	struct rbx_srq *srq;
};

static inline void world_open(struct world *world)
{
	struct rbx_srq_init init = { .depth_count = DEPTH };

	test_pair_open(&world->pair, NULL);
	init.cq = world->pair.server_cq;
	assert_int_equal(world->pair.ops->create_srq(world->pair.server_device,
						     &init, &world->srq, NULL),
			 0);
}

static inline void world_close(struct world *world)
{
	world->pair.ops->destroy_srq(world->srq);
	expect_served(&world->pair);
	test_pair_close(&world->pair);
}

/* A hand-made peer of a qp whose receives are shared, as its own may be. */
static inline int peer_connect(struct world *world, uint32_t depth_count,
			       bool shares_receives, bool served, struct rbx_qp **qp)
{
	const struct rbx_fabric_ops *ops = world->pair.ops;
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.send_depth_count = depth_count,
		.shares_receives = shares_receives,
	};
	const struct rbx_qp_init init = {
		.send_cq = world->pair.server_cq,
		.recv_cq = world->pair.server_cq,
		.send_depth_count = 8,
		.max_sge = 1,
		.srq = world->srq,
		.served = served,
	};
	int fd = socket_open(world->pair.listener);

	hello_send(fd, &hello);
	assert_int_equal(ops->accept(test_request_wait(world->pair.listener),
				     &init, NULL, 0, qp, NULL), 0);
	hello_hear(fd, &hello);
	assert_true(hello.shares_receives);
	return fd;
}

static inline int shared_connect(struct world *world, struct rbx_qp **qp)
{
	return peer_connect(world, 8, false, true, qp);
}

static inline int deep_connect(struct world *world, struct rbx_qp **qp)
{
	return peer_connect(world, 2 * SOFT_ASK_MAX, false, true, qp);
}

static inline int sharing_connect(struct world *world, struct rbx_qp **qp)
{
	return peer_connect(world, 8, true, true, qp);
}

/* A long READ, and a message behind it. */
static inline void read_and_message_post(struct world *world, struct rbx_qp *qp)
{
	const struct rbx_sge sge = { (uintptr_t)world->pair.target_memory,
				     TARGET_BYTES, world->pair.target_mr->lkey };
	struct rbx_wr message = { .opcode = RBX_OP_SEND };
	struct rbx_wr read = { .opcode = RBX_OP_READ, .sges = &sge,
			       .sge_count = 1, .next = &message };
	struct rbx_wr *bad;

	assert_int_equal(world->pair.ops->post_send(qp, &read, &bad), 0);
}

static inline void post(struct world *world, uint64_t wr_id)
{
	const struct rbx_sge sge = { (uintptr_t)world->pair.target_memory, PAGE,
				     world->pair.target_mr->lkey };
	struct rbx_recv_wr wr = { .wr_id = wr_id, .sges = &sge, .sge_count = 1 };
	struct rbx_recv_wr *bad;

	assert_int_equal(world->pair.ops->post_srq_recv(world->srq, &wr, &bad), 0);
}

static inline void frame_send(int fd, struct soft_frame frame, size_t payload_bytes)
{
	uint8_t bytes[SOFT_FRAME_BYTES + 64] = { 0 };

	soft_frame_encode(&frame, (struct soft_wire_frame *)bytes);
	send(fd, bytes, SOFT_FRAME_BYTES + payload_bytes, MSG_NOSIGNAL);
}

static inline void ask(int fd, uint32_t credit)
{
	frame_send(fd, (struct soft_frame){ .opcode = SOFT_ASK_CREDIT,
					    .credit = credit }, 0);
}

/* The other way round: credit for messages to this peer. */
static inline void give(int fd, uint32_t credit)
{
	frame_send(fd, (struct soft_frame){ .opcode = SOFT_ACK,
					    .sequence = SOFT_FIRST_SEQUENCE - 1,
					    .credit = credit }, 0);
}

static inline void expect_credit(int fd, uint32_t credit)
{
	uint8_t bytes[SOFT_FRAME_BYTES];
	struct soft_frame frame;

	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_WAITALL),
			 sizeof(bytes));
	assert_null(soft_frame_decode(bytes, &frame));
	assert_int_equal(frame.opcode, SOFT_ACK);
	assert_int_equal(frame.credit, credit);
}

/* Why it was cut off; which is there before anything comes back flushed. */
static inline const char *cut_off_of(struct test_pair *pair, struct rbx_qp *qp)
{
	struct rbx_wr *bad;
	struct rbx_wr wr = { .opcode = RBX_OP_SEND, .flags = RBX_WR_SIGNALED };

	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
	assert_true(test_wait(pair, pair->server_cq).status < 0);
	return qp->cut_off;
}

static inline enum soft_qp_state state_of(struct rbx_qp *base)
{
	struct soft_qp *qp = soft_qp_of(base);
	enum soft_qp_state state;

	soft_qp_lock(qp);
	state = qp->state;
	soft_qp_unlock(qp);
	return state;
}

static inline bool is_readable(int fd, int patience_ms)
{
	struct pollfd readable = { fd, POLLIN, 0 };

	return poll(&readable, 1, patience_ms) == 1;
}

/* A message, perhaps behind more than the socket takes. */
static inline void message_post(struct world *world, struct rbx_qp *qp,
				uint32_t length_bytes)
{
	const struct rbx_sge sge = { (uintptr_t)world->pair.target_memory,
				     length_bytes, world->pair.target_mr->lkey };
	struct rbx_wr message = { .opcode = RBX_OP_SEND, .flags = RBX_WR_SIGNALED };
	struct rbx_wr first = { .opcode = RBX_OP_WRITE, .flags = RBX_WR_SIGNALED,
				.sges = &sge, .sge_count = 1, .next = &message };
	struct rbx_wr *bad;

	assert_int_equal(world->pair.ops->post_send(
				 qp, length_bytes ? &first : &message, &bad), 0);
}

static inline void wait_until_waiting(const struct world *world, uint32_t count)
{
	struct soft_device *device =
		soft_device_of(world->pair.server_device);
	uint64_t deadline_ms = test_now_ms() + 30000;

	while (atomic_load(&device->srq_waiting_count) != count &&
	       test_now_ms() < deadline_ms)
		usleep(1000);
	assert_int_equal(atomic_load(&device->srq_waiting_count), count);
}

#endif
