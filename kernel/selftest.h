/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* selftest.h - the parameter `selftest` of the module. */
#ifndef RBX_KERNEL_SELFTEST_H
#define RBX_KERNEL_SELFTEST_H

#include <linux/types.h>

/* 0 if all tests passed; failures are logged. Blocks. */
int rbx_selftest(void);

/* selftest_memory.c: return whether the tests passed. They use memory of this size, which
 * has to be zeroed. */
#define RBX_SELFTEST_BYTES (6 * 4096u)
bool rbx_selftest_checksums(char *memory);
bool rbx_selftest_stretches(const char *memory);

#endif
