/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * extents_strayed_test.c - a write has failed, and what servers keep of the page and of its
 * checksum may be of different writes: its extents stay noted (core/extents.h, core/tails.h).
 */
#include "tests/core/first_writes.h"

#define EXTENTS_OF_PAGE (RBX_PAGE_BYTES / (HOST_SLAB_BYTES / 64))

/* Whatever is sent of a volume with tails: parts for data end with one status, those for tails with
 * the other. */
static void poll_apart(struct host *host, int32_t data_status, int32_t tail_status)
{
	while (host->sent_first) {
		bool is_tail = rbx_part_of(host->sent_first)->bit >= RBX_PART_OF_TAIL;
		int32_t status = is_tail ? tail_status : data_status;

		(void)host_poll_one(host, 0, status, !status);
	}
}

static uint8_t page[RBX_PAGE_BYTES];

static void write_page(struct host *host, uint32_t nth)
{
	host_start(host, RBX_PIECE_WRITE, nth * RBX_PAGE_BYTES, page, RBX_PAGE_BYTES);
}

static struct host *make_with_tails(void)
{
	struct host *host = host_make_shaped(&(struct rbx_volume_shape){ .replicas = 2,
									 .on_demand = true,
									 .is_named = true,
									 .checksums = true },
					     1, 2);

	write_page(host, 0);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	return host;
}

/* Nothing says whether the checksums that the servers have are those of before. */
static void extent_of_a_write_that_failed_stays_noted(void **state)
{
	const uint64_t strayed = (1u << EXTENTS_OF_PAGE) - 1;
	uint32_t fails_everywhere, nth;

	(void)state;
	for (fails_everywhere = 0; fails_everywhere < 2; fails_everywhere++) {
		struct host *host = make_with_tails();
		struct rbx_extents *extents = extents_of(host);

		assert_false(extents->have_strayed);
		extents->set_max = 1;
		write_page(host, 0);
		if (fails_everywhere)
			poll_apart(host, -EFAULT, 0);
		else
			host_poll_slot(host, 0, -EFAULT, false);
		rounds(host);
		assert_int_equal(host_ended(host, -EFAULT), 1);
		assert_true(extents->have_strayed);
		rbx_extents_track(&host->flow, true);
		assert_int_equal(extents->words[0].noted & strayed, strayed);
		for (nth = 1; nth < 8; nth++) {
			write_page(host, nth);
			rounds(host);
			assert_int_equal(host_ended(host, 0), 1);
			assert_int_equal(extents->words[0].noted,
					 strayed | strayed << nth * EXTENTS_OF_PAGE);
		}
		/* They take nobody's room. */
		assert_int_equal(extents->words[0].counted & strayed, 0);
		rbx_extents_track(&host->flow, true); /* those that are quiet are cleared */
		assert_int_equal(extents->words[0].noted, strayed);
		write_page(host, 0);
		rounds(host);
		assert_int_equal(host_ended(host, 0), 1);
		host_free(host);
	}
}

/* All replicas have the data of a write that failed, so it is the truth. */
static void page_whose_checksums_alone_failed_is_read(void **state)
{
	struct host *host = make_with_tails();
	uint8_t in[RBX_PAGE_BYTES];

	(void)state;
	memset(page, 3, sizeof(page));
	write_page(host, 0);
	poll_apart(host, 0, -EFAULT);
	assert_int_equal(host_ended(host, -EFAULT), 1);
	host_start(host, RBX_PIECE_READ, 0, in, sizeof(in));
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	assert_memory_equal(in, page, sizeof(page));
	memset(page, 0, sizeof(page));
	host_free(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extent_of_a_write_that_failed_stays_noted),
		cmocka_unit_test(page_whose_checksums_alone_failed_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
