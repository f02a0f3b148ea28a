/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tails_test.c - where the device finds the checksums that servers keep (core/tails.h). */
#include "core/checksum.h"
#include "core/tails.h"
#include "tests/core/first_writes.h"

#define ADDR 0x7000u

static uint8_t page[RBX_PAGE_BYTES];

static void write_page(struct host *host)
{
	memset(page, 5, sizeof(page));
	host_start(host, RBX_PIECE_WRITE, 0, page, sizeof(page));
}

static struct host *make_with_tails(void)
{
	const struct rbx_volume_shape shape = {
		.replicas = 2, .on_demand = true, .is_named = true, .checksums = true
	};
	struct host *host = host_make_shaped(&shape, 1, 2);

	write_page(host);
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host->shown = NULL;
	return host;
}

/* How many parts for tails were sent; all of them from this address. */
static uint32_t sent_from(const struct host *host, uint64_t addr)
{
	struct rbx_fragment *fragment;
	uint32_t count = 0;

	for (fragment = host->sent_first; fragment; fragment = rbx_fragment_next(fragment)) {
		if (rbx_part_of(fragment)->bit < RBX_PART_OF_TAIL)
			continue;
		assert_int_equal(fragment->local_addr, addr);
		count++;
	}
	return count;
}

static void end(struct host *host)
{
	rounds(host);
	assert_int_equal(host_ended(host, 0), 1);
	host_free(host);
}

static void checksums_are_shown_to_the_device_before_they_are_sent(void **state)
{
	struct host *host = make_with_tails();

	(void)state;
	write_page(host);
	assert_non_null(host->shown);
	assert_int_equal(*rbx_piece_checksums(host->shown), rbx_checksum_of(page));
	assert_int_equal(sent_from(host, (uintptr_t)rbx_piece_checksums(host->shown)), 2);
	end(host);
}

static void read_shows_no_checksums(void **state)
{
	struct host *host = make_with_tails();

	(void)state;
	host_start(host, RBX_PIECE_READ, 0, page, sizeof(page));
	assert_null(host->shown);
	end(host);
}

static void tails_are_written_from_where_the_device_finds_the_checksums(void **state)
{
	struct host *host = make_with_tails();
	struct rbx_piece_list list = { 0 };
	struct rbx_node *node;

	(void)state;
	assert_int_equal(rbx_piece_pool_take(&host->flow.pool, HOST_PIECES, &list), 0);
	for (node = list.first; node; node = node->next)
		rbx_tails_relocate(rbx_piece_of(node), ADDR);
	(void)rbx_piece_pool_give(&host->flow.pool, &list);
	write_page(host);
	assert_int_equal(sent_from(host, ADDR), 2);
	/* A device has come that sees it elsewhere. */
	rbx_tails_relocate(host->shown, 2 * ADDR);
	assert_int_equal(sent_from(host, 2 * ADDR), 2);
	assert_int_equal(host->shown->parts[0].fragment.local_addr, host_device_addr(page));
	end(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_are_shown_to_the_device_before_they_are_sent),
		cmocka_unit_test(read_shows_no_checksums),
		cmocka_unit_test(tails_are_written_from_where_the_device_finds_the_checksums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
