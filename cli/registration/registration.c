/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox registration: what each policy of the registration cache would have cost.
 *
 * The cache is the core's (core/regions.h), as the library would use it; only the system is missing
 * that registers. Each request of the trace is acquired and released before the next one. A request
 * for which there is no room, as it is larger than the budget, costs as if it were registered and
 * deregistered for itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/registration/registration.h"
#include "core/regions_play.h"

static uint64_t budget_bytes(const struct registration_budget *budget, uint64_t touched_bytes)
{
	uint64_t bytes = budget->bytes;

	if (!bytes)
		bytes = (uint64_t)((double)touched_bytes * budget->percent / 100);
	bytes = bytes / REGISTRATION_PAGE_BYTES * REGISTRATION_PAGE_BYTES;
	return bytes ? bytes : REGISTRATION_PAGE_BYTES;
}

/* There are never more regions than pages that the trace touches. */
static uint32_t regions_of(uint32_t i, uint64_t bytes, uint64_t touched_bytes)
{
	uint64_t pages = (bytes < touched_bytes ? bytes : touched_bytes) / REGISTRATION_PAGE_BYTES;
	uint64_t most = registration_options.regions_count ? registration_options.regions[i] :
							     RBX_REGIONS_MAX;

	return (uint32_t)(pages < most ? pages : most);
}

static int run_policy(const struct registration_trace *trace, const struct rbx_regions_shape *shape,
		      struct registration_row *row)
{
	struct rbx_regions regions;
	void *memory = calloc(1, rbx_regions_size(shape));

	if (!memory || rbx_regions_init(&regions, shape, memory)) {
		free(memory);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < trace->count; i++)
		rbx_regions_play(&regions, trace->requests[i].addr, trace->requests[i].length);
	*row = (struct registration_row){
		.policy = shape->policy->name,
		.bytes = shape->bytes_max,
		.regions = shape->regions_max,
		.counters = regions.counters,
		.pinned_bytes_max = regions.pages_held_max * REGISTRATION_PAGE_BYTES,
		.bound_ns = row->bound_ns,
	};
	free(memory);
	return 0;
}

/* A row for each policy. */
static int run_budget(const struct registration_trace *trace, struct registration_future *future,
		      struct rbx_regions_shape *shape, struct registration_row *rows)
{
	uint64_t bound_ns;
	int err = registration_bound(future, shape, &bound_ns);

	for (uint32_t i = 0; !err && i < registration_options.policies_count; i++) {
		shape->policy = registration_options.policies[i];
		rows[i].bound_ns = bound_ns;
		err = run_policy(trace, shape, &rows[i]);
	}
	return err;
}

static int run(const struct registration_trace *trace, struct registration_future *future,
	       struct registration_row *rows, uint32_t *count)
{
	uint32_t numbers =
		registration_options.regions_count ? registration_options.regions_count : 1;
	bool prints = strcmp(registration_options.json, "-") != 0;

	for (uint32_t i = 0; i < registration_options.budgets_count * numbers; i++) {
		uint64_t bytes = budget_bytes(&registration_options.budgets[i / numbers],
					      trace->touched_bytes);
		struct rbx_regions_shape shape = {
			.bytes_max = bytes,
			.regions_max = regions_of(i % numbers, bytes, trace->touched_bytes),
			.cost = registration_options.cost,
		};

		if (run_budget(trace, future, &shape, rows + *count)) {
			cli_fail(&registration_command,
				 "not enough memory for --bytes of %llu; give fewer",
				 (unsigned long long)bytes);
			return CLI_EXIT_FAILED;
		}
		if (prints)
			registration_report_rows(rows + *count,
						 registration_options.policies_count);
		*count += registration_options.policies_count;
	}
	return CLI_EXIT_OK;
}

static int report_json(const struct registration_trace *trace, const struct registration_row *rows,
		       uint32_t count)
{
	if (!*registration_options.json)
		return CLI_EXIT_OK;
	return cli_json_write(&registration_command, registration_report_json(trace, rows, count),
			      registration_options.json) ?
		       CLI_EXIT_FAILED : CLI_EXIT_OK;
}

static bool is_utf8(const char *text)
{
	json_t *json = json_string(text);

	json_decref(json);
	return json != NULL;
}

int cli_registration(int argc, char **argv)
{
	static struct registration_row rows[REGISTRATION_LIST_MAX * REGISTRATION_LIST_MAX *
					    REGISTRATION_POLICIES];
	struct registration_future *future;
	struct registration_trace trace;
	char reason[8192];
	uint32_t count = 0;
	int rc = cli_parse(&registration_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	rc = cli_output_check(&registration_command, "json", registration_options.json);
	if (rc)
		return rc;
	if (!*registration_options.trace)
		return cli_fail(&registration_command, "add --trace FILE: which memory was used");
	if (*registration_options.json && !is_utf8(registration_options.trace))
		return cli_fail(&registration_command,
				"the name of --trace is not UTF-8, as JSON has to be; rename it");
	if (registration_trace_read(&trace, registration_options.trace, reason, sizeof(reason)))
		return cli_fail(&registration_command, "%s", reason);
	if (strcmp(registration_options.json, "-"))
		registration_report_begin(&trace);
	future = registration_future_new(&trace);
	rc = future ? run(&trace, future, rows, &count) :
		      cli_fail(&registration_command,
			       "trace %s: not enough memory for the bound; cut the trace",
			       registration_options.trace);
	if (!rc)
		rc = report_json(&trace, rows, count);
	registration_future_free(future);
	registration_trace_free(&trace);
	return rc;
}
