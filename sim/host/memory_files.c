/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_files.c - the memory files of the simulated servers. They are the kernel's: they stay when
 * a process ends, but they have no name on the real machine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/memory_file.h"
#include "sim/host/wrap.h"

struct kept_file {
	struct kept_file *next;
	char path[RBX_MEMORY_FILE_PATH_BYTES];
	int fd;
};

static struct kept_file *files;

static struct kept_file *find(const char *path)
{
	struct kept_file *file = files;

	while (file && strcmp(file->path, path))
		file = file->next;
	return file;
}

int rbx_memory_file_open(struct rbx_memory_file *file, const char *path)
{
	struct kept_file *kept = find(path);
	struct stat status = { 0 };

	if (kept && fstat(kept->fd, &status))
		abort();
	*file = (struct rbx_memory_file){
		.path = path,
		.is_new = !kept,
		.is_of_machine = true,
		.id = 1,
		.born = 1,
		.size_bytes = (uint64_t)status.st_size,
		.page_bytes = 4096,
		.boot = "simulated",
		.fd = kept ? dup(kept->fd) : __real_memfd_create("rdmabox-sim", MFD_CLOEXEC),
	};
	if (file->fd < 0)
		abort();
	return 0;
}

int rbx_memory_file_publish(struct rbx_memory_file *file)
{
	struct kept_file *kept = find(file->path);

	if (!file->is_new)
		return 0;
	if (!kept) {
		kept = calloc(1, sizeof(*kept));
		if (!kept)
			abort();
		strcpy(kept->path, file->path);
		kept->next = files;
		files = kept;
		kept->fd = dup(file->fd);
	}
	file->is_new = false;
	return 0;
}

void rbx_memory_file_close(struct rbx_memory_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
