/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - what rdmabox pool status prints: a line for each member, what is wrong with
 * some, the sum of all servers, the failure domains, and the named volumes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pool/pool_status.h"
#include "cli/volume/volume.h"

struct sum {
	size_t servers;
	size_t up;
	size_t away;
	uint64_t memory_bytes;
	uint64_t lent_bytes;
};

static bool has_numbers(const struct pool_row *row)
{
	return row->state != POOL_AWAY;
}

uint64_t pool_free_bytes(const struct pool_row *row)
{
	const struct rbx_server_stats *stats = &row->stats;

	return stats->lent_bytes < stats->memory_bytes ?
		       stats->memory_bytes - stats->lent_bytes :
		       0;
}

static struct sum sum_make(const struct pool_row *rows, size_t count)
{
	struct sum sum = { .servers = 0 };
	size_t i;

	for (i = 0; i < count; i++) {
		if (rows[i].state == POOL_SAME)
			continue;
		sum.servers++;
		sum.up += rows[i].state == POOL_UP;
		sum.away += rows[i].state == POOL_AWAY;
		if (!has_numbers(&rows[i]))
			continue;
		sum.memory_bytes += rows[i].stats.memory_bytes;
		sum.lent_bytes += rows[i].stats.lent_bytes;
	}
	return sum;
}

/* ---- The table -------------------------------------------------------------------------*/

static int wider(int width, size_t length)
{
	return (int)length > width ? (int)length : width;
}

static void row_print(const struct pool_row *row, int address_width, int labels_width)
{
	const char *labels = *row->labels ? row->labels : "-";
	char memory[32] = "-", lent[32] = "-", free[32] = "-", clients[24] = "-";

	if (has_numbers(row)) {
		cli_size_print(row->stats.memory_bytes, memory, sizeof(memory));
		cli_size_print(row->stats.lent_bytes, lent, sizeof(lent));
		cli_size_print(pool_free_bytes(row), free, sizeof(free));
		snprintf(clients, sizeof(clients), "%" PRIu64, row->stats.clients);
	}
	printf("%-*s  %-8s  %-*s  %10s  %10s  %10s  %7s  ", address_width, row->member.address,
	       pool_state_name(row->state), labels_width, labels, memory, free, lent, clients);
	if (row->incarnation)
		printf("%016" PRIx64 "\n", row->incarnation);
	else
		puts("-");
}

static void notes_print(const struct pool_status *status)
{
	size_t i;

	for (i = 0; i < status->count; i++) {
		const struct pool_row *row = &status->rows[i];

		if (row->state == POOL_AWAY)
			printf("%s is away: %s\n", row->member.address, row->error);
		else if (row->state == POOL_SAME)
			printf("%s is the same server as %s, and is counted once\n",
			       row->member.address, row->same_as);
		else if (*row->contradicted)
			printf("%s does not say %s, as the pool does: what it says counts\n",
			       row->member.address, row->contradicted);
	}
	if (*status->trouble)
		printf("the pool may be out of date: %s\n", status->trouble);
}

static void rows_print(const struct pool_row *rows, size_t count)
{
	int address_width = (int)strlen("ADDRESS"), labels_width = (int)strlen("LABELS");
	size_t i;

	for (i = 0; i < count; i++) {
		address_width = wider(address_width, strlen(rows[i].member.address));
		labels_width = wider(labels_width, strlen(rows[i].labels));
	}
	printf("%-*s  %-8s  %-*s  %10s  %10s  %10s  %7s  %s\n", address_width, "ADDRESS", "STATE",
	       labels_width, "LABELS", "MEMORY", "FREE", "LENT", "CLIENTS", "INCARNATION");
	for (i = 0; i < count; i++)
		row_print(&rows[i], address_width, labels_width);
}

/* Without the servers that have no such label. */
static void domains_print(const struct pool_status *status)
{
	struct pool_domain *domains = calloc(status->count, sizeof(*domains));
	char free_text[32];
	size_t i, count = 0;

	if (domains)
		count = pool_domains(status->rows, status->count, status->spread, domains);
	for (i = 0; i < count; i++)
		printf("%s %.*s: %zu server%s up, %s free\n", status->spread,
		       (int)domains[i].name_bytes, domains[i].name, domains[i].servers_up,
		       domains[i].servers_up == 1 ? "" : "s",
		       cli_size_print(domains[i].free_bytes, free_text, sizeof(free_text)));
	free(domains);
}

static void volume_print(const struct rbx_volume_info *info, int owners, int width)
{
	char size[32];

	volume_owner_print(owners, info->owner);
	printf("%-*s  %10s  %2" PRIu32 " of %-2" PRIu32 "  %3" PRIu32 " of %-3" PRIu32
	       "  %-5s  %-4s  %s\n",
	       width, info->name, cli_size_print(info->volume_bytes, size, sizeof(size)),
	       info->copies, info->replicas, info->servers_there, info->servers,
	       info->is_whole ? "yes" : "no", info->is_open ? "yes" : "no", info->writer);
}

