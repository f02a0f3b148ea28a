/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sized_test.c - a program and a library of different versions: the program's
 * structs are shorter or longer than the library's. Each lies in memory of exactly its
 * size, so that a sanitizer sees a byte beyond it.
 */
#include "tests/lib/tenant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/rdmabox/tuning.h"

#define MORE 24u /* bytes that the library does not know */
#define SHORT_OPTIONS offsetof(struct rbx_options, tune_file)
#define SHORT_VOLUME_OPTIONS offsetof(struct rbx_volume_options, event)
#define SHORT_SERVER_OPTIONS offsetof(struct rbx_server_options, message)

static struct rbx_options *options_of(size_t size_bytes)
{
	struct rbx_options *options = malloc(size_bytes);

	memset(options, 0x55, size_bytes);
	rbx_options_defaults_sized(options, size_bytes);
	assert_int_equal(options->size_bytes, size_bytes);
	assert_int_equal(rbx_options_set(options, "fabric=soft:tcp"), 0);
	assert_int_equal(rbx_options_set(options, "fragment_bytes=64K"), 0);
	assert_int_equal(options->size_bytes, size_bytes);
	return options;
}

static void assert_opens(const struct rbx_options *options)
{
	struct rbx_context *ctx;
	char text[4096];

	if (rbx_open(&ctx, options))
		fail_msg("%s", rbx_last_error());
	rbx_describe(ctx, text, sizeof(text));
	assert_non_null(strstr(text, "fabric=soft:tcp\n"));
	assert_non_null(strstr(text, "fragment_bytes=65536\n"));
	assert_non_null(strstr(text, "tune_file=\n"));
	rbx_close(ctx);
}

static void options_of_an_older_program_are_taken(void **state)
{
	struct rbx_options *options = options_of(SHORT_OPTIONS);

	(void)state;
	assert_opens(options);
	assert_int_equal(rbx_options_set(options, "tune_file=none"), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "tune_file"));
	free(options);
}

static void options_of_a_newer_program_are_taken_if_it_asks_for_nothing(
	void **state)
{
	size_t size_bytes = sizeof(struct rbx_options) + MORE;
	struct rbx_options *options = options_of(size_bytes);
	char *last = (char *)options + size_bytes - 1;
	struct rbx_context *ctx;

	(void)state;
	assert_opens(options);
	*last = 1;
	assert_int_equal(rbx_open(&ctx, options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "not zero"));
	assert_int_equal(rbx_options_set(options, "window=1M"), -EINVAL);
	assert_int_equal(*last, 1);
	free(options);
}

static struct rbx_server *server_of(size_t size_bytes)
{
	struct rbx_server_options *options = malloc(size_bytes), all;
	struct rbx_server *server;

	tenant_server_options(&all);
	memset(options, 0x55, size_bytes);
	rbx_server_options_defaults_sized(options, size_bytes);
	assert_int_equal(options->lease_ms, 60000);
	memcpy(options, &all,
	       size_bytes < sizeof(all) ? size_bytes : sizeof(all));
	options->size_bytes = size_bytes;
	if (rbx_server_start(&server, options))
		fail_msg("%s", rbx_last_error());
	if (size_bytes > sizeof(all)) {
		struct rbx_server *none;

		((char *)options)[size_bytes - 1] = 1;
		assert_int_equal(rbx_server_start(&none, options), -EINVAL);
	}
	free(options);
	return server;
}

static void assert_volume_opens(struct rbx_context *ctx,
				struct rbx_server *server, size_t size_bytes)
{
	struct rbx_volume_options *options = malloc(size_bytes);
	struct rbx_volume_status *status = malloc(size_bytes);
	struct rbx_volume *volume;
	const char *address = rbx_server_address(server);

