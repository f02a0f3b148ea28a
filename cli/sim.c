/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox sim: runs the library and the server in a simulated world, from a seed, or
 * the core on a modelled NIC, to measure it.
 *
 * One run prints what was drawn, what was found, and a hash of all that happened.
 * A hunt runs one seed after another on all processors, and prints for each that
 * fails the command that does it again.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sim/command.h"

static struct rbx_sim_command command_line;
static char scenario[64] = "volume";
static char nic_path[256];
static char json_path[256];
static uint32_t hunt_seconds, seeds_max, trace;
static uint64_t failed_count;

/* Of a hunt: how often, and in how many seeds. */
static struct {
	uint64_t times;
	uint64_t seeds;
} totals[RBX_SIM_COUNTS_MAX];

/* Each --fault is one more. */
static int set_fault(const struct cli_option *option, const char *text,
		     char *reason, size_t reason_bytes)
{
	(void)option;
	if (command_line.faults_count == RBX_SIM_FAULTS_MAX) {
		snprintf(reason, reason_bytes, "give at most %u",
			 RBX_SIM_FAULTS_MAX);
		return -EINVAL;
	}
	command_line.faults[command_line.faults_count++] = text;
	return 0;
}

static const struct cli_option options[] = {
	{ "seed", "N", "where all chance comes from; of a hunt the first",
	  cli_set_number_64, .field = &command_line.seed },
	{ "scenario", "NAME", "the world, or a figure (volume)", cli_set_text,
	  scenario, .max = sizeof(scenario) },
	{ "nic", "NAME|FILE",
	  "devices cost what this NIC costs: connectx3,\nconnectx5, or a file",
	  cli_set_text, nic_path, .max = sizeof(nic_path) },
	{ "nodes", "N", "machines; default: as the seed or the figure says",
	  cli_set_number, &command_line.nodes_count, .min = 1, .max = 64 },
	{ "events", "M", "the load ends after so many events",
	  cli_set_number_64, .field = &command_line.events_max },
	{ "fault", "SITE=P",
	  "a site goes wrong with this chance, 0 to 1;\nmay be given again",
	  set_fault, .field = NULL },
	{ "trace", NULL, "a line for each change of state", cli_set_flag,
	  .field = &trace },
	{ "json", "FILE|-", "the result as JSON", cli_set_text, json_path,
	  .max = sizeof(json_path) },
	{ "hunt", "SECONDS", "one seed after another, on all processors",
	  cli_set_number, &hunt_seconds, .min = 1 },
	{ "seeds", "N", "a hunt ends after so many seeds", cli_set_number,
	  &seeds_max, .min = 1 },
};

static struct cli_command command = {
	.name = "sim",
	.purpose = "Runs the library in a simulated world, from a seed.",
	.usage = "[--seed N] [--scenario NAME] [--nic NAME|FILE] [--nodes N]\n"
		 "                   [--events M] [--fault SITE=P]...\n"
		 "                   [[--trace] [--json FILE|-] | "
		 "--hunt SECONDS [--seeds N]]",
	.options = options,
	.options_count = sizeof(options) / sizeof(options[0]),
};

/* {row: {column: value}} */
static json_t *rows_json(const struct rbx_report_table *table)
{
	json_t *rows = json_object();

	for (uint32_t i = 0; i < table->rows_count; i++) {
		const struct rbx_report_row *row = &table->rows[i];
		json_t *values = json_object();

		for (uint32_t j = 0; j < table->columns_count; j++) {
			const struct rbx_report_column *column =
				&table->columns[j];
			int64_t value = row->values[j];
			double scale = pow(10, column->decimals);

			json_object_set_new(
				values, column->name,
				value == RBX_REPORT_NONE ?
					json_null() :
				column->decimals ?
					json_real((double)value / scale) :
					json_integer(value));
		}
		json_object_set_new(rows, row->name, values);
	}
	return rows;
}

static json_t *tables_json(const struct rbx_report *report)
{
	json_t *tables = json_array();

	for (uint32_t i = 0; i < report->tables_count; i++) {
		const struct rbx_report_table *table = &report->tables[i];

		json_array_append_new(
			tables, json_pack("{s:s s:s s:o}", "title",
					  table->title, "rows_are",
					  table->rows_are, "rows",
					  rows_json(table)));
	}
	return tables;
}

