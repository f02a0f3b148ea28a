/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_limit_test.c - a context on a device that has few queue pairs.
 *
 * No device here has so few. So this program has an rbx_fabric_choose() of its own,
 * which stands in for lib/fabric_choice.c: the soft device, of which open() says
 * that it has three.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <string.h>

#include "lib/fabric_choice.h"

#define QUEUE_PAIRS_MAX 3u

static struct rbx_fabric_ops small_ops;

static int open_small(const struct rbx_device_options *options,
		      struct rbx_device **out, char error[RBX_ERROR_TEXT_MAX])
{
	int err = rbx_fabric_soft.open(options, out, error);

	if (!err)
		(*out)->caps.max_qp = QUEUE_PAIRS_MAX;
	return err;
}

int rbx_fabric_choose(const char *fabric, const char *device, int gid_index,
		      const char *address, struct rbx_fabric_choice *choice)
{
	(void)fabric;
	(void)device;
	(void)gid_index;
	(void)address;
	memset(choice, 0, sizeof(*choice));
	small_ops = rbx_fabric_soft;
	small_ops.open = open_small;
	choice->ops = &small_ops;
	return 0;
}

static int open_with(uint32_t queue_pairs)
{
	struct rbx_options options;
	struct rbx_context *ctx;
	int err;

	rbx_options_defaults(&options);
	options.queue_pairs = queue_pairs;
	err = rbx_open(&ctx, &options);
	if (!err)
		rbx_close(ctx);
	return err;
}

static void queue_pairs_up_to_those_of_the_device_are_taken(void **state)
{
	(void)state;
	for (uint32_t count = 0; count <= QUEUE_PAIRS_MAX; count++)
		assert_int_equal(open_with(count), 0);
}

static void queue_pairs_beyond_the_device_are_refused_with_the_limit(void **state)
{
	(void)state;
	assert_int_equal(open_with(QUEUE_PAIRS_MAX + 1), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "queue_pairs=4"));
	assert_non_null(strstr(rbx_last_error(), "has 3 at most"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_pairs_up_to_those_of_the_device_are_taken),
		cmocka_unit_test(
			queue_pairs_beyond_the_device_are_refused_with_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
