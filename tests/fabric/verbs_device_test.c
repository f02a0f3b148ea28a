/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_device_test.c - what only an RDMA device can show: how it is opened,
 * what it refuses and says, and the ends of connections that the device and
 * the connection manager bring about. What every fabric does is in the other
 * tests of this folder.
 *
 * Needs a device whose address is RBX_TEST_ADDRESS ("10.9.0.1:0"); both ends of
 * each connection are on it. Without one all tests are skipped.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/fabric.h"

#define HANG_MS 60000 /* nothing takes that long, the machine may be slow */
#define DEPTH 16
#define MEMORY_BYTES 65536

static const struct rbx_fabric_ops *const ops = &rbx_fabric_verbs;
static char host[64]; /* RBX_TEST_ADDRESS without its port */
static char error[RBX_ERROR_TEXT_MAX];

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
	uint8_t got[RBX_PRIVATE_DATA_MAX];
	size_t got_bytes;
	int err;
};

static void fd_wait(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&wait, 1, HANG_MS), 1);
}

static void *acceptor_run(void *argument)
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

static struct rbx_qp_init qp_init(struct rbx_cq *cq)
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

static int pair_connect_with(struct pair *pair, struct acceptor *acceptor,
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

static void pair_connect(struct pair *pair)
{
	struct acceptor acceptor = { 0 };
	struct rbx_connect_init connect = { 0 };

	if (pair_connect_with(pair, &acceptor, &connect))
		fail_msg("%s", error);
}

static void pair_disconnect(struct pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (pair->qps[i])
			ops->destroy_qp(pair->qps[i]);
		pair->qps[i] = NULL;
	}
}

static int pair_make(void **state)
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

static int pair_drop(void **state)
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

/* Polls until `count` completions are there; a hang fails the test. */
static void expect_completions(struct rbx_cq *cq, struct rbx_wc *wcs, int count)
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

static struct rbx_sge piece(const struct pair *pair, size_t offset,
			    uint32_t length_bytes)
{
	return (struct rbx_sge){
		.addr = (uintptr_t)pair->memory + offset,
		.length_bytes = length_bytes,
		.lkey = pair->mr->lkey,
	};
}

static int post_one(struct rbx_qp *qp, uint8_t opcode, uint8_t flags,
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

static void post_receive(const struct pair *pair, struct rbx_qp *qp,
			 uint64_t wr_id, size_t offset, uint32_t length_bytes)
{
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = wr_id,
		.sge = piece(pair, offset, length_bytes),
	};

	assert_int_equal(ops->post_recv(qp, &wr, &bad), 0);
}

/* `status` is what the fabric promises, `quirk` what Soft-RoCE may make of it. */
static void expect_either(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id,
			  int status, int quirk)
{
	struct rbx_wc wc;

	expect_completions(cq, &wc, 1);
	if (wc.status != quirk)
		assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, wr_id);
	assert_ptr_equal(wc.qp, qp);
}

static void expect_one(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id,
		       int status)
{
	expect_either(cq, qp, wr_id, status, status);
}

static void open_by_default_describes_what_was_chosen(void **state)
{
	struct pair *pair = *state;
	const struct rbx_device_caps *caps = &pair->device->caps;

	print_message("%s; %u sges, %u bytes, %u sends, %u inline, any %d\n",
		      caps->description, caps->max_sge, caps->max_message_bytes,
		      caps->max_send_wr, caps->max_inline_bytes,
		      caps->has_any_lkey);
	assert_non_null(strstr(caps->description, " port 1 gid "));
	assert_non_null(strstr(caps->description, host));
	assert_non_null(strstr(caps->description, "RoCE v2"));
	assert_in_range(caps->max_sge, 2, 1024);
	assert_true(caps->max_message_bytes >= 1 << 20);
	assert_true(caps->max_inline_bytes >= 64);
}

