/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * on_demand_test.c - a volume that borrows a slab when it is first written to, and
 * gives back what is discarded.
 */
#include <unistd.h>

#include "tests/lib/fake_volume.h"

static struct rbx_volume *open_on_demand(const char *list, uint32_t replicas,
					 uint32_t checksums)
{
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	rbx_volume_options_defaults(&options);
	options.replicas = replicas;
	options.checksums = checksums;
	options.on_demand = 1;
	assert_int_equal(rbx_volume_open(ctx, &volume, list, VOLUME_BYTES,
					 &options),
			 0);
	return volume;
}

static uint32_t lent_count(void)
{
	uint32_t i, count = 0;

	for (i = 0; i < 4; i++)
		count += fake_server_lent_count(servers[i]);
	return count;
}

static void on_demand_first_write_borrows_its_slab_alone(void **state)
{
	static uint8_t in[2 * CELL_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume = open_on_demand("a:1,b:1,c:1", 2, 0);
	struct rbx_volume_status status;
	size_t i;

	(void)state;
	assert_int_equal(lent_count(), 0);
	memset(out, 0xee, sizeof(out));
	assert_int_equal(rbx_read(volume, out, sizeof(out), 0), 0);
	for (i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], 0);
	assert_int_equal(fake_network_fragments_count(), 0);
	memset(in, 5, sizeof(in));
	assert_int_equal(rbx_write(volume, in, sizeof(in), SLAB_BYTES + 100),
			 0);
	assert_int_equal(lent_count(), 2);
	rbx_volume_status(volume, &status);
	assert_int_equal(status.slabs, 4);
	assert_int_equal(status.slabs_blank, 3);
	assert_int_equal(status.slabs_whole, 1);
	assert_int_equal(status.slabs_lost, 0);
	assert_int_equal(rbx_read(volume, out, sizeof(out), 0), 0);
	for (i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], i >= SLAB_BYTES + 100 &&
						 i < SLAB_BYTES + 100 +
							     sizeof(in) ?
					 5 :
					 0);
	rbx_volume_close(volume);
}

static void wait_lent(uint32_t count)
{
	uint32_t ms;

	for (ms = 0; ms < PATIENCE_MS && lent_count() != count; ms++)
		usleep(1000);
	assert_int_equal(lent_count(), count);
}

static void discard_gives_whole_slabs_back(void **state)
{
	static uint8_t in[VOLUME_BYTES], out[VOLUME_BYTES];
	struct rbx_volume *volume = open_on_demand("a:1,b:1", 2, 1);

	(void)state;
	fill(volume, in);
	assert_int_equal(lent_count(), 8);
	/* Slab 1 is in it, of 0 and 2 a part. */
	assert_int_equal(rbx_volume_discard(volume, SLAB_BYTES - 4096,
					    SLAB_BYTES + 8192),
			 0);
	memset(in + SLAB_BYTES, 0, SLAB_BYTES);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	wait_lent(6);
	/* Written again, the rest of it is zeros still. */
	memset(in + SLAB_BYTES + 8192, 9, 4096);
	assert_int_equal(rbx_write(volume, in + SLAB_BYTES + 8192, 4096,
				   SLAB_BYTES + 8192),
			 0);
	assert_int_equal(rbx_read(volume, out, VOLUME_BYTES, 0), 0);
	assert_memory_equal(in, out, VOLUME_BYTES);
	assert_int_equal(rbx_volume_discard(volume, 0, VOLUME_BYTES), 0);
	wait_lent(0);
	rbx_volume_close(volume);
}

static void discard_that_is_not_possible_is_refused(void **state)
{
	struct rbx_volume *volume = open_volume("a:1", 1, 0);

	(void)state;
	assert_int_equal(rbx_volume_discard(volume, 0, VOLUME_BYTES),
			 -EOPNOTSUPP);
	assert_int_equal(rbx_volume_discard(volume, 4096, VOLUME_BYTES),
			 -EINVAL);
	assert_int_equal(rbx_volume_discard(NULL, 0, 0), -EINVAL);
	rbx_volume_close(volume);
}

static void on_demand_no_server_lends_the_write_fails_alone(void **state)
{
	static uint8_t buf[4096];
	struct rbx_volume *volume = open_on_demand("a:1", 1, 0);

	(void)state;
	fake_server_set_refuse(servers[0], -ENOSPC);
	assert_int_equal(rbx_write(volume, buf, sizeof(buf), 0), -ENOSPC);
	assert_int_equal(rbx_read(volume, buf, sizeof(buf), 0), 0);
	fake_server_set_refuse(servers[0], 0);
	assert_int_equal(rbx_write(volume, buf, sizeof(buf), 0), 0);
	rbx_volume_close(volume);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(on_demand_first_write_borrows_its_slab_alone),
		TEST(discard_gives_whole_slabs_back),
		TEST(discard_that_is_not_possible_is_refused),
		TEST(on_demand_no_server_lends_the_write_fails_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
