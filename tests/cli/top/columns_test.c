/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* columns_test.c - what cells say, which fit into a line, and the order of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/top.h"

static void assert_cell(void (*print)(double number, char cell[TOP_CELL_MAX]),
			double number, const char *expected)
{
	char cell[TOP_CELL_MAX];

	print(number, cell);
	assert_string_equal(cell, expected);
}

static void numbers_are_short(void **state)
{
	(void)state;
	assert_cell(top_print_bytes, 0, "0 B");
	assert_cell(top_print_bytes, 1023, "1023 B");
	assert_cell(top_print_bytes, 1024, "1.00 KiB");
	assert_cell(top_print_bytes, 9.994 * 1024, "9.99 KiB");
	assert_cell(top_print_bytes, 9.996 * 1024, "10.0 KiB");
	assert_cell(top_print_bytes, 99.96 * 1024, "100 KiB");
	assert_cell(top_print_bytes, 64.0 * (1 << 20), "64.0 MiB");
	assert_cell(top_print_bytes, 512.0 * (1 << 30), "512 GiB");
	assert_cell(top_print_rate, 999, "999 B");
	assert_cell(top_print_rate, 12340000, "12.3 MB");
	assert_cell(top_print_rate, 5e18, "5000000 TB");
	assert_cell(top_print_count, 7, "7");
	assert_cell(top_print_count, 352998, "353k");
	assert_cell(top_print_ns, 10800, "10.8 us");
	assert_cell(top_print_age, 59, "59 s");
	assert_cell(top_print_age, 61, "1 m 1 s");
	assert_cell(top_print_age, 3600, "1 h 0 m");
	assert_cell(top_print_age, 86400, "1 d 0 h");
	assert_cell(top_print_age, 90061, "1 d 1 h");
	assert_cell(top_print_rate, TOP_UNKNOWN, "-");
	assert_cell(top_print_age, TOP_UNKNOWN, "-");
}

static void line_has_whole_columns_alone(void **state)
{
	struct top_server_row row = { .address = "10.0.0.1:7471",
				      .state = TOP_UP,
				      .lent_bytes = 1 << 20,
				      .memory_bytes = 1 << 30 };
	char line[256];

	(void)state;
	top_line(top_server_columns, top_server_columns_count, &row, line, 41);
	assert_string_equal(line, "10.0.0.1:7471         up       1.00 MiB");
	top_line(top_server_columns, top_server_columns_count, NULL, line, 40);
	assert_string_equal(line, "SERVER                STATE        LENT");
	top_line(top_server_columns, top_server_columns_count, NULL, line, 39);
	assert_string_equal(line, "SERVER                STATE");
	/* 80 are enough for the rates. */
	top_line(top_server_columns, top_server_columns_count, NULL, line, 81);
	assert_non_null(strstr(line, "WR/s"));
}

static void address_longer_than_its_column_ends_with_the_line(void **state)
{
	struct top_server_row row = { .state = TOP_UP };
	char line[256];

	(void)state;
	memset(line, ' ', sizeof(line));
	memset(row.address, 'a', sizeof(row.address) - 1);
	top_line(top_server_columns, top_server_columns_count, &row, line, 64);
	assert_int_equal(strlen(line), 63);
	/* Nothing behind it is looked at or written to. */
	for (size_t i = 64; i < sizeof(line); i++)
		assert_int_equal(line[i], ' ');
}

/* What the line of a volume says in the column of this title. */
static void assert_volume(const struct top_volume_row *row, const char *title,
			  const char *expected)
{
	char cell[TOP_CELL_MAX];

	for (uint32_t i = 0; i < top_volume_columns_count; i++)
		if (!strcmp(top_volume_columns[i].title, title)) {
			top_volume_columns[i].print(row, cell);
			assert_string_equal(cell, expected);
			return;
		}
	fail_msg("no column %s", title);
}

static void volume_columns_say_what_matters_first(void **state)
{
	struct top_volume_row row = { .name = "swap",
				      .size_bytes = 1 << 30,
				      .read_p99_ns = 7000,
				      .write_p99_ns = 9000,
				      .window_bytes = 65536,
				      .inflight_bytes = 4096,
				      .whole = 0.999,
				      .rebuilt_bytes = 3e6 };

	(void)state;
	assert_volume(&row, "DEVICE", "-");
	assert_volume(&row, "R p99", "7.00 us");
	assert_volume(&row, "W p99", "9.00 us");
	assert_volume(&row, "WINDOW", "4.00 KiB/64.0 KiB");
	assert_volume(&row, "COPIES", "99 %"); /* 100 only if all are whole */
	row.rebuilding = 1;
	assert_volume(&row, "COPIES", "99 %, +3.00 MB/s");
	row.lost = 1;
	assert_volume(&row, "COPIES", "1 LOST, 99 %");
}

static const struct top_report three = {
	.servers_count = 3,
	.servers = {
		{ .address = "b", .lent_bytes = 2, .read_bytes = TOP_UNKNOWN },
		{ .address = "c", .lent_bytes = 3, .read_bytes = 1 },
		{ .address = "a", .lent_bytes = 1, .read_bytes = 2 },
	},
	.volumes_count = 2,
	.volumes = { { .name = "y", .size_bytes = 9 },
		     { .name = "x", .size_bytes = 5 } },
};

static void assert_order(const char *key, bool reversed, const char *servers,
			 const char *volumes)
{
	static struct top_report report;
	char order[8];

	report = three;
	top_sort(&report, key, reversed);
	snprintf(order, sizeof(order), "%s%s%s", report.servers[0].address,
		 report.servers[1].address, report.servers[2].address);
	assert_string_equal(order, servers);
	snprintf(order, sizeof(order), "%s%s", report.volumes[0].name,
		 report.volumes[1].name);
	assert_string_equal(order, volumes);
}

static void rows_are_sorted_by_a_key(void **state)
{
	(void)state;
	assert_order("name", false, "abc", "xy");
	assert_order("name", true, "cba", "yx");
	assert_order("lent", false, "cba", "yx");
	assert_order("lent", true, "abc", "xy");
	assert_order("read", false, "acb", "yx");
	/* Volumes have no uptime: they go by the name. */
	assert_order("uptime", false, "bca", "xy");
}

static void keys_go_round(void **state)
{
	const char *key = "name";
	char keys[256] = "";
	int count = 0;

	(void)state;
	do {
		snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys),
			 "%s%s", count ? "|" : "", key);
		key = top_sort_next(key);
	} while (strcmp(key, "name") && ++count < 20);
	assert_string_equal(keys, TOP_SORT_KEYS);
}

static void summary_adds_up(void **state)
{
	static struct top_report report;
	char line[256];

	(void)state;
	report = three;
	report.servers[0].state = TOP_UP;
	report.servers[1].state = TOP_DOWN;
	report.servers[2].state = TOP_DRAINING;
	report.servers[0].memory_bytes = 6;
	top_summary(&report, line, sizeof(line));
	assert_string_equal(line, "2 of 3 servers up, 6 B of 6 B lent, "
				  "read 3 B/s, write 0 B/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_short),
		cmocka_unit_test(line_has_whole_columns_alone),
		cmocka_unit_test(address_longer_than_its_column_ends_with_the_line),
		cmocka_unit_test(volume_columns_say_what_matters_first),
		cmocka_unit_test(rows_are_sorted_by_a_key),
		cmocka_unit_test(keys_go_round),
		cmocka_unit_test(summary_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
