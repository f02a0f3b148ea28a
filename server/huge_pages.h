/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * huge_pages.h - counts free pages of 2 MiB, which the system reserves for explicit use.
 */
#ifndef RBX_SERVER_HUGE_PAGES_H
#define RBX_SERVER_HUGE_PAGES_H

#include <stdint.h>

#define RBX_HUGE_PAGE_BYTES (2u << 20)

/* How many are free; 0: the system has none of this size. */
uint64_t rbx_huge_pages_free(void);

#endif