static int write_json(const struct rbx_sim_outcome *outcome)
{
	json_t *json, *faults = json_array();
	char hash[20];

	snprintf(hash, sizeof(hash), "%016" PRIx64, outcome->hash);
	for (uint32_t i = 0; i < command_line.faults_count; i++)
		json_array_append_new(faults,
				      json_string(command_line.faults[i]));
	json = json_pack("{s:I s:s s:I s:I s:o s:s s:I s:I s:I s:I s:s s:s}",
			 "seed", (json_int_t)command_line.seed, "scenario",
			 scenario, "nodes",
			 (json_int_t)command_line.nodes_count, "events_max",
			 (json_int_t)command_line.events_max, "faults", faults,
			 "hash", hash, "events", (json_int_t)outcome->events,
			 "requests", (json_int_t)outcome->requests,
			 "virtual_ns", (json_int_t)outcome->virtual_ns,
			 "faults_fired", (json_int_t)outcome->faults_fired,
			 "failed", outcome->failed, "what", outcome->what);
	if (outcome->report.tables_count) {
		json_object_set_new(json, "nic",
				    json_string(outcome->report.nic));
		json_object_set_new(json, "tables",
				    tables_json(&outcome->report));
	}
	return cli_json_write(&command, json, json_path);
}

static int run_one(void)
{
	static struct rbx_sim_outcome outcome;
	int err;

	/* JSON on stdout is alone there. */
	command_line.silent = !strcmp(json_path, "-");
	err = rbx_sim_command_run(&command_line, &outcome);
	if (err)
		return cli_fail(&command, "cannot start a process: %s",
				strerror(-err));
	if (outcome.print_status) {
		cli_fail(&command, "cannot write to stdout: %s",
			 strerror(-outcome.print_status));
		return CLI_EXIT_FAILED;
	}
	if (json_path[0] && write_json(&outcome))
		return CLI_EXIT_FAILED;
	return outcome.failed[0] ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* The command that does it again. */
static void print_failed(uint64_t seed, const struct rbx_sim_outcome *outcome)
{
	printf("rdmabox sim --seed %" PRIu64 " --scenario %s", seed, scenario);
	if (nic_path[0])
		printf(" --nic %s", nic_path);
	if (command_line.nodes_count)
		printf(" --nodes %" PRIu32, command_line.nodes_count);
	if (command_line.events_max)
		printf(" --events %" PRIu64, command_line.events_max);
	for (uint32_t i = 0; i < command_line.faults_count; i++)
		printf(" --fault %s", command_line.faults[i]);
	printf("\n  FAIL %s: %s\n", outcome->failed, outcome->what);
	fflush(stdout);
}

static void take_in(uint64_t seed, const struct rbx_sim_outcome *outcome)
{
	for (uint32_t i = 0; i < RBX_SIM_COUNTS_MAX; i++) {
		totals[i].times += outcome->counts[i];
		totals[i].seeds += outcome->counts[i] != 0;
	}
	if (outcome->failed[0]) {
		failed_count++;
		print_failed(seed, outcome);
	}
}

static void print_totals(void)
{
	const char *name;

	printf("%-30s %12s %6s\n", "", "times", "seeds");
	for (uint32_t i = 0; (name = rbx_sim_command_count_name(i)); i++)
		printf("%-30s %12" PRIu64 " %6" PRIu64 "\n", name,
		       totals[i].times, totals[i].seeds);
}

static int hunt(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t count = rbx_sim_command_hunt(&command_line, hunt_seconds,
					     seeds_max, (uint32_t)processors,
					     take_in);

	if (count < 0)
		return cli_fail(&command, "cannot start a process: %s",
				strerror((int)-count));
	print_totals();
	printf("%" PRId64 " seeds from %" PRIu64 ", %" PRIu64 " failed\n",
	       count, command_line.seed, failed_count);
	return failed_count ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

int cli_sim(int argc, char **argv)
{
	char reason[2048]; /* with all keys of a NIC */
	int rc;

	command.notes = rbx_sim_command_notes();
	rc = cli_parse(&command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	command_line.scenario = scenario;
	command_line.nic = nic_path;
	command_line.trace = trace;
	command_line.hunts = hunt_seconds != 0;
	if (rbx_sim_command_check(&command_line, reason, sizeof(reason)))
		return cli_fail(&command, "%s", reason);
	if (seeds_max && !hunt_seconds)
		return cli_fail(&command, "--seeds: only with --hunt SECONDS");
	if (hunt_seconds && (json_path[0] || trace))
		return cli_fail(&command, "--json and --trace: of one run, not "
					  "of a hunt; leave out --hunt");
	return hunt_seconds ? hunt() : run_one();
}