static void open_what_is_not_there_is_refused_by_name(void **state)
{
	struct rbx_device_options options = { .gid_index = -1 };
	struct rbx_device *device;

	(void)state;
	options.device_name = "nosuch0";
	assert_int_equal(ops->open(&options, &device, error), -ENODEV);
	assert_non_null(strstr(error, "nosuch0"));
	options.device_name = "rxe0:x";
	assert_int_equal(ops->open(&options, &device, error), -EINVAL);
	options.device_name = NULL;
	options.gid_index = 200;
	assert_int_equal(ops->open(&options, &device, error), -EINVAL);
	assert_non_null(strstr(error, "200"));
}

static void listen_on_address_of_no_device_is_refused(void **state)
{
	struct pair *pair = *state;
	struct rbx_listener *listener;

	assert_true(ops->listen(pair->device, "198.51.100.1:0", &listener,
				error) < 0);
	assert_non_null(strstr(error, "198.51.100.1"));
	assert_int_equal(ops->listen(pair->device, pair->listener->address,
				     &listener, error), -EADDRINUSE);
}

static void connect_to_loopback_says_no_rdma_device(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init init = qp_init(pair->cqs[0]);
	struct rbx_connect_init connect = {
		.address = "127.0.0.1:7471",
		.timeout_ms = HANG_MS,
	};
	struct rbx_qp *qp;

	assert_true(ops->connect(pair->device, &init, &connect, &qp, error) < 0);
	print_message("%s\n", error);
	assert_non_null(strstr(error, "127.0.0.1:7471"));
}

static void connect_where_nobody_listens_is_refused(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init init = qp_init(pair->cqs[0]);
	struct rbx_connect_init connect = { .timeout_ms = HANG_MS };
	char address[RBX_NAME_MAX];
	struct rbx_qp *qp;

	snprintf(address, sizeof(address), "%s:1", host);
	connect.address = address;
	assert_int_equal(ops->connect(pair->device, &init, &connect, &qp,
				      error), -ECONNREFUSED);
	assert_non_null(strstr(error, address));
}

static void connect_unanswered_times_out(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init init = qp_init(pair->cqs[0]);
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = 500,
	};
	struct rbx_qp *qp;

	assert_int_equal(ops->connect(pair->device, &init, &connect, &qp,
				      error), -ETIMEDOUT);
}

static void connect_private_data_arrives_exactly(void **state)
{
	static const size_t lengths[] = { 0, 1, RBX_PRIVATE_DATA_MAX };
	struct pair *pair = *state;
	uint8_t there[RBX_PRIVATE_DATA_MAX];
	uint8_t back[RBX_PRIVATE_DATA_MAX];
	uint8_t reply[RBX_PRIVATE_DATA_MAX];
	size_t i;

	memset(there, 0x5a, sizeof(there));
	memset(back, 0xa5, sizeof(back));
	for (i = 0; i < 3; i++) {
		struct acceptor acceptor = {
			.reply = back,
			.reply_bytes = lengths[i],
		};
		struct rbx_connect_init connect = {
			.private_data = there,
			.private_data_bytes = lengths[2 - i],
			.reply_data = reply,
			.reply_data_max_bytes = sizeof(reply),
		};

		assert_int_equal(pair_connect_with(pair, &acceptor, &connect),
				 0);
		assert_int_equal(acceptor.got_bytes, lengths[2 - i]);
		assert_memory_equal(acceptor.got, there, lengths[2 - i]);
		assert_int_equal(connect.reply_data_bytes, lengths[i]);
		assert_memory_equal(reply, back, lengths[i]);
		pair_disconnect(pair);
	}
}

static void connect_rejected_brings_the_reason(void **state)
{
	struct pair *pair = *state;
	struct acceptor acceptor = {
		.refuse = true,
		.reply = "full",
		.reply_bytes = 4,
	};
	char reply[8] = "";
	struct rbx_connect_init connect = {
		.reply_data = reply,
		.reply_data_max_bytes = sizeof(reply),
	};

	assert_int_equal(pair_connect_with(pair, &acceptor, &connect),
			 -ECONNREFUSED);
	assert_int_equal(connect.reply_data_bytes, 4);
	assert_memory_equal(reply, "full", 4);
}

