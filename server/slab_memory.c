/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_memory.c - makes the memory of a slab, a registered file, and ends it.
 *
 * Each loan gets a new memory file, which is all zeros. A client on the same host may
 * have received the file and mapped it, and a mapping cannot be taken back from a
 * process. So a file is used for one loan only. At its end its keys are deregistered.
 * Then a hole is punched through all of it, which frees the memory even if it is still
 * mapped. Then it is closed, and nobody else ever sees it. The file is sealed against
 * changes of its size, so a client that has it cannot make our own accesses fail.
 *
 * With a memory file (memory_file.h) slabs are parts of that file, and used again. So none of them
 * is handed to a client to map it, and one that is not lent is a hole. Those of named volumes stay
 * as they are when the server ends.
 *
 * A slab of a named volume stays as one client is shut out and another one comes. So no client
 * may map it.
 *
 * All pages are allocated before the slab is lent. So a lack of memory shows here as an
 * error, and not as a signal in the middle of a transfer.
 *
 * Huge pages are used if the system has reserved some and the slab consists of whole
 * ones: then a device has fewer translations to look up. If none are left, the next slab
 * uses small pages.
 *
 * A slab of a volume with checksums has a tail for them (wire/terms.h): it is longer, and has one
 * key. With its tail it rarely consists of whole huge pages, so usually it is on small ones. The
 * tail does not count as lent.
 *
 * Both making and ending go in steps of at most RBX_SLAB_STEP_BYTES. So a worker
 * (workers.c) soon notices that a slab is not wanted any more, and no other thread waits
 * long for the lock of the process's mappings. Registering is one step and deregistering
 * is one, however long they take: no fabric does them in parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/error.h"
#include "server/huge_pages.h"
#include "server/state.h"

/* The mapping reserves the huge pages, so it fails if there are too few. */
static int slab_open(struct rbx_slab_memory *slab, uint64_t length_bytes,
		     bool is_huge)
{
	const unsigned int huge = MFD_HUGETLB | MFD_HUGE_2MB;
	int err;

	slab->is_huge = is_huge;
	slab->at_bytes = 0;
	slab->fd = memfd_create("rdmabox-slab",
				MFD_CLOEXEC | MFD_ALLOW_SEALING |
					(is_huge ? huge : 0));
	if (slab->fd < 0)
		return -errno;
	if (ftruncate(slab->fd, (off_t)length_bytes) ||
	    fcntl(slab->fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
		goto out_close;
	}
	slab->addr = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE,
			  MAP_SHARED, slab->fd, 0);
	if (slab->addr == MAP_FAILED) {
		err = -errno;
		goto out_close;
	}
	/* Only a hint, for systems on which shared memory may have huge pages. */
	if (!is_huge)
		(void)madvise(slab->addr, length_bytes, MADV_HUGEPAGE);
	slab->done_bytes = 0;
	return 0;

out_close:
	close(slab->fd);
	slab->addr = NULL;
	return err;
}

