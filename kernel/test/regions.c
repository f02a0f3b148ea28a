/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* regions.c - tests of keys: what they allow, and how they end. */
#include "kernel/test/pair.h"

static struct rbx_operation use_of(enum rbx_operation_kind kind,
				   const struct rbx_region_key *key)
{
	return (struct rbx_operation){
		.kind = kind,
		.key = key->key,
		.address = key->address,
	};
}

/* A key that worked does not work any more, and the memory has not changed. */
static int is_denied(struct pair *pair, enum rbx_operation_kind kind,
		     const struct rbx_region_key *key)
{
	const struct rbx_operation use = use_of(kind, key);

	fill(&pair->far, 0, 64, 50);
	fill(&pair->near, 0, 64, 150);
	CHECK(post_and_wait(&pair->near, &use, 0, 64) == -EACCES);
	CHECK(is_filled(&pair->far, 0, 64, 50));
	CHECK(is_filled(&pair->near, 0, 64, 150));
	return 0;
}

static int works(struct pair *pair, const struct rbx_region_key *key)
{
	const struct rbx_operation write = use_of(RBX_OPERATION_WRITE, key);

	fill(&pair->near, 0, 64, 20);
	CHECK(!post_and_wait(&pair->near, &write, 0, 64));
	CHECK(is_filled(&pair->far, 0, 64, 20));
	return 0;
}

/* Connects, and exports all memory of the far end with a key that works. */
static int lend(struct pair *pair, u32 rights, struct rbx_region **region,
		struct rbx_region_key *key)
{
	CHECK(!pair_connect(pair));
	CHECK(!export(&pair->far, rights, region, key));
	return rights & RBX_REGION_WRITE ? works(pair, key) : 0;
}

int test_key_ended(struct pair *pair)
{
	struct rbx_operation end = { .kind = RBX_OPERATION_END_EXPORT };
	struct rbx_region_key key;

	CHECK(!lend(pair, RBX_REGION_WRITE, &end.region, &key));
	CHECK(!post_and_wait(&pair->far, &end, 0, 0));
	CHECK(!rbx_region_release(end.region));
	return is_denied(pair, RBX_OPERATION_WRITE, &key);
}

/* As a device that has failed: it takes nothing. */
static int take_nothing(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad)
{
	*bad = wr;
	return -EIO;
}

/* Nobody else posts meanwhile. The connection ends. */
int test_key_whose_end_fails(struct pair *pair)
{
	struct rbx_operation end = { .kind = RBX_OPERATION_END_EXPORT };
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad);
	struct rbx_region_key key;
	struct ib_device *device;
	int err;

	CHECK(!lend(pair, RBX_REGION_WRITE, &end.region, &key));
	device = rbx_protection_domain_device(pair->far.domain);
	post_send = device->ops.post_send;
	device->ops.post_send = take_nothing;
	err = rbx_endpoint_post(pair->far.endpoint, &end, 1);
	device->ops.post_send = post_send;
	CHECK(err == -EIO);
	CHECK(!rbx_region_release(end.region));
	return 0;
}

/* Without END_EXPORT, on a connection that goes on. */
int test_key_released(struct pair *pair)
{
	struct rbx_region_key key, other;
	struct rbx_region *region;

	CHECK(!lend(pair, RBX_REGION_WRITE, &region, &key));
	CHECK(!rbx_region_release(region));
	CHECK(!export(&pair->far, RBX_REGION_WRITE, &region, &other));
	CHECK(!works(pair, &other));
	return is_denied(pair, RBX_OPERATION_WRITE, &key);
}

int test_key_rights(struct pair *pair)
{
	struct rbx_region_key key;
	struct rbx_region *region;

	CHECK(!lend(pair, RBX_REGION_READ, &region, &key));
	return is_denied(pair, RBX_OPERATION_WRITE, &key);
}

/* The key belongs to the far end's domain and is used over a connection to the near
 * end's. */
