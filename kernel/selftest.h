/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* selftest.h - the parameter `selftest` of the module. */
#ifndef RBX_KERNEL_SELFTEST_H
#define RBX_KERNEL_SELFTEST_H

/* 0 where all of it passed; says in the log what did not. Blocks. */
int rbx_selftest(void);

#endif
