/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * calibrate.c - the model beside what has been measured of the NIC it models.
 *
 * Each row is a microbenchmark and a published number, with where it comes from.
 * Numbers of another device of the same time say so. Where no number is known for
 * a generation the row is printed without one.
 */
#include "sim/scenarios/figure.h"
#include "sim/scenarios/micro.h"

#include <string.h>

#define MEASURED_NS 400000u /* where the row says nothing */

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

static void print_value(FILE *out, enum unit unit, uint64_t value)
{
	if (unit == PER_SECOND)
		fprintf(out, " %llu.%llu M/s |",
			(unsigned long long)value / 1000,
			(unsigned long long)value % 1000 / 100);
	else
		fprintf(out, " %llu %s |", (unsigned long long)value,
			unit == LATENCY ? "ns" : "MB/s");
}

int rbx_figure_calibrate(const struct rbx_nic_params *params, FILE *out)
{
	int generation = strcmp(params->name, "ConnectX-3") ? 1 : 0;

	fprintf(out, "| %s | model | published | ratio | source |\n"
		     "|---|---|---|---|---|\n",
		params->name);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rbx_micro load = rows[i].load;
		struct rbx_micro_result result;
		uint64_t value, published;

		if (load.measured_ns == 0)
			load.measured_ns = MEASURED_NS;
		rbx_micro_run(params, &load, &result);
		value = value_of(rows[i].unit, &result);
		published = rows[i].published[generation].value;
		fprintf(out, "| %s |", rows[i].what);
		print_value(out, rows[i].unit, value);
		if (published == 0) {
			fprintf(out, " | | |\n");
			continue;
		}
		print_value(out, rows[i].unit, published);
		fprintf(out, " %llu.%02llu | %s |\n",
			(unsigned long long)(value / published),
			(unsigned long long)(value * 100 / published % 100),
			rows[i].published[generation].source);
	}
	return 0;
}