int test_key_of_other_domain(struct pair *pair)
{
	struct rbx_operation write = { .kind = RBX_OPERATION_WRITE };
	struct rbx_region_key key;
	struct rbx_region *region;

	CHECK(!lend(pair, RBX_REGION_WRITE, &region, &key));
	fill(&pair->far, 0, 64, 30);
	fill(&pair->far, 4096, 64, 31);
	write.key = key.key;
	write.address = key.address;
	CHECK(post_and_wait(&pair->far, &write, 4096, 64) == -EACCES);
	CHECK(is_filled(&pair->far, 0, 64, 30));
	return 0;
}

int test_key_invalidated(struct pair *pair)
{
	struct rbx_operation send = { .flags = RBX_OPERATION_INVALIDATE };
	struct rbx_operation end = { .kind = RBX_OPERATION_END_EXPORT };
	struct rbx_completion completion;
	struct rbx_region_key key;

	CHECK(!lend(pair, RBX_REGION_WRITE | RBX_REGION_INVALIDATE, &end.region,
		    &key));
	send.invalidate_key = key.key;
	CHECK(!post_receive(&pair->far, 0, 0));
	CHECK(!post_and_wait(&pair->near, &send, 0, 0));
	CHECK(!next(&pair->far, &completion));
	CHECK(!completion.status && completion.has_invalidated);
	CHECK(completion.invalidated_key == key.key && !completion.has_immediate);
	CHECK(rbx_endpoint_post(pair->far.endpoint, &end, 1) == -EINVAL);
	CHECK(!rbx_region_release(end.region));
	return is_denied(pair, RBX_OPERATION_WRITE, &key);
}

int test_key_invalidated_without_right(struct pair *pair)
{
	struct rbx_operation send = { .flags = RBX_OPERATION_INVALIDATE };
	struct rbx_completion completion;
	struct rbx_region_key key;
	struct rbx_region *region;

	CHECK(!lend(pair, RBX_REGION_WRITE, &region, &key));
	send.invalidate_key = key.key;
	CHECK(!post_receive(&pair->far, 0, 0));
	CHECK(!post_receive(&pair->far, 0, 0));
	CHECK(!post(&pair->near, &send, 0, 0));
	CHECK(!next(&pair->far, &completion) && completion.has_invalidated);
	CHECK(!next(&pair->far, &completion) && completion.status == -ECANCELED);
	return 0;
}

int test_regions_reused(struct pair *pair)
{
	struct rbx_operation end = { .kind = RBX_OPERATION_END_EXPORT };
	struct rbx_region *regions[2], *third;
	struct rbx_region_key key, before = { 0 };
	u32 i;

	CHECK(!pair_connect(pair));
	for (i = 0; i < 300; i++) {
		CHECK(!export(&pair->far, RBX_REGION_WRITE, &end.region, &key));
		CHECK(key.key != before.key);
		if (i % 100 == 0)
			CHECK(!works(pair, &key));
		CHECK(rbx_endpoint_post(pair->far.endpoint, &end, 1) == 0);
		before = key;
		while (rbx_region_release(end.region) == -EBUSY)
			cond_resched();
		CHECK(!next(&pair->far, &(struct rbx_completion){ 0 }));
	}
	for (i = 0; i < 2; i++)
		CHECK(!rbx_region_take(pair->far.endpoint, &pair->far.sg, 1,
				       RBX_REGION_READ, &regions[i]));
	CHECK(rbx_region_take(pair->far.endpoint, &pair->far.sg, 1,
			      RBX_REGION_READ, &third) == -EAGAIN);
	CHECK(!rbx_region_release(regions[0]));
	CHECK(rbx_region_take(pair->far.endpoint, &pair->far.sg, 1, 64,
			      &third) == -EINVAL);
	CHECK(!rbx_region_take(pair->far.endpoint, &pair->far.sg, 1,
			       RBX_REGION_READ, &third));
	return 0;
}