static void qp_too_deep_is_made_as_deep_as_possible(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init init = qp_init(pair->cqs[0]);
	struct acceptor acceptor = { .pair = pair };
	struct rbx_qp_init server = qp_init(pair->cqs[1]);
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = HANG_MS,
	};
	pthread_t thread;

	init.send_depth_count = UINT32_MAX;
	init.max_inline_bytes = UINT32_MAX;
	acceptor.init = &server;
	assert_int_equal(pthread_create(&thread, NULL, acceptor_run, &acceptor),
			 0);
	assert_int_equal(ops->connect(pair->device, &init, &connect,
				      &pair->qps[0], error), 0);
	pthread_join(thread, NULL);
	assert_in_range(pair->qps[0]->send_depth_count, 16,
			pair->device->caps.max_send_wr);
	assert_in_range(pair->qps[0]->max_inline_bytes, 64,
			pair->device->caps.max_inline_bytes);
}

static void cq_too_deep_is_refused_with_the_limit(void **state)
{
	struct pair *pair = *state;
	struct rbx_cq *cq;

	assert_int_equal(ops->create_cq(pair->device, UINT32_MAX, &cq, error),
			 -EINVAL);
	assert_non_null(strstr(error, "allows"));
}

static void register_one_bad_of_many_registers_none(void **state)
{
	struct pair *pair = *state;
	struct rbx_mr_init inits[2] = {
		{ .addr = pair->memory, .length_bytes = 4096 },
		{ .addr = (void *)4096, .length_bytes = 4096 },
	};
	struct rbx_mr *mrs[2];

	assert_true(ops->register_memory(pair->device, inits, 2, mrs, error) <
		    0);
	assert_non_null(strstr(error, "4 KiB"));
}

static void post_chain_longer_than_queue_is_cut(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	struct rbx_wr wrs[DEPTH + 1];
	struct rbx_wc wcs[DEPTH];
	struct rbx_wr *bad = NULL;
	int i;

	pair_connect(pair);
	for (i = 0; i <= DEPTH; i++)
		wrs[i] = (struct rbx_wr){
			.next = i < DEPTH ? &wrs[i + 1] : NULL,
			.wr_id = (uint64_t)i,
			.sges = &sge,
			.sge_count = 1,
			.opcode = RBX_OP_WRITE,
			.flags = RBX_WR_SIGNALED,
			.rkey = pair->mr->rkey,
			.remote_addr = (uintptr_t)pair->memory + 4096,
		};
	assert_int_equal(ops->post_send(pair->qps[0], wrs, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wrs[DEPTH]);
	expect_completions(pair->cqs[0], wcs, DEPTH);
	assert_int_equal(wcs[DEPTH - 1].wr_id, DEPTH - 1);
	wrs[1].flags = RBX_WR_INLINE;
	wrs[1].opcode = RBX_OP_READ;
	assert_int_equal(ops->post_send(pair->qps[0], wrs, &bad), -EINVAL);
	assert_ptr_equal(bad, &wrs[1]);
	expect_one(pair->cqs[0], pair->qps[0], 0, 0);
}

/* The failure, then all behind it, on the end that failed and on the other. */
static void wrong_key_fails_the_write_and_ends_both(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);

	pair_connect(pair);
	post_receive(pair, pair->qps[0], 10, 4096, 64);
	post_receive(pair, pair->qps[1], 11, 8192, 64);
	assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE, 0, 1, &sge,
				  pair->mr->rkey + 1, pair->memory), 0);
	expect_one(pair->cqs[0], pair->qps[0], 1, -EACCES);
	expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
	expect_one(pair->cqs[1], pair->qps[1], 11, -ECANCELED);
}

