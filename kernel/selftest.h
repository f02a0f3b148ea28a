/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* selftest.h - the parameter `selftest` of the module. */
#ifndef RBX_KERNEL_SELFTEST_H
#define RBX_KERNEL_SELFTEST_H

#include <linux/types.h>

/* 0 where all of it passed; says in the log what did not. Blocks. */
int rbx_selftest(void);

/* selftest_memory.c: whether it is right, tried in memory of this size, which is
 * all zeros at first. */
#define RBX_SELFTEST_BYTES (6 * 4096u)
bool rbx_selftest_checksums(char *memory);
bool rbx_selftest_stretches(const char *memory);

#endif
