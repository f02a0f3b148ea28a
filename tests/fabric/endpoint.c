/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.c - opens devices, connects two ends in one process, and waits.
 *
 * Waiting polls both ends' queues where needed and gives up after a time that
 * only a hang can take.
 */
#include "endpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 60000

const char *test_fabric;

uint64_t test_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const char *test_address(void)
{
	const char *address = getenv("RBX_TEST_ADDRESS");

	return address ? address : "127.0.0.1:0";
}

static const struct rbx_fabric_ops *fabric_ops(void)
{
#ifdef RBX_HAVE_VERBS
	if (!strcmp(test_fabric, "verbs"))
		return &rbx_fabric_verbs;
#endif
	return &rbx_fabric_soft;
}

struct rbx_device *test_device_open(void)
{
	struct rbx_device_options options = {
		.gid_index = -1,
		.same_host_mapping = !strcmp(test_fabric, "soft"),
	};
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_device *device;

	if (fabric_ops()->open(&options, &device, error))
		fail_msg("open: %s", error);
	return device;
}

struct rbx_conn_request *test_request_wait(struct rbx_listener *listener)
{
	uint64_t deadline_ms = test_now_ms() + PATIENCE_MS;
	struct rbx_conn_request *request;

	while (listener->device->ops->get_request(listener, &request)) {
		if (test_now_ms() > deadline_ms)
			fail_msg("no connection request came");
		usleep(500);
	}
	return request;
}

static void memory_open(struct test_pair *pair)
{
	struct rbx_mr_init init = {
		.length_bytes = TARGET_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
	};

	pair->target_fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	assert_true(pair->target_fd >= 0);
	assert_int_equal(ftruncate(pair->target_fd, TARGET_BYTES), 0);
	pair->target_memory = mmap(NULL, TARGET_BYTES, PROT_READ | PROT_WRITE,
				   MAP_SHARED, pair->target_fd, 0);
	pair->target = mmap(NULL, TARGET_BYTES, PROT_READ | PROT_WRITE,
			    MAP_SHARED, pair->target_fd, 0);
	init.addr = pair->target_memory;
	init.memory_fd = pair->target_fd;
	assert_int_equal(pair->ops->register_memory(pair->server_device, &init,
						    1, &pair->target_mr, NULL),
			 0);
	pair->local = mmap(NULL, LOCAL_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	init.addr = pair->local;
	init.length_bytes = LOCAL_BYTES;
	init.rights = RBX_LOCAL_WRITE;
	init.memory_fd = -1;
	assert_int_equal(pair->ops->register_memory(pair->client_device, &init,
						    1, &pair->local_mr, NULL),
			 0);
}

struct acceptor {
	struct test_pair *pair;
	const struct rbx_qp_init *init;
	struct rbx_qp **qp;
	int rc;
};

static void *acceptor_run(void *argument)
{
	struct acceptor *acceptor = argument;
	struct test_pair *pair = acceptor->pair;
	struct rbx_conn_request *request = test_request_wait(pair->listener);

	acceptor->rc = pair->ops->accept(request, acceptor->init, NULL, 0,
					 acceptor->qp, NULL);
	return NULL;
}

void test_connect(struct test_pair *pair, const struct rbx_qp_init *client_init,
		  const struct rbx_qp_init *server_init, struct rbx_qp **client,
		  struct rbx_qp **server)
{
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = 20000,
	};
	struct acceptor acceptor = { pair, server_init, server, 0 };
	char error[RBX_ERROR_TEXT_MAX] = "";
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, acceptor_run, &acceptor),
			 0);
	if (pair->ops->connect(pair->client_device, client_init, &connect,
			       client, error))
		fail_msg("connect: %s", error);
	pthread_join(thread, NULL);
	assert_int_equal(acceptor.rc, 0);
}

static void queues_open(struct test_pair *pair)
{
	char error[RBX_ERROR_TEXT_MAX] = "";

	assert_int_equal(pair->ops->create_cq(pair->client_device, 256,
					      &pair->client_cq, NULL), 0);
	assert_int_equal(pair->ops->create_cq(pair->server_device, 256,
					      &pair->server_cq, NULL), 0);
	if (pair->ops->listen(pair->server_device, test_address(),
			      &pair->listener, error))
		fail_msg("listen: %s", error);
}

void test_pair_open(struct test_pair *pair, const struct test_options *options)
{
	struct test_options defaults = { 0 };
	struct rbx_qp_init client_init, server_init;

	if (!options)
		options = &defaults;
	memset(pair, 0, sizeof(*pair));
	pair->ops = fabric_ops();
	pair->client_device = test_device_open();
	pair->server_device = test_device_open();
	memory_open(pair);
	queues_open(pair);
	client_init = (struct rbx_qp_init){
		.send_cq = pair->client_cq,
		.recv_cq = pair->client_cq,
		.send_depth_count = options->send_depth_count ?
			options->send_depth_count : 64,
		.recv_depth_count = options->recv_depth_count ?
			options->recv_depth_count : 16,
		.max_sge = 16,
		.max_inline_bytes = 64,
	};
	server_init = client_init;
	server_init.send_cq = server_init.recv_cq = pair->server_cq;
	pair->server_polls = options->server_polls;
	server_init.served = !pair->server_polls;
	test_connect(pair, &client_init, &server_init, &pair->client,
		     &pair->server);
}

