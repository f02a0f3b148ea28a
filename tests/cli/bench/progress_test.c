/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a bench shows meanwhile: rates, and what is left. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/bench/bench.h"

static struct bench_events events;
static struct bench_progress progress;
static int stderr_copy, file;

static int setup(void **state)
{
	char path[] = "/tmp/rdmabox-progress.XXXXXX";

	(void)state;
	file = mkstemp(path);
	unlink(path);
	fflush(stderr);
	stderr_copy = dup(STDERR_FILENO);
	dup2(file, STDERR_FILENO);
	bench_events_init(&events);
	bench_progress_init(&progress, &events, true);
	return file < 0;
}

static int teardown(void **state)
{
	(void)state;
	dup2(stderr_copy, STDERR_FILENO);
	close(stderr_copy);
	close(file);
	return 0;
}

/* All that was printed. */
static const char *printed(void)
{
	static char text[1024];
	ssize_t len;

	fflush(stderr);
	len = pread(file, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

static void begin(const char *name, uint64_t requests_total, double runtime_s)
{
	struct bench_phase phase = {
		.name = name, .requests_total = requests_total,
		.runtime_s = runtime_s, .request_bytes = 4096,
	};

	bench_progress_begin(&progress, &phase);
}

static void the_first_rate_is_that_of_the_phase(void **state)
{
	(void)state;
	begin("warm-up", 0, 10);
	bench_progress_show(&progress, 6000, 2.5);
	begin("measure", 0, 10);
	bench_progress_show(&progress, 1000, 2.5);
	assert_string_equal(printed(),
			    "warm-up  25 %  2400 requests/s  9.8 MB/s  8 s left\n"
			    "measure  25 %  400 requests/s  1.6 MB/s  8 s left\n");
}

static void later_rates_are_those_since_the_last_line(void **state)
{
	(void)state;
	begin("measure", 0, 10);
	bench_progress_show(&progress, 1000, 2.5);
	bench_progress_show(&progress, 1500, 3); /* too early for a line */
	bench_progress_show(&progress, 3500, 5);
	assert_non_null(strstr(printed(), "50 %  1000 requests/s"));
	assert_null(strstr(printed(), "30 %"));
}

static void a_phase_without_time_goes_by_its_requests(void **state)
{
	(void)state;
	begin("fill", 1000, 0);
	bench_progress_show(&progress, 250, 3);
	assert_string_equal(printed(), "fill     25 %  83 requests/s  0.3 MB/s  9 s left\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_rate_is_that_of_the_phase, setup,
						teardown),
		cmocka_unit_test_setup_teardown(later_rates_are_those_since_the_last_line,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_phase_without_time_goes_by_its_requests,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
