/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * registering.h - what the tests of buffers share: a soft device that wants
 * memory registered, as a NIC does, and a tuning file that says from where on.
 *
 * The device checks every key at every post, so a registration that ends too
 * early fails a request, and one that never ends is seen in the numbers.
 */
#ifndef RBX_TESTS_REGISTERING_H
#define RBX_TESTS_REGISTERING_H

#include "tests/lib/tenant.h"

#define REGISTERED "fabric=soft:tcp device=registered "
#define BREAK_EVEN (64u << 10) /* of the tuning file */

/* Of a group of tests; auto_settings go by the file. */
int make_tune_file(void **state);
int remove_tune_file(void **state);
extern char auto_settings[160];

/* Registrations of requests: without that of staging memory. */
uint64_t registered(struct rbx_context *ctx);
/* Each of them has ended, or ends in a moment. */
void assert_all_end(struct rbx_context *ctx);

/* Any length at any address and offset, each written and read back; 2 * count
 * requests. */
void transfer_any(struct tenant *tenant, int count);

#endif
