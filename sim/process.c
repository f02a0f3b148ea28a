/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process.c - see process.h.
 *
 * While many run, the signals that may end that, and SIGCHLD, are blocked but for the
 * wait: none is lost between the look whether to go on and the wait for an end.
 */
#include "sim/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/fail.h"
#include "sim/host/wrap.h"
#include "sim/scenarios/measure.h"

#define PROCESSES_MAX 256u

static struct rbx_sim_outcome *mine; /* in the process of a run */
static sigset_t mask_of_runs, mask_of_wait;

static void note_failure(const char *invariant, const char *what)
{
	rbx_sim_take_outcome(mine);
	snprintf(mine->failed, sizeof(mine->failed), "%s", invariant);
	snprintf(mine->what, sizeof(mine->what), "%s", what);
}

/* Never returns. */
static void run(const struct rbx_sim_options *options,
		struct rbx_sim_outcome *outcome, bool silent)
{
	if (silent && !freopen("/dev/null", "w", stdout))
		_exit(RBX_SIM_EXIT_FAILED);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &mask_of_runs, NULL);
	mine = outcome;
	rbx_sim_fail_hook(note_failure);
	alarm(RBX_SIM_RUN_SECONDS_MAX);
	if (options->figure) {
		rbx_sim_measure(options, mine);
	} else {
		rbx_sim_run(options);
		rbx_sim_take_outcome(mine);
	}
	printf("result ok\n");
	errno = EIO;
	if (fflush(stdout) || ferror(stdout))
		mine->print_status = -errno;
	_exit(0);
}

/* It ends a wait, and is not ignored, as by whoever started us: then nobody would tell
 * how a run ended. */
static void take_child_signal(int signal_number)
{
	(void)signal_number;
}

