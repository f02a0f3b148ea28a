/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_group.c - reads the limits of the control groups, see memory_group.h.
 *
 * Groups are nested, and each on the way up to the root may have a limit. A group leaves
 * its limit minus what is used. Pages of files that were not used for a while do not
 * count as used: the kernel takes them back first. If the files of a group are not there
 * (the root, or a container that sees another tree), its limit is not known and counts as
 * none.
 *
 * Left out: memory.high. Beyond it a process is slowed down and not killed.
 */
#include "server/memory_group.h"

#include <stdio.h>
#include <string.h>

/* The names of the files in the two versions. */
struct dialect {
	const char *folders[2]; /* below the root; the first one that has the group is used */
	const char *limit;
	const char *used;
	const char *idle; /* in memory.stat */
};

static const struct dialect version_2 = {
	{ "", "/unified" }, "memory.max", "memory.current", "inactive_file"
};
static const struct dialect version_1 = {
	{ "/memory", "" }, "memory.limit_in_bytes", "memory.usage_in_bytes",
	"total_inactive_file"
};

/* Version 1 says "no limit" by a number that no machine reaches. */
#define NO_LIMIT_BYTES (1ull << 60)

static FILE *group_open(const char *folder, const char *name)
{
	char path[2 * RBX_MEMORY_GROUP_NAME_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fopen(path, "re");
}

/* False: not there, or not a number ("max"). */
static bool number_read(const char *folder, const char *name, uint64_t *value)
{
	FILE *file = group_open(folder, name);
	unsigned long long number;
	bool is_number;

	if (!file)
		return false;
	is_number = fscanf(file, "%llu", &number) == 1;
	fclose(file);
	*value = number;
	return is_number;
}

static uint64_t idle_read(const char *folder, const char *name)
{
	FILE *file = group_open(folder, "memory.stat");
	unsigned long long bytes = 0;
	char line[128], word[64];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %llu", word, &bytes) == 2 &&
		    !strcmp(word, name))
			break;
		else
			bytes = 0;
	fclose(file);
	return bytes;
}

/* Looks at one group, and lowers what is known so far. */
static void group_look(const struct dialect *dialect, const char *folder,
		       struct rbx_memory_group *group)
{
	uint64_t limit_bytes, used_bytes, idle_bytes, left_bytes = 0;

	if (!number_read(folder, dialect->limit, &limit_bytes) ||
	    limit_bytes >= NO_LIMIT_BYTES ||
	    !number_read(folder, dialect->used, &used_bytes))
		return;
	if (limit_bytes < group->limit_bytes) {
		group->limit_bytes = limit_bytes;
		snprintf(group->name, sizeof(group->name), "%s", folder);
	}
	idle_bytes = idle_read(folder, dialect->idle);
	used_bytes -= idle_bytes < used_bytes ? idle_bytes : used_bytes;
	if (used_bytes < limit_bytes)
		left_bytes = limit_bytes - used_bytes;
	if (left_bytes < group->available_bytes)
		group->available_bytes = left_bytes;
}

/* Looks at all groups from this one up to the root. */
static void groups_look(const struct dialect *dialect, const char *root,
			const char *path, struct rbx_memory_group *group)
{
	char folder[RBX_MEMORY_GROUP_NAME_MAX];
	size_t root_length;
	char *slash;
	int i;

	for (i = 0; i < 2; i++) {
		root_length = (size_t)snprintf(folder, sizeof(folder), "%s%s",
					       root, dialect->folders[i]);
		if (root_length + strlen(path) >= sizeof(folder))
			return;
		strcpy(folder + root_length, path);
		do {
			group_look(dialect, folder, group);
			slash = strrchr(folder + root_length, '/');
			if (slash)
				*slash = '\0';
		} while (slash);
	}
}

/* "0::/a/b" of version 2, "4:cpu,memory:/a/b" of version 1. */
static const struct dialect *line_parse(char *line, const char **path)
{
	char *controllers = strchr(line, ':');
	char *colon = controllers ? strchr(controllers + 1, ':') : NULL;
	char *rest;

	if (!colon)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	*colon = '\0';
	*path = strcmp(colon + 1, "/") ? colon + 1 : "";
	controllers++;
	if (!*controllers)
		return &version_2;
	for (controllers = strtok_r(controllers, ",", &rest); controllers;
	     controllers = strtok_r(NULL, ",", &rest))
		if (!strcmp(controllers, "memory"))
			return &version_1;
	return NULL;
}

bool rbx_memory_group_read(const char *groups_file, const char *root,
			   struct rbx_memory_group *group)
{
	char line[RBX_MEMORY_GROUP_NAME_MAX];
	FILE *file = fopen(groups_file, "re");
	const struct dialect *dialect;
	const char *path;

	*group = (struct rbx_memory_group){
		.limit_bytes = UINT64_MAX,
		.available_bytes = UINT64_MAX,
	};
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		dialect = line_parse(line, &path);
		if (dialect)
			groups_look(dialect, root, path, group);
	}
	fclose(file);
	return group->limit_bytes != UINT64_MAX;
}
