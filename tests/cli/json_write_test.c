/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_write_test.c - what becomes of a path that JSON goes to. A text alone is
 * no document, so jansson refuses to write it: that is the write that fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"

static const struct cli_command command = { .name = "test" };
static char folder[] = "/tmp/rdmabox-json.XXXXXX", path[64], aim[64];

static int folder_make(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/json", folder);
	snprintf(aim, sizeof(aim), "%s/aim", folder);
	return 0;
}

static int folder_remove(void **state)
{
	(void)state;
	return rmdir(folder); /* fails if anything was left in it */
}

static int write_good(void)
{
	return cli_json_write(&command, json_pack("{s:i}", "new", 1), path);
}

static int write_failing(void)
{
	return cli_json_write(&command, json_string("no document"), path);
}

static void file_make(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void file_has(const char *name, const char *text)
{
	char found[64] = "";
	FILE *file = fopen(name, "r");

	assert_non_null(file);
	(void)!fread(found, 1, sizeof(found) - 1, file);
	fclose(file);
	assert_non_null(strstr(found, text));
}

static mode_t kind_of(const char *name)
{
	struct stat status;

	return lstat(name, &status) ? 0 : status.st_mode & S_IFMT;
}

static void failed_write_leaves_no_file(void **state)
{
	(void)state;
	assert_true(write_failing() < 0);
	assert_int_equal(kind_of(path), 0);
}

static void failed_write_leaves_the_file_that_was_there(void **state)
{
	(void)state;
	file_make(path, "old");
	assert_true(write_failing() < 0);
	file_has(path, "old");
	assert_int_equal(unlink(path), 0);
}

static void written_file_keeps_its_permissions(void **state)
{
	struct stat status;

	(void)state;
	file_make(path, "old");
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(write_good(), 0);
	file_has(path, "\"new\"");
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	assert_int_equal(unlink(path), 0);
}

/* Somebody may have made the file before us, with rights that are to become ours. */
static void written_file_runs_as_nobody(void **state)
{
	struct stat status;

	(void)state;
	file_make(path, "old");
	assert_int_equal(chmod(path, 06755), 0);
	assert_int_equal(write_good(), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0755);
	assert_int_equal(unlink(path), 0);
}

static void file_of_another_user_stays_his(void **state)
{
	struct stat before, after;

	(void)state;
	file_make(path, "old");
	if (chown(path, 12345, (gid_t)-1)) {
		assert_int_equal(unlink(path), 0);
		skip(); /* only root can */
	}
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(write_good(), 0);
	file_has(path, "\"new\"");
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_uid, 12345);
	assert_true(after.st_ino == before.st_ino);
	assert_int_equal(unlink(path), 0);
}

/* For a device, which only root can make. */
static void pipe_is_written_to_and_stays(void **state)
{
	char text[64] = "";
	int fd;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_true(write_failing() < 0);
	assert_int_equal(kind_of(path), S_IFIFO);
	assert_int_equal(write_good(), 0);
	assert_int_equal(kind_of(path), S_IFIFO);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "\"new\""));
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static void link_is_followed_and_stays(void **state)
{
	(void)state;
	file_make(aim, "old");
	assert_int_equal(symlink(aim, path), 0);
	assert_int_equal(write_good(), 0);
	assert_int_equal(kind_of(path), S_IFLNK);
	file_has(aim, "\"new\"");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(aim), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_write_leaves_no_file),
		cmocka_unit_test(failed_write_leaves_the_file_that_was_there),
		cmocka_unit_test(written_file_keeps_its_permissions),
		cmocka_unit_test(written_file_runs_as_nobody),
		cmocka_unit_test(file_of_another_user_stays_his),
		cmocka_unit_test(pipe_is_written_to_and_stays),
		cmocka_unit_test(link_is_followed_and_stays),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
