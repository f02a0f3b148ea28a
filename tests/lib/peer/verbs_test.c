/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_test.c - plain verbs beside RDMAbox, as far as it goes without a NIC: on
 * a fabric that has none beneath it is refused. tests/lab/verbs_beside.sh has
 * the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/rdmabox/verbs.h"
#include "tests/lib/tenant.h"

static void verbs_of_a_soft_peer_are_enotsup(void **state)
{
	struct rbx_verbs verbs = { .size_bytes = sizeof(verbs) };
	struct ibv_qp_init_attr *init = (void *)&verbs; /* never looked at */
	struct rbx_verbs_link *link = NULL;
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_peer_verbs(tenant.peer, &verbs), -ENOTSUP);
	assert_non_null(strstr(rbx_last_error(), "fabric=verbs"));
	assert_null(verbs.context);
	assert_int_equal(rbx_verbs_link_open(tenant.peer, init, &link),
			 -ENOTSUP);
	assert_null(link);
	tenant_close(&tenant);
}

static void arguments_that_are_missing_are_einval(void **state)
{
	struct rbx_verbs verbs = { 0 };
	struct rbx_verbs_link *link;
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_peer_verbs(tenant.peer, &verbs), -EINVAL);
	assert_int_equal(rbx_peer_verbs(tenant.peer, NULL), -EINVAL);
	verbs.size_bytes = sizeof(verbs);
	assert_int_equal(rbx_peer_verbs(NULL, &verbs), -EINVAL);
	assert_int_equal(rbx_verbs_link_open(tenant.peer, NULL, &link),
			 -EINVAL);
	tenant_close(&tenant);
}

static void key_of_borrowed_memory_is_its_own(void **state)
{
	struct rbx_remote_key first, second;
	struct rbx_remote *remote;
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_borrow(tenant.peer, &remote, 4096), 0);
	rbx_remote_key(tenant.remote, &first);
	rbx_remote_key(remote, &second);
	assert_int_equal(first.length_bytes, TENANT_SLAB_BYTES);
	assert_int_equal(second.length_bytes, 4096);
	assert_true(first.rkey != second.rkey);
	assert_true(first.address + TENANT_SLAB_BYTES <= second.address ||
		    second.address + TENANT_SLAB_BYTES <= first.address);
	rbx_return(remote);
	tenant_close(&tenant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_of_a_soft_peer_are_enotsup),
		cmocka_unit_test(arguments_that_are_missing_are_einval),
		cmocka_unit_test(key_of_borrowed_memory_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
