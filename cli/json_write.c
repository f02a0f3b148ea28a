/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the JSON of a command: to stdout or to a file, whole or not at all. Seven digits
 * of a real number are more than any measurement has.
 *
 * A file is written under another name and then renamed, so a full disk does not destroy
 * the old file. A device, a pipe or a symbolic link is written in place, as it must not
 * be replaced. So is a file in a folder in which no new file can be made. Before a long
 * run this is tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static int write_stream(json_t *json, FILE *stream)
{
	errno = EIO;
	if (json_dumpf(json, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(7)) ||
	    fputc('\n', stream) == EOF || fflush(stream))
		return -errno;
	return 0;
}

/* Takes @fd, even a negative one that open() returned. */
static int write_descriptor(json_t *json, int fd)
{
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
	int err;

	if (!stream) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = write_stream(json, stream);
	if (fclose(stream) && !err)
		err = -errno;
	return err;
}

static int write_in_place(json_t *json, const char *path)
{
	return write_descriptor(json, open(path, O_WRONLY | O_CREAT | O_TRUNC |
							 O_CLOEXEC,
					   0666));
}

/* Makes a new file with another name in the folder of @path; -1: not possible. */
static int open_beside(const char *path, char fresh[PATH_MAX])
{
	if (snprintf(fresh, PATH_MAX, "%s.%d", path, (int)getpid()) >= PATH_MAX)
		return -1;
	return open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* @old: the file at @path, or NULL if there is none. */
static int write_beside(json_t *json, const char *path, const struct stat *old)
{
	char fresh[PATH_MAX];
	int fd = open_beside(path, fresh), err;

	if (fd < 0)
		return write_in_place(json, path);
	if (old)
		(void)fchmod(fd, old->st_mode & 0777);
	err = write_descriptor(json, fd);
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		unlink(fresh);
	return err;
}

static int write_file(json_t *json, const char *path)
{
	struct stat old;

	if (lstat(path, &old))
		return write_beside(json, path, NULL);
	/* Another user's file keeps its owner and its rights. */
	return S_ISREG(old.st_mode) && old.st_uid == geteuid() ?
		       write_beside(json, path, &old) :
		       write_in_place(json, path);
}

/* 0, or the -errno with which writing to @path would fail now. */
static int try_output(const char *path)
{
	char fresh[PATH_MAX];
	struct stat old;
	bool is_there = !stat(path, &old);
	int fd;

	if (is_there && S_ISDIR(old.st_mode))
		return -EISDIR;
	if (is_there && !S_ISREG(old.st_mode)) /* opening a pipe would wait */
		return access(path, W_OK) ? -errno : 0;
	if (is_there && old.st_uid != geteuid()) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		fd = open_beside(path, fresh);
		if (fd >= 0)
			unlink(fresh);
		else if (is_there)
			fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int cli_output_check(const struct cli_command *command, const char *option,
		     const char *path)
{
	int err = *path && strcmp(path, "-") ? try_output(path) : 0;

	if (!err)
		return 0;
	return cli_fail(command, "cannot write --%s %s: %s; nothing was run, give another "
				 "path", option, path, strerror(-err));
}

int cli_json_write(const struct cli_command *command, json_t *json,
		   const char *path)
{
	bool to_stdout = !strcmp(path, "-");
	int err;

	if (!json)
		err = -ENOMEM;
	else
		err = to_stdout ? write_stream(json, stdout) :
				  write_file(json, path);
	json_decref(json);
	if (err)
		cli_fail(command, "cannot write JSON to %s: %s",
			 to_stdout ? "stdout" : path, strerror(-err));
	return err;
}
