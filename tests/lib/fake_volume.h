/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fake_volume.h - a volume over four fake memory servers (fake_peer.h), and
 * requests on it.
 *
 * The tests poll themselves (pollers = 0), so that nothing moves but when they
 * say so; only the upkeep has a thread.
 */
#ifndef TEST_FAKE_VOLUME_H
#define TEST_FAKE_VOLUME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/fake_peer.h"

#define SLAB_BYTES (64u << 10)
#define VOLUME_BYTES (4u * SLAB_BYTES)
#define CELL_BYTES 8192u /* of the fake context */
#define REQUESTS_MAX 256u /* the same */
#define PATIENCE_MS 20000u

extern struct rbx_context *ctx;
extern struct fake_server *servers[4]; /* "a:1" to "d:1" */

/* Setup and teardown of a test; all that was lent has come back then. */
int fake_start(void **state);
int fake_stop(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_start, fake_stop)

struct rbx_volume *open_volume(const char *list, uint32_t replicas,
			       uint32_t checksums);
/* Writes all of the volume, each byte known by its place. */
void fill(struct rbx_volume *volume, uint8_t *in);
void poll_all(void);

struct job {
	struct rbx_request request;
	uint32_t completed_count;
};

struct job job_make(enum rbx_op op, void *buf, uint32_t length,
		    uint64_t offset);
int job_submit(struct rbx_volume *volume, struct job *job);

#endif