void test_pair_close(struct test_pair *pair)
{
	if (pair->client)
		pair->ops->destroy_qp(pair->client);
	if (pair->server)
		pair->ops->destroy_qp(pair->server);
	pair->ops->destroy_cq(pair->client_cq);
	pair->ops->destroy_cq(pair->server_cq);
	pair->ops->close_listener(pair->listener);
	if (pair->target_mr)
		pair->ops->deregister_memory(pair->server_device,
					     &pair->target_mr, 1);
	if (pair->local_mr)
		pair->ops->deregister_memory(pair->client_device,
					     &pair->local_mr, 1);
	pair->ops->close(pair->client_device);
	pair->ops->close(pair->server_device);
	munmap(pair->target, TARGET_BYTES);
	munmap(pair->target_memory, TARGET_BYTES);
	munmap(pair->local, LOCAL_BYTES);
	close(pair->target_fd);
}

struct rbx_wr test_wr(const struct test_pair *pair, uint8_t opcode,
		      struct rbx_sge *sge, uint64_t local_offset,
		      uint64_t target_offset, uint32_t length_bytes)
{
	*sge = (struct rbx_sge){
		.addr = (uintptr_t)pair->local + local_offset,
		.length_bytes = length_bytes,
		.lkey = pair->local_mr->lkey,
	};
	return (struct rbx_wr){
		.wr_id = 1,
		.sges = sge,
		.sge_count = 1,
		.opcode = opcode,
		.flags = RBX_WR_SIGNALED,
		.rkey = pair->target_mr ? pair->target_mr->rkey : 0,
		.remote_addr = (uintptr_t)pair->target_memory + target_offset,
	};
}

void test_post(const struct test_pair *pair, struct rbx_wr *first)
{
	struct rbx_wr *bad;

	assert_int_equal(pair->ops->post_send(pair->client, first, &bad), 0);
}

void test_post_recv(const struct test_pair *pair, struct rbx_qp *qp,
		    uint64_t wr_id, void *addr, uint32_t length_bytes,
		    uint32_t lkey)
{
	struct rbx_recv_wr wr = {
		.wr_id = wr_id,
		.sge = { (uintptr_t)addr, length_bytes, lkey },
	};
	struct rbx_recv_wr *bad;

	assert_int_equal(pair->ops->post_recv(qp, &wr, &bad), 0);
}

struct rbx_wc test_wait(const struct test_pair *pair, struct rbx_cq *cq)
{
	uint64_t deadline_ms = test_now_ms() + PATIENCE_MS;
	struct rbx_wc wc;
	uint32_t round;

	for (round = 1; !pair->ops->poll(cq, &wc, 1); round++) {
		/* An end that nobody serves works when it is polled. */
		if (cq != pair->client_cq)
			pair->ops->poll(pair->client_cq, &wc, 0);
		else if (pair->server_polls)
			pair->ops->poll(pair->server_cq, &wc, 0);
		if (round % 1024 == 0 && test_now_ms() > deadline_ms)
			fail_msg("no completion came");
	}
	return wc;
}

int test_do(const struct test_pair *pair, uint8_t opcode, uint64_t local_offset,
	    uint64_t target_offset, uint32_t length_bytes)
{
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, opcode, &sge, local_offset,
				   target_offset, length_bytes);

	test_post(pair, &wr);
	return test_wait(pair, pair->client_cq).status;
}

void test_nothing(const struct test_pair *pair, struct rbx_cq *cq)
{
	struct rbx_wc wc;
	int i;

	for (i = 0; i < 100; i++)
		assert_int_equal(pair->ops->poll(cq, &wc, 1), 0);
}

void test_fill(uint8_t *bytes, size_t length_bytes, uint32_t seed)
{
	size_t i;

	for (i = 0; i < length_bytes; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

int test_run(const struct CMUnitTest *tests, size_t count)
{
	const char *chosen = getenv("RBX_TEST_FABRIC");
	static const char *const soft[] = { "soft", "soft:tcp" };
	int failed = 0;
	size_t i;

	test_fabric = chosen;
	if (chosen)
		return _cmocka_run_group_tests(chosen, tests, count, NULL, NULL);
	for (i = 0; i < 2; i++) {
		test_fabric = soft[i];
		failed += _cmocka_run_group_tests(test_fabric, tests, count,
						  NULL, NULL);
	}
	return failed;
}
