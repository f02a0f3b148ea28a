/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process_test.c - many runs are given up at once if a signal says so, whenever it comes.
 * The runs here do nothing: what they are stands below in place of the simulator.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/fail.h"
#include "sim/host/wrap.h"
#include "sim/process.h"
#include "sim/scenarios/measure.h"

#define ENDLESS_SEED 1000u /* and those above; the others end at once */

/* ---- In place of the simulator ---------------------------------------------*/

void rbx_sim_run(const struct rbx_sim_options *options)
{
	while (options->seed >= ENDLESS_SEED)
		pause();
}

void rbx_sim_take_outcome(struct rbx_sim_outcome *outcome)
{
	outcome->events = 7;
}

void rbx_sim_fail_hook(void (*hook)(const char *invariant, const char *what))
{
	(void)hook;
}

void rbx_sim_measure(const struct rbx_sim_options *options,
		     struct rbx_sim_outcome *outcome)
{
	(void)options, (void)outcome;
}

void *__real_mmap(void *addr, size_t size, int protection, int flags, int fd,
		  off_t offset)
{
	return mmap(addr, size, protection, flags, fd, offset);
}

int __real_clock_gettime(clockid_t clock, struct timespec *time)
{
	return clock_gettime(clock, time);
}

/* ---- The tests ---------------------------------------------------------------*/

static volatile sig_atomic_t told_to_end;
static int told_count;

static void take_signal(int signal_number)
{
	(void)signal_number;
	told_to_end = 1;
}

/* The signal comes when it has been looked whether it came. */
static bool goes_on_and_is_told(void)
{
	bool goes_on = !told_to_end;

	raise(SIGTERM);
	return goes_on;
}

static void told(uint64_t seed, const struct rbx_sim_outcome *outcome)
{
	(void)seed;
	assert_string_equal(outcome->failed, "");
	assert_int_equal(outcome->events, 7);
	told_count++;
}

static void signal_after_the_look_ends_the_wait(void **state)
{
	const struct rbx_sim_options options = { .seed = ENDLESS_SEED };
	const struct sigaction action = { .sa_handler = take_signal };
	sigset_t before, after;
	int status;

	(void)state;
	told_to_end = 0;
	sigaction(SIGTERM, &action, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	alarm(60); /* against hangs */
	assert_int_equal(rbx_sim_processes_run(&options, 3600, 0, 2,
					       goes_on_and_is_told, told), 0);
	alarm(0);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
	assert_int_equal(sigismember(&after, SIGCHLD), sigismember(&before, SIGCHLD));
	/* No run is left. */
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	signal(SIGTERM, SIG_DFL);
}

static void all_ends_are_told(void **state)
{
	const struct rbx_sim_options options = { .seed = 1 };

	(void)state;
	told_count = 0;
	signal(SIGCHLD, SIG_IGN); /* of whoever started us */
	alarm(60);
	assert_int_equal(rbx_sim_processes_run(&options, 3600, 50, 4, NULL, told),
			 50);
	alarm(0);
	assert_int_equal(told_count, 50);
}

static void one_is_waited_for(void **state)
{
	const struct rbx_sim_options options = { .seed = 1 };
	struct rbx_sim_process process;
	struct rbx_sim_outcome outcome;

	(void)state;
	assert_int_equal(rbx_sim_process_start(&process, &options, true), 0);
	rbx_sim_process_wait(&process, &outcome);
	told(1, &outcome);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_after_the_look_ends_the_wait),
		cmocka_unit_test(all_ends_are_told),
		cmocka_unit_test(one_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
