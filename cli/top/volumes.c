/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes.c - reads the kernel module's volumes. Each is a directory in configfs with a
 * file for each number, and has more files at its block device (kernel/block/control.c,
 * attributes.c). A file that cannot be read counts as 0: its volume may not be attached,
 * or is being removed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/top/top.h"

/* "" if it cannot be read. */
static void read_text(const char *folder, const char *file, char *text,
		      size_t text_bytes)
{
	char path[PATH_MAX];
	ssize_t length = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, text_bytes - 1);
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static uint64_t read_number(const char *folder, const char *file)
{
	char text[32];

	read_text(folder, file, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

static void volume_read(const char *sys, const char *name,
			struct top_volume *volume)
{
	char folder[PATH_MAX];

	*volume = (struct top_volume){ .at_ns = top_now_ns() };
	snprintf(volume->name, sizeof(volume->name), "%s", name);
	snprintf(folder, sizeof(folder), "%s/kernel/config/rdmabox/%s", sys,
		 name);
	read_text(folder, "device", volume->device, sizeof(volume->device));
#define READ(file) volume->file = read_number(folder, #file);
	TOP_VOLUME_FILES(READ)
	if (!*volume->device || strchr(volume->device, '/'))
		return;
	snprintf(folder, sizeof(folder), "%s/block/%s/rdmabox", sys,
		 volume->device);
	TOP_DEVICE_FILES(READ)
#undef READ
}

void top_volumes_read(const char *sys, struct top_volumes *volumes)
{
	char folder[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	volumes->count = 0;
	snprintf(folder, sizeof(folder), "%s/kernel/config/rdmabox", sys);
	dir = opendir(folder);
	while (dir && volumes->count < TOP_VOLUMES_MAX && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			volume_read(sys, entry->d_name,
				    &volumes->list[volumes->count++]);
	if (dir)
		closedir(dir);
}
