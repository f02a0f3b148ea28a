/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options_test.c - defaults, texts, and what is refused with which words. */
#include "tests/lib/tenant.h"

#include "fabric/fabric.h"
#include "lib/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct rbx_options options;

static int set_defaults(void **state)
{
	(void)state;
	rbx_options_defaults(&options);
	return 0;
}

static void assert_set(const char *key_value)
{
	if (rbx_options_set(&options, key_value))
		fail_msg("%s: %s", key_value, rbx_last_error());
}

/* Refused, with each of the words in the text, and nothing is changed. */
static void assert_refused(const char *key_value, const char *word,
			   const char *other_word)
{
	struct rbx_options before = options;

	if (rbx_options_set(&options, key_value) != -EINVAL)
		fail_msg("%s was taken", key_value);
	if (!strstr(rbx_last_error(), word) ||
	    !strstr(rbx_last_error(), other_word))
		fail_msg("%s: \"%s\" says nothing of \"%s\" and \"%s\"",
			 key_value, rbx_last_error(), word, other_word);
	assert_memory_equal(&before, &options, sizeof(options));
}

static void options_defaults_are_as_documented(void **state)
{
	(void)state;
	assert_int_equal(options.size_bytes, sizeof(options));
	assert_string_equal(options.fabric, "auto");
	assert_string_equal(options.device, "");
	assert_int_equal(options.gid_index, -1);
	assert_string_equal(options.mode, "hybrid");
	assert_string_equal(options.buffers, "auto");
	assert_string_equal(options.polling, "adaptive");
	assert_string_equal(options.window, "auto");
	assert_null(options.congestion);
	assert_int_equal(options.window_work_requests, 0);
	assert_int_equal(options.fragment_bytes, 128 << 10);
	assert_int_equal(options.queue_pairs, 0);
	assert_int_equal(options.pollers, 1);
	assert_int_equal(options.requests_max, 4096);
	assert_int_equal(options.peer_timeout_ms, 5000);
	assert_string_equal(options.secret_file, "");
	assert_int_equal(options.insecure, 0);
	assert_string_equal(options.tune_file, "");
	assert_int_equal(options.on_demand_paging, 0);
	assert_int_equal(options.traffic_class, 0);
	assert_string_equal(options.credential, "");
	assert_int_equal(options.integrity, RBX_INTEGRITY_DEFAULT);
}

static void integrity_is_one_of_its_words(void **state)
{
	(void)state;
	assert_set("integrity=tls");
	assert_int_equal(options.integrity, RBX_INTEGRITY_TLS);
	assert_set("integrity=mac");
	assert_int_equal(options.integrity, RBX_INTEGRITY_MAC);
	assert_set("integrity=off");
	assert_int_equal(options.integrity, RBX_INTEGRITY_OFF);
	assert_set("integrity=default");
	assert_int_equal(options.integrity, RBX_INTEGRITY_DEFAULT);
	assert_refused("integrity=TLS", "must be one of", "default|off|mac|tls");
	assert_refused("integrity=3", "must be one of", "default|off|mac|tls");
}

static void options_set_by_text_changes_the_field(void **state)
{
	(void)state;
	assert_set("fabric=soft:tcp");
	assert_string_equal(options.fabric, "soft:tcp");
	assert_set("device=mlx5_0:1");
	assert_string_equal(options.device, "mlx5_0:1");
	assert_set("gid_index=3");
	assert_int_equal(options.gid_index, 3);
	assert_set("gid_index=-1");
	assert_int_equal(options.gid_index, -1);
	assert_set("mode=merge");
	assert_string_equal(options.mode, "merge");
	assert_set("buffers=staging");
	assert_string_equal(options.buffers, "staging");
	assert_set("window=3M");
	assert_string_equal(options.window, "3M");
	assert_set("window=off");
	assert_set("overload=64:20");
	assert_set("overload=0:9999");
	assert_set("overload=off");
	assert_set("window=aimd");
	assert_set("window=delay");
	assert_set("window=auto");
	assert_string_equal(options.window, "auto");
	assert_set("window=1m");
	assert_set("window=1g");
	assert_set("window=64KiB");
	assert_set("window=64kib");
	assert_set("window_work_requests=64");
	assert_int_equal(options.window_work_requests, 64);
	assert_set("fragment_bytes=64K");
	assert_int_equal(options.fragment_bytes, 64 << 10);
	assert_set("queue_pairs=16");
	assert_int_equal(options.queue_pairs, 16);
	assert_set("pollers=0");
	assert_int_equal(options.pollers, 0);
	assert_set("pollers=peer");
	assert_true(options.pollers == RBX_POLLERS_PEER);
	assert_set("pollers=queue_pair");
	assert_true(options.pollers == RBX_POLLERS_QUEUE_PAIR);
	assert_set("poll_cpu_percent=1");
	assert_int_equal(options.poll_cpu_percent, 1);
	assert_set("requests_max=65536");
	assert_int_equal(options.requests_max, 65536);
	assert_set("peer_timeout_ms=100");
	assert_int_equal(options.peer_timeout_ms, 100);
	assert_set("secret_file=/etc/secret=1");
	assert_string_equal(options.secret_file, "/etc/secret=1");
	assert_set("credential=A-z.0_9");
	assert_string_equal(options.credential, "A-z.0_9");
	assert_set("insecure=1");
	assert_int_equal(options.insecure, 1);
	assert_set("on_demand_paging=1");
	assert_int_equal(options.on_demand_paging, 1);
	assert_set("traffic_class=104");
	assert_int_equal(options.traffic_class, 104);
	assert_set("tune_file=none");
	assert_string_equal(options.tune_file, "none");
}

