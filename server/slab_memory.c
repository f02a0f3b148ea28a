/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slab_memory.c - the memory of a slab: from nothing to a registered file, and back.
 *
 * Each lending gets a memory file of its own, new and so all zeros. A client on
 * the same host may have been handed the file and mapped it; a mapping cannot
 * be taken back from a process. So a file is used for one lending only: at the
 * end its keys are deregistered, a hole is punched through all of it, which
 * gives the memory back even where it is still mapped, and it is closed, never
 * to be seen by anybody else. The file is sealed against changes of its size:
 * a client that has it cannot make our own accesses fail.
 *
 * All pages are allocated before the slab is lent: a host without memory then
 * shows here, as an error, and not as a signal in the middle of a transfer.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/error.h"
#include "server/state.h"

static int slab_open(struct rbx_slab_memory *slab, uint64_t length_bytes)
{
	int err;

	slab->fd = memfd_create("rdmabox-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
	return 0;

out_close:
	close(slab->fd);
	slab->addr = NULL;
	return err;
}

static int slab_populate(const struct rbx_slab_memory *slab, uint64_t length_bytes)
{
	/* A hint, for where shared memory may have huge pages at all. */
	(void)madvise(slab->addr, length_bytes, MADV_HUGEPAGE);
	if (!madvise(slab->addr, length_bytes, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL) /* before Linux 5.14 it is not known */
		return -errno;
	return fallocate(slab->fd, 0, 0, (off_t)length_bytes) ? -errno : 0;
}

int rbx_slab_memory_begin(struct rbx_server *s, struct rbx_slab_memory *slab,
			  const struct rbx_client *client)
{
	uint64_t length_bytes = s->options.slab_bytes;
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_mr_init init;
	int err;

	RBX_ASSERT(!slab->addr);
	err = slab_open(slab, length_bytes);
	if (err)
		return rbx_error(err, "cannot make a memory file: %s",
				 strerror(-err));
	err = slab_populate(slab, length_bytes);
	if (err) {
		rbx_slab_memory_end(s, slab);
		return rbx_error(err, "cannot have the memory of a slab: %s",
				 strerror(-err));
	}
	slab->client = client;
	init = (struct rbx_mr_init){
		.domain = client->domain,
		.addr = slab->addr,
		.length_bytes = length_bytes,
		.rights = RBX_REMOTE_READ | RBX_REMOTE_WRITE | RBX_LOCAL_WRITE,
		.memory_fd = slab->fd,
	};
	err = s->fabric.ops->register_memory(s->device, &init, 1, &slab->mr,
					     error);
	if (err) {
		slab->mr = NULL;
		rbx_slab_memory_end(s, slab);
		return rbx_error(err, "cannot register a slab: %s", error);
	}
	return 0;
}

static void slab_key_end(struct rbx_server *s, struct rbx_slab_memory *slab)
{
	if (slab->mr)
		s->fabric.ops->deregister_memory(s->device, &slab->mr, 1);
	slab->mr = NULL;
	slab->client = NULL;
}

void rbx_slab_keys_end(struct rbx_server *s, const struct rbx_client *client)
{
	uint32_t i;

	for (i = 0; i < s->slabs_count; i++)
		if (s->slabs[i].client == client)
			slab_key_end(s, &s->slabs[i]);
}

void rbx_slab_memory_end(struct rbx_server *s, struct rbx_slab_memory *slab)
{
	uint64_t length_bytes = s->options.slab_bytes;

	if (!slab->addr)
		return; /* its begin failed */
	slab_key_end(s, slab);
	if (fallocate(slab->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      (off_t)length_bytes))
		rbx_log("cannot empty a memory file: %s", strerror(errno));
	munmap(slab->addr, length_bytes);
	close(slab->fd);
	slab->addr = NULL;
}
