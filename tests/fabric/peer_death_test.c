/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * peer_death_test.c - a target process is killed in the middle of traffic.
 *
 * All that was posted completes, each once and in order: good ones first, then
 * one that says that the peer is gone, then flushed ones.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

#define DEPTH 32
#define BLOCK_BYTES (16u << 10)
/* Requests that are posted before the kill. */
#define KILL_AFTER 3000

/* What the child tells the test. */
struct lent {
	char address[RBX_NAME_MAX];
	uint64_t addr;
	uint32_t rkey;
};

/* A target in a process of its own, which serves until it is killed. */
static void target_process(int pipe_fd)
{
	struct rbx_device *device = test_device_open();
	const struct rbx_fabric_ops *ops = device->ops;
	static uint8_t memory[1 << 20];
	struct rbx_mr_init mr_init = {
		.addr = memory,
		.length_bytes = sizeof(memory),
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
		.memory_fd = -1,
	};
	struct rbx_qp_init init = {
		.send_depth_count = 16,
		.recv_depth_count = 16,
		.max_sge = 1,
		.served = true,
	};
	struct rbx_listener *listener;
	struct rbx_conn_request *request;
	struct lent lent = { 0 };
	struct rbx_mr *mr;
	struct rbx_cq *cq;
	struct rbx_qp *qp;

	if (ops->register_memory(device, &mr_init, 1, &mr, NULL) ||
	    ops->create_cq(device, 64, &cq, NULL) ||
	    ops->listen(device, test_address(), &listener, NULL))
		_exit(1);
	init.send_cq = init.recv_cq = cq;
	memcpy(lent.address, listener->address, sizeof(lent.address));
	lent.addr = (uintptr_t)memory;
	lent.rkey = mr->rkey;
	if (write(pipe_fd, &lent, sizeof(lent)) != sizeof(lent))
		_exit(1);
	while (ops->get_request(listener, &request))
		usleep(1000);
	if (ops->accept(request, &init, NULL, 0, &qp, NULL))
		_exit(1);
	for (;;)
		pause();
}

struct initiator {
	const struct rbx_fabric_ops *ops;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_qp *qp;
	struct rbx_mr *mr;
	struct lent lent;
	uint8_t memory[DEPTH][BLOCK_BYTES];
	uint64_t posted, completed;
	bool failed;
};

static void initiator_open(struct initiator *initiator, const struct lent *lent)
{
	struct rbx_mr_init mr_init = {
		.addr = initiator->memory,
		.length_bytes = sizeof(initiator->memory),
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	struct rbx_qp_init init = {
		.send_depth_count = DEPTH,
		.recv_depth_count = 4,
		.max_sge = 1,
	};
	struct rbx_connect_init connect = {
		.address = lent->address,
		.timeout_ms = 20000,
	};

	initiator->lent = *lent;
	initiator->device = test_device_open();
	initiator->ops = initiator->device->ops;
	assert_int_equal(initiator->ops->register_memory(
		initiator->device, &mr_init, 1, &initiator->mr, NULL), 0);
	assert_int_equal(initiator->ops->create_cq(initiator->device, 128,
						   &initiator->cq, NULL), 0);
	init.send_cq = init.recv_cq = initiator->cq;
	assert_int_equal(initiator->ops->connect(initiator->device, &init,
						 &connect, &initiator->qp,
						 NULL), 0);
}

static void initiator_close(struct initiator *initiator)
{
	initiator->ops->destroy_qp(initiator->qp);
	initiator->ops->destroy_cq(initiator->cq);
	initiator->ops->deregister_memory(initiator->device, &initiator->mr, 1);
	initiator->ops->close(initiator->device);
}

static void initiator_post(struct initiator *initiator)
{
	struct rbx_sge sge = {
		.addr = (uintptr_t)initiator->memory[initiator->posted % DEPTH],
		.length_bytes = BLOCK_BYTES,
		.lkey = initiator->mr->lkey,
	};
	struct rbx_wr wr = {
		.wr_id = initiator->posted,
		.sges = &sge,
		.sge_count = 1,
		.opcode = initiator->posted % 3 ? RBX_OP_WRITE : RBX_OP_READ,
		.flags = RBX_WR_SIGNALED,
		.rkey = initiator->lent.rkey,
		.remote_addr = initiator->lent.addr,
	}, *bad;

	assert_int_equal(initiator->ops->post_send(initiator->qp, &wr, &bad),
			 0);
	initiator->posted++;
}

static void initiator_poll(struct initiator *initiator)
{
	struct rbx_wc wc;

	if (!initiator->ops->poll(initiator->cq, &wc, 1))
		return;
	assert_int_equal(wc.wr_id, initiator->completed);
	initiator->completed++;
	if (initiator->failed)
		assert_int_equal(wc.status, -ECANCELED);
	else if (wc.status)
		assert_true(wc.status == -EHOSTUNREACH ||
			    wc.status == -ETIMEDOUT);
	initiator->failed |= wc.status != 0;
}

static void killed_peer_fails_all_posted_once(void **state)
{
	static struct initiator initiator;
	uint64_t deadline_ms;
	struct lent lent;
	int ends[2];
	pid_t pid;

	(void)state;
	memset(&initiator, 0, sizeof(initiator));
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid)
		target_process(ends[1]);
	assert_int_equal(read(ends[0], &lent, sizeof(lent)), sizeof(lent));
	initiator_open(&initiator, &lent);
	deadline_ms = test_now_ms() + 60000;
	while (!initiator.failed || initiator.completed != initiator.posted) {
		assert_true(test_now_ms() < deadline_ms);
		if (!initiator.failed &&
		    initiator.posted - initiator.completed < DEPTH)
			initiator_post(&initiator);
		else
			initiator_poll(&initiator);
		if (initiator.posted == KILL_AFTER)
			kill(pid, SIGKILL);
	}
	assert_true(initiator.posted >= KILL_AFTER);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	initiator_close(&initiator);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_peer_fails_all_posted_once),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