static int start(struct rbx_sim_process *process,
		 const struct rbx_sim_options *options, bool silent)
{
	process->outcome = __real_mmap(NULL, sizeof(*process->outcome),
				       PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (process->outcome == MAP_FAILED)
		return -errno;
	process->seed = options->seed;
	fflush(stdout);
	signal(SIGCHLD, take_child_signal);
	process->id = fork();
	if (process->id < 0) {
		int err = -errno;

		process->id = 0; /* not an id that kill() takes for all processes */
		munmap(process->outcome, sizeof(*process->outcome));
		return err;
	}
	if (process->id == 0)
		run(options, process->outcome, silent);
	return 0;
}

int rbx_sim_process_start(struct rbx_sim_process *process,
			  const struct rbx_sim_options *options, bool silent)
{
	sigprocmask(SIG_SETMASK, NULL, &mask_of_runs);
	return start(process, options, silent);
}

/* What the end of the process tells if the run itself could not. */
static void judge(struct rbx_sim_process *process, int status)
{
	struct rbx_sim_outcome *outcome = process->outcome;
	bool hangs = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;

	if (outcome->failed[0] == '\0' && status != 0) {
		snprintf(outcome->failed, sizeof(outcome->failed), "%s",
			 hangs ? "hang" : "crash");
		snprintf(outcome->what, sizeof(outcome->what),
			 "the run ended by %s %d",
			 WIFSIGNALED(status) ? "signal" : "exit code",
			 WIFSIGNALED(status) ? WTERMSIG(status) :
					       WEXITSTATUS(status));
	}
}

static void take(struct rbx_sim_process *process, int status,
		 struct rbx_sim_outcome *outcome)
{
	judge(process, status);
	*outcome = *process->outcome;
	munmap(process->outcome, sizeof(*process->outcome));
}

void rbx_sim_process_wait(struct rbx_sim_process *process,
			  struct rbx_sim_outcome *outcome)
{
	int status = 0;

	while (waitpid(process->id, &status, 0) < 0 && errno == EINTR)
		;
	take(process, status, outcome);
	if (!strcmp(outcome->failed, "crash") ||
	    !strcmp(outcome->failed, "hang"))
		printf("what: %s\nresult FAIL %s\n", outcome->what,
		       outcome->failed);
}

static struct rbx_sim_process *by_id(struct rbx_sim_process *processes,
				     uint32_t count, pid_t id)
{
	for (uint32_t i = 0; i < count; i++)
		if (processes[i].id == id)
			return &processes[i];
	return NULL;
}

/* The time of the real machine, not of a node. */
static time_t machine_seconds(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* The result of one of many; true: it was started once more. */
static bool ended(struct rbx_sim_process *process,
		  const struct rbx_sim_options *options,
		  struct rbx_sim_outcome *outcome)
{
	struct rbx_sim_options again = *options;

	again.seed = process->seed;
	if (process->is_repeat && outcome->failed[0] == '\0' &&
	    outcome->hash != process->first_hash) {
		strcpy(outcome->failed, "repeatable");
		strcpy(outcome->what, "the same seed has another hash");
	}
	if (process->is_repeat || outcome->failed[0] != '\0' ||
	    process->seed % RBX_SIM_REPEAT_ONE_IN != 0)
		return false;
	process->is_repeat = true;
	process->first_hash = outcome->hash;
	return start(process, &again, true) == 0;
}

/* Runs that are under way are given up and not reported. */
static void stop_all(struct rbx_sim_process *processes, uint32_t count)
{
	struct rbx_sim_outcome outcome;
	int status;

	for (uint32_t i = 0; i < count; i++) {
		if (processes[i].id == 0)
			continue;
		kill(processes[i].id, SIGKILL);
		if (waitpid(processes[i].id, &status, 0) == processes[i].id)
			take(&processes[i], status, &outcome);
		processes[i].id = 0;
	}
}

/* With the signals blocked. */
static int64_t run_many(const struct rbx_sim_options *options, uint32_t seconds,
			uint64_t seeds_max, uint32_t processors_count,
			bool (*goes_on)(void),
			void (*told)(uint64_t seed,
				     const struct rbx_sim_outcome *outcome))
{
	struct rbx_sim_process processes[PROCESSES_MAX] = { 0 }, *process;
	uint32_t count = RBX_MIN(RBX_MAX(processors_count, 1u), PROCESSES_MAX);
	time_t until = machine_seconds() + (time_t)seconds;
	struct rbx_sim_options next = *options;
	struct rbx_sim_outcome outcome;
	uint32_t running = 0;
	int64_t ran = 0;
	int status, err;
	pid_t id;

	for (;;) {
		if (goes_on && !goes_on()) {
			stop_all(processes, count);
			return ran;
		}
		while (running < count && machine_seconds() < until &&
		       (seeds_max == 0 ||
			next.seed - options->seed < seeds_max)) {
			process = by_id(processes, count, 0);
			process->is_repeat = false;
			err = start(process, &next, true);
			if (err) {
				stop_all(processes, count);
				return err;
			}
			next.seed++;
			running++;
		}
		if (running == 0)
			return ran;
		id = waitpid(-1, &status, WNOHANG);
		if (id == 0)
			sigsuspend(&mask_of_wait);
		process = id > 0 ? by_id(processes, count, id) : NULL;
		if (!process)
			continue;
		take(process, status, &outcome);
		if (ended(process, options, &outcome))
			continue;
		told(process->seed, &outcome);
		process->id = 0;
		running--;
		ran++;
	}
}

int64_t
rbx_sim_processes_run(const struct rbx_sim_options *options, uint32_t seconds,
		      uint64_t seeds_max, uint32_t processors_count,
		      bool (*goes_on)(void),
		      void (*told)(uint64_t seed,
				   const struct rbx_sim_outcome *outcome))
{
	sigset_t signals;
	int64_t ran;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &mask_of_runs);
	mask_of_wait = mask_of_runs;
	sigdelset(&mask_of_wait, SIGCHLD); /* our caller may have it blocked */
	ran = run_many(options, seconds, seeds_max, processors_count, goes_on,
		       told);
	sigprocmask(SIG_SETMASK, &mask_of_runs, NULL);
	return ran;
}
