/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* memory_file.c - the length of a memory file, its pages and its holes; see memory_file.h. */
#include "server/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"

/* Some file systems cannot do it, and then a full one is found out by a signal. */
static int pages_take(const struct rbx_memory_file *file, uint64_t bytes)
{
	uint64_t whole = (bytes + file->page_bytes - 1) / file->page_bytes * file->page_bytes;

	if (whole && fallocate(file->fd, 0, 0, (off_t)whole) && errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

int rbx_memory_file_grow(struct rbx_memory_file *file, uint64_t size_bytes, uint64_t state_bytes)
{
	struct stat status;
	int err = 0;

	if (fstat(file->fd, &status) || ((uint64_t)status.st_size < size_bytes &&
					 ftruncate(file->fd, (off_t)size_bytes)))
		err = -errno;
	if (!err)
		err = pages_take(file, state_bytes);
	if (err)
		return rbx_error(err, "cannot make memory file %s as long as %llu MiB: %s",
				 file->path, (unsigned long long)size_bytes >> 20,
				 strerror(-err));
	return 0;
}

int rbx_memory_file_map_state(struct rbx_memory_file *file, uint64_t size_bytes,
			      uint64_t state_bytes)
{
	uint64_t mapped = (RBX_STATE_BYTES + file->page_bytes - 1) / file->page_bytes *
			  file->page_bytes;
	int err = rbx_memory_file_grow(file, size_bytes, state_bytes);
	void *addr;

	if (err)
		return err;
	addr = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (addr == MAP_FAILED)
		return rbx_error(-errno, "cannot map memory file %s: %s", file->path,
				 strerror(errno));
	file->state = addr;
	return 0;
}

int rbx_memory_file_punch(const struct rbx_memory_file *file, uint64_t at_bytes,
			  uint64_t length_bytes)
{
	if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at_bytes,
		      (off_t)length_bytes))
		return -errno;
	return 0;
}

int rbx_memory_file_sync(const struct rbx_memory_file *file)
{
	return fsync(file->fd) ? -errno : 0;
}

void rbx_memory_file_unmap_state(struct rbx_memory_file *file)
{
	if (file->state)
		munmap(file->state, (RBX_STATE_BYTES + file->page_bytes - 1) / file->page_bytes *
					    file->page_bytes);
	file->state = NULL;
}
