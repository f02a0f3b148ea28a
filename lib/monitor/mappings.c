/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mappings.c - see mappings.h; asks for one mapping at a time.
 *
 * Why mappings are looked at: userfaultfd accepts a range with a hole, mappings of files in
 * memory (memfd, tmpfs), and shared memory. None may be cached. Nothing would tell of what is
 * mapped into the hole later. ftruncate() and fallocate() change the file, not the mapping.
 * Shared memory can be mapped a second time, by mremap() or by a child, and MADV_REMOVE there
 * discards the pages here.
 *
 * Private huge pages are a file to the kernel, too. Only who may open /proc/PID/map_files,
 * which takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, can change its length.
 *
 * The descriptor is kept open: it stays good if the thread that opened it ends, and a process
 * that has none left can watch all the same.
 */
#include "lib/monitor/mappings.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/port.h"

/* As <linux/fs.h> has it since 6.11. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start; /* this one and those below to name_bytes are the answer */
	uint64_t end;
	uint64_t mapping_flags;
	uint64_t page_bytes;
	uint64_t offset;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t name_bytes; /* how long it may be, and is */
	uint32_t build_id_bytes;
	uint64_t name;
	uint64_t build_id;
};

RBX_STATIC_ASSERT(sizeof(struct query) == 104, "the kernel's struct procmap_query");

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_THIS_OR_NEXT 0x10u
#define MAPPING_IS_SHARED 0x08u

static int query_fd = -1;

static int ask(uintptr_t at, struct query *query, char *name, uint32_t name_bytes)
{
	*query = (struct query){
		.size = sizeof(*query),
		.flags = QUERY_THIS_OR_NEXT,
		.addr = at,
		.name = (uintptr_t)name,
		.name_bytes = name_bytes,
	};
	return ioctl(query_fd, QUERY, query) ? -errno : 0;
}

/* A name that is longer is another one: the kernel refuses to give it. */
static bool is_of_huge_pages(uintptr_t at)
{
	char name[sizeof(RBX_MAPPINGS_HUGE_PAGES)];
	struct query query;

	return !ask(at, &query, name, sizeof(name)) && query.name_bytes == sizeof(name) &&
	       memcmp(name, RBX_MAPPINGS_HUGE_PAGES, sizeof(name)) == 0;
}

static int query_next(uintptr_t at, struct rbx_mapping *mapping)
{
	struct query query;
	int err = ask(at, &query, NULL, 0);

	if (err)
		return err;
	mapping->start = (uintptr_t)query.start;
	mapping->end = (uintptr_t)query.end;
	mapping->is_shared = (query.mapping_flags & MAPPING_IS_SHARED) != 0;
	mapping->has_file = query.inode != 0 &&
			    (mapping->is_shared || !is_of_huge_pages(mapping->start));
	return 0;
}

int rbx_mappings_open(void)
{
	struct rbx_mapping mapping;

	query_fd = rbx_mappings_text_open();
	if (query_fd < 0)
		return query_fd;
	if (query_next(0, &mapping))
		rbx_mappings_close(); /* an older kernel */
	return 0;
}

void rbx_mappings_close(void)
{
	if (query_fd >= 0)
		close(query_fd);
	query_fd = -1;
}

int rbx_mappings_begin(struct rbx_mappings_walk *walk)
{
	walk->text_fd = query_fd < 0 ? rbx_mappings_text_open() : -1;
	walk->used_bytes = 0;
	walk->text_bytes = 0;
	return query_fd < 0 && walk->text_fd < 0 ? walk->text_fd : 0;
}

int rbx_mappings_next(struct rbx_mappings_walk *walk, uintptr_t at, struct rbx_mapping *mapping)
{
	return walk->text_fd < 0 ? query_next(at, mapping) :
				   rbx_mappings_text_next(walk, at, mapping);
}

void rbx_mappings_end(struct rbx_mappings_walk *walk)
{
	if (walk->text_fd >= 0)
		close(walk->text_fd);
}

bool rbx_mappings_find(uintptr_t at, struct rbx_mapping *mapping)
{
	return query_fd >= 0 && !query_next(at, mapping) && mapping->start <= at;
}

static int check(struct rbx_mappings_walk *walk, uintptr_t at, uintptr_t end, uint32_t *count)
{
	struct rbx_mapping mapping;

	for (*count = 0; at < end; at = mapping.end) {
		int err = rbx_mappings_next(walk, at, &mapping);

		if (err == -ENOENT || (!err && mapping.start > at))
			return -EFAULT;
		if (err)
			return err;
		if (mapping.is_shared || mapping.has_file)
			return -EOPNOTSUPP;
		++*count;
	}
	return 0;
}

int rbx_mappings_check(uintptr_t start, uintptr_t end, uint32_t *count)
{
	struct rbx_mappings_walk walk;
	int err = rbx_mappings_begin(&walk);

	if (err)
		return err;
	err = check(&walk, start, end, count);
	rbx_mappings_end(&walk);
	return err;
}
