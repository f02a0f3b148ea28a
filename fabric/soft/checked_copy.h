/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * checked_copy.h - a copy that fails where memcpy() is a SIGSEGV.
 *
 * For memory of a program that may be none. A page takes 1 us more than memcpy() does,
 * a copy of many pages as long again: not for a path on which that can be measured.
 */
#ifndef SOFT_CHECKED_COPY_H
#define SOFT_CHECKED_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* False: not all of either is memory, and a part may have been copied. */
bool soft_checked_copy(void *to, const void *from, size_t bytes);

#endif