	memset(options, 0x55, size_bytes);
	rbx_volume_options_defaults_sized(options, size_bytes);
	assert_int_equal(options->replicas, 1);
	if (rbx_volume_open(ctx, &volume, address, 1 << 20, options))
		fail_msg("%s", rbx_last_error());
	memset(status, 0x55, size_bytes);
	rbx_volume_status_sized(volume, status, size_bytes);
	assert_int_equal(status->slabs, 1);
	assert_int_equal(status->slabs_whole, 1);
	if (size_bytes > sizeof(struct rbx_volume_options)) {
		assert_int_equal(((char *)status)[size_bytes - 1], 0);
		((char *)options)[size_bytes - 1] = 1;
		assert_int_equal(rbx_volume_open(ctx, &volume, address, 1 << 20,
						 options),
				 -EINVAL);
	}
	rbx_volume_close(volume);
	free(status);
	free(options);
}

static void assert_stats_fit(struct rbx_context *ctx, struct rbx_server *server,
			     size_t size_bytes, size_t stats_bytes,
			     size_t server_stats_bytes)
{
	struct rbx_stats *stats = calloc(1, size_bytes);
	struct rbx_server_stats *server_stats = calloc(1, size_bytes);

	memset(stats, 0x55, size_bytes);
	rbx_stats_get_sized(ctx, stats, size_bytes);
	assert_int_equal(stats->size_bytes, stats_bytes);
	if (size_bytes > sizeof(*stats))
		assert_int_equal(((char *)stats)[size_bytes - 1], 0);
	memset(server_stats, 0x55, size_bytes);
	rbx_server_stats_get_sized(server, server_stats, size_bytes);
	assert_int_equal(server_stats->size_bytes, server_stats_bytes);
	assert_true(server_stats->memory_bytes > 0);
	if (size_bytes > sizeof(*server_stats))
		assert_int_equal(((char *)server_stats)[size_bytes - 1], 0);
	memset(server_stats, 0x55, size_bytes);
	assert_int_equal(rbx_server_query_sized(ctx, rbx_server_address(server),
						server_stats, size_bytes),
			 0);
	assert_int_equal(server_stats->size_bytes, server_stats_bytes);
	if (size_bytes > sizeof(*server_stats))
		assert_int_equal(((char *)server_stats)[size_bytes - 1], 0);
	free(server_stats);
	free(stats);
}

static void volumes_servers_and_numbers_of_another_version(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_server *older = server_of(SHORT_SERVER_OPTIONS);
	struct rbx_server *newer =
		server_of(sizeof(struct rbx_server_options) + MORE);

	(void)state;
	assert_volume_opens(ctx, older, SHORT_VOLUME_OPTIONS);
	assert_volume_opens(ctx, newer,
			    sizeof(struct rbx_volume_options) + MORE);
	assert_stats_fit(ctx, older, 16, 16, 16);
	assert_stats_fit(ctx, newer, 4096, sizeof(struct rbx_stats),
			 sizeof(struct rbx_server_stats));
	rbx_close(ctx);
	rbx_server_stop(newer);
	rbx_server_stop(older);
}

static void tuning_of_another_version_is_taken(void **state)
{
	size_t first_bytes = offsetof(struct rbx_tuning, queue_pairs);
	struct rbx_tuning *tuning = calloc(1, sizeof(*tuning) + MORE);
	struct rbx_context *ctx = tenant_context("");
	char path[] = "/tmp/rdmabox-sized.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(path));
	tuning->size_bytes = sizeof(*tuning) + MORE;
	/* Refused for the path, and not for the size. */
	assert_int_not_equal(rbx_tuning_save(ctx, path, tuning), 0);
	assert_null(strstr(rbx_last_error(), "struct rbx_tuning"));
	tuning->size_bytes = first_bytes;
	assert_int_not_equal(rbx_tuning_save(ctx, path, tuning), 0);
	assert_null(strstr(rbx_last_error(), "struct rbx_tuning"));
	tuning->size_bytes = first_bytes - 1;
	assert_int_equal(rbx_tuning_save(ctx, path, tuning), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "struct rbx_tuning"));
	rmdir(path);
	free(tuning);
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_of_an_older_program_are_taken),
		cmocka_unit_test(
			options_of_a_newer_program_are_taken_if_it_asks_for_nothing),
		cmocka_unit_test(volumes_servers_and_numbers_of_another_version),
		cmocka_unit_test(tuning_of_another_version_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
