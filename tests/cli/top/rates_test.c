/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rates_test.c - rows of servers and volumes from two samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/top.h"

#define SECOND_NS 1000000000ull

/* Asked at 10 s and at 12 s of a server that moved something. */
static struct top_server moving(void)
{
	struct top_server server = {
		.address = "10.0.0.1:7471",
		.before = { .at_ns = 10 * SECOND_NS },
		.now = { .at_ns = 12 * SECOND_NS, .took_ns = 70000 },
	};

	server.before.stats = (struct rbx_server_stats){
		.uptime_s = 100, .reads = 10, .read_bytes = 40960,
		.writes = 5, .written_bytes = 1000,
	};
	server.now.stats = (struct rbx_server_stats){
		.uptime_s = 102, .reads = 30, .read_bytes = 122880,
		.writes = 9, .written_bytes = 5000,
		.memory_bytes = 1 << 20, .lent_bytes = 1 << 19, .clients = 3,
	};
	return server;
}

static struct top_server_row row_of(const struct top_server *server,
				    uint64_t now_ns)
{
	struct top_server_row row;

	top_server_row_make(server, now_ns, &row);
	return row;
}

static void server_rates_are_of_a_second(void **state)
{
	struct top_server server = moving();
	struct top_server_row row = row_of(&server, 12 * SECOND_NS);

	(void)state;
	assert_int_equal(row.state, TOP_UP);
	assert_string_equal(row.address, "10.0.0.1:7471");
	assert_true(row.read_bytes == 40960 && row.written_bytes == 2000);
	assert_true(row.operations == 12);
	assert_true(row.lent_bytes == 1 << 19 && row.memory_bytes == 1 << 20);
	assert_true(row.clients == 3 && row.uptime_s == 102);
	assert_true(row.answer_ns == 70000);
}

static void server_asked_once_has_no_rates(void **state)
{
	struct top_server server = moving();
	struct top_server_row row;

	(void)state;
	server.before.at_ns = 0;
	row = row_of(&server, 12 * SECOND_NS);
	assert_true(row.read_bytes == TOP_UNKNOWN);
	assert_true(row.operations == TOP_UNKNOWN);
	assert_true(row.clients == 3);
}

static void server_started_anew_has_no_rates(void **state)
{
	struct top_server server = moving();
	struct top_server_row row;

	(void)state;
	server.now.stats.uptime_s = 1;
	row = row_of(&server, 12 * SECOND_NS);
	assert_true(row.read_bytes == TOP_UNKNOWN);
	/* Nor one asked twice at once. */
	server = moving();
	server.before.at_ns = server.now.at_ns;
	row = row_of(&server, 12 * SECOND_NS);
	assert_true(row.read_bytes == TOP_UNKNOWN);
	/* Nor one whose counters tell it alone. */
	server = moving();
	server.now.stats.read_bytes = 1;
	row = row_of(&server, 12 * SECOND_NS);
	assert_true(row.read_bytes == TOP_UNKNOWN && row.written_bytes == 2000);
}

static void server_that_does_not_see_traffic_has_no_rates(void **state)
{
	struct top_server server = moving();
	struct top_server_row row;

	(void)state;
	server.before.stats.reads = server.now.stats.reads = RBX_SERVER_NOT_SEEN;
	server.before.stats.read_bytes = server.now.stats.read_bytes =
		RBX_SERVER_NOT_SEEN;
	row = row_of(&server, 12 * SECOND_NS);
	assert_true(row.read_bytes == TOP_UNKNOWN);
	assert_true(row.operations == TOP_UNKNOWN);
}

