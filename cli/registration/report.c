/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table, and JSON. In the table a star marks what cost least with this budget, and auto has how
 * much more it cost than the best of the others.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/registration/registration.h"

static uint64_t requests_of(const struct rbx_regions_counters *counters)
{
	return counters->hits + counters->partial_hits + counters->misses;
}

void registration_report_begin(const struct registration_trace *trace)
{
	char size[32];

	printf("%" PRIu64 " requests touch %s\n\n", trace->count,
	       cli_size_print(trace->touched_bytes, size, sizeof(size)));
	printf("%10s %9s  %-7s %7s %9s %13s %15s %8s\n", "bytes", "regions", "policy", "hits %",
	       "partial %", "registrations", "microseconds", "of bound");
}

/* What cost least, auto aside. If it is alone, nothing gets a star. */
static uint64_t least(const struct registration_row *rows, uint32_t count)
{
	uint64_t ns = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(rows[i].policy, "auto") && rows[i].counters.spent_ns < ns)
			ns = rows[i].counters.spent_ns;
	return ns;
}

void registration_report_rows(const struct registration_row *rows, uint32_t count)
{
	uint64_t best = least(rows, count);
	char size[32];

	for (uint32_t i = 0; i < count; i++) {
		const struct registration_row *row = &rows[i];
		double requests = (double)requests_of(&row->counters);
		double ns = (double)row->counters.spent_ns;

		printf("%10s %9" PRIu32 "  %-7s %7.2f %9.2f %13" PRIu64 " %15.0f %8.3f",
		       cli_size_short(row->bytes, size, sizeof(size)), row->regions, row->policy,
		       100 * (double)row->counters.hits / requests,
		       100 * (double)row->counters.partial_hits / requests,
		       row->counters.registrations, ns / 1000,
		       row->bound_ns ? ns / (double)row->bound_ns : 1);
		if (!strcmp(row->policy, "auto") && best != UINT64_MAX && best)
			printf(" %+.1f %%", 100 * (ns / (double)best - 1));
		else if (row->counters.spent_ns == best)
			printf(" *");
		putchar('\n');
	}
	putchar('\n');
	fflush(stdout);
}

static json_t *row_json(const struct registration_row *row)
{
	const struct rbx_regions_counters *counters = &row->counters;

	return json_pack("{s:s s:s s:I s:I s:I s:I s:I s:I s:I s:I s:f s:f s:I}",
			 "trace", registration_options.trace, "policy", row->policy,
			 "bytes", (json_int_t)row->bytes, "regions", (json_int_t)row->regions,
			 "requests", (json_int_t)requests_of(counters),
			 "hits", (json_int_t)counters->hits,
			 "partial_hits", (json_int_t)counters->partial_hits,
			 "staged", (json_int_t)counters->staged,
			 "registrations", (json_int_t)counters->registrations,
			 "deregistrations", (json_int_t)counters->deregistrations,
			 "cost_us", (double)counters->spent_ns / 1000,
			 "bound_us", (double)row->bound_ns / 1000,
			 "pinned_bytes_max", (json_int_t)row->pinned_bytes_max);
}

json_t *registration_report_json(const struct registration_trace *trace,
				 const struct registration_row *rows, uint32_t count)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, row_json(&rows[i]));
	return json_pack("{s:I s:o}", "touched_bytes", (json_int_t)trace->touched_bytes, "rows",
			 list);
}
