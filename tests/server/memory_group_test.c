/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_group_test.c - trees of control groups, played in a folder, and what a
 * server makes of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "server/memory_group.h"
#include "tests/server/world.h"

#define MIB (1ull << 20)

static char root[64];

static int tree_make(void **state)
{
	(void)state;
	strcpy(root, "/tmp/rdmabox-groups.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tree_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command);
}

static void folder_make(const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	assert_int_equal(mkdir(whole, 0700), 0);
}

static void file_write(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

static bool read_as(const char *groups, struct rbx_memory_group *group)
{
	char path[128];

	file_write("/groups", groups);
	snprintf(path, sizeof(path), "%s/groups", root);
	return rbx_memory_group_read(path, root, group);
}

static void least_of_all_groups_counts(void **state)
{
	struct rbx_memory_group group;
	char expected[128];

	(void)state;
	folder_make("/outer");
	folder_make("/outer/inner");
	file_write("/outer/memory.max", "157286400\n");
	file_write("/outer/memory.current", "52428800\n");
	file_write("/outer/memory.stat",
		   "anon 1\nfile 2\ninactive_file 10485760\nactive_file 7\n");
	file_write("/outer/inner/memory.max", "max\n");
	file_write("/outer/inner/memory.current", "52428800\n");
	assert_true(read_as("0::/outer/inner\n", &group));
	assert_int_equal(group.limit_bytes, 150 * MIB);
	assert_int_equal(group.available_bytes, 110 * MIB);
	snprintf(expected, sizeof(expected), "%s/outer", root);
	assert_string_equal(group.name, expected);
	/* The inner one has less left, though a higher limit. */
	file_write("/outer/inner/memory.max", "209715200\n");
	file_write("/outer/inner/memory.current", "208666624\n");
	assert_true(read_as("0::/outer/inner\n", &group));
	assert_int_equal(group.limit_bytes, 150 * MIB);
	assert_int_equal(group.available_bytes, 1 * MIB);
}

static void nothing_else_is_taken_back_by_the_kernel(void **state)
{
	struct rbx_memory_group group;

	(void)state;
	folder_make("/job");
	file_write("/job/memory.max", "157286400\n");
	file_write("/job/memory.current", "52428800\n");
	file_write("/job/memory.stat", "anon 1\nfile 10485760\n");
	assert_true(read_as("0::/job\n", &group));
	assert_int_equal(group.available_bytes, 100 * MIB);
}

static void version_1_is_understood(void **state)
{
	struct rbx_memory_group group;

	(void)state;
	folder_make("/memory");
	folder_make("/memory/job");
	file_write("/memory/memory.limit_in_bytes", "9223372036854771712\n");
	file_write("/memory/memory.usage_in_bytes", "1048576\n");
	assert_false(read_as("3:cpu,cpuacct:/job\n4:memory:/\n0::/\n", &group));
	file_write("/memory/job/memory.limit_in_bytes", "8388608\n");
	file_write("/memory/job/memory.usage_in_bytes", "9388608\n");
	assert_true(read_as("3:cpu:/\n4:x,memory:/job\n0::/\n", &group));
	assert_int_equal(group.limit_bytes, 8 * MIB);
	assert_int_equal(group.available_bytes, 0);
}

static void no_group_is_no_limit(void **state)
{
	struct rbx_memory_group group;

	(void)state;
	assert_false(rbx_memory_group_read("/nonexistent", root, &group));
	assert_false(read_as("0::/\n", &group));
	assert_false(read_as("nonsense\n::::\n0::/not/there\n\n", &group));
}

static void more_than_there_is_is_refused(void **state)
{
	struct rbx_server *server = NULL;
	struct rbx_server_options options;
	struct sysinfo machine;

	(void)state;
	assert_int_equal(sysinfo(&machine), 0);
	rbx_server_options_defaults(&options);
	strcpy(options.listen, "127.0.0.1:0");
	strcpy(options.fabric, "soft:tcp");
	options.slab_bytes = 1ull << 30;
	options.memory_bytes = ((uint64_t)machine.totalram * machine.mem_unit /
				options.slab_bytes + 2) * options.slab_bytes;
	assert_int_equal(rbx_server_start(&server, &options), -ENOMEM);
	assert_non_null(strstr(rbx_last_error(), "cannot lend"));
	assert_non_null(strstr(rbx_last_error(), "in all"));
	options.overcommit = 1;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	rbx_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(least_of_all_groups_counts,
						tree_make, tree_remove),
		cmocka_unit_test_setup_teardown(
			nothing_else_is_taken_back_by_the_kernel, tree_make,
			tree_remove),
		cmocka_unit_test_setup_teardown(version_1_is_understood,
						tree_make, tree_remove),
		cmocka_unit_test_setup_teardown(no_group_is_no_limit, tree_make,
						tree_remove),
		cmocka_unit_test(more_than_there_is_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
