/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * readable.h - finds out whether memory can be read, without the risk of a SIGSEGV.
 *
 * A sendmsg() of many requests fails as a whole if the memory of one is invalid. This finds
 * that one. It costs system calls for each page, so it is only for that case.
 */
#ifndef SOFT_READABLE_H
#define SOFT_READABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* True also if the system cannot tell. */
bool soft_memory_is_readable(const struct iovec *piece);

#endif
