/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.c - mapped memory, at addresses that are the same in every run.
 *
 * Addresses influence decisions: work requests are sorted by remote address. So mappings
 * follow each other in a range of their own, far from what the system places at random. An
 * address is not used again.
 *
 * Getting pages, and giving them back, may take a while. In a world that only measures
 * (rbx_sim_hands_ignore()) memory has pages only where something was written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/port.h"
#include "sim/hands.h"
#include "sim/fiber.h"
#include "sim/host/wrap.h"
#include "sim/sites.h"

#define RANGE_FIRST 0x200000000000u
#define RANGE_BYTES (1ull << 44)
/* A gap between neighbours, so that nothing merges across the end. */
#define ALIGNED_TO (1ull << 16)

static uint64_t next = RANGE_FIRST;

void *__wrap_mmap(void *addr, size_t size, int protection, int flags, int fd,
		  off_t offset)
{
	uint64_t at = next;

	(void)addr;
	next += (size + 2 * ALIGNED_TO - 1) / ALIGNED_TO * ALIGNED_TO;
	if (next > RANGE_FIRST + RANGE_BYTES) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap((void *)(uintptr_t)at, size, protection,
			   flags | MAP_FIXED_NOREPLACE, fd, offset);
}

int __wrap_munmap(void *addr, size_t size)
{
	rbx_sim_hands_freed(addr, size);
	return __real_munmap(addr, size);
}

/* The name of the function if file offsets have 64 bits by choice. */
void *__wrap_mmap64(void *addr, size_t size, int protection, int flags, int fd,
		    off_t offset)
{
	return __wrap_mmap(addr, size, protection, flags, fd, offset);
}

static void take_time(void)
{
	if (rbx_sim_site(RBX_SIM_SITE_memory_slow))
		rbx_sim_sleep(rbx_sim_site_draw(RBX_SIM_SITE_memory_slow,
						100000, 300000000));
}

int __wrap_madvise(void *addr, size_t size, int advice)
{
	if (advice == MADV_POPULATE_WRITE)
		take_time();
	if (advice == MADV_POPULATE_WRITE && rbx_sim_hands_are_ignored())
		return 0;
	return __real_madvise(addr, size, advice);
}

/* The name of the function if file offsets have 64 bits by choice. */
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size)
{
	take_time();
	if (rbx_sim_hands_are_ignored())
		return 0;
	return __real_fallocate64(fd, mode, offset, size);
}
