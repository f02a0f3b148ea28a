/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* connects.c - tests of private data, of refusals, and of requests that are not answered. */
#include <linux/jiffies.h>

#include "kernel/test/pair.h"

/* The received bytes, after which zeros may follow. */
static bool is_padded(const u8 *bytes, size_t length, const u8 *said,
		      size_t said_length)
{
	size_t i;

	if (length < said_length || memcmp(bytes, said, said_length))
		return false;
	for (i = said_length; i < length; i++)
		if (bytes[i])
			return false;
	return true;
}

static void say(struct rbx_endpoint_data *data, u8 *bytes, size_t length, u8 seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (u8)(seed + 7 * i + 1);
	*data = (struct rbx_endpoint_data){ bytes, length };
}

int test_private_data(struct pair *pair)
{
	struct rbx_endpoint_limits limits;
	u8 near[64], far[256];
	struct rbx_endpoint *first_near, *first_far;

	rbx_endpoint_limits(pair->near.domain, &limits);
	CHECK(limits.connect_data_max == 56 && limits.accept_data_max == 196);
	say(&pair->near_says, near, limits.connect_data_max, 1);
	say(&pair->far_says, far, limits.accept_data_max, 2);
	CHECK(!pair_connect(pair));
	CHECK(pair->heard_bytes == limits.connect_data_max);
	CHECK(!memcmp(pair->heard, near, limits.connect_data_max));
	CHECK(pair->answered_bytes == limits.accept_data_max);
	CHECK(!memcmp(pair->answered, far, limits.accept_data_max));
	CHECK(rbx_endpoint_send_depth(pair->near.endpoint) == PAIR_DEPTH);

	first_near = pair->near.endpoint;
	first_far = pair->far.endpoint;
	say(&pair->near_says, near, 3, 3);
	say(&pair->far_says, far, 5, 4);
	CHECK(!pair_connect(pair));
	CHECK(!rbx_endpoint_close(first_near) && !rbx_endpoint_close(first_far));
	CHECK(is_padded(pair->heard, pair->heard_bytes, near, 3));
	CHECK(is_padded(pair->answered, pair->answered_bytes, far, 5));
	return 0;
}

int test_refusal(struct pair *pair)
{
	struct rbx_endpoint_limits limits;
	u8 far[256];

	rbx_endpoint_limits(pair->far.domain, &limits);
	CHECK(limits.reject_data_max == 148);
	say(&pair->far_says, far, limits.reject_data_max, 9);
	pair->refuses = true;
	CHECK(pair_connect(pair) == -EBUSY);
	CHECK(pair->answered_bytes == limits.reject_data_max);
	CHECK(!memcmp(pair->answered, far, limits.reject_data_max));
	say(&pair->far_says, far, 1, 17);
	CHECK(pair_connect(pair) == -EBUSY);
	CHECK(is_padded(pair->answered, pair->answered_bytes, far, 1));
	pair->refuses = false;
	return pair_connect(pair);
}

int test_nobody_listens(struct pair *pair)
{
	struct rbx_endpoint_options options = pair->options;
	char address[80];

	strscpy(address, pair->address, sizeof(address));
	rbx_endpoint_listener_close(pair->listener);
	pair->listener = NULL;
	CHECK(rbx_endpoint_connect(pair->near.domain, address, &options, NULL,
				   NULL, &pair->near.endpoint) == -ECONNREFUSED);
	return 0;
}

/* Also: its place in the list is free again. */
int test_nobody_answers(struct pair *pair)
{
	struct rbx_endpoint_options options = pair->options;
	struct rbx_endpoint_request *request;
	unsigned long begin = jiffies;
	u32 took_ms;

	options.timeout_ms = PAIR_WAIT_MS;
	CHECK(rbx_endpoint_connect(pair->near.domain, pair->address, &options,
				   NULL, NULL, &pair->near.endpoint) == -EBUSY);
	took_ms = jiffies_to_msecs(jiffies - begin);
	CHECK(took_ms >= 4900 && took_ms < PAIR_WAIT_MS);
	CHECK(rbx_endpoint_next_request(pair->listener, 0, &request) == -EAGAIN);
	return pair_connect(pair);
}

int test_bad_options(struct pair *pair)
{
	const struct rbx_endpoint_options good = pair->options;
	struct rbx_endpoint_options options = good;
	struct rbx_endpoint_limits limits;
	struct rbx_endpoint_data data = { pair->heard, 57 };
	struct rbx_endpoint *endpoint;

	rbx_endpoint_limits(pair->near.domain, &limits);
#define REFUSED(field, value)                                                     \
	do {                                                                      \
		options = good;                                                   \
		options.field = (value);                                          \
		CHECK(rbx_endpoint_connect(pair->near.domain, pair->address,      \
					   &options, NULL, NULL, &endpoint) ==    \
		      -EINVAL);                                                   \
	} while (0)
	REFUSED(completed, NULL);
	REFUSED(send_depth, limits.send_depth_max + 1);
	REFUSED(receive_depth, limits.receive_depth_max + 1);
	REFUSED(segments, limits.segments_max + 1);
	REFUSED(receive_segments, limits.receive_segments_max + 1);
	REFUSED(region_pages, limits.region_pages_max + 1);
	REFUSED(regions, 257);
#undef REFUSED
	CHECK(rbx_endpoint_connect(pair->near.domain, pair->address, &good, &data,
				   NULL, &endpoint) == -EINVAL);
	CHECK(rbx_endpoint_connect(pair->near.domain, "here", &good, NULL, NULL,
				   &endpoint) == -EINVAL);
	return 0;
}
