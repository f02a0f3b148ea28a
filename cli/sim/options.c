/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox sim, and the checks between them. The simulator has the lists of
 * scenarios and fault sites.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/sim/sim.h"

struct rbx_sim_command sim_line;
struct sim_options sim_options = {
	.scenario = "volume",
};

/* Each --fault adds one. */
static int set_fault(const struct cli_option *option, const char *text,
		     char *reason, size_t reason_bytes)
{
	(void)option;
	if (sim_line.faults_count == RBX_SIM_FAULTS_MAX) {
		snprintf(reason, reason_bytes, "give at most %u",
			 RBX_SIM_FAULTS_MAX);
		return -EINVAL;
	}
	sim_line.faults[sim_line.faults_count++] = text;
	return 0;
}

/* The simulator has the choices. */
static struct cli_option options[] = {
	{ "seed", "N", "seed of all random choices; for a hunt the first seed",
	  cli_set_number_64, .field = &sim_line.seed, .preset = "0" },
	{ "scenario", "NAME", "the world, or a figure; they are listed below",
	  cli_set_text, sim_options.scenario, .max = sizeof(sim_options.scenario),
	  .details = "See SCENARIOS." },
	{ "nic", "NAME|FILE", "cost model of a NIC", cli_set_text,
	  sim_options.nic, .max = sizeof(sim_options.nic),
	  .words = "connectx3|connectx5", .argument = CLI_ARGUMENT_FILE,
	  .preset = "the figure's, else a plain device",
	  .details = "Doorbells, DMA, cache misses, the link. `connectx3` and `connectx5` "
		     "are part of the program, and installed in share/rdmabox/nic as files to "
		     "begin with; each value in them has its source or the word `assumed`. A "
		     "plain device is as quick and as hostile as a reliable connection may "
		     "be." },
	{ "nodes", "N", "machines", cli_set_number, &sim_line.nodes_count, .min = 1,
	  .max = 64, .preset = "as the seed or the figure says",
	  .details = "Of `fig9` and `n-to-one` this one number of peers, or of machines "
		     "that ask, instead of the sweep; the other figures have as many as they "
		     "have." },
	{ "events", "N", "the load ends after so many events",
	  cli_set_number_64, .field = &sim_line.events_max, .preset = "when it is done",
	  .details = "Not for scenarios that measure." },
	{ "fault", "SITE=P", "a site goes wrong with this chance, 0 to 1",
	  set_fault, .field = NULL, .is_repeatable = true,
	  .details = "Each time that it could go wrong; 0 turns it off. May be given again. "
		     "Not for scenarios that measure. The sites are listed by --help." },
	{ "trace", NULL, "print a line for each change of state", cli_set_flag,
	  .field = &sim_options.trace, .group = "One run",
	  .details = "Virtual nanoseconds, node, what, values." },
	{ "json", "FILE|-", "write the result as JSON; - prints it", cli_set_text,
	  sim_options.json, .max = sizeof(sim_options.json),
	  .argument = CLI_ARGUMENT_FILE,
	  .details = "Of a scenario that measures with its `tables`, each an object of rows, "
		     "and a row an object of values by the names of columns." },
	{ "hunt", "SECONDS", "run one seed after another, on all processors",
	  cli_set_number, &sim_options.hunt_seconds, .group = "Many runs", .min = 1,
	  .max = UINT32_MAX,
	  .details = "One seed in twenty is run twice. Prints for each seed that fails the "
		     "command that runs it again, and in the end how often each fault struck, "
		     "how often each promise was checked, and in how many seeds. A "
		     "hunt takes neither --trace nor --json, and is not for scenarios that "
		     "measure." },
	{ "seeds", "N", "a hunt ends after so many seeds", cli_set_number,
	  &sim_options.seeds_max, .min = 1, .max = UINT32_MAX },
	{ "progress", NULL, "show progress of a hunt even without a terminal",
	  cli_set_flag, .field = &sim_options.progress },
};

static void prepare(void);

struct cli_command sim_command = {
	.name = "sim",
	.purpose = "run the library in a simulated world that fails",
	CLI_OPTIONS(options),
	.run = cli_sim,
	.prepare = prepare,
};

static void prepare(void)
{
	sim_command.notes = rbx_sim_command_notes();
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (!strcmp(options[i].name, "scenario"))
			options[i].words = rbx_sim_command_scenario_names();
		else if (!strcmp(options[i].name, "fault"))
			options[i].words = rbx_sim_command_site_names();
}

int sim_options_check(void)
{
	char reason[2048]; /* with all keys of a NIC */

	sim_line.scenario = sim_options.scenario;
	sim_line.nic = sim_options.nic;
	sim_line.trace = sim_options.trace;
	sim_line.hunts = sim_options.hunt_seconds != 0;
	if (rbx_sim_command_check(&sim_line, reason, sizeof(reason)))
		return cli_fail(&sim_command, "%s", reason);
	if (sim_options.seeds_max && !sim_line.hunts)
		return cli_fail(&sim_command, "--seeds: only with --hunt SECONDS");
	if (sim_line.hunts && (sim_options.json[0] || sim_line.trace))
		return cli_fail(&sim_command, "--json and --trace: of one run, not "
					      "of a hunt; leave out --hunt");
	return cli_output_check(&sim_command, "json", sim_options.json);
}
