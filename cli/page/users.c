/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds what keeps a block device in use, as the kernel only says that it is busy: swap,
 * mounts, devices on top of it, and processes that have it open. A user who may not look
 * at other users' processes gets a shorter list.
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/page/page.h"

struct users {
	char path[PATH_MAX]; /* of the device */
	char *text;
	size_t text_bytes;
};

static void add(struct users *users, const char *format, ...)
{
	size_t used = strlen(users->text);
	va_list args;

	if (used)
		used += (size_t)snprintf(users->text + used,
					 users->text_bytes - used, ", ");
	if (used >= users->text_bytes)
		return;
	va_start(args, format);
	vsnprintf(users->text + used, users->text_bytes - used, format, args);
	va_end(args);
}

static bool is_swap(const char *path)
{
	FILE *file = fopen("/proc/swaps", "re");
	char line[PATH_MAX + 64];
	size_t length = strlen(path);
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, path, length) &&
			isspace((unsigned char)line[length]);
	if (file)
		fclose(file);
	return found;
}

static void add_mounts(struct users *users)
{
	FILE *file = setmntent("/proc/mounts", "r");
	struct mntent *entry;

	while (file && (entry = getmntent(file)))
		if (!strcmp(entry->mnt_fsname, users->path))
			add(users, "mounted on %s", entry->mnt_dir);
	if (file)
		endmntent(file);
}

static void add_holders(struct users *users, const char *device)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/block/%s/holders", device);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			add(users, "/dev/%s on top of it", entry->d_name);
	if (dir)
		closedir(dir);
}

static bool has_open(const char *pid, const char *device_path)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	ssize_t length;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		length = readlinkat(dirfd(dir), entry->d_name, target,
				    sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		found = !strcmp(target, device_path);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void add_process(struct users *users, const char *pid)
{
	char path[PATH_MAX], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = '\0';
		fclose(file);
	}
	add(users, "process %s (%s)", pid, name);
}

static void add_processes(struct users *users)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    has_open(entry->d_name, users->path))
			add_process(users, entry->d_name);
	if (dir)
		closedir(dir);
}

bool page_is_swap(const char *device)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/dev/%s", device);
	return is_swap(path);
}

void page_users(const char *device, char *text, size_t text_bytes)
{
	struct users users = { .text = text, .text_bytes = text_bytes };

	text[0] = '\0';
	snprintf(users.path, sizeof(users.path), "/dev/%s", device);
	if (is_swap(users.path))
		add(&users, "swap");
	add_mounts(&users);
	add_holders(&users, device);
	add_processes(&users);
}
