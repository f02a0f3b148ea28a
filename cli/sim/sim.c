/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox sim: runs the library and the server in a simulated world that follows from a
 * seed; or measures the core on the model of a NIC.
 *
 * One run prints what was drawn, what was found, and a hash of everything that happened.
 * hunt.c does many runs.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/sim/sim.h"

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
	for (uint32_t i = 0; i < sim_line.faults_count; i++)
		json_array_append_new(faults,
				      json_string(sim_line.faults[i]));
	json = json_pack("{s:I s:s s:I s:I s:o s:s s:I s:I s:I s:I s:s s:s}",
			 "seed", (json_int_t)sim_line.seed, "scenario",
			 sim_options.scenario, "nodes",
			 (json_int_t)sim_line.nodes_count, "events_max",
			 (json_int_t)sim_line.events_max, "faults", faults,
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
	return cli_json_write(&sim_command, json, sim_options.json);
}

static int run_one(void)
{
	static struct rbx_sim_outcome outcome;
	int err;

	/* Nothing else may be on stdout with the JSON. */
	sim_line.silent = !strcmp(sim_options.json, "-");
	err = rbx_sim_command_run(&sim_line, &outcome);
	if (err)
		return cli_fail(&sim_command, "cannot start a process: %s",
				strerror(-err));
	if (outcome.print_status) {
		cli_fail(&sim_command, "cannot write to stdout: %s",
			 strerror(-outcome.print_status));
		return CLI_EXIT_FAILED;
	}
	if (sim_options.json[0] && write_json(&outcome))
		return CLI_EXIT_FAILED;
	return outcome.failed[0] ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

int cli_sim(int argc, char **argv)
{
	int rc = cli_parse(&sim_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = sim_options_check();
	if (rc)
		return rc;
	return sim_line.hunts ? sim_hunt() : run_one();
}
