/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * twin_test.c - tests that a loan with a twin is not handed out: rdmabox_twin_test.ko.
 *
 * A server may take a loan back before we notice, and lend the same memory anew. No
 * server does so on demand. So the test changes answers behind rbx_session_map(): they
 * get the place and key of a loan that was lent before.
 *
 *	insmod rdmabox_twin_test.ko server=10.9.0.1:7471
 *
 * It needs a server with SLABS slabs. It runs all tests and logs each one. If one fails,
 * loading fails.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "core/loan.h"
#include "kernel/api_peer.h"

#define SLABS 4u

static char *server;
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "host:port");

#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			pr_err("rdmabox_twin_test: line %d: %s\n", __LINE__,      \
			       #condition);                                       \
			return -EBADMSG;                                          \
		}                                                                 \
	} while (0)

/* ---- Changing answers ------------------------------------------------------------*/

/* What the next answer is changed to; length 0: it is not changed. */
static struct rbx_remote answer;

struct asked {
	struct rbx_loan *loan;
};

static int map_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct asked *asked = (struct asked *)instance->data;

	asked->loan = (struct rbx_loan *)regs_get_kernel_argument(regs, 1);
	return 0;
}

static int map_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	const struct asked *asked = (struct asked *)instance->data;

	if (regs_return_value(regs) || !answer.length_bytes)
		return 0;
	asked->loan->remote_addr = answer.address;
	asked->loan->rkey = answer.rkey;
	asked->loan->epoch += answer.epoch;
	memset(&answer, 0, sizeof(answer));
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "rbx_session_map",
	.entry_handler = map_begins,
	.handler = map_ends,
	.data_size = sizeof(struct asked),
	.maxactive = 2,
};

/* Makes the next loan lie so many bytes behind the first one, with an epoch that is later
 * by so much. */
static void answer_set(const struct rbx_remote *first, u64 behind_bytes,
		       u64 later)
{
	answer = *first;
	answer.address += behind_bytes;
	answer.epoch = later;
}

/* ---- Tests ------------------------------------------------------------------------*/

static bool is_same(const struct rbx_remote *one, const struct rbx_remote *other)
{
	return one->slab_id == other->slab_id && one->epoch == other->epoch;
}

/* All that the server has can be borrowed, and is returned: no loan was forgotten. */
static int all_is_free(struct rbx_peer *peer)
{
	struct rbx_remote remotes[SLABS];
	u32 i;

	for (i = 0; i < SLABS; i++)
		CHECK(!rbx_borrow(peer, &remotes[i]));
	CHECK(rbx_borrow(peer, &remotes[0]) == -ENOSPC);
	for (i = 1; i < SLABS; i++)
		CHECK(!rbx_return(peer, &remotes[i]));
	return 0;
}

static int twin_of(struct rbx_peer *peer, s64 behind_slabs_eighths)
{
	struct rbx_remote first, second;

	CHECK(!rbx_borrow(peer, &first));
	answer_set(&first,
		   (u64)((s64)first.length_bytes / 8 * behind_slabs_eighths), 0);
	CHECK(rbx_borrow(peer, &second) == -ESTALE);
	CHECK(is_same(&second, &first));
	CHECK(second.address == first.address && second.rkey == first.rkey);
	/* As long as the first loan is not returned. */
	answer_set(&first, 0, 0);
	CHECK(rbx_borrow(peer, &second) == -ESTALE);
	CHECK(!rbx_return(peer, &first));
	answer_set(&first, 0, 0);
	CHECK(!rbx_borrow(peer, &second));
	CHECK(!rbx_return(peer, &second));
	return 0;
}

static int test_same_place(struct rbx_peer *peer)
{
	return twin_of(peer, 0);
}

static int test_overlap(struct rbx_peer *peer)
{
	int err = twin_of(peer, 7);

	return err ? err : twin_of(peer, -7);
}

static int test_neighbour(struct rbx_peer *peer)
{
	struct rbx_remote first, second;

	CHECK(!rbx_borrow(peer, &first));
	answer_set(&first, first.length_bytes, 0);
	CHECK(!rbx_borrow(peer, &second));
	CHECK(!rbx_return(peer, &first) && !rbx_return(peer, &second));
	return 0;
}

/* The loan that was lent later was answered first. */
static int test_first_is_later(struct rbx_peer *peer)
{
	struct rbx_remote first, second;

	answer = (struct rbx_remote){ .length_bytes = 1, .epoch = 1000 };
	CHECK(!rbx_borrow(peer, &first));
	first.epoch -= 1000; /* as the server knows it */
	answer_set(&first, 0, 0);
	answer.address = 0; /* where the test says that the first one is */
	answer.rkey = 0;
	CHECK(rbx_borrow(peer, &second) == -ESTALE);
	CHECK(!is_same(&second, &first) && second.slab_id != first.slab_id);
	CHECK(rbx_return(peer, &second) == -ESTALE); /* this was done */
	CHECK(!rbx_return(peer, &first));
	first.epoch += 1000;
	CHECK(rbx_return(peer, &first) == -ESTALE); /* now it is forgotten */
	answer_set(&first, 0, 0);
	CHECK(!rbx_borrow(peer, &second));
	CHECK(!rbx_return(peer, &second));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct rbx_peer *peer);
} tests[] = {
	{ "twin_at_same_place_is_not_handed_out", test_same_place },
	{ "twin_that_overlaps_is_not_handed_out", test_overlap },
	{ "neighbour_is_no_twin", test_neighbour },
	{ "older_of_twins_is_over_whichever_came_first", test_first_is_later },
};

/* Each test has its own peer. Whatever it leaves is given back with the peer. */
static int run(u32 i)
{
	const struct rbx_peer_options options = {
		.server = server,
		.peer_timeout_ms = 20000,
		.insecure = true,
	};
	struct rbx_peer *peer;
	int err = rbx_peer_connect(&options, &peer);

	if (!err) {
		err = tests[i].run(peer);
		memset(&answer, 0, sizeof(answer));
		if (!err)
			err = all_is_free(peer);
		rbx_peer_disconnect(peer);
	}
	pr_info("rdmabox_twin_test: %s: %s (%d)\n", tests[i].name,
		err ? "FAILED" : "passed", err);
	return err;
}

static int __init twin_test_init(void)
{
	int err = register_kretprobe(&probe);
	u32 i;

	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(tests); i++)
		err = run(i) ?: err;
	unregister_kretprobe(&probe);
	return err;
}

static void __exit twin_test_exit(void)
{
}

module_init(twin_test_init);
module_exit(twin_test_exit);

MODULE_DESCRIPTION("RDMAbox: a test of loans that have a twin");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
