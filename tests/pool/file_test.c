/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * file_test.c - a pool that is a file: changed in place, replaced, truncated, removed for a
 * while, reached by links; and a list beside it, which does not change.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "tests/pool/pool_watch.h"

static char folder[64];

static const char *path_of(const char *name)
{
	static char paths[4][256];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void rename_file(const char *from, const char *to)
{
	assert_int_equal(rename(path_of(from), path_of(to)), 0);
}

static struct rbx_pool *open_pool(const char *name)
{
	struct rbx_pool *pool;
	char text[300];
	int err;

	snprintf(text, sizeof(text), "file:%s", path_of(name));
	err = rbx_pool_open(&pool, text);
	if (err)
		fail_msg("%s: %d, %s", text, err, rbx_last_error());
	return pool;
}

static int open_error(const char *text)
{
	struct rbx_pool *pool;

	return rbx_pool_open(&pool, text);
}

static int start(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/rdmabox-pool.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int stop(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void list_has_its_servers_and_no_trouble(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	assert_int_equal(rbx_pool_open(&pool, "a:1,[::1]:2"), 0);
	pool_becomes(pool, "a:1,[::1]:2", "");
	assert_int_equal(rbx_pool_close(pool), 0);
	assert_int_equal(open_error("a:1,,b:1"), -EINVAL);
	assert_int_equal(open_error("a:1,a:1"), -EINVAL);
	assert_string_equal(rbx_last_error(), "server a:1 is named twice");
	assert_int_equal(open_error(""), -EINVAL);
}

static void file_that_is_missing_or_broken_cannot_be_opened(void **state)
{
	char text[300];

	(void)state;
	snprintf(text, sizeof(text), "file:%s", path_of("pool"));
	assert_int_equal(open_error(text), -ENOENT);
	write_file("pool", "a:1\nb\n");
	assert_int_equal(open_error(text), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "/pool:2: "));
	write_file("pool", "# nobody\n");
	assert_int_equal(open_error(text), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "no line has a server"));
	snprintf(text, sizeof(text), "file:%s", folder);
	assert_int_equal(open_error(text), -EINVAL);
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	snprintf(text, sizeof(text), "file:%s", path_of("fifo"));
	assert_int_equal(open_error(text), -EINVAL);
	assert_int_equal(open_error("file:"), -EINVAL);
}

static void file_without_end_is_refused(void **state)
{
	char text[300];

	(void)state;
	write_file("pool", "");
	assert_int_equal(truncate(path_of("pool"), 2 << 20), 0);
	snprintf(text, sizeof(text), "file:%s", path_of("pool"));
	assert_int_equal(open_error(text), -EFBIG);
}

static void file_changed_in_place_is_read_again(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	write_file("pool", "a:1\n");
	pool = open_pool("pool");
	pool_becomes(pool, "a:1", "");
	write_file("pool", "a:1\nb:1\n");
	pool_becomes(pool, "a:1,b:1", "");
	rbx_pool_close(pool);
}

static void file_replaced_by_rename_is_read_again_each_time(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	write_file("pool", "a:1\n");
	pool = open_pool("pool");
	for (int i = 0; i < 20; i++) {
		char text[32];

		snprintf(text, sizeof(text), "h%d:1\n", i);
		write_file("new", text);
		rename_file("new", "pool");
		text[strlen(text) - 1] = '\0';
		pool_becomes(pool, text, "");
	}
	rbx_pool_close(pool);
}

static void broken_file_leaves_the_members_in_force(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	write_file("pool", "a:1\n");
	pool = open_pool("pool");
	write_file("pool", "b:1\nc\n");
	pool_becomes(pool, "a:1", "/pool:2: \"c\" is no address");
	write_file("pool", "");
	pool_becomes(pool, "a:1", "no line has a server");
	write_file("pool", "b:1\n");
	pool_becomes(pool, "b:1", "");
	rbx_pool_close(pool);
}

static void file_removed_for_a_while_leaves_the_members_in_force(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	write_file("pool", "a:1\n");
	pool = open_pool("pool");
	assert_int_equal(unlink(path_of("pool")), 0);
	pool_becomes(pool, "a:1", "No such file");
	write_file("pool", "b:1\n");
	pool_becomes(pool, "b:1", "");
	rbx_pool_close(pool);
}

/* As Kubernetes does it: pool -> ..data/pool, ..data -> ..1, then ..2. */
static void link_to_a_folder_that_is_swapped_is_seen(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	assert_int_equal(mkdir(path_of("..1"), 0777), 0);
	write_file("..1/pool", "a:1\n");
	assert_int_equal(symlink("..1", path_of("..data")), 0);
	assert_int_equal(symlink("..data/pool", path_of("pool")), 0);
	pool = open_pool("pool");
	pool_becomes(pool, "a:1", "");
	assert_int_equal(mkdir(path_of("..2"), 0777), 0);
	write_file("..2/pool", "b:1\n");
	assert_int_equal(symlink("..2", path_of("..tmp")), 0);
	rename_file("..tmp", "..data");
	pool_becomes(pool, "b:1", "");
	/* And what a link leads to, in its own folder. */
	write_file("..2/pool", "c:1\n");
	pool_becomes(pool, "c:1", "");
	rbx_pool_close(pool);
}

/* Of this inotify tells nothing: the folder that it watched is another one. */
static void folder_that_was_replaced_is_found_by_looking(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	assert_int_equal(mkdir(path_of("one"), 0777), 0);
	write_file("one/pool", "a:1\n");
	pool = open_pool("one/pool");
	rename_file("one", "old");
	pool_becomes(pool, "a:1", "No such file");
	assert_int_equal(mkdir(path_of("two"), 0777), 0);
	write_file("two/pool", "b:1\n");
	rename_file("two", "one");
	pool_becomes(pool, "b:1", "");
	write_file("one/pool", "c:1\n");
	pool_becomes(pool, "c:1", "");
	rbx_pool_close(pool);
}

static void members_are_cut_to_the_room_that_is_given(void **state)
{
	struct rbx_pool_member two[2];
	struct rbx_pool *pool;

	(void)state;
	assert_int_equal(rbx_pool_open(&pool, "a:1,b:1,c:1"), 0);
	assert_int_equal(rbx_pool_members_get(pool, two, 2), 3);
	assert_string_equal(two[1].address, "b:1");
	assert_int_equal(rbx_pool_members_get(pool, NULL, 0), 3);
	rbx_pool_close(pool);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(list_has_its_servers_and_no_trouble),
		TEST(file_that_is_missing_or_broken_cannot_be_opened),
		TEST(file_without_end_is_refused),
		TEST(file_changed_in_place_is_read_again),
		TEST(file_replaced_by_rename_is_read_again_each_time),
		TEST(broken_file_leaves_the_members_in_force),
		TEST(file_removed_for_a_while_leaves_the_members_in_force),
		TEST(link_to_a_folder_that_is_swapped_is_seen),
		TEST(folder_that_was_replaced_is_found_by_looking),
		TEST(members_are_cut_to_the_room_that_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
