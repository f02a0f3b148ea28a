/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads and writes the files of a volume in configfs, see kernel/block/control.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/page/page.h"

const char page_volumes[] = "/sys/kernel/config/rdmabox";

/* Runs a program without output; true: it succeeded. */
static bool run_quietly(char *const argv[])
{
	pid_t child = fork();
	int status, null;

	if (child == 0) {
		null = open("/dev/null", O_RDWR);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int page_prepare(const struct cli_command *command)
{
	char *const modprobe[] = { "modprobe", "rdmabox_block", NULL };
	bool loaded;

	if (!access(page_volumes, F_OK))
		return 0;
	loaded = run_quietly(modprobe);
	if (access("/sys/kernel/config", F_OK) == 0 && access(page_volumes, F_OK))
		(void)mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	if (!access(page_volumes, F_OK))
		return 0;
	cli_fail(command, loaded ? "configfs is not mounted; as root: mount -t configfs configfs /sys/kernel/config" :
				   "the kernel module is not loaded; as root: modprobe rdmabox_block");
	return -ENODEV;
}

static void path_of(const char *name, const char *file, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s/%s", page_volumes, name, file);
}

int page_make(const char *name)
{
	char path[PATH_MAX];

	path_of(name, "", path);
	return mkdir(path, 0700) ? -errno : 0;
}

int page_remove(const char *name)
{
	char path[PATH_MAX];

	path_of(name, "", path);
	return rmdir(path) ? -errno : 0;
}

bool page_exists(const char *name)
{
	char path[PATH_MAX];

	path_of(name, "attached", path);
	return !access(path, F_OK);
}

static int read_value(const char *path, char *value, size_t value_bytes)
{
	ssize_t count;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	count = read(fd, value, value_bytes - 1);
	err = count < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	if (count > 0 && value[count - 1] == '\n')
		count--;
	value[count] = '\0';
	return 0;
}

int page_read(const char *name, const char *file, char *value,
	      size_t value_bytes)
{
	char path[PATH_MAX];

	path_of(name, file, path);
	return read_value(path, value, value_bytes);
}

int page_read_device(const char *device, const char *file, char *value,
		     size_t value_bytes)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/block/%s/rdmabox/%s", device, file);
	return read_value(path, value, value_bytes);
}

int page_write(const char *name, const char *file, const char *value,
	       size_t value_bytes)
{
	char path[PATH_MAX];
	int fd, err = 0;

	path_of(name, file, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* In one write: a part of a value would be another value. */
	if (write(fd, value, value_bytes) != (ssize_t)value_bytes)
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
}

int page_each(int (*call)(const char *name, void *user), void *user)
{
	DIR *dir = opendir(page_volumes);
	struct dirent *entry;
	int err = 0;

	while (dir && !err && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			err = call(entry->d_name, user);
	if (dir)
		closedir(dir);
	return err;
}
