/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * calibrate.c - compares the model with measurements of the NIC it models.
 *
 * Each row is a microbenchmark and a published number with its source. If the number is of
 * another device of the same time, the row says so. If no number is known for a generation,
 * the row is printed without one.
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/micro.h"

#include <string.h>

#define MEASURED_NS 400000u /* if the row has no other time */

enum unit {
	PER_SECOND, /* millions */
	LATENCY, /* nanoseconds */
	BANDWIDTH, /* MB/s */
};

struct row {
	const char *what;
	enum unit unit;
	struct rbx_micro load;
	struct {
		uint64_t value; /* in thousands a second, ns, MB/s; 0: none */
		const char *source;
	} published[2]; /* of ConnectX-3, of ConnectX-5 */
};

#define WRITE16 .opcode = RBX_OP_WRITE, .is_inline = true, .bytes = 16
#define ONE .machines_count = 1, .threads_count = 1, .qps_count = 1
#define MANY .machines_count = 8, .threads_count = 8

static const struct row rows[] = {
	{ "writes of 16 B, a core, a queue pair, one doorbell each",
	  PER_SECOND,
	  { WRITE16, ONE, .chain_count = 1, .signal_count = 16,
	    .depth_count = 64 },
	  { { 0, "" }, { 6800, "rdma_bench, Connect-IB" } } },
	{ "the same in chains of 16",
	  PER_SECOND,
	  { WRITE16, ONE, .chain_count = 16, .signal_count = 1,
	    .depth_count = 64 },
	  { { 0, "" }, { 17600, "rdma_bench, Connect-IB" } } },
	{ "the same on 3 queue pairs",
	  PER_SECOND,
	  { WRITE16, .machines_count = 1, .threads_count = 1, .qps_count = 3,
	    .chain_count = 16, .signal_count = 1,
	    .depth_count = 64 },
	  { { 0, "" }, { 27400, "rdma_bench, Connect-IB" } } },
	{ "the same by 5 cores",
	  PER_SECOND,
	  { WRITE16, .machines_count = 1, .threads_count = 5, .qps_count = 3,
	    .chain_count = 16, .signal_count = 1,
	    .depth_count = 64 },
	  { { 0, "" }, { 97500, "rdma_bench, Connect-IB" } } },
	{ "writes of 16 B that come in from many",
	  PER_SECOND,
	  { WRITE16, MANY, .qps_count = 1, .chain_count = 4,
	    .signal_count = 1, .depth_count = 32 },
	  { { 35000, "HERD 2014" }, { 90000, "Husky: more than" } } },
	{ "reads of 16 B that come in from many",
	  PER_SECOND,
	  { .opcode = RBX_OP_READ, .bytes = 16, MANY, .qps_count = 1,
	    .chain_count = 4, .signal_count = 1, .depth_count = 32 },
	  { { 26000, "HERD 2014" }, { 60000, "Husky" } } },
	{ "reads of 16 B from 64 threads over 5,120 connections",
	  PER_SECOND,
	  { .opcode = RBX_OP_READ, .bytes = 16, MANY, .qps_count = 80,
	    .chain_count = 1, .signal_count = 1, .depth_count = 1,
	    .measured_ns = 10000000 },
	  { { 4420, "Storm 2019: 83 % fewer" },
	    { 30000, "eRPC 2019: half at 5,000" } } },
	{ "a write of 64 B and its completion",
	  LATENCY,
	  { .opcode = RBX_OP_WRITE, .is_inline = true, .bytes = 64, ONE,
	    .chain_count = 1,
	    .signal_count = 1, .depth_count = 1 },
	  { { 0, "" }, { 0, "" } } },
	{ "a read of 64 B",
	  LATENCY,
	  { .opcode = RBX_OP_READ, .bytes = 64, ONE, .chain_count = 1, .signal_count = 1,
	    .depth_count = 1 },
	  { { 0, "" }, { 0, "" } } },
	{ "writes of 64 KiB",
	  BANDWIDTH,
	  { .opcode = RBX_OP_WRITE, .bytes = 65536, .machines_count = 1,
	    .threads_count = 1, .qps_count = 4, .chain_count = 1,
	    .signal_count = 1, .depth_count = 8 },
	  { { 6500, "ATC 2016: PCIe 3.0 x8, 52 Gbit/s" },
	    { 11000, "communication patterns, figure 5" } } },
	{ "reads of 64 KiB",
	  BANDWIDTH,
	  { .opcode = RBX_OP_READ, .bytes = 65536, .machines_count = 1,
	    .threads_count = 1, .qps_count = 4, .chain_count = 1,
	    .signal_count = 1, .depth_count = 8 },
	  { { 6500, "ATC 2016: PCIe 3.0 x8, 52 Gbit/s" },
	    { 11000, "communication patterns, figure 5" } } },
};

static uint64_t value_of(enum unit unit, const struct rbx_micro_result *result)
{
	switch (unit) {
	case PER_SECOND:
		return result->per_second / 1000;
	case LATENCY:
		return result->latency_ns;
	case BANDWIDTH:
		break;
	}
	return result->bytes_per_second / 1000000;
}

static void report_row(struct rbx_report_table *table, const struct row *row,
		       uint64_t value, int generation)
{
	uint64_t published = row->published[generation].value;
	int64_t values[] = { (int64_t)value, (int64_t)published,
			     RBX_REPORT_NONE };

	if (published == 0) {
		values[1] = RBX_REPORT_NONE;
		rbx_report_row(table, values, "%s", row->what);
		return;
	}
	values[2] = (int64_t)(value * 100 / published);
	rbx_report_row(table, values, "%s (%s)", row->what,
		       row->published[generation].source);
}

void rbx_figure_calibrate(const struct rbx_setting *setting,
			  struct rbx_report *report)
{
	static const struct {
		const char *title;
		uint32_t decimals;
	} units[] = {
		[PER_SECOND] = { "Millions a second", 3 },
		[LATENCY] = { "Nanoseconds", 0 },
		[BANDWIDTH] = { "MB/s", 0 },
	};
	int generation = strcmp(setting->params->name, "ConnectX-3") ? 1 : 0;
	struct rbx_report_table *table = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const struct rbx_report_column columns[] = {
			{ "model", units[row->unit].decimals },
			{ "published", units[row->unit].decimals },
			{ "ratio", 2 },
		};
		struct rbx_micro load = row->load;
		struct rbx_micro_result result;

		if (i == 0 || row->unit != row[-1].unit)
			table = rbx_report_table(report, "microbenchmark",
						 columns, 3, "%s",
						 units[row->unit].title);
		if (load.measured_ns == 0)
			load.measured_ns = MEASURED_NS;
		rbx_micro_run(setting, &load, &result);
		report_row(table, row, value_of(row->unit, &result),
			   generation);
	}
}
