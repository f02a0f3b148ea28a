/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ends.c - tests of the end of a connection, whichever side causes it. */
#include "kernel/test/pair.h"

#define RECEIVES 10u

/* Keeps an end busy: with READs of all memory of the other end, and receives that stay
 * empty. */
static int keep_busy(struct end *end, const struct rbx_region_key *key)
{
	struct rbx_operation read = {
		.kind = RBX_OPERATION_READ,
		.key = key->key,
		.address = key->address,
	};
	u32 i;

	for (i = 0; i < PAIR_DEPTH; i++)
		CHECK(!post(end, &read, 0, PAIR_MEMORY_BYTES));
	for (i = 0; i < RECEIVES; i++)
		CHECK(!post_receive(end, 0, 64));
	return 0;
}

static int busy_pair(struct pair *pair)
{
	struct rbx_region_key key;
	struct rbx_region *region;

	CHECK(!pair_connect(pair));
	CHECK(!export(&pair->far, RBX_REGION_READ, &region, &key));
	return keep_busy(&pair->near, &key);
}

/* Each completes exactly once. */
int test_close_under_way(struct pair *pair)
{
	struct end *near = &pair->near;
	struct rbx_completion completion;
	u32 i, canceled_count = 0;

	CHECK(!busy_pair(pair));
	CHECK(!rbx_endpoint_close(near->endpoint));
	near->endpoint = NULL;
	CHECK(end_told(near) == PAIR_DEPTH + RECEIVES);
	for (i = 0; i < PAIR_DEPTH + RECEIVES; i++) {
		CHECK(!next(near, &completion));
		canceled_count += completion.status == -ECANCELED;
	}
	CHECK(canceled_count >= RECEIVES);
	return 0;
}

int test_peer_closes_under_way(struct pair *pair)
{
	struct end *near = &pair->near;
	struct rbx_completion completion;
	u32 i, failed_count = 0;

	CHECK(!busy_pair(pair));
	CHECK(!rbx_endpoint_close(pair->far.endpoint));
	pair->far.endpoint = NULL;
	for (i = 0; i < PAIR_DEPTH + RECEIVES; i++) {
		CHECK(!next(near, &completion));
		failed_count += completion.status != 0;
	}
	CHECK(failed_count >= RECEIVES);
	/* What is posted later completes too. */
	CHECK(post_and_wait(near, &(struct rbx_operation){ 0 }, 0, 64) ==
	      (pair->options.paced ? -EHOSTUNREACH : -ECANCELED));
	CHECK(!end_told(near));
	return 0;
}

static struct rbx_endpoint *another; /* perhaps served by another poller */

static void close_and_post(struct end *end, const struct rbx_completion *completion)
{
	end->hook_status = rbx_endpoint_close(completion->endpoint);
	if (end->hook_status == -EDEADLK)
		end->hook_status = rbx_endpoint_close(another);
	rbx_endpoint_disconnect(completion->endpoint); /* this is allowed here */
}

int test_close_in_callback(struct pair *pair)
{
	struct end *far = &pair->far;
	struct rbx_completion completion;

	CHECK(!pair_connect(pair));
	another = pair->near.endpoint;
	far->hook = close_and_post;
	CHECK(!post_receive(&pair->near, 0, 64));
	CHECK(!post_receive(far, 0, 64));
	CHECK(!post_receive(far, 0, 64));
	CHECK(!post(&pair->near, &(struct rbx_operation){ 0 }, 0, 64));
	CHECK(!next(far, &completion) && !completion.status);
	CHECK(far->hook_status == -EDEADLK);
	CHECK(!next(far, &completion) && completion.status == -ECANCELED);
	do
		CHECK(!next(&pair->near, &completion));
	while (completion.kind == RBX_COMPLETION_POSTED);
	CHECK(completion.status == -ECANCELED);
	return 0;
}

int test_domain_in_use(struct pair *pair)
{
	CHECK(rbx_protection_domain_destroy(pair->far.domain) == -EBUSY);
	CHECK(!pair_connect(pair));
	CHECK(rbx_protection_domain_destroy(pair->near.domain) == -EBUSY);
	return 0;
}
