/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_events_test.c - what an RDMA device tells unasked, and what becomes of its
 * connections when it fails.
 *
 * The device's own events are those that the machine brings about: RBX_TEST_LINK names
 * the network interface under it, which is taken down and up, and RBX_TEST_RDMA_LINK
 * the device, which is taken away under load. A failure that the device does not
 * survive comes out of this file, which stands between the fabric and libibverbs.
 */
#include "verbs_pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "fabric/verbs/verbs.h"

/* ---- A device that fails --------------------------------------------------------*/

static typeof(ibv_modify_qp) *true_modify; /* libibverbs' own */
static typeof(ibv_get_async_event) *true_get;
static typeof(ibv_ack_async_event) *true_ack;
static atomic_bool driver_has_left; /* moves no queue pair, and has no more events */
static atomic_bool has_next;
static struct ibv_async_event next; /* told next, if has_next */

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	return driver_has_left ? EIO : true_modify(qp, attr, attr_mask);
}

int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	if (!atomic_exchange(&has_next, false)) {
		if (!driver_has_left)
			return true_get(context, event);
		errno = EIO;
		return -1;
	}
	*event = next;
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (memcmp(event, &next, sizeof(next)) != 0)
		true_ack(event);
}

/* As the connection thread would, if it came out of the descriptor. */
static bool hear(struct pair *pair, struct ibv_async_event event)
{
	next = event;
	has_next = true;
	return rbx_verbs_events_hear(rbx_verbs_device(pair->device));
}

static void expect_event(struct pair *pair, enum rbx_device_event_kind kind)
{
	struct pollfd readable = { pair->device->event_fd, POLLIN, 0 };
	struct rbx_device_event event;

	assert_int_equal(poll(&readable, 1, HANG_MS), 1);
	assert_int_equal(ops->get_event(pair->device, &event), 0);
	assert_int_equal(event.kind, kind);
}

static void expect_no_event(struct pair *pair)
{
	struct rbx_device_event event;

	assert_int_equal(ops->get_event(pair->device, &event), -EAGAIN);
}

static void port_events_of_our_port_told_the_latest_last(void **state)
{
	struct pair *pair = *state;
	struct ibv_async_event event = { .event_type = IBV_EVENT_PORT_ERR };

	event.element.port_num = rbx_verbs_device(pair->device)->port;
	hear(pair, event);
	event.event_type = IBV_EVENT_PORT_ACTIVE;
	hear(pair, event);
	event.event_type = IBV_EVENT_PORT_ERR;
	hear(pair, event);
	event.element.port_num++;
	event.event_type = IBV_EVENT_PORT_ACTIVE;
	hear(pair, event);
	expect_event(pair, RBX_DEVICE_PORT_UP);
	expect_event(pair, RBX_DEVICE_PORT_DOWN);
	expect_no_event(pair);
}

static void failed_queue_pair_ends_its_connection_alone(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL };
	struct pair other = *pair;

	pair_connect(pair);
	pair_connect(&other);
	post_receive(pair, pair->qps[0], 10, 4096, 64);
	event.element.qp = ops->native_qp(pair->qps[0]);
	hear(pair, event);
	expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
	expect_no_event(pair);
	assert_int_equal(post_one(other.qps[0], RBX_OP_WRITE, RBX_WR_SIGNALED, 1,
				  &sge, pair->mr->rkey, pair->memory), 0);
	expect_one(pair->cqs[0], other.qps[0], 1, 0);
	pair_disconnect(&other);
}

/* The device still moves its queue pairs, and flushes them. */
static void failed_device_ends_all_connections(void **state)
{
	struct pair *pair = *state;
	struct pair other = *pair;

	pair_connect(pair);
	pair_connect(&other);
	post_receive(pair, pair->qps[0], 10, 4096, 64);
	post_receive(pair, other.qps[1], 11, 4096, 64);
	assert_true(hear(pair, (struct ibv_async_event){
				       .event_type = IBV_EVENT_DEVICE_FATAL }));
	expect_event(pair, RBX_DEVICE_FAILED);
	expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
	expect_one(pair->cqs[1], other.qps[1], 11, -ECANCELED);
	pair_disconnect(&other);
}

