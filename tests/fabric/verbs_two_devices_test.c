/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_two_devices_test.c - two RDMA devices with a wire between them: which
 * one an address belongs to, and what happens when the wire is cut.
 *
 * Needs RBX_TEST_DEVICES ("rxe0 10.9.0.1 rxe1 10.9.0.2") and RBX_TEST_CUT, a
 * shell command after which no packet crosses any more. Skipped without.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/fabric.h"

#define HANG_MS 120000
#define MEMORY_BYTES 8192

static const struct rbx_fabric_ops *const ops = &rbx_fabric_verbs;
static char error[RBX_ERROR_TEXT_MAX];

struct end {
	char name[32];
	char host[64];
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_mr *mr;
	struct rbx_qp *qp;
	uint8_t memory[MEMORY_BYTES];
};

static struct end ends[2];
static struct rbx_listener *listener;

static void must(int err)
{
	if (err)
		fail_msg("%d: %s", err, error);
}

static int ends_open(void **state)
{
	struct rbx_device_options options = { .gid_index = -1 };
	char address[RBX_NAME_MAX];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct rbx_mr_init mr = {
			.addr = ends[i].memory,
			.length_bytes = MEMORY_BYTES,
			.rights = RBX_LOCAL_WRITE | RBX_REMOTE_WRITE,
			.memory_fd = -1,
		};

		options.device_name = ends[i].name;
		must(ops->open(&options, &ends[i].device, error));
		must(ops->create_cq(ends[i].device, 64, &ends[i].cq, error));
		must(ops->register_memory(ends[i].device, &mr, 1, &ends[i].mr,
					  error));
	}
	snprintf(address, sizeof(address), "%s:0", ends[1].host);
	must(ops->listen(ends[1].device, address, &listener, error));
	return 0;
}

static int ends_close(void **state)
{
	int i;

	(void)state;
	ops->close_listener(listener);
	for (i = 0; i < 2; i++) {
		if (ends[i].qp)
			ops->destroy_qp(ends[i].qp);
		ops->deregister_memory(ends[i].device, &ends[i].mr, 1);
		ops->destroy_cq(ends[i].cq);
		ops->close(ends[i].device);
	}
	return 0;
}

static struct rbx_qp_init qp_init(const struct end *end)
{
	return (struct rbx_qp_init){
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.send_depth_count = 16,
		.recv_depth_count = 16,
		.max_sge = 1,
	};
}

static void *accept_one(void *unused)
{
	struct pollfd wait = { .fd = listener->event_fd, .events = POLLIN };
	struct rbx_qp_init init = qp_init(&ends[1]);
	struct rbx_conn_request *request;

	(void)unused;
	if (poll(&wait, 1, HANG_MS) == 1 &&
	    !ops->get_request(listener, &request))
		ops->accept(request, &init, NULL, 0, &ends[1].qp, NULL);
	return NULL;
}

static void ends_connect(void)
{
	struct rbx_qp_init init = qp_init(&ends[0]);
	struct rbx_connect_init connect = {
		.address = listener->address,
		.timeout_ms = HANG_MS,
	};
	pthread_t thread;
	int err;

	assert_int_equal(pthread_create(&thread, NULL, accept_one, NULL), 0);
	err = ops->connect(ends[0].device, &init, &connect, &ends[0].qp, error);
	pthread_join(thread, NULL);
	must(err);
	assert_non_null(ends[1].qp);
}

static struct rbx_wc expect_completion(struct rbx_cq *cq)
{
	struct pollfd wait = { .fd = cq->event_fd, .events = POLLIN };
	struct rbx_wc wc;

	must(ops->arm(cq));
	while (!ops->poll(cq, &wc, 1)) {
		assert_int_equal(poll(&wait, 1, HANG_MS), 1);
		ops->consume_events(cq);
	}
	return wc;
}

static void write_post(uint8_t flags)
{
	const struct rbx_sge sge = {
		.addr = (uintptr_t)ends[0].memory,
		.length_bytes = 100,
		.lkey = ends[0].mr->lkey,
	};
	struct rbx_wr wr = {
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_WRITE,
		.flags = flags,
		.rkey = ends[1].mr->rkey,
		.remote_addr = (uintptr_t)ends[1].memory,
	};
	struct rbx_wr *bad;

	must(ops->post_send(ends[0].qp, &wr, &bad));
}

static void listen_on_the_other_devices_address_names_it(void **state)
{
	struct rbx_listener *other;
	char address[RBX_NAME_MAX];

	(void)state;
	snprintf(address, sizeof(address), "%s:0", ends[1].host);
	assert_int_equal(ops->listen(ends[0].device, address, &other, error),
			 -EXDEV);
	assert_non_null(strstr(error, ends[0].name));
	assert_non_null(strstr(error, ends[1].name));
}

static void connect_over_the_wire_writes(void **state)
{
	struct rbx_wc wc;

	(void)state;
	ends_connect();
	memset(ends[0].memory, 'x', 100);
	write_post(RBX_WR_SIGNALED);
	wc = expect_completion(ends[0].cq);
	assert_int_equal(wc.status, 0);
	assert_memory_equal(ends[1].memory, ends[0].memory, 100);
}

/* Goes on with the connection of the test before; the wire stays cut. */
static void cut_wire_fails_the_write_in_the_end(void **state)
{
	(void)state;
	assert_int_equal(system(getenv("RBX_TEST_CUT")), 0);
	write_post(0);
	write_post(0);
	assert_int_equal(expect_completion(ends[0].cq).status, -ETIMEDOUT);
	assert_int_equal(expect_completion(ends[0].cq).status, -ECANCELED);
}

static void connect_over_a_cut_wire_times_out(void **state)
{
	struct rbx_qp_init init = qp_init(&ends[0]);
	struct rbx_connect_init connect = {
		.address = listener->address,
		.timeout_ms = 1000,
	};
	struct rbx_qp *qp;

	(void)state;
	assert_int_equal(ops->connect(ends[0].device, &init, &connect, &qp,
				      error), -ETIMEDOUT);
	assert_non_null(strstr(error, "no answer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listen_on_the_other_devices_address_names_it),
		cmocka_unit_test(connect_over_the_wire_writes),
		cmocka_unit_test(cut_wire_fails_the_write_in_the_end),
		cmocka_unit_test(connect_over_a_cut_wire_times_out),
	};
	const char *devices = getenv("RBX_TEST_DEVICES");

	if (!devices || !getenv("RBX_TEST_CUT") ||
	    sscanf(devices, "%31s %63s %31s %63s", ends[0].name, ends[0].host,
		   ends[1].name, ends[1].host) != 4) {
		printf("skipped: no RBX_TEST_DEVICES or no RBX_TEST_CUT\n");
		return 77; /* meson's word for skipped */
	}
	return cmocka_run_group_tests(tests, ends_open, ends_close);
}