static void wrong_local_key_fails_and_ends_both(void **state)
{
	struct pair *pair = *state;
	struct rbx_sge sge = piece(pair, 0, 8);

	pair_connect(pair);
	post_receive(pair, pair->qps[1], 11, 8192, 64);
	sge.lkey += 1;
	assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE, 0, 1, &sge,
				  pair->mr->rkey, pair->memory), 0);
	expect_either(pair->cqs[0], pair->qps[0], 1, -EFAULT, -ECANCELED);
	expect_one(pair->cqs[1], pair->qps[1], 11, -ECANCELED);
}

static void disconnect_flushes_both_ends_and_what_comes_later(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	int i;

	pair_connect(pair);
	post_receive(pair, pair->qps[0], 10, 4096, 64);
	post_receive(pair, pair->qps[1], 11, 8192, 64);
	ops->disconnect(pair->qps[1]);
	expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
	expect_one(pair->cqs[1], pair->qps[1], 11, -ECANCELED);
	for (i = 0; i < 2; i++) {
		post_receive(pair, pair->qps[i], 20, 4096, 64);
		expect_one(pair->cqs[i], pair->qps[i], 20, -ECANCELED);
		assert_int_equal(post_one(pair->qps[i], RBX_OP_WRITE, 0, 21,
					  &sge, pair->mr->rkey, pair->memory),
				 0);
		expect_one(pair->cqs[i], pair->qps[i], 21, -ECANCELED);
	}
}

/*
 * The acceptor ends the connection while its peer's confirmation may still be
 * on the way, when the connection manager cannot tell the peer yet.
 */
static void disconnect_right_after_accept_reaches_the_peer(void **state)
{
	struct pair *pair = *state;
	int round;

	for (round = 0; round < 20; round++) {
		pair_connect(pair);
		ops->disconnect(pair->qps[1]);
		post_receive(pair, pair->qps[0], 10, 4096, 64);
		expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
		pair_disconnect(pair);
	}
}

static void destroy_right_after_accept_reaches_the_peer(void **state)
{
	struct pair *pair = *state;
	int round;

	for (round = 0; round < 20; round++) {
		pair_connect(pair);
		ops->destroy_qp(pair->qps[1]);
		pair->qps[1] = NULL;
		post_receive(pair, pair->qps[0], 10, 4096, 64);
		expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
		pair_disconnect(pair);
	}
}

static void destroy_drops_the_completions(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	struct rbx_wc wc;
	int round;
	int i;

	for (round = 0; round < 20; round++) {
		pair_connect(pair);
		for (i = 0; i < DEPTH; i++)
			post_receive(pair, pair->qps[0], 77, 4096, 64);
		assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE,
					  RBX_WR_SIGNALED, 78, &sge,
					  pair->mr->rkey, pair->memory), 0);
		ops->disconnect(pair->qps[0]);
		pair_disconnect(pair);
		assert_int_equal(ops->poll(pair->cqs[0], &wc, 1), 0);
	}
}

/* Writes through one queue pair until told to stop, and polls its queue. */
struct writer {
	struct pair *pair;
	atomic_bool stop;
	int failed_count;
};

static void *writer_run(void *argument)
{
	struct writer *writer = argument;
	struct pair *pair = writer->pair;
	const struct rbx_sge sge = piece(pair, 0, 64);
	bool pending = false;
	struct rbx_wc wc;

	while (pending || !atomic_load(&writer->stop)) {
		if (!pending)
			writer->failed_count += !!post_one(
				pair->qps[0], RBX_OP_WRITE, RBX_WR_SIGNALED, 1,
				&sge, pair->mr->rkey, pair->memory + 4096);
		pending = true;
		while (ops->poll(pair->cqs[0], &wc, 1)) {
			/* others on this queue may be flushed, not ours */
			if (wc.qp != pair->qps[0])
				continue;
			pending = false;
			writer->failed_count += !!wc.status;
		}
	}
	return NULL;
}

