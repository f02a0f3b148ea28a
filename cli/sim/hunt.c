/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hunt runs one seed after another on all processors. For each that fails it prints the
 * command that runs it again, and at the end what was tested. SIGINT or SIGTERM stops the
 * runs that are going on, and the summary is printed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/sim/sim.h"

#define CLEAR_LINE "\r\033[K"
#define LINE_EVERY_S 2.0
#define TERMINAL_EVERY_S 0.2

static struct {
	uint64_t seeds; /* that have ended */
	uint64_t failed;
	bool is_shown; /* its progress */
	bool is_terminal;
	double begin_s;
	double shown_at_s;
	struct {
		uint64_t times; /* how often the fault struck */
		uint64_t seeds; /* the seeds in which it did */
	} totals[RBX_SIM_COUNTS_MAX];
} hunt;

/* Prints the command that runs the seed again. */
static void print_failed(uint64_t seed, const struct rbx_sim_outcome *outcome)
{
	printf("rdmabox sim --seed %" PRIu64 " --scenario %s", seed, sim_options.scenario);
	if (sim_options.nic[0])
		printf(" --nic %s", sim_options.nic);
	if (sim_line.nodes_count)
		printf(" --nodes %" PRIu32, sim_line.nodes_count);
	if (sim_line.events_max)
		printf(" --events %" PRIu64, sim_line.events_max);
	for (uint32_t i = 0; i < sim_line.faults_count; i++)
		printf(" --fault %s", sim_line.faults[i]);
	printf("\n  FAIL %s: %s\n", outcome->failed, outcome->what);
	fflush(stdout);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* A line that is overwritten on a terminal; elsewhere a line now and then. */
static void show_progress(void)
{
	double at_s = now_s(), left_s = hunt.begin_s + sim_options.hunt_seconds - at_s;

	if (!hunt.is_shown ||
	    at_s - hunt.shown_at_s < (hunt.is_terminal ? TERMINAL_EVERY_S : LINE_EVERY_S))
		return;
	hunt.shown_at_s = at_s;
	fprintf(stderr, "%shunt  %" PRIu64 " seeds, %" PRIu64 " failed  %.1f seeds/s  %.0f s left%s",
		hunt.is_terminal ? CLEAR_LINE : "", hunt.seeds, hunt.failed,
		hunt.seeds / (at_s - hunt.begin_s), left_s > 0 ? left_s : 0,
		hunt.is_terminal ? "" : "\n");
	fflush(stderr);
}

static void end_progress(void)
{
	if (hunt.is_terminal)
		fputs(CLEAR_LINE, stderr);
}

static void take_in(uint64_t seed, const struct rbx_sim_outcome *outcome)
{
	hunt.seeds++;
	for (uint32_t i = 0; i < RBX_SIM_COUNTS_MAX; i++) {
		hunt.totals[i].times += outcome->counts[i];
		hunt.totals[i].seeds += outcome->counts[i] != 0;
	}
	if (outcome->failed[0]) {
		hunt.failed++;
		end_progress();
		print_failed(seed, outcome);
	}
	show_progress();
}

static void print_totals(void)
{
	const char *name;

	printf("%-30s %12s %6s\n", "", "times", "seeds");
	for (uint32_t i = 0; (name = rbx_sim_command_count_name(i)); i++)
		printf("%-30s %12" PRIu64 " %6" PRIu64 "\n", name,
		       hunt.totals[i].times, hunt.totals[i].seeds);
}

static bool goes_on(void)
{
	return !cli_interrupted();
}

int sim_hunt(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t count;

	hunt.is_terminal = isatty(STDERR_FILENO);
	hunt.is_shown = hunt.is_terminal || sim_options.progress;
	hunt.begin_s = hunt.shown_at_s = now_s();
	sim_line.goes_on = goes_on;
	cli_interrupt_catch(false);
	count = rbx_sim_command_hunt(&sim_line, sim_options.hunt_seconds,
				     sim_options.seeds_max, (uint32_t)processors, take_in);
	end_progress();
	if (count < 0)
		return cli_fail(&sim_command, "cannot start a process: %s",
				strerror((int)-count));
	print_totals();
	printf("%" PRId64 " seeds from %" PRIu64 ", %" PRIu64 " failed%s\n", count,
	       sim_line.seed, hunt.failed, cli_interrupted() ? "; interrupted" : "");
	if (hunt.failed)
		return CLI_EXIT_FAILED;
	return cli_interrupted() ? CLI_EXIT_SIGNAL + cli_interrupted() : CLI_EXIT_OK;
}
