/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* soft_traffic_class_test.c - the traffic class of a connection is that of its socket. */
#include "endpoint.h"

#include <netinet/in.h>

#include "fabric/soft/queue_pair.h"

static int class_of(struct rbx_qp *qp)
{
	int class = -1;
	socklen_t length = sizeof(class);

	assert_int_equal(getsockopt(soft_qp_of(qp)->fd, IPPROTO_IP, IP_TOS, &class,
				    &length), 0);
	return class;
}

static void traffic_class_is_of_the_socket(void **state)
{
	struct rbx_qp_init init = {
		.send_depth_count = 4,
		.max_sge = 1,
		.served = true,
	};
	struct rbx_qp *client, *server;
	struct rbx_qp_init marked;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	init.send_cq = init.recv_cq = pair.server_cq;
	marked = init;
	marked.send_cq = marked.recv_cq = pair.client_cq;
	marked.traffic_class = 0x28;
	test_connect(&pair, &marked, &init, &client, &server);
	if (!client->mapped) { /* else there is no network between them */
		assert_int_equal(class_of(client), 0x28);
		assert_int_equal(class_of(server), 0);
	}
	pair.ops->destroy_qp(client);
	pair.ops->destroy_qp(server);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_class_is_of_the_socket),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
