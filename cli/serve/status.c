/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - what the status page fetches again and again, as JSON.
 *
 * The page makes rates from two answers, so counters go out as they are. A number above
 * 2^53 loses its last digits in a browser; none of these gets there in a server's life.
 */
#include <stdlib.h>
#include <time.h>

#include <rdmabox/rdmabox.h>

#include "cli/serve/status.h"

#define REFUSALS_MAX 64
/* More of them nobody reads on a page; it tells how many there are. */
#define CLIENTS_SHOWN_MAX 100

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static json_t *traffic_json(const struct rbx_server_stats *stats)
{
	if (stats->reads == RBX_SERVER_NOT_SEEN)
		return json_null();
	return json_pack("{sI sI sI sI}", "reads", (json_int_t)stats->reads,
			 "read_bytes", (json_int_t)stats->read_bytes, "writes",
			 (json_int_t)stats->writes, "written_bytes",
			 (json_int_t)stats->written_bytes);
}

static json_t *slabs_json(const struct rbx_server_stats *stats)
{
	return json_pack("{sI sI sI sI sI sI}", "bytes",
			 (json_int_t)stats->slab_bytes, "lent",
			 (json_int_t)stats->slabs_lent, "mapped",
			 (json_int_t)stats->slabs_mapped, "unmapped",
			 (json_int_t)stats->slabs_unmapped, "revoked",
			 (json_int_t)stats->slabs_revoked, "leases_expired",
			 (json_int_t)stats->leases_expired);
}

static json_t *answers_json(struct rbx_server *server)
{
	struct rbx_server_answers answers;

	rbx_server_answers_get(server, &answers);
	return json_pack("{sI sI sI}", "count", (json_int_t)answers.count,
			 "sum_ns", (json_int_t)answers.sum_ns, "max_ns",
			 (json_int_t)answers.max_ns);
}

static json_t *refusals_json(struct rbx_server *server)
{
	struct rbx_server_refusal refusals[REFUSALS_MAX];
	size_t count = rbx_server_refusals_get(server, refusals, REFUSALS_MAX);
	json_t *list = json_array();

	for (size_t i = 0; i < count && i < REFUSALS_MAX; i++)
		json_array_append_new(
			list, json_pack("{ss ss sI}", "reason",
					refusals[i].reason, "sentence",
					refusals[i].sentence, "count",
					(json_int_t)refusals[i].count));
	return list;
}

static json_t *client_json(const struct rbx_server_client *client)
{
	return json_pack("{ss ss sI sI sb}", "address", client->address, "credential",
			 client->credential, "slabs",
			 (json_int_t)client->slabs_lent, "age_ms",
			 (json_int_t)client->age_ms, "connected",
			 (int)client->connected);
}

/* Those with most slabs first. */
static int compare_clients(const void *one, const void *two)
{
	const struct rbx_server_client *a = one, *b = two;

	if (a->slabs_lent != b->slabs_lent)
		return a->slabs_lent < b->slabs_lent ? 1 : -1;
	return a->age_ms < b->age_ms ? 1 : a->age_ms > b->age_ms ? -1 : 0;
}

/* Adds the clients, and how many there are in all. */
static void clients_add(json_t *json, struct rbx_server *server)
{
	json_t *list = json_array();
	struct rbx_server_client *clients;
	size_t room = rbx_server_clients_get(server, NULL, 0), count, i;

	clients = calloc(room + 1, sizeof(*clients));
	count = rbx_server_clients_get(server, clients, clients ? room : 0);
	json_object_set_new(json, "clients_known", json_integer(count));
	if (count > room)
		count = room; /* more have come meanwhile */
	if (clients)
		qsort(clients, count, sizeof(*clients), compare_clients);
	for (i = 0; clients && i < count && i < CLIENTS_SHOWN_MAX; i++)
		json_array_append_new(list, client_json(&clients[i]));
	json_object_set_new(json, "clients_list", list);
	free(clients);
}

json_t *status_json(struct rbx_server *server)
{
	struct rbx_server_stats stats;
	json_t *json;

	rbx_server_stats_get(server, &stats);
	json = json_pack("{sI ss ss ss sI sI sI sb sI sI sI sI sI}", "at_ms",
			 (json_int_t)now_ms(), "version", RBX_VERSION, "address",
			 rbx_server_address(server),
			 "device", rbx_server_describe(server), "uptime_s",
			 (json_int_t)stats.uptime_s, "memory_bytes",
			 (json_int_t)stats.memory_bytes, "lent_bytes",
			 (json_int_t)stats.lent_bytes, "draining",
			 (int)stats.draining, "clients",
			 (json_int_t)stats.clients, "sessions",
			 (json_int_t)stats.sessions, "heartbeats",
			 (json_int_t)stats.heartbeats, "messages_received",
			 (json_int_t)stats.messages_received, "messages_sent",
			 (json_int_t)stats.messages_sent);
	if (!json)
		return NULL;
	json_object_set_new(json, "slabs", slabs_json(&stats));
	json_object_set_new(json, "traffic", traffic_json(&stats));
	json_object_set_new(json, "answers", answers_json(server));
	json_object_set_new(json, "refusals", refusals_json(server));
	clients_add(json, server);
	return json;
}
