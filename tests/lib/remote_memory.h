/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_memory.h - for tests of borrowed memory: what it should hold, and memory
 * to transfer.
 */
#ifndef TEST_REMOTE_MEMORY_H
#define TEST_REMOTE_MEMORY_H

#include "tests/lib/tenant.h"

#define PAGE 4096u

extern uint8_t *model; /* what the borrowed memory should hold */
extern uint8_t *bytes;

/* Setup and teardown of a group of tests. */
int memory_get(void **state);
int memory_free(void **state);

/* Reads all of it, into bytes. */
void assert_remote_is(struct tenant *tenant, const uint8_t *expected);

#endif
