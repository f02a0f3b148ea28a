/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_device_test.c - what only an RDMA device can show: how it is opened, what
 * it refuses and says, how it connects, and where its limits are. What every
 * fabric does is in the other tests of this folder.
 */
#include "verbs_pair.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

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

/* It is taken if the program asks for it, and only then: page faults of the device
 * drop packets. Soft-RoCE of our kernels has none, and says so. */
static void paging_on_demand_is_asked_for(void **state)
{
	struct rbx_device_options options = { .gid_index = -1 };
	struct pair *pair = *state;
	struct rbx_device *device;
	int err;

	assert_false(pair->device->caps.has_any_lkey);
	options.on_demand_paging = true;
	err = ops->open(&options, &device, error);
	if (err) {
		assert_int_equal(err, -ENOTSUP);
		assert_non_null(strstr(error, "on_demand_paging"));
		return;
	}
	assert_true(device->caps.has_any_lkey);
	ops->close(device);
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

/* The bytes that were given, with zeros behind. */
static void expect_padded(const uint8_t *bytes, size_t count, uint8_t given,
			  size_t given_count)
{
	size_t i;

	for (i = 0; i < count; i++)
		assert_int_equal(bytes[i], i < given_count ? given : 0);
}

static void connect_private_data_arrives_to_the_byte(void **state)
{
	static const size_t there_bytes[] = { 0, 1, RBX_CONNECT_DATA_MAX };
	static const size_t back_bytes[] = { RBX_ACCEPT_DATA_MAX, 1, 0 };
	struct pair *pair = *state;
	uint8_t there[RBX_CONNECT_DATA_MAX];
	uint8_t back[RBX_ACCEPT_DATA_MAX];
	uint8_t reply[RBX_ACCEPT_DATA_MAX];
	size_t i;

	memset(there, 0x5a, sizeof(there));
	memset(back, 0xa5, sizeof(back));
	for (i = 0; i < 3; i++) {
		struct acceptor acceptor = {
			.reply = back,
			.reply_bytes = back_bytes[i],
		};
		struct rbx_connect_init connect = {
			.private_data = there,
			.private_data_bytes = there_bytes[i],
			.reply_data = reply,
			.reply_data_max_bytes = sizeof(reply),
		};

		assert_int_equal(pair_connect_with(pair, &acceptor, &connect),
				 0);
		assert_int_equal(acceptor.got_bytes,
				 pair->device->caps.connect_data_bytes);
		expect_padded(acceptor.got, acceptor.got_bytes, 0x5a,
			      there_bytes[i]);
		assert_int_equal(connect.reply_data_bytes,
				 pair->device->caps.accept_data_bytes);
		expect_padded(reply, connect.reply_data_bytes, 0xa5,
			      back_bytes[i]);
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
	char reply[RBX_REJECT_DATA_MAX] = "";
	struct rbx_connect_init connect = {
		.reply_data = reply,
		.reply_data_max_bytes = sizeof(reply),
	};

	assert_int_equal(pair_connect_with(pair, &acceptor, &connect),
			 -EBUSY);
	assert_int_equal(connect.reply_data_bytes,
			 pair->device->caps.reject_data_bytes);
	assert_string_equal(reply, "full");
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

static struct ibv_ah_attr path_of(struct rbx_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(ops->native_qp(qp), &attr, IBV_QP_AV, &init),
			 0);
	return attr.ah_attr;
}

/* Each end's own, whichever of them connects. Soft-RoCE keeps no service level, so that
 * only its bound is looked at. */
static void connect_with_a_traffic_class_marks_the_packets(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init client = qp_init(pair->cqs[0]);
	struct rbx_qp_init server = qp_init(pair->cqs[1]);
	struct acceptor acceptor = { .pair = pair, .init = &server };
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = HANG_MS,
	};
	pthread_t thread;
	struct rbx_qp *none;

	client.service_level = 16;
	assert_int_equal(ops->connect(pair->device, &client, &connect, &none,
				      error), -EINVAL);
	client.traffic_class = 0x20;
	client.service_level = 3;
	server.traffic_class = 0x40;
	assert_int_equal(pthread_create(&thread, NULL, acceptor_run, &acceptor),
			 0);
	assert_int_equal(ops->connect(pair->device, &client, &connect,
				      &pair->qps[0], error), 0);
	pthread_join(thread, NULL);
	assert_int_equal(acceptor.err, 0);
	assert_int_equal(path_of(pair->qps[0]).grh.traffic_class, 0x20);
	assert_int_equal(path_of(pair->qps[1]).grh.traffic_class, 0x40);
}

static void queue_on_a_vector_that_is_not_there_refused(void **state)
{
	struct pair *pair = *state;
	uint32_t count = pair->device->caps.completion_vectors;
	struct rbx_cq *cq;

	assert_true(count >= 1);
	assert_int_equal(ops->create_cq_on(pair->device, 16, count, &cq, error),
			 -EINVAL);
	assert_int_equal(ops->create_cq_on(pair->device, 16, count - 1, &cq,
					   error), 0);
	ops->destroy_cq(cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_pair(open_by_default_describes_what_was_chosen),
		cmocka_unit_test(open_what_is_not_there_is_refused_by_name),
		with_pair(paging_on_demand_is_asked_for),
		with_pair(listen_on_address_of_no_device_is_refused),
		with_pair(connect_to_loopback_says_no_rdma_device),
		with_pair(connect_where_nobody_listens_is_refused),
		with_pair(connect_unanswered_times_out),
		with_pair(connect_private_data_arrives_to_the_byte),
		with_pair(connect_rejected_brings_the_reason),
		with_pair(connect_with_a_traffic_class_marks_the_packets),
		with_pair(queue_on_a_vector_that_is_not_there_refused),
		with_pair(qp_too_deep_is_made_as_deep_as_possible),
		with_pair(cq_too_deep_is_refused_with_the_limit),
		with_pair(register_one_bad_of_many_registers_none),
		with_pair(post_chain_longer_than_queue_is_cut),
	};

	return verbs_test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
