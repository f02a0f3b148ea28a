/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs_pair.c - see verbs_pair.h. */
#include "verbs_pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct rbx_fabric_ops *const ops = &rbx_fabric_verbs;
char host[64];
char error[RBX_ERROR_TEXT_MAX];

static void fd_wait(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&wait, 1, HANG_MS), 1);
}

void *acceptor_run(void *argument)
{
	struct acceptor *acceptor = argument;
	struct pollfd wait = {
		.fd = acceptor->pair->listener->event_fd,
		.events = POLLIN,
	};
	struct rbx_conn_request *request;

	acceptor->err = -ETIMEDOUT;
	if (poll(&wait, 1, HANG_MS) != 1)
		return NULL;
	acceptor->err = ops->get_request(acceptor->pair->listener, &request);
	if (acceptor->err)
		return NULL;
	acceptor->got_bytes = request->private_data_bytes;
	memcpy(acceptor->got, request->private_data, acceptor->got_bytes);
	if (acceptor->refuse)
		ops->reject(request, acceptor->reply, acceptor->reply_bytes);
	else
		acceptor->err = ops->accept(request, acceptor->init,
					    acceptor->reply,
					    acceptor->reply_bytes,
					    &acceptor->pair->qps[1], NULL);
	return NULL;
}

struct rbx_qp_init qp_init(struct rbx_cq *cq)
{
	return (struct rbx_qp_init){
		.send_cq = cq,
		.recv_cq = cq,
		.send_depth_count = DEPTH,
		.recv_depth_count = DEPTH,
		.max_sge = 2,
		.max_inline_bytes = 64,
	};
}

int pair_connect_with(struct pair *pair, struct acceptor *acceptor,
		      struct rbx_connect_init *connect)
{
	struct rbx_qp_init client = qp_init(pair->cqs[0]);
	struct rbx_qp_init server = qp_init(pair->cqs[1]);
	pthread_t thread;
	int err;

	acceptor->pair = pair;
	acceptor->init = &server;
	connect->address = pair->listener->address;
	connect->timeout_ms = HANG_MS;
	assert_int_equal(pthread_create(&thread, NULL, acceptor_run, acceptor),
			 0);
	err = ops->connect(pair->device, &client, connect, &pair->qps[0],
			   error);
	pthread_join(thread, NULL);
	assert_int_equal(acceptor->err, 0);
	return err;
}

void pair_connect(struct pair *pair)
{
	struct acceptor acceptor = { 0 };
	struct rbx_connect_init connect = { 0 };

	if (pair_connect_with(pair, &acceptor, &connect))
		fail_msg("%s", error);
}

void pair_disconnect(struct pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (pair->qps[i])
			ops->destroy_qp(pair->qps[i]);
		pair->qps[i] = NULL;
	}
}

int pair_make(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	struct rbx_device_options options = { .gid_index = -1 };
	struct rbx_mr_init mr = {
		.length_bytes = MEMORY_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
		.memory_fd = -1,
	};
	char address[RBX_NAME_MAX];
	int i;

	*state = pair;
	snprintf(address, sizeof(address), "%s:0", host);
	pair->memory = aligned_alloc(4096, MEMORY_BYTES);
	mr.addr = pair->memory;
	if (ops->open(&options, &pair->device, error) ||
	    ops->listen(pair->device, address, &pair->listener, error) ||
	    ops->register_memory(pair->device, &mr, 1, &pair->mr, error))
		goto out_say_why;
	for (i = 0; i < 2; i++)
		if (ops->create_cq(pair->device, 4 * DEPTH, &pair->cqs[i],
				   error))
			goto out_say_why;
	return 0;

out_say_why:
	print_error("%s\n", error);
	return -1;
}

int pair_drop(void **state)
{
	struct pair *pair = *state;
	int i;

	pair_disconnect(pair);
	for (i = 0; i < 2; i++)
		ops->destroy_cq(pair->cqs[i]);
	ops->deregister_memory(pair->device, &pair->mr, 1);
	ops->close_listener(pair->listener);
	ops->close(pair->device);
	free(pair->memory);
	free(pair);
	return 0;
}

void expect_completions(struct rbx_cq *cq, struct rbx_wc *wcs, int count)
{
	int got = 0;

	while (got < count) {
		assert_int_equal(ops->arm(cq), 0);
		got += ops->poll(cq, wcs + got, count - got);
		if (got < count) {
			fd_wait(cq->event_fd);
			ops->consume_events(cq);
			got += ops->poll(cq, wcs + got, count - got);
		}
	}
}

struct rbx_sge piece(const struct pair *pair, size_t offset,
		     uint32_t length_bytes)
{
	return (struct rbx_sge){
		.addr = (uintptr_t)pair->memory + offset,
		.length_bytes = length_bytes,
		.lkey = pair->mr->lkey,
	};
}

int post_one(struct rbx_qp *qp, uint8_t opcode, uint8_t flags,
	     uint64_t wr_id, const struct rbx_sge *sge, uint32_t rkey,
	     const void *remote)
{
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = wr_id,
		.sges = sge,
		.sge_count = 1,
		.opcode = opcode,
		.flags = flags,
		.rkey = rkey,
		.remote_addr = (uintptr_t)remote,
	};

	return ops->post_send(qp, &wr, &bad);
}

void post_receive(const struct pair *pair, struct rbx_qp *qp,
		  uint64_t wr_id, size_t offset, uint32_t length_bytes)
{
	const struct rbx_sge buffer = piece(pair, offset, length_bytes);
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = wr_id,
		.sges = &buffer,
		.sge_count = 1,
	};

	assert_int_equal(ops->post_recv(qp, &wr, &bad), 0);
}

void expect_either(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id,
		   int status, int quirk)
{
	struct rbx_wc wc;

	expect_completions(cq, &wc, 1);
	if (wc.status != quirk)
		assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, wr_id);
	assert_ptr_equal(wc.qp, qp);
}

void expect_one(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id,
		int status)
{
	expect_either(cq, qp, wr_id, status, status);
}

int verbs_test_run(const struct CMUnitTest *tests, size_t count)
{
	const char *address = getenv("RBX_TEST_ADDRESS");

	if (!address || ops->probe(error)) {
		printf("skipped: %s\n", address ? error : "no RBX_TEST_ADDRESS");
		return 77; /* meson's word for skipped */
	}
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(address, ":"),
		 address);
	return _cmocka_run_group_tests("verbs", tests, count, NULL, NULL);
}