static void sizes_are_read_and_bounded(void **state)
{
	uint64_t bytes = 7;

	(void)state;
	assert_int_equal(rbx_size_parse("0", &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(rbx_size_parse("3TiB", &bytes), 0);
	assert_true(bytes == 3ull << 40);
	assert_int_equal(rbx_size_parse("18446744073709551615", &bytes), 0);
	assert_true(bytes == UINT64_MAX);
	assert_int_equal(rbx_size_parse("18446744073709551616", &bytes),
			 -EINVAL);
	assert_int_equal(rbx_size_parse("16777216T", &bytes), -EINVAL);
	assert_int_equal(rbx_size_parse("", &bytes), -EINVAL);
	assert_int_equal(rbx_size_parse("-1", &bytes), -EINVAL);
	assert_int_equal(rbx_size_parse("1 M", &bytes), -EINVAL);
	assert_int_equal(rbx_size_parse(NULL, &bytes), -EINVAL);
	assert_true(bytes == UINT64_MAX);
}

static void options_polling_takes_each_form(void **state)
{
	static const char *const forms[] = {
		"polling=busy",		   "polling=event",
		"polling=event-batch:1",   "polling=event-batch:16384",
		"polling=hybrid",	   "polling=adaptive",
		"polling=adaptive:0",	   "polling=adaptive:120",
		"polling=adaptive:120:1",  "polling=adaptive:120:32",
		"polling=shared:1",	   "polling=shared:16"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		assert_set(forms[i]);
}

static void options_bad_value_is_refused_and_named(void **state)
{
	(void)state;
	assert_refused("window", "window", "key=value");
	assert_refused("=1", "no option", "window");
	assert_refused("windows=1", "windows", "window_work_requests");
	assert_refused("fabric=soft:udp", "fabric=soft:udp", "soft:tcp");
	assert_refused("fabric=", "fabric=", "verbs");
	assert_refused("fabric=auto|verbs", "fabric", "auto");
	assert_refused("mode=both", "mode=both", "hybrid");
	assert_refused("mode=a-name-that-is-far-too-long", "mode", "longer");
	assert_refused("buffers=fast", "buffers=fast", "staging");
	assert_refused("window=", "window=", "must be off, aimd, delay, auto");
	assert_refused("window=0", "window=0", "must be off");
	assert_refused("window=on", "window=on", "must be off");
	assert_refused("window=1X", "window=1X", "K, M, G");
	assert_refused("window=1KB", "window=1KB", "K, M, G");
	assert_refused("window=1Ki", "window=1Ki", "K, M, G");
	assert_refused("window= 1M", "window= 1M", "K, M, G");
	assert_refused("window=1KK", "window=1KK", "K, M, G");
	assert_refused("window=-1", "window=-1", "to 512G");
	assert_refused("window=4095", "window=4095", "one fragment to 512G");
	assert_refused("window=513G", "window=513G", "to 512G");
	assert_refused("window=9999999999999999", "longer than", "");
	assert_refused("overload=", "overload=", "64:20");
	assert_refused("overload=64", "overload=64", "64:20");
	assert_refused("overload=64:0", "overload=64:0", "1 to 9999");
	assert_refused("overload=64:-1", "overload=64:-1", "1 to 9999");
	assert_refused("overload=64:20:3", "overload=64:20:3", "64:20");
	assert_refused("overload=100000:1", "overload=100000:1", "99999");
	assert_refused("fragment_bytes=2K", "fragment_bytes=2K", "4096");
	assert_refused("fragment_bytes=512K", "fragment_bytes=512K", "262144");
	assert_refused("fragment_bytes=5000", "fragment_bytes=5000", "power of two");
	assert_refused("queue_pairs=-1", "queue_pairs=-1", "0 to 16");
	assert_refused("queue_pairs=17", "queue_pairs=17", "0 to 16");
	assert_refused("queue_pairs=4294967297", "queue_pairs", "0 to 16");
	assert_refused("pollers=17", "pollers=17", "0 to 16");
	assert_refused("pollers=4294967295", "pollers", "0 to 16");
	assert_refused("pollers=peers", "pollers=peers", "number");
	assert_refused("poll_cpu_percent=0", "poll_cpu_percent", "1 to 100");
	assert_refused("poll_cpu_percent=101", "poll_cpu_percent", "1 to 100");
	assert_refused("requests_max=63", "requests_max=63", "64 to 65536");
	assert_refused("requests_max=65537", "requests_max", "64 to 65536");
	assert_refused("peer_timeout_ms=99", "peer_timeout_ms=99", "100");
	assert_refused("traffic_class=256", "traffic_class", "0 to 255");
	assert_refused("insecure=2", "insecure=2", "0 to 1");
	assert_refused("gid_index=256", "gid_index=256", "-1 to 255");
}

static void options_bad_polling_is_refused_and_named(void **state)
{
	static const char *const forms[] = {
		"polling=",		"polling=lazy",
		"polling=event-batch",	"polling=event-batch:0",
		"polling=event-batch:16385", "polling=event-batch:1:1",
		"polling=shared",	"polling=shared:0",
		"polling=shared:17",	"polling=hybrid:1",
		"polling=adaptive:",	"polling=adaptive:x",
		"polling=adaptive:1:",	"polling=adaptive:1:0",
		"polling=adaptive:1:33", "polling=adaptive:1:2:3",
		"polling=adaptive:-1",	"polling=adaptive:1:2x",
		"polling=busy:1",	"polling=adaptive:12345678901"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		assert_refused(forms[i], forms[i], "adaptive[:RETRY[:BATCH]]");
}

static void options_of_no_size_are_refused(void **state)
{
	static const size_t sizes[] = { 0, 8, 128, (size_t)-1, 1 << 20 };
	struct rbx_context *ctx = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		options.size_bytes = sizes[i];
		assert_int_equal(rbx_open(&ctx, &options), -EINVAL);
		assert_non_null(strstr(rbx_last_error(), "size_bytes"));
		assert_int_equal(rbx_options_set(&options, "window=1M"),
				 -EINVAL);
		assert_null(ctx);
	}
}

static void options_set_in_the_struct_are_checked_by_open(void **state)
{
	struct rbx_context *ctx = NULL;

	(void)state;
	options.fragment_bytes = 5000;
	assert_int_equal(rbx_open(&ctx, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "fragment_bytes=5000"));
	rbx_options_defaults(&options);
	memset(options.mode, 'x', sizeof(options.mode)); /* no NUL */
	assert_int_equal(rbx_open(&ctx, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "mode"));
	assert_null(ctx);
}

static void options_without_a_context_to_fill_are_refused(void **state)
{
	(void)state;
	assert_int_equal(rbx_open(NULL, &options), -EINVAL);
	assert_int_equal(rbx_options_set(&options, NULL), -EINVAL);
	assert_int_equal(rbx_options_set(NULL, "window=1"), -EINVAL);
}

static void describe_prints_each_option_as_it_is_set(void **state)
{
	struct rbx_context *ctx =
		tenant_context("mode=merge window=3M queue_pairs=2");
	char text[2048], start[16];
	int length = rbx_describe(ctx, text, sizeof(text));

	(void)state;
	assert_int_equal(length, strlen(text));
	assert_non_null(strstr(text, "mode=merge\n"));
	assert_non_null(strstr(text, "window=3M\n"));
	assert_non_null(strstr(text, "queue_pairs=2\n"));
	assert_non_null(strstr(text, "peer_timeout_ms=5000\n"));
	assert_non_null(strstr(text, "using=soft: "));
	assert_non_null(strstr(text, "taken=soft tcp\n"));
	assert_non_null(strstr(text, "registering=none: "));
	assert_non_null(strstr(text, "tuning=none: "));
	/* As snprintf(): cut to the size, the whole length returned. */
	assert_int_equal(rbx_describe(ctx, start, sizeof(start)), length);
	assert_int_equal(strlen(start), sizeof(start) - 1);
	assert_memory_equal(start, text, sizeof(start) - 1);
	assert_int_equal(rbx_describe(ctx, NULL, 0), length);
	rbx_close(ctx);
}

/* What describe prints can be given to rbx_options_set() again, but for the last
 * four lines, which say what was taken. */
static void describe_lines_are_options(void **state)
{
	struct rbx_context *ctx = tenant_context("polling=adaptive:9:3");
	char text[2048];
	char *rest = text, *line;
	int lines = 0;

	(void)state;
	rbx_describe(ctx, text, sizeof(text));
	while ((line = strsep(&rest, "\n")) && *line) {
		if (lines++ < 26)
			assert_set(line);
	}
	assert_int_equal(lines, 26 + 4);
	assert_string_equal(options.polling, "adaptive:9:3");
	rbx_close(ctx);
}

/* The reason is there to its end. */
static void long_value_leaves_room_for_the_reason(void **state)
{
	static const char *const names[] = { "pollers", "gid_index",
					     "fragment_bytes" };
	char text[2000], value[1500];

	(void)state;
	memset(value, '9', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "%s=%s", names[i], value);
		assert_refused(text, "=9999999999999999999999999999999999999999...: ",
			       " and so on)");
	}
	/* One that is just short enough is told whole. */
	snprintf(text, sizeof(text), "pollers=%.40s", value);
	assert_refused(text, "=9999999999999999999999999999999999999999: ", "");
	/* 13 characters of 3 bytes, and no part of the next one. */
	snprintf(text, sizeof(text), "pollers=%s", "\u20ac\u20ac\u20ac\u20ac\u20ac"
		 "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac");
	assert_refused(text, "\u20ac...: not a number", " and so on)");
	assert_refused(value, "\"9999", "999...\": must be key=value");
	snprintf(text, sizeof(text), "%s=1", value);
	assert_refused(text, "no option \"9999", "9...\"; there are: fabric device ");
	/* The name alone, however long its value is. */
	snprintf(text, sizeof(text), "windows=%s", value);
	assert_refused(text, "no option \"windows\"; there", "");
}

/* Names are whole, and dots say that there are more. */
static void unknown_option_is_told_whole_names(void **state)
{
	char key[60], text[300], option[64];

	(void)state;
	for (size_t length = 1; length < sizeof(key) - 2; length++) {
		char *last;

		memset(key, 'x', length);
		strcpy(key + length, "=1");
		assert_refused(key, "there are: fabric device", "");
		strcpy(text, rbx_last_error());
		last = strrchr(text, ' ');
		if (!strcmp(last, " ...")) {
			*last = '\0';
			last = strrchr(text, ' ');
		}
		snprintf(option, sizeof(option), "%s=", last + 1);
		if (rbx_options_set(&options, option))
			assert_null(strstr(rbx_last_error(), "no option"));
	}
}

static void error_that_is_cut_says_so(void **state)
{
	char text[RBX_ERROR_TEXT_MAX + 50];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(rbx_error(-EINVAL, "%s", text), -EINVAL);
	assert_int_equal(strlen(rbx_last_error()), RBX_ERROR_TEXT_MAX - 1);
	assert_non_null(strstr(rbx_last_error(), "xx..."));
	text[RBX_ERROR_TEXT_MAX - 1] = '\0';
	rbx_error(-EINVAL, "%s", text);
	assert_string_equal(rbx_last_error(), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(options_defaults_are_as_documented,
				       set_defaults),
		cmocka_unit_test_setup(integrity_is_one_of_its_words, set_defaults),
		cmocka_unit_test_setup(options_set_by_text_changes_the_field,
				       set_defaults),
		cmocka_unit_test(sizes_are_read_and_bounded),
		cmocka_unit_test_setup(options_polling_takes_each_form,
				       set_defaults),
		cmocka_unit_test_setup(options_bad_value_is_refused_and_named,
				       set_defaults),
		cmocka_unit_test_setup(options_bad_polling_is_refused_and_named,
				       set_defaults),
		cmocka_unit_test_setup(long_value_leaves_room_for_the_reason,
				       set_defaults),
		cmocka_unit_test(error_that_is_cut_says_so),
		cmocka_unit_test_setup(unknown_option_is_told_whole_names,
				       set_defaults),
		cmocka_unit_test_setup(options_of_no_size_are_refused,
				       set_defaults),
		cmocka_unit_test_setup(
			options_set_in_the_struct_are_checked_by_open,
			set_defaults),
		cmocka_unit_test_setup(
			options_without_a_context_to_fill_are_refused,
			set_defaults),
		cmocka_unit_test_setup(describe_prints_each_option_as_it_is_set,
				       set_defaults),
		cmocka_unit_test_setup(describe_lines_are_options,
				       set_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
