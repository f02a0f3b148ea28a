/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server_labels.h - the labels of a server, "rack=7,zone=b", and the failure domain that one of
 * them names.
 *
 * A label says something of the place of a server. Servers with the same value of one label are
 * in one failure domain: a rack loses its power or its switch as a whole. Which label that is,
 * the volume says (its spread). A server without it is a domain of its own.
 *
 * Server, clients and pools use these functions, so that all refuse the same labels. The texts
 * come from users, files and the network.
 */
#ifndef RBX_SERVER_LABELS_H
#define RBX_SERVER_LABELS_H

#include "core/port.h"

#define RBX_SERVER_LABELS_BYTES 256u /* of all labels of a server, with a NUL */
#define RBX_SPREAD_BYTES 64u /* of a label's name, with its NUL */
#define RBX_SPREAD_DEFAULT "rack"

/* A list of servers is separated by commas, a line of a file by spaces. */
static inline bool rbx_label_has(char c)
{
	return c > ' ' && c <= '~' && c != ',' && c != '"' && c != '\\';
}

/* Bytes up to an end character, or to the end of the text. */
static inline size_t rbx_label_span(const char *text, char end)
{
	size_t i = 0;

	while (text[i] && text[i] != end)
		i++;
	return i;
}

/* Finds the label of this name before `end`: its value, up to a comma or the end; or NULL. */
static inline const char *rbx_labels_find(const char *labels, const char *end,
					  const char *name, size_t name_bytes)
{
	size_t i;

	while (labels < end) {
		for (i = 0; i < name_bytes && labels[i] == name[i]; i++)
			;
		if (i == name_bytes && labels[i] == '=')
			return labels + i + 1;
		labels += rbx_label_span(labels, ',');
		labels += *labels == ',';
	}
	return NULL;
}

/* Whether a text is NAME=VALUE labels behind commas, no name twice, or empty, and ends within
 * RBX_SERVER_LABELS_BYTES. */
static inline bool rbx_server_labels_are_good(const char *labels)
{
	const char *label = labels;
	size_t length = 0, name_bytes, i;

	while (length < RBX_SERVER_LABELS_BYTES && labels[length])
		length++;
	if (length == RBX_SERVER_LABELS_BYTES)
		return false;
	while (*label) {
		length = rbx_label_span(label, ',');
		name_bytes = rbx_label_span(label, '=');
		for (i = 0; i < length; i++)
			if (!rbx_label_has(label[i]))
				return false;
		if (!name_bytes || name_bytes + 1 >= length ||
		    rbx_labels_find(labels, label, label, name_bytes))
			return false;
		label += length;
		if (*label == ',' && !*++label)
			return false;
	}
	return true;
}

/* Whether a text can be the name of a label: the spread of a volume. */
static inline bool rbx_spread_is_good(const char *name)
{
	size_t i;

	for (i = 0; i < RBX_SPREAD_BYTES && name[i]; i++)
		if (!rbx_label_has(name[i]) || name[i] == '=')
			return false;
	return i && i < RBX_SPREAD_BYTES;
}

/*
 * rbx_server_domain() - the failure domain of a server, as a number.
 * @labels: were checked
 * @spread: name of the label that counts
 *
 * Returns a number that servers with the same value of that label have in common; 0: it has no
 * such label. It is a hash (FNV-1a) of the value. Two values with one hash, if they were ever
 * found, would count as one domain: replicas are further apart than needed, never closer.
 */
static inline uint64_t rbx_server_domain(const char *labels, const char *spread)
{
	const char *end = labels + rbx_label_span(labels, '\0');
	const char *value = rbx_labels_find(labels, end, spread, rbx_label_span(spread, '\0'));
	uint64_t hash = 0xcbf29ce484222325ull;

	if (!value)
		return 0;
	for (; *value && *value != ','; value++)
		hash = (hash ^ (uint8_t)*value) * 0x100000001b3ull;
	return hash ? hash : 1;
}

#endif
