/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * readable.c - finds out whether memory can be read, see readable.h.
 *
 * It asks the system to write a byte of each page into a pipe. Other facts about memory, such
 * as that it is mapped, prove less.
 */
#include "readable.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool byte_is_readable(const int fds[2], const void *addr)
{
	char byte;

	if (write(fds[1], addr, 1) != 1)
		return errno != EFAULT;
	return read(fds[0], &byte, 1) == 1;
}

bool soft_memory_is_readable(const struct iovec *piece)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), at;
	uintptr_t first = (uintptr_t)piece->iov_base;
	bool good = true;
	int fds[2];

	if (piece->iov_len == 0 || pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return true;
	for (at = 0; at < piece->iov_len && good;
	     at += page_bytes - (first + at) % page_bytes)
		good = byte_is_readable(fds, (const void *)(first + at));
	close(fds[0]);
	close(fds[1]);
	return good;
}
