/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* intruder.h - a peer by hand that a server has let in. */
#ifndef RBX_TESTS_INTRUDER_H
#define RBX_TESTS_INTRUDER_H

#include "tests/fabric/endpoint.h"
#include "tests/fabric/local_peer.h"

/* A peer by hand, and the server's end of its connection. */
struct intruder {
	struct local_peer peer;
	struct rbx_qp *qp;
};

/* Lets one in that has said its hello. */
static inline void intruder_accept(struct intruder *intruder, struct test_pair *pair,
				   struct rbx_domain *domain)
{
	const struct rbx_qp_init init = {
		.domain = domain,
		.send_cq = pair->server_cq,
		.recv_cq = pair->server_cq,
		.send_depth_count = 8,
		.recv_depth_count = 8,
		.max_sge = 1,
		.served = true,
	};

	assert_int_equal(pair->ops->accept(test_request_wait(pair->listener),
					   &init, NULL, 0, &intruder->qp, NULL),
			 0);
	assert_int_equal(local_peer_answer(&intruder->peer), SOFT_ACCEPT);
}

static inline void intruder_come(struct intruder *intruder, struct test_pair *pair,
				 struct rbx_domain *domain)
{
	local_peer_connect(&intruder->peer, pair->listener->address, NULL, 0);
	intruder_accept(intruder, pair, domain);
}

static inline void intruder_go(struct intruder *intruder, struct test_pair *pair)
{
	pair->ops->destroy_qp(intruder->qp);
	local_peer_leave(&intruder->peer);
}

#endif
