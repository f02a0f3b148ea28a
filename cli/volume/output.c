/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.c - the file of an export.
 *
 * A regular file, there or not, is written as FILE.part beside it and renamed when it is whole: so
 * FILE is the old one or the new one. The name is not guessed anew: a FILE.part that is
 * there may be that of another export, and is refused. Standard output, a pipe or a device is
 * written in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/volume/volume.h"

#define POLL_MS 100 /* then a signal is looked for */

static int cannot_write(const struct cli_command *command, const char *path)
{
	if (errno == EEXIST)
		return cli_fail(command, "%s is there: another export writes it, or was killed; "
					 "remove it if none does", path);
	return cli_fail(command, "cannot write %s: %s; give another path", path, strerror(errno));
}

static int open_part(struct volume_output *output, const struct cli_command *command,
		     const struct stat *old)
{
	int length = snprintf(output->part, sizeof(output->part), "%s.part", output->target);

	if (length >= (int)sizeof(output->part)) {
		errno = ENAMETOOLONG;
		return cannot_write(command, output->target);
	}
	output->fd = open(output->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (output->fd < 0)
		return cannot_write(command, output->part);
	cli_interrupt_removes(output->part);
	if (old)
		(void)fchmod(output->fd, old->st_mode & 0777);
	return 0;
}

static int open_stdout(struct volume_output *output, const struct cli_command *command)
{
	if (isatty(STDOUT_FILENO))
		return cli_fail(command, "standard output is a terminal; give a file, or lead the "
					 "output elsewhere");
	output->fd = STDOUT_FILENO;
	return 0;
}

int volume_output_open(struct volume_output *output, const struct cli_command *command,
		       const char *file)
{
	struct stat old;

	*output = (struct volume_output){ .fd = -1 };
	if (!strcmp(file, "-"))
		return open_stdout(output, command);
	if (stat(file, &old)) {
		snprintf(output->target, sizeof(output->target), "%s", file);
		return open_part(output, command, NULL);
	}
	if (S_ISREG(old.st_mode)) { /* that a link leads to, too */
		if (!realpath(file, output->target))
			return cannot_write(command, file);
		return open_part(output, command, &old);
	}
	output->fd = open(file, O_WRONLY | O_CLOEXEC);
	return output->fd < 0 ? cannot_write(command, file) : 0;
}

int volume_output_write(struct volume_output *output, const void *data, size_t bytes)
{
	struct pollfd out = { .fd = output->fd, .events = POLLOUT };
	const uint8_t *rest = data;

	while (bytes) {
		ssize_t count = 0;

		if (cli_interrupted())
			return -EINTR;
		if (poll(&out, 1, POLL_MS) > 0)
			count = write(output->fd, rest, bytes);
		if (count < 0 && errno != EINTR)
			return -errno;
		rest += count > 0 ? count : 0;
		bytes -= count > 0 ? (size_t)count : 0;
	}
	return 0;
}

int volume_output_keep(struct volume_output *output)
{
	int fd = output->fd, err = 0;

	cli_interrupt_removes(NULL);
	if (*output->part && fsync(fd))
		err = -errno;
	output->fd = -1;
	if (fd > STDOUT_FILENO && close(fd) && !err)
		err = -errno;
	if (!err && *output->part && rename(output->part, output->target))
		err = -errno;
	if (err && *output->part)
		unlink(output->part);
	return err;
}

void volume_output_drop(struct volume_output *output)
{
	cli_interrupt_removes(NULL);
	if (output->fd > STDOUT_FILENO)
		close(output->fd);
	if (output->fd >= 0 && *output->part)
		unlink(output->part);
	output->fd = -1;
}
