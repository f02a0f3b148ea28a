/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.c - opens devices and two ends in one process.
 */
#include "endpoint.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fill.h"

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
	pair->ops = test_ops();
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
		.recv_max_sge = pair->client_device->caps.max_recv_sge < 4 ?
					0 : 4,
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
	const struct rbx_sge buffer = { (uintptr_t)addr, length_bytes, lkey };
	struct rbx_recv_wr wr = {
		.wr_id = wr_id,
		.sges = &buffer,
		.sge_count = 1,
	};
	struct rbx_recv_wr *bad;

	assert_int_equal(pair->ops->post_recv(qp, &wr, &bad), 0);
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
	fill_bytes(bytes, length_bytes, seed);
}

bool test_is_zero(const uint8_t *bytes, size_t length_bytes)
{
	return !length_bytes || (!bytes[0] && !memcmp(bytes, bytes + 1, length_bytes - 1));
}
