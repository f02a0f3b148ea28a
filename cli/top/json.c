/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json.c - rows as JSON: for each interval a line with an object. */
#include <time.h>

#include "cli/top/top.h"

static json_t *number(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

static json_t *whole(double value)
{
	/* A server may send anything. A number that is too large for an integer becomes a
	 * real. */
	if (value >= 0x1p62)
		return json_real(value);
	return value < 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t *server_json(const struct top_server_row *row)
{
	json_t *json = json_object();

	json_object_set_new(json, "address", json_string(row->address));
	json_object_set_new(json, "state",
			    json_string(top_state_name(row->state)));
	if (row->state == TOP_DOWN)
		json_object_set_new(json, "error", json_string(row->error));
	json_object_set_new(json, "memory_bytes", whole(row->memory_bytes));
	json_object_set_new(json, "lent_bytes", whole(row->lent_bytes));
	json_object_set_new(json, "clients", whole(row->clients));
	json_object_set_new(json, "read_bytes_per_s", number(row->read_bytes));
	json_object_set_new(json, "written_bytes_per_s",
			    number(row->written_bytes));
	json_object_set_new(json, "work_requests_per_s",
			    number(row->operations));
	json_object_set_new(json, "answer_ns", whole(row->answer_ns));
	json_object_set_new(json, "uptime_s", whole(row->uptime_s));
	return json;
}

static json_t *volume_json(const struct top_volume_row *row)
{
	json_t *json = json_object();

	json_object_set_new(json, "name", json_string(row->name));
	json_object_set_new(json, "device",
			    *row->device ? json_string(row->device) :
					   json_null());
	json_object_set_new(json, "size_bytes", whole(row->size_bytes));
	json_object_set_new(json, "servers_up", whole(row->servers_up));
	json_object_set_new(json, "read_bytes_per_s", number(row->read_bytes));
	json_object_set_new(json, "written_bytes_per_s",
			    number(row->written_bytes));
	json_object_set_new(json, "requests_per_s", number(row->operations));
	json_object_set_new(json, "read_latency_p99_ns",
			    whole(row->read_p99_ns));
	json_object_set_new(json, "write_latency_p99_ns",
			    whole(row->write_p99_ns));
	json_object_set_new(json, "window_bytes", whole(row->window_bytes));
	json_object_set_new(json, "inflight_bytes", whole(row->inflight_bytes));
	json_object_set_new(json, "polls_per_s", number(row->polls));
	json_object_set_new(json, "empty_polls_per_s",
			    number(row->empty_polls));
	json_object_set_new(json, "whole", number(row->whole));
	json_object_set_new(json, "slabs_rebuilding", whole(row->rebuilding));
	json_object_set_new(json, "slabs_lost", whole(row->lost));
	json_object_set_new(json, "rebuilt_bytes_per_s",
			    number(row->rebuilt_bytes));
	return json;
}

void top_json_print(FILE *out, const struct top_report *report)
{
	json_t *json = json_object(), *servers = json_array();
	json_t *volumes = json_array();
	uint32_t i;

	for (i = 0; i < report->servers_count; i++)
		json_array_append_new(servers,
				      server_json(&report->servers[i]));
	for (i = 0; i < report->volumes_count; i++)
		json_array_append_new(volumes,
				      volume_json(&report->volumes[i]));
	json_object_set_new(json, "time_s", json_integer(time(NULL)));
	json_object_set_new(json, "servers", servers);
	json_object_set_new(json, "volumes", volumes);
	(void)json_dumpf(json, out, JSON_COMPACT);
	json_decref(json);
	fputs("\n", out);
}
