/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* page_pool_test.c - a pool becomes the list that the kernel takes (cli/page/pool.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/page/page.h"

static const struct cli_command command = { .name = "page attach" };
static char path[64];
static char pool[PAGE_VALUE_MAX];

static int make_file(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/rdmabox-page-pool.%d", (int)getpid());
	snprintf(pool, sizeof(pool), "file:%s", path);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_lines(const char *format, unsigned int count)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (unsigned int i = 0; i < count; i++)
		fprintf(file, format, i % 256, i);
	assert_int_equal(fclose(file), 0);
}

static void list_stays(void **state)
{
	(void)state;
	strcpy(pool, "10.0.0.1:7471,[fe80::1]:7472");
	assert_int_equal(page_pool_resolve(&command, pool), CLI_EXIT_OK);
	assert_string_equal(pool, "10.0.0.1:7471,[fe80::1]:7472");
}

static void members_of_a_file_become_a_list(void **state)
{
	(void)state;
	write_lines("10.0.0.%u:747%u rack=1\n", 3);
	assert_int_equal(page_pool_resolve(&command, pool), CLI_EXIT_OK);
	assert_string_equal(pool, "10.0.0.0:7470,10.0.0.1:7471,10.0.0.2:7472");
}

static void what_is_no_pool_is_refused(void **state)
{
	(void)state;
	strcpy(pool, "zookeeper://10.0.0.1:2181/db");
	assert_int_equal(page_pool_resolve(&command, pool), CLI_EXIT_USAGE);
	strcpy(pool, "10.0.0.1:7471,10.0.0.1:7471");
	assert_int_equal(page_pool_resolve(&command, pool), CLI_EXIT_USAGE);
	strcpy(pool, "file:/nowhere");
	assert_int_equal(page_pool_resolve(&command, pool), CLI_EXIT_USAGE);
}

static void more_than_the_kernel_takes_is_refused(void **state)
{
	(void)state;
	write_lines("host-of-a-name-that-is-long-%u:7%03u\n", 200);
	assert_int_equal(page_pool_resolve(&command, pool), CLI_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_stays),
		cmocka_unit_test_setup_teardown(members_of_a_file_become_a_list, make_file,
						remove_file),
		cmocka_unit_test(what_is_no_pool_is_refused),
		cmocka_unit_test_setup_teardown(more_than_the_kernel_takes_is_refused, make_file,
						remove_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
