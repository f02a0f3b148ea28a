/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_test.c - all tests of kernel/api_endpoint.h, see README.md.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/test/pair.h"

static char *address;
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "host:port of an RDMA device, to connect there");
static char *only;
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "the one test that runs");

static const struct {
	const char *name;
	int (*run)(struct pair *pair);
} tests[] = {
	{ "private_data_arrives_to_the_byte", test_private_data },
	{ "refusal_brings_its_data", test_refusal },
	{ "nobody_listens_is_refused", test_nobody_listens },
	{ "nobody_answers_is_refused_in_time", test_nobody_answers },
	{ "options_out_of_bounds_are_refused", test_bad_options },
	{ "send_brings_segments_and_immediate", test_send },
	{ "write_and_read_move_memory", test_write_read },
	{ "atomics_change_and_bring_what_was", test_atomics },
	{ "chain_completes_once", test_chain },
	{ "bad_post_leaves_no_trace", test_bad_posts },
	{ "message_too_long_ends_connection", test_too_long },
	{ "key_ended_denies", test_key_ended },
	{ "key_released_denies", test_key_released },
	{ "key_denies_what_it_does_not_allow", test_key_rights },
	{ "key_of_other_domain_denies", test_key_of_other_domain },
	{ "key_invalidated_by_peer_denies", test_key_invalidated },
	{ "key_invalidated_without_right_ends_connection",
	  test_key_invalidated_without_right },
	{ "regions_are_used_again_with_other_keys", test_regions_reused },
	{ "close_under_way_completes_all_once", test_close_under_way },
	{ "peer_closes_under_way_completes_all_once",
	  test_peer_closes_under_way },
	{ "close_in_callback_is_refused", test_close_in_callback },
	{ "domain_in_use_stays", test_domain_in_use },
};

static int run(u32 i, struct pair *pair)
{
	int err = pair_make(pair, address);

	if (!err)
		err = tests[i].run(pair);
	pair_free(pair);
	pr_info("rdmabox_endpoint_test: %s: %s (%d)\n", tests[i].name,
		err ? "FAILED" : "passed", err);
	return err;
}

static int __init endpoint_test_init(void)
{
	struct pair *pair = kvzalloc(sizeof(*pair), GFP_KERNEL);
	u32 i;
	int err = pair ? 0 : -ENOMEM;

	if (!address)
		err = -EINVAL;
	/* All of them, and an error if there was one. */
	for (i = 0; i < ARRAY_SIZE(tests) && address && pair; i++)
		if (!only || !strcmp(only, tests[i].name))
			err = run(i, pair) ?: err;
	kvfree(pair);
	return err;
}

static void __exit endpoint_test_exit(void)
{
}

module_init(endpoint_test_init);
module_exit(endpoint_test_exit);

MODULE_DESCRIPTION("RDMAbox: tests of its kernel API for connections");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
