/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * readable.h - whether memory can be read, without the risk of trying.
 *
 * A sendmsg() of many requests fails as a whole where the memory of one is none. This
 * finds out which. It costs system calls for each page: for that case only.
 */
#ifndef SOFT_READABLE_H
#define SOFT_READABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* True also if the system cannot say. */
bool soft_memory_is_readable(const struct iovec *piece);

#endif
