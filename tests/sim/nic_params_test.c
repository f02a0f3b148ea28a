/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nic_params_test.c - the files that come with the model, and those that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/nic/params.h"

static char text[65536];
static char error[RBX_NIC_ERROR_MAX];

static void read_good(const char *name, struct rbx_nic_params *params)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.conf", RBX_NIC_GENERATIONS, name);
	if (rbx_nic_params_read(path, params, error))
		fail_msg("%s", error);
}

/* The text of a good file. */
static void load(void)
{
	FILE *file = fopen(RBX_NIC_GENERATIONS "/connectx3.conf", "r");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, sizeof(text) - 256, file);
	text[length] = '\0';
	fclose(file);
}

/* Puts `line` in the place of the line that begins with `key`; returns which. */
static uint32_t replace(const char *key, const char *line)
{
	char *at = strstr(text, key), *end;
	uint32_t number = 1;

	assert_non_null(at);
	end = at + strcspn(at, "\n");
	for (char *c = text; c < at; c++)
		number += *c == '\n';
	memmove(at + strlen(line), end, strlen(end) + 1);
	memcpy(at, line, strlen(line));
	return number;
}

static void expect_refused(uint32_t line, const char *what)
{
	struct rbx_nic_params params;
	char start[32];

	assert_int_equal(rbx_nic_params_parse(text, "x.conf", &params, error),
			 -EINVAL);
	snprintf(start, sizeof(start), "x.conf:%u: ", line);
	if (strncmp(error, start, strlen(start)) || !strstr(error, what))
		fail_msg("\"%s\" has not \"%s\" and \"%s\"", error, start, what);
}

static void files_that_come_with_it_are_read(void **state)
{
	struct rbx_nic_params params;

	(void)state;
	read_good("connectx3", &params);
	assert_string_equal(params.name, "ConnectX-3");
	assert_int_equal(params.link_mbps, 54540);
	assert_int_equal(params.recv_wr_max, 16351);
	read_good("connectx5", &params);
	assert_string_equal(params.name, "ConnectX-5");
}

/* Where a value comes from stands behind it. */
static void each_value_has_its_source(void **state)
{
	static const char *const names[] = { "connectx3", "connectx5" };
	char path[512], line[512];

	(void)state;
	for (int i = 0; i < 2; i++) {
		FILE *file;
		int number = 0;

		snprintf(path, sizeof(path), "%s/%s.conf", RBX_NIC_GENERATIONS,
			 names[i]);
		file = fopen(path, "r");
		assert_non_null(file);
		while (fgets(line, sizeof(line), file)) {
			const char *source = strchr(line, '#');

			number++;
			if (!strchr(line, '=') || !strncmp(line, "name", 4) ||
			    (source && source < strchr(line, '=')))
				continue;
			if (!source || strlen(source) < 6)
				fail_msg("%s:%d: no source", path, number);
		}
		fclose(file);
	}
}

static void unknown_key_is_named(void **state)
{
	(void)state;
	load();
	expect_refused(replace("cores", "coress = 3"),
		       "coress: no such key; there are name, cores, ");
}

static void missing_key_is_named(void **state)
{
	uint32_t lines = 1;

	(void)state;
	load();
	replace("link_ns", "");
	for (char *c = text; *c; c++)
		lines += *c == '\n' && c[1];
	expect_refused(lines, "link_ns: is missing");
}

static void bad_number_is_told_with_its_bounds(void **state)
{
	(void)state;
	load();
	expect_refused(replace("cores", "cores = many"), "whole number");
	load();
	expect_refused(replace("cores", "cores = -1"), "whole number");
	load();
	expect_refused(replace("cores", "cores = 16 GB"), "whole number");
	load();
	expect_refused(replace("cores", "cores ="), "whole number");
	load();
	expect_refused(replace("cores", "cores = 0"), "0 is not from 1 to 256");
	load();
	expect_refused(replace("cores", "cores = 99999999999999999999"),
		       "whole number");
	load();
	expect_refused(replace("name", "name ="), "1 to 63 characters");
	load();
	expect_refused(replace("cores", "cores"), "`key = value` is wanted");
}

static void key_that_comes_twice_is_refused(void **state)
{
	uint32_t first;
	char what[64];

	(void)state;
	load();
	first = replace("cores", "cores = 3");
	snprintf(what, sizeof(what), "cores: stands in line %u already", first);
	expect_refused(replace("post_wqe_ns", "cores = 4"), what);
}

static void file_that_is_not_there_is_named(void **state)
{
	struct rbx_nic_params params;

	(void)state;
	assert_int_equal(rbx_nic_params_read("/nonexistent/x", &params, error),
			 -ENOENT);
	assert_non_null(strstr(error, "/nonexistent/x: "));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_come_with_it_are_read),
		cmocka_unit_test(each_value_has_its_source),
		cmocka_unit_test(unknown_key_is_named),
		cmocka_unit_test(missing_key_is_named),
		cmocka_unit_test(bad_number_is_told_with_its_bounds),
		cmocka_unit_test(key_that_comes_twice_is_refused),
		cmocka_unit_test(file_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
