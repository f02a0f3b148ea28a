/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * labels.c - where the servers of a pool are, and which of them fail together.
 *
 * A server says its labels itself, and that counts. A line of a pool's file may say labels of a
 * server that says none of that name. If both say one, and not the same, the status shows it.
 */
#include <stdio.h>
#include <string.h>

#include "cli/pool/pool_status.h"

const char *pool_label(const char *labels, const char *name, size_t *length)
{
	size_t name_bytes = strcspn(name, "=");

	while (*labels) {
		size_t label_bytes = strcspn(labels, ",");

		if (!strncmp(labels, name, name_bytes) && labels[name_bytes] == '=') {
			*length = label_bytes - name_bytes - 1;
			return labels + name_bytes + 1;
		}
		labels += label_bytes + (labels[label_bytes] == ',');
	}
	return NULL;
}

static bool is_same(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	return a_bytes == b_bytes && !memcmp(a, b, a_bytes);
}

static void label_join(struct pool_row *row, const char *own, const char *told, size_t told_bytes)
{
	size_t own_bytes, value_bytes, used = strlen(row->labels);
	const char *value = pool_label(told, told, &value_bytes);
	const char *said = pool_label(own, told, &own_bytes);

	if (!said)
		snprintf(row->labels + used, sizeof(row->labels) - used, "%s%.*s", used ? "," : "",
			 (int)told_bytes, told);
	else if (!is_same(said, own_bytes, value, value_bytes) && !*row->contradicted)
		snprintf(row->contradicted, sizeof(row->contradicted), "%.*s", (int)told_bytes, told);
}

void pool_labels_join(struct pool_row *row, const char *own)
{
	const char *told = row->member.labels;

	snprintf(row->labels, sizeof(row->labels), "%s", own);
	while (*told) {
		size_t length = strcspn(told, ",");

		label_join(row, own, told, length);
		told += length + (told[length] == ',');
	}
}

json_t *pool_labels_json(const char *labels)
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

/* ---- Failure domains -----------------------------------------------------------------------*/

static struct pool_domain *domain_find(struct pool_domain *domains, size_t *count,
				       const char *name, size_t name_bytes)
{
	size_t i;

	for (i = 0; i < *count; i++)
		if (is_same(domains[i].name, domains[i].name_bytes, name, name_bytes))
			return &domains[i];
	domains[i] = (struct pool_domain){ .name = name, .name_bytes = name_bytes };
	return &domains[(*count)++];
}

size_t pool_domains(const struct pool_row *rows, size_t count, const char *spread,
		    struct pool_domain *domains)
{
	size_t i, name_bytes, domains_count = 0;

	for (i = 0; i < count; i++) {
		const char *name = pool_label(rows[i].labels, spread, &name_bytes);
		struct pool_domain *domain;

		if (!name || rows[i].state == POOL_SAME)
			continue;
		domain = domain_find(domains, &domains_count, name, name_bytes);
		if (rows[i].state != POOL_UP)
			continue;
		domain->servers_up++;
		domain->free_bytes += pool_free_bytes(&rows[i]);
	}
	return domains_count;
}
