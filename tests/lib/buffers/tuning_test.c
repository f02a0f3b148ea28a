/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tuning_test.c - the tuning file: what is read of it, what goes before it, and
 * that no file whatever keeps a program from starting or is overwritten that is
 * something else.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/context.h"

static char folder[64]; /* of this test */
static char path[96]; /* a file in it */

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/rdmabox-tuning.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/tune.json", folder);
	return 0;
}

static int remove_folder(void **state)
{
	char below[128];

	(void)state;
	unlink(path);
	snprintf(below, sizeof(below), "%s/rdmabox/tune.json", folder);
	unlink(below);
	*strrchr(below, '/') = 0;
	rmdir(below);
	return rmdir(folder);
}

static void write_text(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct rbx_context *open_with(const char *settings)
{
	char all[256];

	snprintf(all, sizeof(all), "fabric=soft:tcp tune_file=%s %s", path,
		 settings);
	return tenant_context(all);
}

/* The value of a line of rbx_describe(). */
static const char *described(struct rbx_context *ctx, const char *key)
{
	static char text[4096];
	char *rest = text, *line;

	rbx_describe(ctx, text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, key, strlen(key)) &&
		    line[strlen(key)] == '=')
			return line + strlen(key) + 1;
	fail_msg("nothing is said of %s", key);
	return "";
}

static void save(struct rbx_context *ctx, uint64_t break_even_bytes,
		 uint32_t queue_pairs)
{
	struct rbx_tuning tuning = {
		.size_bytes = sizeof(tuning),
		.break_even_bytes = break_even_bytes,
		.queue_pairs = queue_pairs,
	};

	if (rbx_tuning_save(ctx, path, &tuning))
		fail_msg("%s", rbx_last_error());
}

static void what_was_saved_is_taken_by_the_next_open(void **state)
{
	struct rbx_context *ctx = open_with("device=registered");

	(void)state;
	assert_int_equal(ctx->options.queue_pairs, 1);
	save(ctx, 123 << 12, 4);
	rbx_close(ctx);
	ctx = open_with("device=registered");
	assert_int_equal(ctx->options.queue_pairs, 4);
	assert_string_equal(described(ctx, "queue_pairs"), "4");
	assert_int_equal(ctx->buffers.register_from_bytes, 123 << 12);
	assert_string_equal(described(ctx, "tuning"), path);
	assert_non_null(strstr(described(ctx, "registering"), "tuning file"));
	rbx_close(ctx);
}

static void option_that_was_set_goes_before_the_file(void **state)
{
	struct rbx_context *ctx = open_with("device=registered");

	(void)state;
	save(ctx, 1 << 20, 4);
	rbx_close(ctx);
	ctx = open_with("device=registered queue_pairs=2 buffers=direct");
	assert_int_equal(ctx->options.queue_pairs, 2);
	assert_int_equal(ctx->buffers.register_from_bytes, 0);
	rbx_close(ctx);
	ctx = open_with("device=registered buffers=staging");
	assert_int_equal(ctx->buffers.register_from_bytes, UINT64_MAX);
	rbx_close(ctx);
	ctx = tenant_context("fabric=soft:tcp device=registered tune_file=none "
			     "buffers=staging");
	assert_int_equal(ctx->options.queue_pairs, 1);
	assert_string_equal(described(ctx, "tuning"), "none: as asked");
	rbx_close(ctx);
}

/* Also by programs of other users. */
static void saved_file_can_be_read_by_all(void **state)
{
	struct rbx_context *ctx = open_with("");
	struct stat status;

	(void)state;
	save(ctx, 4096, 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0644);
	rbx_close(ctx);
}

static void never_is_kept_as_never(void **state)
{
	struct rbx_context *ctx = open_with("device=registered");

	(void)state;
	save(ctx, UINT64_MAX, 0);
	rbx_close(ctx);
	ctx = open_with("device=registered");
	assert_int_equal(ctx->buffers.register_from_bytes, UINT64_MAX);
	assert_int_equal(ctx->options.queue_pairs, 1);
	rbx_close(ctx);
}