static void server_states_are_told_apart(void **state)
{
	struct top_server server = { .address = "x" };

	(void)state;
	assert_int_equal(row_of(&server, SECOND_NS).state, TOP_ASKED);
	server = moving();
	server.asked_ns = 12 * SECOND_NS;
	assert_int_equal(row_of(&server, 13 * SECOND_NS).state, TOP_UP);
	assert_int_equal(row_of(&server, 15 * SECOND_NS).state, TOP_SILENT);
	assert_true(row_of(&server, 15 * SECOND_NS).read_bytes == TOP_UNKNOWN);
	assert_true(row_of(&server, 15 * SECOND_NS).lent_bytes == 1 << 19);
	server.asked_ns = 0;
	server.now.stats.draining = 1;
	assert_int_equal(row_of(&server, 15 * SECOND_NS).state, TOP_DRAINING);
	server.asked_ns = 12 * SECOND_NS;
	assert_int_equal(row_of(&server, 15 * SECOND_NS).state, TOP_SILENT);
	server.is_down = true;
	strcpy(server.error, "refused");
	assert_int_equal(row_of(&server, 15 * SECOND_NS).state, TOP_DOWN);
	assert_true(row_of(&server, 15 * SECOND_NS).lent_bytes == TOP_UNKNOWN);
	assert_string_equal(row_of(&server, 15 * SECOND_NS).error, "refused");
}

static void volume_rates_and_rebuild_are_shown(void **state)
{
	struct top_volume before = { .at_ns = 4 * SECOND_NS,
				     .read_requests = 100,
				     .read_bytes = 409600,
				     .polls = 50,
				     .empty_polls = 10 };
	struct top_volume now = { .name = "swap",
				  .device = "rdmabox0",
				  .size = 1 << 20,
				  .servers_up = 3,
				  .at_ns = 8 * SECOND_NS,
				  .read_requests = 140,
				  .write_requests = 4,
				  .read_bytes = 819200,
				  .write_bytes = 16384,
				  .polls = 90,
				  .empty_polls = 30,
				  .slabs = 16,
				  .slabs_blank = 6,
				  .slabs_whole = 7,
				  .slabs_rebuilding = 1,
				  .slabs_lost = 2,
				  .rebuilt_bytes = 4000,
				  .read_latency_p99_ns = 7000,
				  .write_latency_p99_ns = 9000,
				  .inflight_bytes = 4096,
				  .window_bytes = 65536 };
	struct top_volume_row row;

	(void)state;
	top_volume_row_make(&now, &before, &row);
	assert_string_equal(row.name, "swap");
	assert_string_equal(row.device, "rdmabox0");
	assert_true(row.size_bytes == 1 << 20 && row.servers_up == 3);
	assert_true(row.read_bytes == 102400 && row.written_bytes == 4096);
	assert_true(row.operations == 11 && row.polls == 10);
	assert_true(row.empty_polls == 5 && row.lost == 2);
	assert_true(row.read_p99_ns == 7000 && row.write_p99_ns == 9000);
	assert_true(row.whole > 0.699 && row.whole < 0.701);
	assert_true(row.rebuilding == 1 && row.rebuilt_bytes == 1000);
	assert_true(row.window_bytes == 65536 && row.inflight_bytes == 4096);
	top_volume_row_make(&now, NULL, &row);
	assert_true(row.read_bytes == TOP_UNKNOWN && row.polls == TOP_UNKNOWN);
	/* One that nothing was written to has lost nothing. */
	now.slabs_blank = 16;
	now.slabs_whole = 0;
	top_volume_row_make(&now, NULL, &row);
	assert_true(row.whole == 1);
	/* Files are read one after the other, so they need not go together. */
	now.slabs_blank = 17;
	top_volume_row_make(&now, NULL, &row);
	assert_true(row.whole == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_rates_are_of_a_second),
		cmocka_unit_test(server_asked_once_has_no_rates),
		cmocka_unit_test(server_started_anew_has_no_rates),
		cmocka_unit_test(server_that_does_not_see_traffic_has_no_rates),
		cmocka_unit_test(server_states_are_told_apart),
		cmocka_unit_test(volume_rates_and_rebuild_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
