/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.c - what rdmabox pool status prints: a line for each member, what is wrong with
 * some, and the sum of all servers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/pool/pool_status.h"

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

static uint64_t free_bytes(const struct pool_row *row)
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
	const char *labels = *row->member.labels ? row->member.labels : "-";
	char memory[32] = "-", lent[32] = "-", free[32] = "-", clients[24] = "-";

	if (has_numbers(row)) {
		cli_size_print(row->stats.memory_bytes, memory, sizeof(memory));
		cli_size_print(row->stats.lent_bytes, lent, sizeof(lent));
		cli_size_print(free_bytes(row), free, sizeof(free));
		snprintf(clients, sizeof(clients), "%" PRIu64, row->stats.clients);
	}
	printf("%-*s  %-8s  %-*s  %10s  %10s  %10s  %7s  ", address_width, row->member.address,
	       pool_state_name(row->state), labels_width, labels, memory, free, lent, clients);
	if (row->incarnation)
		printf("%016" PRIx64 "\n", row->incarnation);
	else
		puts("-");
}

static void notes_print(const struct pool_row *rows, size_t count, const char *trouble)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (rows[i].state == POOL_AWAY)
			printf("%s is away: %s\n", rows[i].member.address, rows[i].error);
		else if (rows[i].state == POOL_SAME)
			printf("%s is the same server as %s, and is counted once\n",
			       rows[i].member.address, rows[i].same_as);
	}
	if (*trouble)
		printf("the pool may be out of date: %s\n", trouble);
}

void pool_status_print(const struct pool_row *rows, size_t count, const char *trouble)
{
	int address_width = (int)strlen("ADDRESS"), labels_width = (int)strlen("LABELS");
	struct sum sum = sum_make(rows, count);
	char memory[32], lent[32];
	size_t i;

	for (i = 0; i < count; i++) {
		address_width = wider(address_width, strlen(rows[i].member.address));
		labels_width = wider(labels_width, strlen(rows[i].member.labels));
	}
	printf("%-*s  %-8s  %-*s  %10s  %10s  %10s  %7s  %s\n", address_width, "ADDRESS", "STATE",
	       labels_width, "LABELS", "MEMORY", "FREE", "LENT", "CLIENTS", "INCARNATION");
	for (i = 0; i < count; i++)
		row_print(&rows[i], address_width, labels_width);
	notes_print(rows, count, trouble);
	printf("%zu of %zu servers up, %s of %s lent\n", sum.up, sum.servers,
	       cli_size_print(sum.lent_bytes, lent, sizeof(lent)),
	       cli_size_print(sum.memory_bytes, memory, sizeof(memory)));
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

static json_t *labels_json(const char *labels)
{
	json_t *json = json_object();

	while (*labels) {
		size_t length = strcspn(labels, ","), name_bytes = strcspn(labels, "=");
		char name[RBX_POOL_LABELS_BYTES];

		snprintf(name, sizeof(name), "%.*s", (int)name_bytes, labels);
		json_object_set_new(json, name,
				    json_stringn(labels + name_bytes + 1, length - name_bytes - 1));
		labels += length + (labels[length] == ',');
	}
	return json;
}

static json_t *row_json(const struct pool_row *row)
{
	bool is_known = has_numbers(row);
	json_t *json = json_object();

	json_object_set_new(json, "address", json_string(row->member.address));
	json_object_set_new(json, "state", json_string(pool_state_name(row->state)));
	json_object_set_new(json, "labels", labels_json(row->member.labels));
	json_object_set_new(json, "memory_bytes", number(is_known, row->stats.memory_bytes));
	json_object_set_new(json, "free_bytes", number(is_known, free_bytes(row)));
	json_object_set_new(json, "lent_bytes", number(is_known, row->stats.lent_bytes));
	json_object_set_new(json, "clients", number(is_known, row->stats.clients));
	json_object_set_new(json, "incarnation", hex(row->incarnation));
	if (row->same_as)
		json_object_set_new(json, "same_as", json_string(row->same_as));
	if (row->state == POOL_AWAY)
		json_object_set_new(json, "error", json_string(row->error));
	return json;
}

json_t *pool_status_json(const struct pool_row *rows, size_t count, const char *pool,
			 const char *trouble)
{
	struct sum sum = sum_make(rows, count);
	json_t *json = json_object(), *members = json_array();
	size_t i;

	for (i = 0; i < count; i++)
		json_array_append_new(members, row_json(&rows[i]));
	json_object_set_new(json, "pool", json_string(pool));
	json_object_set_new(json, "trouble", *trouble ? json_string(trouble) : json_null());
	json_object_set_new(json, "servers", number(true, sum.servers));
	json_object_set_new(json, "servers_up", number(true, sum.up));
	json_object_set_new(json, "servers_away", number(true, sum.away));
	json_object_set_new(json, "memory_bytes", number(true, sum.memory_bytes));
	json_object_set_new(json, "lent_bytes", number(true, sum.lent_bytes));
	json_object_set_new(json, "members", members);
	return json;
}