/* Whole pages: of a memory file these may be huge, and a tail is shorter. */
static uint64_t mapped_bytes(const struct rbx_server *s, const struct rbx_slab_memory *slab)
{
	uint64_t page_bytes = RBX_MAX(s->remembered.file.page_bytes, (uint64_t)1);

	return (slab->lent_bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static int slab_open_in_file(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	uint64_t length_bytes = mapped_bytes(s, slab);

	slab->is_huge = false;
	slab->fd = s->remembered.file.fd;
	slab->at_bytes = rbx_remembered_at(&s->remembered, (uint64_t)(slab - s->workers.slabs) + 1);
	slab->addr = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, slab->fd,
			  (off_t)slab->at_bytes);
	if (slab->addr == MAP_FAILED) {
		slab->addr = NULL;
		return -errno;
	}
	(void)madvise(slab->addr, length_bytes, MADV_HUGEPAGE);
	slab->done_bytes = 0;
	return 0;
}

static void slab_close(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	munmap(slab->addr, mapped_bytes(s, slab));
	if (slab->fd != s->remembered.file.fd)
		close(slab->fd);
	slab->addr = NULL;
}

/* On huge pages if there are enough, else on small ones. */
static int slab_open_best(const struct rbx_server *s,
			  struct rbx_slab_memory *slab)
{
	uint64_t length_bytes = slab->lent_bytes;

	if (rbx_remembers(&s->remembered))
		return slab_open_in_file(s, slab);
	if (!s->options.small_pages && length_bytes % RBX_HUGE_PAGE_BYTES == 0 &&
	    rbx_huge_pages_free() >= length_bytes / RBX_HUGE_PAGE_BYTES &&
	    slab_open(slab, length_bytes, true) == 0)
		return 0;
	return slab_open(slab, length_bytes, false);
}

/* A page cannot be emptied in parts. */
static uint64_t step_bytes(const struct rbx_server *s, const struct rbx_slab_memory *slab,
			   uint64_t left_bytes)
{
	uint64_t page_bytes = slab->is_huge ? RBX_HUGE_PAGE_BYTES : s->remembered.file.page_bytes;

	return RBX_MIN(left_bytes, RBX_MAX(page_bytes, (uint64_t)RBX_SLAB_STEP_BYTES));
}

static int slab_populate(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	uint64_t bytes = step_bytes(s, slab, mapped_bytes(s, slab) - slab->done_bytes);
	int err = 0;

	/* A file system that is full says so, and does not send a signal. */
	if (rbx_remembers(&s->remembered) &&
	    fallocate(slab->fd, 0, (off_t)(slab->at_bytes + slab->done_bytes), (off_t)bytes) &&
	    errno != EOPNOTSUPP)
		return -errno;
	if (madvise((char *)slab->addr + slab->done_bytes, bytes,
		    MADV_POPULATE_WRITE)) {
		if (errno != EINVAL) /* Linux before 5.14 does not know it */
			return -errno;
		if (fallocate(slab->fd, 0, (off_t)(slab->at_bytes + slab->done_bytes),
			      (off_t)bytes))
			err = -errno;
	}
	slab->done_bytes += bytes;
	return err;
}

static int slab_register(const struct rbx_server *s,
			 struct rbx_slab_memory *slab)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	const struct rbx_mr_init init = {
		.domain = slab->domain,
		.addr = slab->addr,
		.length_bytes = slab->lent_bytes,
		.rights = RBX_REMOTE_READ | RBX_REMOTE_WRITE | RBX_LOCAL_WRITE,
		.memory_fd = slab->is_kept || rbx_remembers(&s->remembered) ? -1 : slab->fd,
	};
	int err;

	err = s->fabric.ops->register_memory(s->device, &init, 1, &slab->mr,
					     error);
	if (!err)
		return 0;
	slab->mr = NULL;
	return rbx_error(err, "cannot register a slab: %s", error);
}

int rbx_slab_prepare_step(const struct rbx_server *s,
			  struct rbx_slab_memory *slab)
{
	uint64_t length_bytes = mapped_bytes(s, slab);
	int err;

	if (!slab->addr) {
		err = slab_open_best(s, slab);
		if (err)
			return rbx_error(err, "cannot make a memory file: %s",
					 strerror(-err));
		return 1;
	}
	if (slab->done_bytes < length_bytes) {
		err = slab_populate(s, slab);
		if (err && slab->is_huge) { /* the control group may allow fewer */
			slab_close(s, slab);
			err = slab_open(slab, length_bytes, false);
		}
		if (err)
			return rbx_error(err,
					 "cannot allocate the memory of a slab: %s",
					 strerror(-err));
		return 1;
	}
	return slab_register(s, slab);
}

/* Returns whether it had one. */
static bool slab_key_end(const struct rbx_server *s,
			 struct rbx_slab_memory *slab)
{
	if (!slab->mr)
		return false;
	s->fabric.ops->deregister_memory(s->device, &slab->mr, 1);
	slab->mr = NULL;
	return true;
}

/* From done_bytes on. */
static void slab_empty(const struct rbx_server *s, struct rbx_slab_memory *slab, uint64_t bytes)
{
	if (!fallocate(slab->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)(slab->at_bytes + slab->done_bytes), (off_t)bytes))
		return;
	rbx_log(&s->log, "cannot empty a memory file: %s", strerror(errno));
	if (rbx_remembers(&s->remembered)) /* it is used again */
		memset((char *)slab->addr + slab->done_bytes, 0, bytes);
}

bool rbx_slab_end_step(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	uint64_t bytes;

	if (!slab->addr)
		return false; /* nothing was begun */
	if (slab_key_end(s, slab))
		return true;
	if (slab->done_bytes) {
		/* The memory that was populated last is emptied first. */
		bytes = step_bytes(s, slab, slab->done_bytes);
		slab->done_bytes -= bytes;
		slab_empty(s, slab, bytes);
		return true;
	}
	slab_close(s, slab);
	return false;
}

/* ---- Memory that outlives the server -----------------------------------------*/

int rbx_slab_attach(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	int err = slab_open_in_file(s, slab);

	if (err)
		return rbx_error(err, "cannot map a slab of memory file %s: %s",
				 s->remembered.file.path, strerror(-err));
	slab->done_bytes = mapped_bytes(s, slab);
	return slab_register(s, slab);
}

void rbx_slab_detach(const struct rbx_server *s, struct rbx_slab_memory *slab)
{
	if (!slab->addr)
		return;
	(void)slab_key_end(s, slab);
	slab_close(s, slab);
}
