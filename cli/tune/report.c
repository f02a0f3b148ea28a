/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The result of rdmabox tune, as tables and as JSON with the same numbers. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/tune/tune.h"

/* Prints nanoseconds as microseconds, followed by the spread. */
static void print_cost(uint64_t ns, uint64_t spread_ns)
{
	printf("  %10.2f +-%-8.2f", ns / 1e3, spread_ns / 1e3);
}

static void print_curve(const struct tune_result *result)
{
	char text[32];

	printf("%10s  %10s %10s  %10s %10s  %10s\n", "bytes", "copy us", "",
	       "register", "", "deregister");
	for (uint32_t i = 0; i < TUNE_POINTS; i++) {
		const struct rbx_buffer_cost *cost = &result->costs[i];

		printf("%10s", cli_size_print(cost->bytes, text, sizeof(text)));
		print_cost(cost->copy_ns, cost->copy_spread_ns);
		print_cost(cost->register_ns, cost->register_spread_ns);
		print_cost(cost->deregister_ns, cost->deregister_spread_ns);
		putchar('\n');
	}
	if (result->break_even_bytes == UINT64_MAX)
		printf("\nbreak-even: none; copying is cheaper up to %s\n",
		       cli_size_print(TUNE_BYTES_MAX, text, sizeof(text)));
	else
		printf("\nbreak-even: %s; from there on registering and "
		       "deregistering cost less\n",
		       cli_size_print(result->break_even_bytes, text,
				      sizeof(text)));
}

static void print_qps(const struct tune_result *result)
{
	if (!result->qps_count)
		return;
	printf("\nqueue pairs  requests/s\n");
	for (uint32_t i = 0; i < result->qps_count; i++)
		printf("%11u  %10.0f +-%.0f\n", result->qps[i].queue_pairs,
		       result->qps[i].iops, result->qps[i].spread_iops);
	printf("\nbest: %u, the fewest that are, with their spread, within "
	       "%.0f %% of the fastest\n",
	       result->queue_pairs, TUNE_QPS_TOLERANCE * 100);
}

void tune_report_print(const struct tune_result *result)
{
	printf("using %s\nbuffers that are registered now: %s\n\n",
	       result->using, result->registering);
	print_curve(result);
	print_qps(result);
}

static json_t *curve_json(const struct tune_result *result)
{
	json_t *curve = json_array();

	for (uint32_t i = 0; i < TUNE_POINTS; i++) {
		const struct rbx_buffer_cost *cost = &result->costs[i];
		json_t *point = json_object();

#define SET(name) \
	json_object_set_new(point, #name, json_integer((json_int_t)cost->name))
		SET(bytes);
		SET(copy_ns);
		SET(register_ns);
		SET(deregister_ns);
		SET(copy_spread_ns);
		SET(register_spread_ns);
		SET(deregister_spread_ns);
#undef SET
		json_array_append_new(curve, point);
	}
	return curve;
}

static json_t *qps_json(const struct tune_result *result)
{
	json_t *points = json_array();

	for (uint32_t i = 0; i < result->qps_count; i++)
		json_array_append_new(
			points,
			json_pack("{si sf sf}", "queue_pairs",
				  (int)result->qps[i].queue_pairs, "iops",
				  result->qps[i].iops, "spread_iops",
				  result->qps[i].spread_iops));
	return points;
}

json_t *tune_report_json(const struct tune_result *result)
{
	json_t *json = json_object();
	bool never = result->break_even_bytes == UINT64_MAX;

	json_object_set_new(json, "fabric", json_string(result->fabric));
	json_object_set_new(json, "device", json_string(result->device));
	json_object_set_new(json, "using", json_string(result->using));
	json_object_set_new(json, "registering",
			    json_string(result->registering));
	json_object_set_new(json, "curve", curve_json(result));
	json_object_set_new(
		json, "break_even_bytes",
		never ? json_null() :
			json_integer((json_int_t)result->break_even_bytes));
	json_object_set_new(json, "queue_pairs_curve", qps_json(result));
	json_object_set_new(json, "queue_pairs",
			    result->queue_pairs ?
				    json_integer(result->queue_pairs) :
				    json_null());
	json_object_set_new(json, "version", json_string(RBX_VERSION));
	return json;
}
