/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * file.c - a pool that is a file, which is read again when it changes.
 *
 * inotify(7) watches folders, not the file: a file that is replaced by a rename is another
 * one, and its old watch would see nothing more. Two folders are watched: the one that the
 * path names, and the one that the file is really in. The first one sees a rename over the
 * file, and also a rename over a link in it that leads to a folder, which is how Kubernetes
 * replaces the files of a volume (..data).
 *
 * inotify sees nothing of a change by another machine on a network file system, of links
 * further away, or of a folder that was removed and made anew. So every 2 s the file is
 * looked at as well (stat), which costs two system calls.
 *
 * A file that is broken, missing or has no members leaves the members of before in force.
 * No members: an editor truncates a file before it writes, and a file may be read between.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "pool/pool.h"

#define FILE_BYTES_MAX (1u << 20) /* 1024 lines with labels are a third of it */
#define LOOK_EVERY_MS 2000

struct pool_file {
	char path[PATH_MAX];
	struct stat seen; /* what the file was when it was read; zeros: it was not there */
	int inotify_fd; /* -1: there is none, and only looking is left */
};

/* ---- Reading --------------------------------------------------------------------*/

static int bytes_read(const char *path, int fd, char *text, size_t *length_bytes)
{
	ssize_t got;

	*length_bytes = 0;
	do {
		got = read(fd, text + *length_bytes, FILE_BYTES_MAX + 1 - *length_bytes);
		if (got < 0)
			return rbx_error(-errno, "%s: %s", path, strerror(errno));
		*length_bytes += (size_t)got;
	} while (got && *length_bytes <= FILE_BYTES_MAX);
	if (*length_bytes > FILE_BYTES_MAX)
		return rbx_error(-EFBIG, "%s: longer than %u bytes: this is no list of servers",
				 path, FILE_BYTES_MAX);
	text[*length_bytes] = '\0';
	return 0;
}

static int opened_read(struct pool_file *file, int fd, struct rbx_members *members)
{
	char *text = malloc(FILE_BYTES_MAX + 2);
	size_t length_bytes;
	int err;

	if (!text)
		return rbx_error(-ENOMEM, "out of memory");
	err = bytes_read(file->path, fd, text, &length_bytes);
	if (!err)
		err = rbx_pool_lines_parse(file->path, text, length_bytes, members);
	if (!err && !members->count)
		err = rbx_error(-EINVAL, "%s: no line has a server: write host:port, one in a line",
				file->path);
	free(text);
	return err;
}

static int file_read(struct pool_file *file, struct rbx_members *members)
{
	/* Not blocked by a FIFO that somebody put there. */
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0)
		return rbx_error(-errno, "the file of the pool cannot be read, which has a line host:port for each server: %s: %s",
				 file->path, strerror(errno));
	if (fstat(fd, &file->seen))
		err = rbx_error(-errno, "%s: %s", file->path, strerror(errno));
	else if (!S_ISREG(file->seen.st_mode))
		err = rbx_error(-EINVAL, "%s: it is no file", file->path);
	else
		err = opened_read(file, fd, members);
	close(fd);
	return err;
}

/* ---- Watching -------------------------------------------------------------------*/

static void folder_watch(const struct pool_file *file, const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	memcpy(folder, path, length);
	folder[length] = '\0';
	/* To watch a folder again changes nothing. */
	(void)inotify_add_watch(file->inotify_fd, length ? folder : slash ? "/" : ".",
				IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
					IN_MOVED_TO | IN_ONLYDIR);
}

/* Called before the file is read, so that what changes afterwards is seen. */
static void folders_watch(const struct pool_file *file)
{
	char real[PATH_MAX];

	if (file->inotify_fd < 0)
		return;
	folder_watch(file, file->path);
	if (realpath(file->path, real))
		folder_watch(file, real);
}

/* Returns whether anything happened. */
static bool events_take(const struct pool_file *file)
{
	char events[4096];
	bool some = false;

	while (file->inotify_fd >= 0 && read(file->inotify_fd, events, sizeof(events)) > 0)
		some = true;
	return some;
}

static bool is_another(const struct pool_file *file)
{
	struct stat now;

	if (stat(file->path, &now))
		return file->seen.st_ino;
	return now.st_dev != file->seen.st_dev || now.st_ino != file->seen.st_ino ||
	       now.st_size != file->seen.st_size ||
	       now.st_mtim.tv_sec != file->seen.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != file->seen.st_mtim.tv_nsec;
}

static void file_reread(struct rbx_pool *pool, struct pool_file *file)
{
	struct rbx_members members = { .count = 0 };

	file->seen = (struct stat){ .st_ino = 0 };
	if (file_read(file, &members))
		rbx_pool_complain(pool, rbx_last_error());
	else
		rbx_pool_set(pool, &members, "");
	rbx_members_free(&members);
}

static void *file_run(void *pool_pointer)
{
	struct rbx_pool *pool = pool_pointer;
	struct pool_file *file = pool->kind_data;

	while (rbx_pool_worker_wait(&pool->worker, file->inotify_fd, LOOK_EVERY_MS)) {
		bool has_events = events_take(file);

		folders_watch(file);
		if (has_events || is_another(file))
			file_reread(pool, file);
	}
	return NULL;
}

/* ---- Open and close --------------------------------------------------------------*/

static int file_open(struct rbx_pool *pool, const char *path)
{
	struct rbx_members members = { .count = 0 };
	struct pool_file *file;
	int err;

	if (!*path || strlen(path) >= PATH_MAX)
		return rbx_error(-EINVAL, "\"file:%s\": file:PATH is wanted", path);
	file = calloc(1, sizeof(*file));
	if (!file)
		return rbx_error(-ENOMEM, "out of memory");
	pool->kind_data = file;
	strcpy(file->path, path);
	file->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	folders_watch(file);
	err = file_read(file, &members);
	if (!err) {
		rbx_pool_set(pool, &members, "");
		err = rbx_pool_worker_start(&pool->worker, file_run, pool);
	}
	rbx_members_free(&members);
	return err;
}

static void file_close(struct rbx_pool *pool)
{
	struct pool_file *file = pool->kind_data;

	if (file && file->inotify_fd >= 0)
		close(file->inotify_fd);
	free(file);
}

const struct rbx_pool_kind rbx_pool_file = {
	.prefix = "file:",
	.open = file_open,
	.close = file_close,
};
