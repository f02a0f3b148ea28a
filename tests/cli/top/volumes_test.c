/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* volumes_test.c - volumes from a tree of files as the kernel module has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cli/top/top.h"

static char sys[] = "/tmp/rdmabox-top.XXXXXX";

static void make(const char *path, const char *text)
{
	char whole[256], *slash;
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", sys, path);
	for (slash = whole + 5; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int tree_make(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(sys));
	make("kernel/config/rdmabox/swap/device", "rdmabox0\n");
	make("kernel/config/rdmabox/swap/size", "68719476736\n");
	make("kernel/config/rdmabox/swap/servers_up", "2\n");
	make("kernel/config/rdmabox/swap/slabs", "1024\n");
	make("kernel/config/rdmabox/swap/slabs_blank", "24\n");
	make("kernel/config/rdmabox/swap/slabs_whole", "900\n");
	make("kernel/config/rdmabox/swap/slabs_rebuilding", "1\n");
	make("kernel/config/rdmabox/swap/window_bytes", "262144\n");
	make("block/rdmabox0/rdmabox/read_bytes", "4096000\n");
	make("block/rdmabox0/rdmabox/read_latency_p99_ns", "123456\n");
	make("kernel/config/rdmabox/idle/device", "\n");
	make("kernel/config/rdmabox/idle/size", "1073741824\n");
	make("kernel/config/rdmabox/astray/device", "../other\n");
	make("other/rdmabox/read_bytes", "9\n");
	return 0;
}

static int tree_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", sys);
	return system(command);
}

static const struct top_volume *find(const struct top_volumes *volumes,
				     const char *name)
{
	for (uint32_t i = 0; i < volumes->count; i++)
		if (!strcmp(volumes->list[i].name, name))
			return &volumes->list[i];
	fail_msg("no volume %s", name);
	return NULL;
}

static void volumes_are_read_with_their_devices(void **state)
{
	static struct top_volumes volumes;
	const struct top_volume *volume;

	(void)state;
	top_volumes_read(sys, &volumes);
	assert_int_equal(volumes.count, 3);
	volume = find(&volumes, "swap");
	assert_string_equal(volume->device, "rdmabox0");
	assert_true(volume->size == 64ull << 30);
	assert_int_equal(volume->servers_up, 2);
	assert_int_equal(volume->slabs, 1024);
	assert_int_equal(volume->slabs_whole, 900);
	assert_int_equal(volume->slabs_rebuilding, 1);
	assert_int_equal(volume->window_bytes, 262144);
	assert_int_equal(volume->read_bytes, 4096000);
	assert_int_equal(volume->read_latency_p99_ns, 123456);
	assert_int_equal(volume->write_bytes, 0); /* no such file */
	assert_true(volume->at_ns > 0);
}

static void volume_that_is_not_attached_has_its_size_alone(void **state)
{
	static struct top_volumes volumes;
	const struct top_volume *volume;

	(void)state;
	top_volumes_read(sys, &volumes);
	volume = find(&volumes, "idle");
	assert_string_equal(volume->device, "");
	assert_true(volume->size == 1ull << 30);
	assert_int_equal(volume->read_bytes, 0);
}

static void device_of_another_folder_is_not_read(void **state)
{
	static struct top_volumes volumes;

	(void)state;
	top_volumes_read(sys, &volumes);
	assert_int_equal(find(&volumes, "astray")->read_bytes, 0);
}

/* Sixty characters more than there is room for. */
static void device_name_that_is_too_long_is_cut(void **state)
{
	static struct top_volumes volumes;
	char name[TOP_NAME_MAX + 60];

	(void)state;
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	make("kernel/config/rdmabox/long/device", name);
	top_volumes_read(sys, &volumes);
	assert_int_equal(strnlen(find(&volumes, "long")->device, TOP_NAME_MAX), TOP_NAME_MAX - 1);
}

static void more_volumes_than_have_room_are_left_out(void **state)
{
	static struct {
		struct top_volumes volumes;
		struct top_volume behind;
	} all, before;
	char path[64];

	(void)state;
	for (int i = 0; i <= TOP_VOLUMES_MAX; i++) {
		snprintf(path, sizeof(path), "many/kernel/config/rdmabox/v%d/size", i);
		make(path, "4096\n");
	}
	snprintf(path, sizeof(path), "%s/many", sys);
	memset(&all, 0xa5, sizeof(all));
	memset(&before, 0xa5, sizeof(before));
	top_volumes_read(path, &all.volumes);
	assert_int_equal(all.volumes.count, TOP_VOLUMES_MAX);
	assert_memory_equal(&all.behind, &before.behind, sizeof(all.behind));
}

static void machine_without_the_module_has_none(void **state)
{
	static struct top_volumes volumes = { .count = 7 };

	(void)state;
	top_volumes_read("/nonexistent", &volumes);
	assert_int_equal(volumes.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volumes_are_read_with_their_devices),
		cmocka_unit_test(volume_that_is_not_attached_has_its_size_alone),
		cmocka_unit_test(device_of_another_folder_is_not_read),
		cmocka_unit_test(device_name_that_is_too_long_is_cut),
		cmocka_unit_test(more_volumes_than_have_room_are_left_out),
		cmocka_unit_test(machine_without_the_module_has_none),
	};

	return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
