/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checked_copy.c - lets the kernel copy within this process, see checked_copy.h.
 *
 * A sandbox may forbid the call. Then it uses memcpy().
 */
#include "checked_copy.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

bool soft_checked_copy(void *to, const void *from, size_t bytes)
{
	const struct iovec local = { to, bytes };
	const struct iovec remote = { (void *)from, bytes };
	ssize_t copied = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	if (copied >= 0 || errno == EFAULT)
		return copied == (ssize_t)bytes;
	memcpy(to, from, bytes);
	return true;
}

/* The first bytes of these pieces, without the system. */
static void gather(uint8_t *to, size_t bytes, const struct iovec *from)
{
	size_t length;

	for (; bytes; from++) {
		length = from->iov_len < bytes ? from->iov_len : bytes;
		memcpy(to, from->iov_base, length);
		to += length;
		bytes -= length;
	}
}

ssize_t soft_checked_gather(void *to, size_t max_bytes, const struct iovec *from,
			    size_t count)
{
	const struct iovec local = { to, max_bytes };
	size_t bytes = 0, i;
	ssize_t copied;

	for (i = 0; i < count && bytes < max_bytes; i++)
		bytes += from[i].iov_len;
	if (bytes > max_bytes)
		bytes = max_bytes;
	copied = process_vm_readv(getpid(), &local, 1, from, i, 0);
	if (copied >= 0 || errno == EFAULT)
		return copied == (ssize_t)bytes ? copied : -1;
	gather(to, bytes, from);
	return (ssize_t)bytes;
}
