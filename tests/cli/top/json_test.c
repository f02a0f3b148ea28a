/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json_test.c - each number of a row goes under its own name, and null if not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/top/top.h"

static struct top_report report;

/* The caller releases it. It is a line of its own. */
static json_t *printed(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	json_t *json;

	assert_non_null(out);
	top_json_print(out, &report);
	fclose(out);
	assert_ptr_equal(strchr(text, '\n'), text + bytes - 1);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	free(text);
	return json;
}

static void assert_number(const json_t *row, const char *name, double expected)
{
	const json_t *value = json_object_get(row, name);

	if (!json_is_number(value) || json_number_value(value) != expected)
		fail_msg("%s is not %g", name, expected);
}

static void assert_unknown(const json_t *row, const char *name)
{
	if (!json_is_null(json_object_get(row, name)))
		fail_msg("%s is not null", name);
}

static void assert_text(const json_t *row, const char *name, const char *expected)
{
	assert_string_equal(json_string_value(json_object_get(row, name)), expected);
}

static void server_numbers_have_their_names(void **state)
{
	const json_t *row;
	json_t *json;

	(void)state;
	report = (struct top_report){ .servers_count = 1 };
	report.servers[0] = (struct top_server_row){
		.address = "10.0.0.1:7471", .state = TOP_DRAINING,
		.memory_bytes = 1, .lent_bytes = 2, .clients = 3,
		.read_bytes = 4.5, .written_bytes = 5.5, .operations = 6.5,
		.answer_ns = 7, .uptime_s = 0x1p63, /* more than an integer of JSON holds */
	};
	json = printed();
	assert_true(labs((long)(json_integer_value(json_object_get(json, "time_s")) -
				time(NULL))) < 3600);
	assert_int_equal(json_array_size(json_object_get(json, "volumes")), 0);
	row = json_array_get(json_object_get(json, "servers"), 0);
	assert_text(row, "address", "10.0.0.1:7471");
	assert_text(row, "state", "draining");
	assert_null(json_object_get(row, "error"));
	assert_number(row, "memory_bytes", 1);
	assert_number(row, "lent_bytes", 2);
	assert_number(row, "clients", 3);
	assert_number(row, "read_bytes_per_s", 4.5);
	assert_number(row, "written_bytes_per_s", 5.5);
	assert_number(row, "work_requests_per_s", 6.5);
	assert_number(row, "answer_ns", 7);
	assert_number(row, "uptime_s", 0x1p63);
	json_decref(json);
}

static void server_that_is_down_says_why_and_nothing_else(void **state)
{
	static const char *const numbers[] = {
		"memory_bytes", "lent_bytes", "clients", "read_bytes_per_s",
		"written_bytes_per_s", "work_requests_per_s", "answer_ns", "uptime_s",
	};
	const json_t *row;
	json_t *json;

	(void)state;
	report = (struct top_report){ .servers_count = 1 };
	report.servers[0] = (struct top_server_row){
		.address = "10.0.0.1:7471", .state = TOP_DOWN, .error = "refused",
		.memory_bytes = TOP_UNKNOWN, .lent_bytes = TOP_UNKNOWN,
		.clients = TOP_UNKNOWN, .read_bytes = TOP_UNKNOWN,
		.written_bytes = TOP_UNKNOWN, .operations = TOP_UNKNOWN,
		.answer_ns = TOP_UNKNOWN, .uptime_s = TOP_UNKNOWN,
	};
	json = printed();
	row = json_array_get(json_object_get(json, "servers"), 0);
	assert_text(row, "state", "down");
	assert_text(row, "error", "refused");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		assert_unknown(row, numbers[i]);
	json_decref(json);
}

static void volume_numbers_have_their_names(void **state)
{
	const json_t *row;
	json_t *json;

	(void)state;
	report = (struct top_report){ .volumes_count = 2 };
	report.volumes[0] = (struct top_volume_row){
		.name = "swap", .device = "rdmabox0", .size_bytes = 1, .servers_up = 2,
		.read_bytes = 3.5, .written_bytes = 4.5, .operations = 5.5,
		.read_p99_ns = 6, .write_p99_ns = 7, .window_bytes = 8,
		.inflight_bytes = 9, .polls = 10.5, .empty_polls = 11.5, .whole = 0.75,
		.rebuilding = 12, .lost = 13, .rebuilt_bytes = 14.5,
	};
	strcpy(report.volumes[1].name, "idle");
	json = printed();
	row = json_array_get(json_object_get(json, "volumes"), 0);
	assert_text(row, "name", "swap");
	assert_text(row, "device", "rdmabox0");
	assert_number(row, "size_bytes", 1);
	assert_number(row, "servers_up", 2);
	assert_number(row, "read_bytes_per_s", 3.5);
	assert_number(row, "written_bytes_per_s", 4.5);
	assert_number(row, "requests_per_s", 5.5);
	assert_number(row, "read_latency_p99_ns", 6);
	assert_number(row, "write_latency_p99_ns", 7);
	assert_number(row, "window_bytes", 8);
	assert_number(row, "inflight_bytes", 9);
	assert_number(row, "polls_per_s", 10.5);
	assert_number(row, "empty_polls_per_s", 11.5);
	assert_number(row, "whole", 0.75);
	assert_number(row, "slabs_rebuilding", 12);
	assert_number(row, "slabs_lost", 13);
	assert_number(row, "rebuilt_bytes_per_s", 14.5);
	row = json_array_get(json_object_get(json, "volumes"), 1);
	assert_text(row, "name", "idle");
	assert_unknown(row, "device"); /* it is not attached */
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_numbers_have_their_names),
		cmocka_unit_test(server_that_is_down_says_why_and_nothing_else),
		cmocka_unit_test(volume_numbers_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
