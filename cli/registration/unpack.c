/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opens a file that may be packed. Its first bytes say by which program; its name says nothing.
 *
 * The program gets the file as its standard input, and no shell and no file name is between. It has
 * no standard error: what went wrong is said here, in one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/registration/registration.h"

#define EXIT_NO_PROGRAM 127

static const char *unpacker_of(const unsigned char *head, ssize_t bytes)
{
	if (bytes >= 4 && !memcmp(head, "\x28\xb5\x2f\xfd", 4))
		return "zstd";
	if (bytes >= 2 && !memcmp(head, "\x1f\x8b", 2))
		return "gzip";
	return NULL;
}

/* In the child. */
static void unpack(const char *program, int from, int to)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (nothing < 0 || dup2(from, STDIN_FILENO) < 0 || dup2(to, STDOUT_FILENO) < 0 ||
	    dup2(nothing, STDERR_FILENO) < 0)
		_exit(EXIT_NO_PROGRAM);
	execlp(program, program, "-dc", (char *)NULL);
	_exit(EXIT_NO_PROGRAM);
}

/* Takes @fd. Returns what the program writes, or -errno. */
static int start_unpacker(struct registration_input *input, int fd)
{
	int ends[2], err = 0;

	if (pipe2(ends, O_CLOEXEC)) {
		err = -errno;
		close(fd);
		return err;
	}
	input->pid = fork();
	if (input->pid < 0)
		err = -errno;
	if (!input->pid)
		unpack(input->unpacker, fd, ends[1]);
	close(fd);
	close(ends[1]);
	if (!err)
		return ends[0];
	close(ends[0]);
	return err;
}

static int open_file(const char *path, const char **unpacker)
{
	unsigned char head[4];
	struct stat stat;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 || fstat(fd, &stat) ? -errno : 0;

	if (!err && S_ISDIR(stat.st_mode))
		err = -EISDIR;
	if (err && fd >= 0)
		close(fd);
	if (err)
		return err;
	/* A pipe has no beginning to return to: it is read as it is. */
	*unpacker = NULL;
	if (S_ISREG(stat.st_mode))
		*unpacker = unpacker_of(head, pread(fd, head, sizeof(head), 0));
	return fd;
}

int registration_input_open(struct registration_input *input, const char *path, char *reason,
			    size_t reason_bytes)
{
	int fd;

	*input = (struct registration_input){ 0 };
	fd = open_file(path, &input->unpacker);
	if (fd >= 0 && input->unpacker)
		fd = start_unpacker(input, fd);
	if (fd >= 0) {
		input->stream = fdopen(fd, "r");
		if (input->stream)
			return 0;
		fd = -ENOMEM;
	}
	snprintf(reason, reason_bytes, "cannot open trace %s: %s; give a file that can be read",
		 path, strerror(-fd));
	return fd;
}

int registration_input_close(struct registration_input *input, const char *path, bool is_read,
			     char *reason, size_t reason_bytes)
{
	int status = 0;

	fclose(input->stream);
	if (!input->unpacker)
		return 0;
	while (waitpid(input->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!is_read || (WIFEXITED(status) && !WEXITSTATUS(status)))
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM)
		snprintf(
			reason, reason_bytes,
			"trace %s is packed by %s, which cannot be run; install it, or unpack the file",
			path, input->unpacker);
	else
		snprintf(
			reason, reason_bytes,
			"trace %s cannot be unpacked by %s; it is damaged or cut off, get it again",
			path, input->unpacker);
	return -EIO;
}
