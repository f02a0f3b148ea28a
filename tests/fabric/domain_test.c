/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * domain_test.c - a key is of use in its own protection domain and in no other,
 * whoever knows it.
 */
#include <errno.h>
#include <string.h>

#include "endpoint.h"

#define PAGE 4096u

/* A pair whose server end is in a domain of its own. */
struct tenant {
	struct test_pair pair; /* its first ends are not in a domain */
	struct rbx_domain *domain;
	struct rbx_mr *mr; /* all of the target, in the domain */
	struct rbx_qp *client;
	struct rbx_qp *server;
};

static void tenant_connect(struct tenant *tenant)
{
	struct test_pair *pair = &tenant->pair;
	struct rbx_qp_init client_init = {
		.send_cq = pair->client_cq,
		.recv_cq = pair->client_cq,
		.send_depth_count = 16,
		.recv_depth_count = 1,
		.max_sge = 1,
	};
	struct rbx_qp_init server_init = client_init;

	server_init.send_cq = server_init.recv_cq = pair->server_cq;
	server_init.served = true;
	server_init.domain = tenant->domain;
	test_connect(pair, &client_init, &server_init, &tenant->client,
		     &tenant->server);
}

static void tenant_open(struct tenant *tenant)
{
	struct test_pair *pair = &tenant->pair;
	struct rbx_mr_init init = {
		.length_bytes = TARGET_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
	};

	test_pair_open(pair, NULL);
	assert_int_equal(pair->ops->create_domain(pair->server_device,
						  &tenant->domain, NULL), 0);
	init.domain = tenant->domain;
	init.addr = pair->target_memory;
	init.memory_fd = pair->target_fd;
	assert_int_equal(pair->ops->register_memory(pair->server_device, &init,
						    1, &tenant->mr, NULL), 0);
	tenant_connect(tenant);
}

static void tenant_close(struct tenant *tenant)
{
	struct test_pair *pair = &tenant->pair;

	pair->ops->destroy_qp(tenant->client);
	pair->ops->destroy_qp(tenant->server);
	pair->ops->deregister_memory(pair->server_device, &tenant->mr, 1);
	pair->ops->destroy_domain(tenant->domain);
	test_pair_close(pair);
}

/* Moves a page with a key over a connection; returns the status. */
static int use_key(struct tenant *tenant, struct rbx_qp *qp, uint8_t opcode,
		   uint32_t rkey)
{
	struct test_pair *pair = &tenant->pair;
	struct rbx_sge sge;
	struct rbx_wr wr = test_wr(pair, opcode, &sge, 0, 0, PAGE);
	struct rbx_wr *bad;

	wr.rkey = rkey;
	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
	return test_wait(pair, pair->client_cq).status;
}

/* More than once: a mapping, where there is one, is in use after the first. */
static void own_key_is_good_in_each_domain(void **state)
{
	struct tenant tenant;
	int i;

	(void)state;
	tenant_open(&tenant);
	for (i = 0; i < 4; i++) {
		memset(tenant.pair.local, 0x10 + i, PAGE);
		assert_int_equal(use_key(&tenant, tenant.client, RBX_OP_WRITE,
					 tenant.mr->rkey), 0);
		assert_int_equal(tenant.pair.target[PAGE - 1], 0x10 + i);
		assert_int_equal(use_key(&tenant, tenant.pair.client,
					 RBX_OP_READ,
					 tenant.pair.target_mr->rkey), 0);
	}
	tenant_close(&tenant);
}

static void key_of_another_domain_cannot_write(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant);
	memset(tenant.pair.local, 0x66, PAGE);
	assert_int_equal(use_key(&tenant, tenant.pair.client, RBX_OP_WRITE,
				 tenant.mr->rkey), -EACCES);
	assert_int_equal(use_key(&tenant, tenant.client, RBX_OP_WRITE,
				 tenant.pair.target_mr->rkey), -EACCES);
	assert_int_equal(tenant.pair.target[0], 0);
	tenant_close(&tenant);
}

static void key_of_another_domain_cannot_read(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant);
	memset(tenant.pair.target, 0x99, PAGE);
	assert_int_equal(use_key(&tenant, tenant.pair.client, RBX_OP_READ,
				 tenant.mr->rkey), -EACCES);
	assert_int_equal(use_key(&tenant, tenant.client, RBX_OP_READ,
				 tenant.pair.target_mr->rkey), -EACCES);
	assert_int_equal(tenant.pair.local[0], 0);
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_key_is_good_in_each_domain),
		cmocka_unit_test(key_of_another_domain_cannot_write),
		cmocka_unit_test(key_of_another_domain_cannot_read),
	};

	return test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