static void connects_and_destroys_leave_others_on_the_cq_alone(void **state)
{
	struct pair *pair = *state;
	struct writer writer = { .pair = pair };
	struct pair others;
	pthread_t thread;
	int round;
	int i;

	pair_connect(pair);
	assert_int_equal(pthread_create(&thread, NULL, writer_run, &writer), 0);
	others = *pair;
	for (round = 0; round < 20; round++) {
		pair_connect(&others);
		for (i = 0; i < DEPTH; i++)
			post_receive(pair, others.qps[0], 77, 8192, 64);
		ops->disconnect(others.qps[round % 2]);
		pair_disconnect(&others);
	}
	atomic_store(&writer.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(writer.failed_count, 0);
}

/*
 * The child connects and dies without a word. It may not share the parent's
 * device, so it is a process of its own: this program with another argument.
 */
static void killed_peer_flushes_the_receive(void **state)
{
	struct pair *pair = *state;
	struct acceptor acceptor = { .pair = pair };
	struct rbx_qp_init server = qp_init(pair->cqs[1]);
	pid_t child = fork();

	if (child == 0) {
		execl("/proc/self/exe", "peer", pair->listener->address, NULL);
		_exit(1);
	}
	acceptor.init = &server;
	acceptor_run(&acceptor);
	assert_int_equal(acceptor.err, 0);
	post_receive(pair, pair->qps[1], 5, 0, 64);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	expect_one(pair->cqs[1], pair->qps[1], 5, -ECANCELED);
}

/* The life of the peer that is killed. */
static int peer_main(const char *address)
{
	struct rbx_device_options options = { .gid_index = -1 };
	struct rbx_connect_init connect = {
		.address = address,
		.timeout_ms = HANG_MS,
	};
	struct rbx_qp_init init;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_qp *qp;

	if (ops->open(&options, &device, error) ||
	    ops->create_cq(device, 4 * DEPTH, &cq, error))
		return 1;
	init = qp_init(cq);
	if (ops->connect(device, &init, &connect, &qp, error))
		return 1;
	pause();
	return 0;
}

#define with_pair(test) cmocka_unit_test_setup_teardown(test, pair_make, pair_drop)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		with_pair(open_by_default_describes_what_was_chosen),
		cmocka_unit_test(open_what_is_not_there_is_refused_by_name),
		with_pair(listen_on_address_of_no_device_is_refused),
		with_pair(connect_to_loopback_says_no_rdma_device),
		with_pair(connect_where_nobody_listens_is_refused),
		with_pair(connect_unanswered_times_out),
		with_pair(connect_private_data_arrives_exactly),
		with_pair(connect_rejected_brings_the_reason),
		with_pair(qp_too_deep_is_made_as_deep_as_possible),
		with_pair(cq_too_deep_is_refused_with_the_limit),
		with_pair(register_one_bad_of_many_registers_none),
		with_pair(post_chain_longer_than_queue_is_cut),
		with_pair(wrong_key_fails_the_write_and_ends_both),
		with_pair(wrong_local_key_fails_and_ends_both),
		with_pair(disconnect_flushes_both_ends_and_what_comes_later),
		with_pair(disconnect_right_after_accept_reaches_the_peer),
		with_pair(destroy_right_after_accept_reaches_the_peer),
		with_pair(destroy_drops_the_completions),
		with_pair(connects_and_destroys_leave_others_on_the_cq_alone),
		with_pair(killed_peer_flushes_the_receive),
	};

	const char *address = getenv("RBX_TEST_ADDRESS");

	if (argc == 2)
		return peer_main(argv[1]);
	if (!address || ops->probe(error)) {
		printf("skipped: %s\n", address ? error : "no RBX_TEST_ADDRESS");
		return 77; /* meson's word for skipped */
	}
	snprintf(host, sizeof(host), "%.*s",
		 (int)strcspn(address, ":"), address);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
