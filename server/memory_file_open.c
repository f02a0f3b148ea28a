/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_file_open.c - opens a memory file, or makes one; see memory_file.h.
 *
 * A new file is made as PATH.rdmabox-new and renamed to PATH when the server runs, unless there
 * is one by then. The lock is of the file, so it stays. What a server that was killed at its
 * start has left under that name is begun anew by the next one.
 *
 * In a folder that others may write to, one of them may have made a file of that name before us,
 * and hold it open: then it would have the memory of all clients. So the file must be ours, have no
 * other name, and be no symbolic link.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "lib/error.h"
#include "server/memory_file.h"

#define NEW_SUFFIX ".rdmabox-new"

struct new_path {
	char text[RBX_MEMORY_FILE_PATH_BYTES + sizeof(NEW_SUFFIX)];
};

static struct new_path new_path_of(const char *path)
{
	struct new_path new;

	snprintf(new.text, sizeof(new.text), "%s" NEW_SUFFIX, path);
	return new;
}

static int make(struct rbx_memory_file *file)
{
	const struct new_path new = new_path_of(file->path);

	file->is_new = true;
	file->fd = open(new.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file->fd < 0)
		return rbx_error(-errno, "cannot make memory file %s: %s", file->path,
				 strerror(errno));
	return 0;
}

static int lock(const struct rbx_memory_file *file)
{
	if (!flock(file->fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK)
		return rbx_error(-errno, "cannot lock memory file %s: %s", file->path,
				 strerror(errno));
	return rbx_error(-EBUSY, "memory file %s is another server's that runs: stop that one, "
			 "or name another file", file->path);
}

/*
 * File systems give an inode away again: ext4 does so at once, and each tmpfs begins with the
 * same ones. So a copy in place of the file is told by when it was made, which nobody can set.
 * hugetlbfs does not tell that, but each of its files has an inode of its own as long as the
 * machine runs, and none lives longer. Others may tell a generation, or leave the inode alone.
 */
static uint64_t born_of(const struct rbx_memory_file *file, const struct statx *more,
			bool is_hugetlbfs)
{
	int generations[2] = { 0 }; /* the kernel writes one, and says that it is a long */

	if (more->stx_mask & STATX_BTIME)
		return (uint64_t)more->stx_btime.tv_sec * UINT64_C(1000000000) +
		       more->stx_btime.tv_nsec;
	if (is_hugetlbfs)
		return strtoull(file->boot, NULL, 16); /* up to its first dash */
	return ioctl(file->fd, FS_IOC_GETVERSION, generations) ? 0 : (uint32_t)generations[0];
}

static int examine(struct rbx_memory_file *file)
{
	struct statfs system;
	struct stat status;
	struct statx more;

	if (fstat(file->fd, &status) || fstatfs(file->fd, &system) ||
	    statx(file->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &more))
		return rbx_error(-errno, "cannot examine memory file %s: %s", file->path,
				 strerror(errno));
	if (!S_ISREG(status.st_mode))
		return rbx_error(-EINVAL, "memory file %s is not a file", file->path);
	if (status.st_uid != geteuid())
		return rbx_error(-EACCES, "memory file %s belongs to another user (uid %u), who can "
				 "read and change it; take it over with: chown %u %s",
				 file->path, status.st_uid, geteuid(), file->path);
	if (status.st_nlink != 1)
		return rbx_error(-EACCES, "memory file %s has another name as well (it has %llu "
				 "links); remove the others, or name another file",
				 file->path, (unsigned long long)status.st_nlink);
	if (status.st_mode & (S_IRWXG | S_IRWXO))
		return rbx_error(-EACCES, "memory file %s is open to others (mode %o); close it "
				 "with: chmod 600 %s",
				 file->path, status.st_mode & 07777, file->path);
	file->id = status.st_ino;
	file->born = born_of(file, &more, system.f_type == HUGETLBFS_MAGIC);
	file->size_bytes = (uint64_t)status.st_size;
	file->is_of_machine = system.f_type != HUGETLBFS_MAGIC &&
			      !(more.stx_attributes & STATX_ATTR_DAX);
	file->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	if (system.f_type == HUGETLBFS_MAGIC)
		file->page_bytes = (uint64_t)system.f_bsize;
	return 0;
}

/* One that was begun before, under the name that nobody else takes. */
static int begin_anew(struct rbx_memory_file *file)
{
	struct new_path new = new_path_of(file->path);
	struct stat status;

	/* Whoever made it may have given it its name meanwhile. */
	if (stat(new.text, &status) || status.st_ino != file->id)
		return rbx_error(-EBUSY, "memory file %s was made by another server just now: "
				 "name another file", file->path);
	if (ftruncate(file->fd, 0))
		return rbx_error(-errno, "cannot empty %s: %s", new.text, strerror(errno));
	file->size_bytes = 0;
	return 0;
}

/* Empty if the system does not tell: then no two starts are alike. */
static void boot_read(char boot[RBX_STATE_BOOT_BYTES])
{
	FILE *from = fopen("/proc/sys/kernel/random/boot_id", "re");

	memset(boot, 0, RBX_STATE_BOOT_BYTES);
	if (!from)
		return;
	if (fscanf(from, "%36[-0-9a-f]", boot) != 1)
		boot[0] = '\0';
	fclose(from);
}

int rbx_memory_file_open(struct rbx_memory_file *file, const char *path)
{
	int err = 0;

	*file = (struct rbx_memory_file){ .path = path, .fd = -1 };
	boot_read(file->boot);
	file->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (file->fd < 0 && errno == ENOENT)
		err = make(file);
	else if (file->fd < 0 && errno == ELOOP)
		err = rbx_error(-ELOOP, "memory file %s is a symbolic link: name the file that it "
				"points to, or remove it", path);
	else if (file->fd < 0)
		err = rbx_error(-errno, "cannot open memory file %s: %s", path, strerror(errno));
	if (!err)
		err = examine(file);
	if (!err)
		err = lock(file);
	if (!err && file->is_new)
		err = begin_anew(file);
	if (!err)
		return 0;
	if (file->fd >= 0)
		close(file->fd); /* what is new may be another server's */
	file->fd = -1;
	return err;
}

int rbx_memory_file_publish(struct rbx_memory_file *file)
{
	struct new_path new = new_path_of(file->path);

	if (!file->is_new)
		return 0;
	if (renameat2(AT_FDCWD, new.text, AT_FDCWD, file->path, RENAME_NOREPLACE))
		return rbx_error(-errno, "cannot make memory file %s: %s", file->path,
				 strerror(errno));
	file->is_new = false;
	return 0;
}

void rbx_memory_file_close(struct rbx_memory_file *file)
{
	struct new_path new = new_path_of(file->path ?: "");

	if (file->fd < 0)
		return;
	if (file->is_new)
		unlink(new.text);
	close(file->fd);
	file->fd = -1;
}