static void saving_keeps_what_it_does_not_know_and_other_devices(void **state)
{
	struct rbx_context *one = open_with("device=registered");
	struct rbx_context *other = open_with("");

	(void)state;
	save(one, 4096, 0);
	save(other, 0, 3);
	save(one, 0, 2);
	rbx_close(one);
	rbx_close(other);
	one = open_with("device=registered");
	assert_int_equal(one->tuning.break_even_bytes, 4096);
	assert_int_equal(one->tuning.queue_pairs, 2);
	rbx_close(one);
	other = open_with("");
	assert_int_equal(other->tuning.break_even_bytes, 0);
	assert_int_equal(other->tuning.queue_pairs, 3);
	rbx_close(other);
}

static void default_file_lies_in_the_folder_of_settings(void **state)
{
	struct rbx_tuning tuning = { .size_bytes = sizeof(tuning),
				     .queue_pairs = 5 };
	struct rbx_context *ctx;

	(void)state;
	setenv("XDG_CONFIG_HOME", folder, 1);
	ctx = tenant_context("fabric=soft:tcp");
	assert_int_equal(ctx->options.queue_pairs, 1);
	assert_non_null(strstr(described(ctx, "tuning"), "/rdmabox/tune.json"));
	assert_int_equal(rbx_tuning_save(ctx, NULL, &tuning), 0);
	rbx_close(ctx);
	ctx = tenant_context("fabric=soft:tcp");
	assert_int_equal(ctx->options.queue_pairs, 5);
	rbx_close(ctx);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

static void default_path_is_told(void **state)
{
	char path[64] = "";

	(void)state;
	assert_int_equal(rbx_tuning_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, "/nonexistent/rdmabox/tune.json");
	assert_int_equal(rbx_tuning_default_path(path, strlen(path)),
			 -ENAMETOOLONG);
	assert_int_equal(rbx_tuning_default_path(NULL, 0), -EINVAL);
	unsetenv("XDG_CONFIG_HOME");
	setenv("HOME", "/of", 1);
	assert_int_equal(rbx_tuning_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, "/of/.config/rdmabox/tune.json");
	setenv("XDG_CONFIG_HOME", "not/absolute", 1);
	assert_int_equal(rbx_tuning_default_path(path, sizeof(path)), 0);
	assert_string_equal(path, "/of/.config/rdmabox/tune.json");
	setenv("HOME", "", 1);
	assert_int_equal(rbx_tuning_default_path(path, sizeof(path)), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "no home folder"));
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

#define DEVICE(fields)                                                        \
	"{\"version\":1,\"devices\":{\"soft tcp\":" fields "}}"

static void bad_file_is_told_and_does_not_matter(void **state)
{
	static const char *const bad[] = {
		"", "\n", "{", "[]", "null", "\x00\xff garbage", "{}",
		"{\"version\":2,\"devices\":{}}", "{\"version\":1}",
		"{\"version\":1,\"devices\":[]}",
		"{\"version\":1,\"version\":1,\"devices\":{}}",
		DEVICE("[]"), DEVICE("7"), DEVICE("null"),
		DEVICE("{\"queue_pairs\":0}"), DEVICE("{\"queue_pairs\":17}"),
		DEVICE("{\"queue_pairs\":\"2\"}"),
		DEVICE("{\"queue_pairs\":1.5}"),
		DEVICE("{\"break_even_bytes\":-1}"),
		DEVICE("{\"break_even_bytes\":0}"),
		DEVICE("{\"break_even_bytes\":true}"),
		DEVICE("{\"break_even_bytes\":99999999999999999999}"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rbx_context *ctx;

		write_text(bad[i]);
		ctx = open_with("");
		if (strncmp(described(ctx, "tuning"), "warning: ", 9) ||
		    !strstr(described(ctx, "tuning"), path))
			fail_msg("%s: \"%s\"", bad[i],
				 described(ctx, "tuning"));
		assert_int_equal(ctx->options.queue_pairs, 1);
		rbx_close(ctx);
	}
}

static void bad_entry_is_replaced_by_the_next_save(void **state)
{
	struct rbx_context *ctx;

	(void)state;
	write_text(DEVICE("7"));
	ctx = open_with("");
	save(ctx, 0, 3);
	rbx_close(ctx);
	ctx = open_with("");
	assert_int_equal(ctx->options.queue_pairs, 3);
	rbx_close(ctx);
}

static void file_that_is_too_long_is_not_read(void **state)
{
	static char spaces[(1 << 20) + 1];
	struct rbx_context *ctx;
	FILE *file;

	(void)state;
	write_text(DEVICE("{\"queue_pairs\":3}"));
	ctx = open_with("");
	assert_int_equal(ctx->options.queue_pairs, 3);
	rbx_close(ctx);
	memset(spaces, ' ', sizeof(spaces) - 1);
	file = fopen(path, "a");
	assert_non_null(file);
	fputs(spaces, file);
	fclose(file);
	ctx = open_with("");
	assert_int_equal(ctx->options.queue_pairs, 1);
	assert_non_null(strstr(described(ctx, "tuning"), "at most 1 MiB"));
	rbx_close(ctx);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void what_is_no_file_is_told_and_hangs_nobody(void **state)
{
	int descriptors_count = count_descriptors();
	struct rbx_context *ctx;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	ctx = open_with("");
	assert_int_equal(strncmp(described(ctx, "tuning"), "warning: ", 9), 0);
	rbx_close(ctx);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	ctx = open_with("");
	assert_int_equal(strncmp(described(ctx, "tuning"), "warning: ", 9), 0);
	rbx_close(ctx);
	rmdir(path);
	ctx = open_with("");
	assert_int_equal(strncmp(described(ctx, "tuning"), "none: no /", 10),
			 0);
	rbx_close(ctx);
	write_text("{\"version\":1,\"devices\":{\"verbs x:1\":{}}}");
	ctx = open_with("");
	assert_non_null(strstr(described(ctx, "tuning"),
			       "says nothing of soft tcp"));
	rbx_close(ctx);
	assert_int_equal(count_descriptors(), descriptors_count);
}

static void file_of_something_else_is_not_overwritten(void **state)
{
	struct rbx_tuning tuning = { .size_bytes = sizeof(tuning) };
	struct rbx_context *ctx = tenant_context("fabric=soft:tcp");
	char text[16] = "";
	FILE *file;

	(void)state;
	write_text("dear diary");
	assert_int_equal(rbx_tuning_save(ctx, path, &tuning), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "not overwritten"));
	file = fopen(path, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, "dear diary");
	rbx_close(ctx);
}

static void saving_where_nothing_can_be_written_fails_with_the_reason(void **state)
{
	struct rbx_tuning tuning = { .size_bytes = sizeof(tuning) };
	struct rbx_context *ctx = tenant_context("fabric=soft:tcp");
	char missing[sizeof(path) + 16];

	(void)state;
	snprintf(missing, sizeof(missing), "%s.missing/tune", path);
	assert_int_equal(rbx_tuning_save(ctx, missing, &tuning), -ENOENT);
	assert_non_null(strstr(rbx_last_error(), missing));
	assert_int_equal(rbx_tuning_save(ctx, "/proc/tune", &tuning), -ENOENT);
	tuning.queue_pairs = 17;
	assert_int_equal(rbx_tuning_save(ctx, path, &tuning), -EINVAL);
	tuning = (struct rbx_tuning){ 0 };
	assert_int_equal(rbx_tuning_save(ctx, path, &tuning), -EINVAL);
	assert_int_equal(rbx_tuning_save(NULL, path, &tuning), -EINVAL);
	rbx_close(ctx);
}

/* remove_folder() finds out if half a file is left beside it. */
static void file_stays_as_it_was_if_there_is_no_room_for_a_new_one(void **state)
{
	struct rbx_tuning tuning = { .size_bytes = sizeof(tuning),
				     .queue_pairs = 7 };
	struct rlimit before, limit;
	struct rbx_context *ctx = open_with("");

	(void)state;
	save(ctx, 0, 3);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 16;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(rbx_tuning_save(ctx, path, &tuning), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	rbx_close(ctx);
	ctx = open_with("");
	assert_int_equal(ctx->options.queue_pairs, 3);
	rbx_close(ctx);
}

int main(void)
{
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(what_was_saved_is_taken_by_the_next_open),
		TEST(option_that_was_set_goes_before_the_file),
		TEST(saved_file_can_be_read_by_all),
		TEST(never_is_kept_as_never),
		TEST(saving_keeps_what_it_does_not_know_and_other_devices),
		TEST(default_file_lies_in_the_folder_of_settings),
		TEST(default_path_is_told),
		TEST(bad_file_is_told_and_does_not_matter),
		TEST(bad_entry_is_replaced_by_the_next_save),
		TEST(file_that_is_too_long_is_not_read),
		TEST(what_is_no_file_is_told_and_hangs_nobody),
		TEST(file_of_something_else_is_not_overwritten),
		TEST(saving_where_nothing_can_be_written_fails_with_the_reason),
		TEST(file_stays_as_it_was_if_there_is_no_room_for_a_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
