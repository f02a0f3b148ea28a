/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* params.c - reads the file of a generation of NIC. See params.h. */
#include "sim/nic/params.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* Longer files are not parameters of a NIC. */
#define FILE_BYTES_MAX (64u << 10)
#define KEYS_MAX 96u

static const struct key {
	const char *name;
	size_t offset;
	uint32_t low, high;
} keys[] = {
#define X(key, low, high, what) \
	{ #key, offsetof(struct rbx_nic_params, key), low, high },
	RBX_NIC_PARAMS(X)
#undef X
};

#define KEY_COUNT (sizeof(keys) / sizeof(keys[0]))
RBX_STATIC_ASSERT(KEY_COUNT <= KEYS_MAX, "each key has a flag");

struct reader {
	const char *file;
	uint32_t line;
	struct rbx_nic_params *params;
	uint32_t seen_line[KEYS_MAX]; /* 0: not yet */
	uint32_t name_line;
	char *error;
};

static int refuse(struct reader *reader, const char *key, const char *what)
{
	snprintf(reader->error, RBX_NIC_ERROR_MAX, "%s:%u: %s%s%s",
		 reader->file, reader->line, key, *key ? ": " : "", what);
	return -EINVAL;
}

/* Cuts comment and blanks off both ends. */
static char *trim(char *text)
{
	char *end;

	text[strcspn(text, "#\n")] = '\0';
	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

static int twice(struct reader *reader, const char *key, uint32_t line)
{
	char what[64];

	snprintf(what, sizeof(what), "stands in line %u already", line);
	return refuse(reader, key, what);
}

static int set_number(struct reader *reader, const struct key *key,
		      const char *value)
{
	unsigned long long number;
	char what[96], *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)*value) || *end != '\0' || errno)
		return refuse(reader, key->name,
			      "a whole number is wanted, without a unit");
	if (number < key->low || number > key->high) {
		snprintf(what, sizeof(what), "%llu is not from %u to %u",
			 number, key->low, key->high);
		return refuse(reader, key->name, what);
	}
	*(uint32_t *)((char *)reader->params + key->offset) = (uint32_t)number;
	return 0;
}

static int set_name(struct reader *reader, const char *value)
{
	if (reader->name_line)
		return twice(reader, "name", reader->name_line);
	if (*value == '\0' || strlen(value) >= sizeof(reader->params->name))
		return refuse(reader, "name", "1 to 63 characters are wanted");
	strcpy(reader->params->name, value);
	reader->name_line = reader->line;
	return 0;
}

static int refuse_unknown(struct reader *reader, const char *name)
{
	char keys_text[RBX_NIC_ERROR_MAX];
	size_t at = (size_t)snprintf(keys_text, sizeof(keys_text),
				     "no such key; there are name");

	for (size_t i = 0; i < KEY_COUNT; i++)
		at += (size_t)snprintf(keys_text + at, sizeof(keys_text) - at,
				       ", %s", keys[i].name);
	RBX_ASSERT(at < sizeof(keys_text));
	return refuse(reader, name, keys_text);
}

static int set(struct reader *reader, const char *name, const char *value)
{
	if (!strcmp(name, "name"))
		return set_name(reader, value);
	for (size_t i = 0; i < KEY_COUNT; i++) {
		if (strcmp(keys[i].name, name))
			continue;
		if (reader->seen_line[i])
			return twice(reader, name, reader->seen_line[i]);
		reader->seen_line[i] = reader->line;
		return set_number(reader, &keys[i], value);
	}
	return refuse_unknown(reader, name);
}

static int parse_line(struct reader *reader, char *line)
{
	char *value, *name = trim(line);

	if (*name == '\0')
		return 0;
	value = strchr(name, '=');
	if (!value)
		return refuse(reader, "", "`key = value` is wanted");
	*value++ = '\0';
	return set(reader, trim(name), trim(value));
}

static int check_complete(struct reader *reader)
{
	if (!reader->name_line)
		return refuse(reader, "name", "is missing");
	for (size_t i = 0; i < KEY_COUNT; i++) {
		if (!reader->seen_line[i])
			return refuse(reader, keys[i].name, "is missing");
	}
	return 0;
}

int rbx_nic_params_parse(const char *text, const char *name,
			 struct rbx_nic_params *params, char *error)
{
	struct reader reader = {
		.file = name,
		.params = params,
		.error = error,
	};
	char line[256];
	int err = 0;

	while (*text && !err) {
		size_t length = strcspn(text, "\n");

		reader.line++;
		if (length >= sizeof(line))
			return refuse(&reader, "", "the line is too long");
		memcpy(line, text, length);
		line[length] = '\0';
		err = parse_line(&reader, line);
		text += length + (text[length] == '\n');
	}
	return err ? err : check_complete(&reader);
}

int rbx_nic_params_read(const char *path, struct rbx_nic_params *params,
			char *error)
{
	char *text = calloc(1, FILE_BYTES_MAX);
	FILE *file = fopen(path, "r");
	size_t length;
	int err = -errno;

	if (!text || !file) {
		snprintf(error, RBX_NIC_ERROR_MAX, "%s: %s", path,
			 strerror(-err));
		goto out;
	}
	length = fread(text, 1, FILE_BYTES_MAX, file);
	if (ferror(file) || length == FILE_BYTES_MAX) {
		err = -EINVAL;
		snprintf(error, RBX_NIC_ERROR_MAX, "%s: %s", path,
			 ferror(file) ? "cannot be read" : "is too long");
		goto out;
	}
	err = rbx_nic_params_parse(text, path, params, error);
out:
	if (file)
		fclose(file);
	free(text);
	return err;
}
