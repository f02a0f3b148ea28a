/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checked_copy.h - a copy that fails where memcpy() would be a SIGSEGV.
 *
 * For memory of a program that may be invalid. A page takes 1 us more than with memcpy(), and
 * a copy of many pages twice as long. So it is not for a path where that matters.
 */
#ifndef SOFT_CHECKED_COPY_H
#define SOFT_CHECKED_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* False: a part of either range is not valid memory, and some bytes may have been copied. */
bool soft_checked_copy(void *to, const void *from, size_t bytes);

/* The first bytes of these pieces, max_bytes at most. Returns how many, or -1: a piece is not
 * valid memory. */
ssize_t soft_checked_gather(void *to, size_t max_bytes, const struct iovec *from,
			    size_t count);

#endif
