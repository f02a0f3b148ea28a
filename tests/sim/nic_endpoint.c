/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nic_endpoint.c - the world of tests/fabric/endpoint.h for the model NIC: two
 * nodes, and one thread whose time is virtual.
 *
 * What a call costs its caller passes while the caller stands still, so polling
 * lets the world go on.
 */
#include <string.h>

#include "sim/nic/device.h"
#include "sim/sites.h"
#include "tests/fabric/endpoint.h"
#include "tests/sim/nic_world.h"

#define PATIENCE_NS 1000000000000u

const char *test_fabric = "nic";
const char *nic_endpoint_name = "connectx3";
void (*nic_endpoint_change)(struct rbx_nic_params *params);

uint64_t test_now_ms(void)
{
	return rbx_sim_now() / 1000000;
}

const char *test_address(void)
{
	return "n2:0";
}

const struct rbx_fabric_ops *test_ops(void)
{
	return &rbx_fabric_nic;
}

/* The first of a pair is on node 1, the second on node 2. */
struct rbx_device *test_device_open(void)
{
	static uint32_t opened_count;
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_device *device;

	if (opened_count++ % 2 == 0) {
		struct rbx_nic_params *params =
			nic_world_begin(nic_endpoint_name);

		if (nic_endpoint_change)
			nic_endpoint_change(params);
	}
	nic_world_node = (opened_count - 1) % 2 + 1;
	if (rbx_fabric_nic.open(NULL, &device, error))
		fail_msg("open: %s", error);
	return device;
}

/* Who accepts while somebody connects. */
static struct acceptor {
	struct test_pair *pair;
	const struct rbx_qp_init *init;
	struct rbx_qp **qp;
} acceptor;

static void accept_one(void)
{
	struct rbx_conn_request *request;

	if (acceptor.pair &&
	    !acceptor.pair->ops->get_request(acceptor.pair->listener,
					     &request)) {
		assert_int_equal(acceptor.pair->ops->accept(
					 request, acceptor.init, NULL, 0,
					 acceptor.qp, NULL),
				 0);
		acceptor.pair = NULL;
	}
}

void test_connect(struct test_pair *pair, const struct rbx_qp_init *client_init,
		  const struct rbx_qp_init *server_init, struct rbx_qp **client,
		  struct rbx_qp **server)
{
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = 20000,
	};
	char error[RBX_ERROR_TEXT_MAX] = "";

	acceptor = (struct acceptor){ pair, server_init, server };
	nic_world_idle = accept_one;
	if (pair->ops->connect(pair->client_device, client_init, &connect,
			       client, error))
		fail_msg("connect: %s", error);
	nic_world_idle = NULL;
}

struct rbx_wc test_wait(const struct test_pair *pair, struct rbx_cq *cq)
{
	uint64_t until_ns = rbx_sim_now() + PATIENCE_NS;
	struct rbx_wc wc;

	while (!pair->ops->poll(cq, &wc, 1)) {
		if (rbx_sim_now() > until_ns)
			fail_msg("no completion came");
	}
	return wc;
}

int test_run(const struct CMUnitTest *tests, size_t count)
{
	/* The one that needs a second thread. */
	cmocka_set_skip_filter("revoked_under_traffic_fails_cleanly");
	return _cmocka_run_group_tests(test_fabric, tests, count, NULL, NULL);
}
