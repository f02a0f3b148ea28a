/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* log_test.c - how much of the log peers can write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/log.h"

#define SECOND_NS 1000000000ull

static const struct rbx_log to_stderr;
static int stderr_before, log_pipe[2];

/* What is logged goes into a pipe, which holds some hundred lines. */
static int log_take(void **state)
{
	(void)state;
	stderr_before = dup(STDERR_FILENO);
	return pipe(log_pipe) || dup2(log_pipe[1], STDERR_FILENO) < 0;
}

static int log_give_back(void **state)
{
	(void)state;
	dup2(stderr_before, STDERR_FILENO);
	close(stderr_before);
	close(log_pipe[0]);
	close(log_pipe[1]);
	return 0;
}

static uint32_t lines_read(char *text, size_t size)
{
	ssize_t length;
	uint32_t lines = 0;

	(void)!write(STDERR_FILENO, "\n", 1); /* so that there is something */
	length = read(log_pipe[0], text, size - 1);
	assert_true(length > 0);
	text[length] = '\0';
	for (; *text; text++)
		lines += *text == '\n';
	return lines - 1;
}

static void peers_write_few_lines_a_second(void **state)
{
	struct rbx_hostile_log log = { .log = &to_stderr };
	char name[RBX_NAME_MAX], text[8192];
	uint32_t i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "10.0.%u.%u:7", i / 250, i % 250);
		rbx_log_hostile(&log, name, "says nonsense", SECOND_NS);
	}
	assert_int_equal(lines_read(text, sizeof(text)),
			 RBX_HOSTILE_LINES_PER_SECOND);
	/* The next line tells of those that there was no room for. */
	rbx_log_hostile(&log, "10.9.9.9:7", "says nonsense", 2 * SECOND_NS);
	assert_int_equal(lines_read(text, sizeof(text)), 2);
	snprintf(name, sizeof(name), "%u more",
		 1000 - RBX_HOSTILE_LINES_PER_SECOND);
	assert_non_null(strstr(text, name));
	/* Once. */
	rbx_log_hostile(&log, "10.9.9.10:7", "says nonsense", 3 * SECOND_NS);
	assert_int_equal(lines_read(text, sizeof(text)), 1);
}

static void host_is_told_of_once_for_each_reason(void **state)
{
	struct rbx_hostile_log log = { .log = &to_stderr };
	char name[RBX_NAME_MAX], text[8192];
	uint32_t i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "10.0.0.1:%u", i);
		rbx_log_hostile(&log, name, "says nonsense", i * SECOND_NS);
	}
	assert_int_equal(lines_read(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "(logged once for each host and reason)"));
	rbx_log_hostile(&log, "10.0.0.1:1", "says too much", i * SECOND_NS);
	assert_int_equal(lines_read(text, sizeof(text)), 1);
}

static void processes_of_this_host_are_one_peer(void **state)
{
	struct rbx_hostile_log log = { .log = &to_stderr };
	char name[RBX_NAME_MAX], text[8192];
	uint32_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "process %u (same host)", i);
		rbx_log_hostile(&log, name, "says nonsense", i * SECOND_NS);
	}
	assert_int_equal(lines_read(text, sizeof(text)), 1);
	assert_non_null(strstr(text, "refused process 0 (same host): says nonsense"));
	rbx_log_hostile(&log, "process 3 (same host)", "says too much", i * SECOND_NS);
	rbx_log_hostile(&log, "10.0.0.1:1", "says nonsense", i * SECOND_NS);
	assert_int_equal(lines_read(text, sizeof(text)), 2);
}

/* Until not one page is free; then a write waits for a reader again. */
static void pipe_fill(void)
{
	static const char bytes[4096];
	int flags = fcntl(log_pipe[1], F_GETFL);

	fcntl(log_pipe[1], F_SETFL, flags | O_NONBLOCK);
	while (write(log_pipe[1], bytes, sizeof(bytes)) > 0)
		;
	fcntl(log_pipe[1], F_SETFL, flags);
}

static void pipe_empty(void)
{
	static char bytes[4096];
	int flags = fcntl(log_pipe[0], F_GETFL);

	fcntl(log_pipe[0], F_SETFL, flags | O_NONBLOCK);
	while (read(log_pipe[0], bytes, sizeof(bytes)) > 0)
		;
	fcntl(log_pipe[0], F_SETFL, flags);
}

static void full_pipe_stops_nobody_and_its_lost_lines_are_counted(void **state)
{
	char text[8192];

	(void)state;
	pipe_fill();
	rbx_log(&to_stderr, "first");
	rbx_log(&to_stderr, "second");
	rbx_log(&to_stderr, "third");
	pipe_empty();
	rbx_log(&to_stderr, "fourth");
	rbx_log(&to_stderr, "fifth");
	assert_int_equal(lines_read(text, sizeof(text)), 3);
	assert_non_null(strstr(text, ": 3 lines were lost\n"));
	assert_non_null(strstr(text, ": fourth\n"));
	assert_null(strstr(text, "first"));
}

/* SIGPIPE is as the system has it: it would end this program. */
static void pipe_that_nobody_reads_ends_nobody(void **state)
{
	char text[8192];

	(void)state;
	close(log_pipe[0]);
	rbx_log(&to_stderr, "nobody reads this");
	assert_int_equal(pipe(log_pipe), 0);
	dup2(log_pipe[1], STDERR_FILENO);
	rbx_log(&to_stderr, "read again");
	assert_int_equal(lines_read(text, sizeof(text)), 2);
	assert_non_null(strstr(text, ": 1 lines were lost\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(peers_write_few_lines_a_second,
						log_take, log_give_back),
		cmocka_unit_test_setup_teardown(
			host_is_told_of_once_for_each_reason, log_take,
			log_give_back),
		cmocka_unit_test_setup_teardown(
			processes_of_this_host_are_one_peer, log_take,
			log_give_back),
		cmocka_unit_test_setup_teardown(
			full_pipe_stops_nobody_and_its_lost_lines_are_counted,
			log_take, log_give_back),
		cmocka_unit_test_setup_teardown(
			pipe_that_nobody_reads_ends_nobody, log_take,
			log_give_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