static void poll_one(struct rbx_cq *cq, struct rbx_qp *qp, uint64_t wr_id)
{
	struct rbx_wc wc;

	assert_int_equal(ops->poll(cq, &wc, 1), 1);
	assert_ptr_equal(wc.qp, qp);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, -ECANCELED);
}

/* Nothing comes of the device any more, so that all is flushed without it. */
static void left_driver_all_flushed_once(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	struct rbx_wc wc;
	int i;

	pair_connect(pair);
	for (i = 0; i < 3; i++)
		post_receive(pair, pair->qps[0], 10 + (uint64_t)i, 4096, 64);
	driver_has_left = true;
	assert_false(rbx_verbs_events_hear(rbx_verbs_device(pair->device)));
	expect_event(pair, RBX_DEVICE_FAILED);
	for (i = 0; i < 3; i++)
		poll_one(pair->cqs[0], pair->qps[0], 10 + (uint64_t)i);
	/* And what is posted later, to the end. */
	for (i = 0; i < 3 * DEPTH; i++) {
		post_receive(pair, pair->qps[0], 20, 4096, 64);
		poll_one(pair->cqs[0], pair->qps[0], 20);
	}
	driver_has_left = false; /* it is slow to say what we know */
	rbx_verbs_conn_flush(((struct rbx_verbs_qp *)pair->qps[0])->conn);
	assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE, 0, 30, &sge,
				  pair->mr->rkey, pair->memory), 0);
	poll_one(pair->cqs[0], pair->qps[0], 30);
	for (i = 0; i < 100; i++)
		assert_int_equal(ops->poll(pair->cqs[0], &wc, 1), 0);
}

/* ---- What the machine does ------------------------------------------------------*/

static void shell(const char *format, const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), format, name);
	assert_int_equal(system(command), 0);
}

static void link_down_and_up_told(void **state)
{
	struct pair *pair = *state;
	const char *link = getenv("RBX_TEST_LINK");

	if (!link)
		skip();
	shell("ip link set %s down", link);
	expect_event(pair, RBX_DEVICE_PORT_DOWN);
	shell("ip link set %s up", link);
	expect_event(pair, RBX_DEVICE_PORT_UP);
}

/* The last of all: there is no device after it. */
static void removed_device_ends_all_under_load(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 64);
	const char *link = getenv("RBX_TEST_RDMA_LINK");
	struct rbx_wc wc = { .status = 0 };

	if (!link)
		skip();
	pair_connect(pair);
	post_receive(pair, pair->qps[1], 5, 4096, 64);
	/* It waits until nobody has the device open any more. */
	shell("rdma link delete %s &", link);
	while (!wc.status) {
		assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE,
					  RBX_WR_SIGNALED, 1, &sge,
					  pair->mr->rkey, pair->memory + 4096), 0);
		expect_completions(pair->cqs[0], &wc, 1);
	}
	expect_event(pair, RBX_DEVICE_FAILED);
	expect_one(pair->cqs[1], pair->qps[1], 5, -ECANCELED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_pair(port_events_of_our_port_told_the_latest_last),
		with_pair(failed_queue_pair_ends_its_connection_alone),
		with_pair(failed_device_ends_all_connections),
		with_pair(left_driver_all_flushed_once),
		with_pair(link_down_and_up_told),
		with_pair(removed_device_ends_all_under_load),
	};

	true_modify = (typeof(true_modify))dlsym(RTLD_NEXT, "ibv_modify_qp");
	true_get = (typeof(true_get))dlsym(RTLD_NEXT, "ibv_get_async_event");
	true_ack = (typeof(true_ack))dlsym(RTLD_NEXT, "ibv_ack_async_event");
	return verbs_test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
