/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint_test.c - runs all tests of kernel/api_endpoint.h, see README.md.
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
	bool also_paced; /* run once more with both ends paced */
} tests[] = {
	{ "private_data_arrives_to_the_byte", test_private_data },
	{ "refusal_brings_its_data", test_refusal },
	{ "nobody_listens_is_refused", test_nobody_listens },
	{ "nobody_answers_is_refused_in_time", test_nobody_answers },
	{ "options_out_of_bounds_are_refused", test_bad_options },
	{ "send_brings_segments_and_immediate", test_send, true },
	{ "write_and_read_move_memory", test_write_read, true },
	{ "atomics_change_and_bring_what_was", test_atomics, true },
	{ "chain_completes_once", test_chain, true },
	{ "bad_post_leaves_no_trace", test_bad_posts, true },
	{ "message_too_long_ends_connection", test_too_long, true },
	{ "key_ended_denies", test_key_ended, true },
	{ "key_whose_end_fails_is_released", test_key_whose_end_fails },
	{ "key_released_denies", test_key_released, true },
	{ "key_denies_what_it_does_not_allow", test_key_rights, true },
	{ "key_of_other_domain_denies", test_key_of_other_domain, true },
	{ "key_invalidated_by_peer_denies", test_key_invalidated, true },
	{ "key_invalidated_without_right_ends_connection",
	  test_key_invalidated_without_right, true },
	{ "regions_are_used_again_with_other_keys", test_regions_reused, true },
	{ "close_under_way_completes_all_once", test_close_under_way, true },
	{ "peer_closes_under_way_completes_all_once",
	  test_peer_closes_under_way, true },
	{ "close_in_callback_is_refused", test_close_in_callback, true },
	{ "domain_in_use_stays", test_domain_in_use },
	{ "killed_task_makes_and_closes_all", test_killed_task },
	{ "paced_neighbours_arrive_and_are_told_of_once", test_paced_neighbours },
	{ "paced_fence_and_messages_are_in_order", test_paced_fence },
	{ "paced_close_completes_what_waits_once", test_paced_close_while_waiting },
	{ "paced_peer_closes_completes_what_waits_once",
	  test_paced_peer_closes_while_waiting },
	{ "paced_disconnected_refuses_in_order", test_paced_disconnected },
	{ "paced_posts_in_an_interrupt", test_paced_in_interrupt },
};

static int run_once(u32 i, struct pair *pair, bool paced)
{
	int err = pair_make(pair, address);

	pair->options.paced = paced;
	if (!err)
		err = tests[i].run(pair);
	pair_free(pair);
	pr_info("rdmabox_endpoint_test: %s%s: %s (%d)\n", tests[i].name,
		paced ? ", paced" : "", err ? "FAILED" : "passed", err);
	return err;
}

static int run(u32 i, struct pair *pair)
{
	int err = run_once(i, pair, false);

	return err || !tests[i].also_paced ? err : run_once(i, pair, true);
}

static int __init endpoint_test_init(void)
{
	struct pair *pair = kvzalloc(sizeof(*pair), GFP_KERNEL);
	u32 i;
	int err = pair ? 0 : -ENOMEM;

	if (!address)
		err = -EINVAL;
	/* Runs all of them, and fails if one did. */
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