/* A volume of which no record was accepted has no servers yet. */
static void volumes_print(const struct pool_volumes *volumes, const char *credential)
{
	int width = (int)strlen("VOLUME"), owners;
	size_t i;

	if (*volumes->error)
		printf("the volumes are not known: %s\n", volumes->error);
	if (*volumes->error || !volumes->count)
		return;
	for (i = 0; i < volumes->count; i++)
		width = wider(width, strlen(volumes->infos[i].name));
	owners = volume_owners_width(volumes->infos, (int)volumes->count, credential);
	puts("");
	volume_owner_print(owners, "OWNER");
	printf("%-*s  %10s  %-8s  %-10s  %-5s  %-4s  %s\n", width, "VOLUME", "SIZE", "COPIES",
	       "SERVERS", "WHOLE", "OPEN", "WRITER");
	for (i = 0; i < volumes->count; i++)
		volume_print(&volumes->infos[i], owners, width);
	for (i = 0; i < volumes->count; i++) {
		const struct rbx_volume_info *info = &volumes->infos[i];

		if (pool_volume_missing(info))
			printf("%s lacks the copies of %" PRIu32 " of its servers, away or restarted\n",
			       info->name, pool_volume_missing(info));
		if (info->is_lost)
			printf("%s has lost slabs: see rdmabox volume clear-lost\n", info->name);
	}
}

void pool_status_print(const struct pool_status *status)
{
	struct sum sum = sum_make(status->rows, status->count);
	char memory[32], lent[32];

	rows_print(status->rows, status->count);
	notes_print(status);
	printf("%zu of %zu server%s up, %s of %s lent\n", sum.up, sum.servers,
	       sum.servers == 1 ? "" : "s",
	       cli_size_print(sum.lent_bytes, lent, sizeof(lent)),
	       cli_size_print(sum.memory_bytes, memory, sizeof(memory)));
	domains_print(status);
	volumes_print(status->volumes, status->credential);
}

/* ---- JSON ---------------------------------------------------------------------------------*/

static json_t *number(bool is_known, uint64_t value)
{
	return is_known ? json_integer((json_int_t)value) : json_null();
}

/* A number of 64 bits that JSON readers would round, so it is a text. */
static json_t *hex(uint64_t value)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return value ? json_string(text) : json_null();
}

static json_t *row_json(const struct pool_row *row, const char *spread)
{
	bool is_known = has_numbers(row);
	json_t *json = json_object();
	const char *domain;
	size_t domain_bytes;

	json_object_set_new(json, "address", json_string(row->member.address));
	json_object_set_new(json, "state", json_string(pool_state_name(row->state)));
	json_object_set_new(json, "labels", pool_labels_json(row->labels));
	domain = pool_label(row->labels, spread, &domain_bytes);
	json_object_set_new(json, "domain",
			    domain ? json_stringn(domain, domain_bytes) : json_null());
	json_object_set_new(json, "memory_bytes", number(is_known, row->stats.memory_bytes));
	json_object_set_new(json, "free_bytes", number(is_known, pool_free_bytes(row)));
	json_object_set_new(json, "lent_bytes", number(is_known, row->stats.lent_bytes));
	json_object_set_new(json, "clients", number(is_known, row->stats.clients));
	json_object_set_new(json, "incarnation", hex(row->incarnation));
	if (row->same_as)
		json_object_set_new(json, "same_as", json_string(row->same_as));
	if (row->state == POOL_AWAY)
		json_object_set_new(json, "error", json_string(row->error));
	return json;
}

static json_t *domains_json(const struct pool_status *status)
{
	struct pool_domain *domains = calloc(status->count, sizeof(*domains));
	json_t *json = json_array();
	size_t i, count = 0;

	if (domains)
		count = pool_domains(status->rows, status->count, status->spread, domains);
	for (i = 0; i < count; i++)
		json_array_append_new(
			json, json_pack("{s:s%, s:I, s:I}", "name", domains[i].name,
					domains[i].name_bytes, "servers_up",
					(json_int_t)domains[i].servers_up, "free_bytes",
					(json_int_t)domains[i].free_bytes));
	free(domains);
	return json;
}

static json_t *volumes_json(const struct pool_volumes *volumes)
{
	json_t *json = json_array();
	size_t i;

	if (*volumes->error) {
		json_decref(json);
		return json_null();
	}
	for (i = 0; i < volumes->count; i++)
		json_array_append_new(json, volume_info_json(&volumes->infos[i]));
	return json;
}

json_t *pool_status_json(const struct pool_status *status)
{
	struct sum sum = sum_make(status->rows, status->count);
	json_t *json = json_object(), *members = json_array();
	size_t i;

	for (i = 0; i < status->count; i++)
		json_array_append_new(members, row_json(&status->rows[i], status->spread));
	json_object_set_new(json, "pool", json_string(status->pool));
	json_object_set_new(json, "trouble",
			    *status->trouble ? json_string(status->trouble) : json_null());
	json_object_set_new(json, "servers", number(true, sum.servers));
	json_object_set_new(json, "servers_up", number(true, sum.up));
	json_object_set_new(json, "servers_away", number(true, sum.away));
	json_object_set_new(json, "memory_bytes", number(true, sum.memory_bytes));
	json_object_set_new(json, "lent_bytes", number(true, sum.lent_bytes));
	json_object_set_new(json, "members", members);
	json_object_set_new(json, "spread", json_string(status->spread));
	json_object_set_new(json, "domains", domains_json(status));
	json_object_set_new(json, "volumes", volumes_json(status->volumes));
	return json;
}
