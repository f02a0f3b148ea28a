/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rates.c - makes a row from two samples.
 *
 * If a counter is lower than before, the server has been restarted, and there is no rate.
 */
#include <string.h>
#include <time.h>

#include "cli/top/top.h"

/* A server that has not answered for so long is shown as silent. */
#define SILENT_NS 2000000000ull

uint64_t top_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *top_state_name(enum top_state state)
{
	static const char *const names[] = {
		[TOP_ASKED] = "asked",	 [TOP_UP] = "up",
		[TOP_DRAINING] = "draining", [TOP_SILENT] = "silent",
		[TOP_DOWN] = "down",
	};

	return names[state];
}

static double rate(uint64_t now, uint64_t before, uint64_t ns)
{
	if (!ns || now < before)
		return TOP_UNKNOWN;
	return (double)(now - before) * 1e9 / (double)ns;
}

static enum top_state state_of(const struct top_server *server, uint64_t now_ns)
{
	if (server->is_down)
		return TOP_DOWN;
	if (!server->now.at_ns)
		return TOP_ASKED;
	if (server->asked_ns && now_ns > server->asked_ns + SILENT_NS)
		return TOP_SILENT;
	return server->now.stats.draining ? TOP_DRAINING : TOP_UP;
}

static void server_rates(const struct top_server *server,
			 struct top_server_row *row)
{
	const struct rbx_server_stats *now = &server->now.stats;
	const struct rbx_server_stats *before = &server->before.stats;
	uint64_t ns = server->now.at_ns - server->before.at_ns;

	if (!server->before.at_ns || now->reads == RBX_SERVER_NOT_SEEN ||
	    now->uptime_s < before->uptime_s)
		return;
	row->read_bytes = rate(now->read_bytes, before->read_bytes, ns);
	row->written_bytes =
		rate(now->written_bytes, before->written_bytes, ns);
	row->operations = rate(now->reads + now->writes,
			       before->reads + before->writes, ns);
}

void top_server_row_make(const struct top_server *server, uint64_t now_ns,
			 struct top_server_row *row)
{
	const struct rbx_server_stats *now = &server->now.stats;

	*row = (struct top_server_row){
		.state = state_of(server, now_ns),
		.memory_bytes = TOP_UNKNOWN,
		.lent_bytes = TOP_UNKNOWN,
		.clients = TOP_UNKNOWN,
		.read_bytes = TOP_UNKNOWN,
		.written_bytes = TOP_UNKNOWN,
		.operations = TOP_UNKNOWN,
		.answer_ns = TOP_UNKNOWN,
		.uptime_s = TOP_UNKNOWN,
	};
	memcpy(row->address, server->address, sizeof(row->address));
	memcpy(row->error, server->error, sizeof(row->error));
	if (row->state == TOP_ASKED || row->state == TOP_DOWN)
		return;
	row->memory_bytes = (double)now->memory_bytes;
	row->lent_bytes = (double)now->lent_bytes;
	row->clients = (double)now->clients;
	row->uptime_s = (double)now->uptime_s;
	if (row->state == TOP_SILENT)
		return;
	row->answer_ns = (double)server->now.took_ns;
	server_rates(server, row);
}

static void volume_rates(const struct top_volume *now,
			 const struct top_volume *before,
			 struct top_volume_row *row)
{
	uint64_t ns = now->at_ns - before->at_ns;

	row->read_bytes = rate(now->read_bytes, before->read_bytes, ns);
	row->written_bytes = rate(now->write_bytes, before->write_bytes, ns);
	row->operations = rate(now->read_requests + now->write_requests,
			       before->read_requests + before->write_requests,
			       ns);
	row->polls = rate(now->polls, before->polls, ns);
	row->empty_polls = rate(now->empty_polls, before->empty_polls, ns);
	row->rebuilt_bytes = rate(now->rebuilt_bytes, before->rebuilt_bytes, ns);
}

void top_volume_row_make(const struct top_volume *now,
			 const struct top_volume *before,
			 struct top_volume_row *row)
{
	uint64_t used = now->slabs - now->slabs_blank;

	*row = (struct top_volume_row){
		.size_bytes = (double)now->size,
		.servers_up = (double)now->servers_up,
		.read_bytes = TOP_UNKNOWN,
		.written_bytes = TOP_UNKNOWN,
		.operations = TOP_UNKNOWN,
		.read_p99_ns = (double)now->read_latency_p99_ns,
		.write_p99_ns = (double)now->write_latency_p99_ns,
		.window_bytes = (double)now->window_bytes,
		.inflight_bytes = (double)now->inflight_bytes,
		.polls = TOP_UNKNOWN,
		.empty_polls = TOP_UNKNOWN,
		.whole = now->slabs < now->slabs_blank || !used ?
				 1 :
				 (double)now->slabs_whole / (double)used,
		.rebuilding = (double)now->slabs_rebuilding,
		.lost = (double)now->slabs_lost,
		.rebuilt_bytes = TOP_UNKNOWN,
	};
	memcpy(row->name, now->name, sizeof(row->name));
	memcpy(row->device, now->device, sizeof(row->device));
	if (before)
		volume_rates(now, before, row);
}
