/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * standstill.h - for a test that has waited in vain: where the requests stand.
 *
 * A hang that comes once in weeks is understood from what it leaves behind.
 */
#ifndef RBX_TESTS_STANDSTILL_H
#define RBX_TESTS_STANDSTILL_H

struct rbx_context;

/* Writes to stderr what each poller and each peer of a context waits for. Takes
 * no lock: one of them may be what all wait for. */
void standstill_tell(const struct rbx_context *ctx);

#endif
