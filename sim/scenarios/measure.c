/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * measure.c - see measure.h.
 *
 * A sweep is many simulations, one after another. Its events, virtual time and trace hash are
 * those of all of them.
 */
#include "sim/scenarios/measure.h"

#include <inttypes.h>

#include "sim/fail.h"
#include "sim/scenarios/figure.h"
#include "sim/scenarios/wires.h"
#include "sim/trace.h"

void rbx_sim_measure(const struct rbx_sim_options *options,
		     struct rbx_sim_outcome *outcome)
{
	const struct rbx_sim_wires_totals *totals = rbx_sim_wires_totals();
	const struct rbx_setting setting = {
		.params = options->nic,
		.seed = options->seed,
		.nodes_count = options->nodes_count,
	};
	const char *nic = options->nic ? options->nic->name : "none";

	printf("seed %" PRIu64 " scenario %s nic %s\n", options->seed,
	       options->figure->name, nic);
	fflush(stdout);
	if (options->trace)
		rbx_sim_trace_to(stdout);
	snprintf(outcome->report.nic, sizeof(outcome->report.nic), "%s", nic);
	options->figure->measure(&setting, &outcome->report);
	rbx_report_print(&outcome->report, stdout);
	outcome->hash = rbx_sim_trace_hash();
	if (!options->nic) { /* one world, whose trace changes with the library */
		outcome->events = rbx_sim_events_run();
		outcome->virtual_ns = rbx_sim_now();
		return;
	}
	outcome->events = totals->events;
	outcome->virtual_ns = totals->virtual_ns;
	outcome->requests = totals->work_requests;
	rbx_sim_print_hash(totals->events, totals->virtual_ns);
}
