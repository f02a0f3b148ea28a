/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tenant.h - a program that has borrowed memory, for tests of lib/.
 *
 * The server is a real one in this process (or anywhere: tenant_open_at()), the
 * fabric is soft over TCP; RBX_TEST_FABRIC and RBX_TEST_LISTEN in the
 * environment choose another ("soft", or "verbs" with "10.9.0.1:0").
 */
#ifndef RBX_TESTS_TENANT_H
#define RBX_TESTS_TENANT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "include/rdmabox/server.h"

#define TENANT_SLAB_BYTES (4u << 20)
#define TENANT_SLABS 8u
#define TENANT_WAIT_MS 60000 /* against hangs only */

struct tenant {
	struct rbx_server *server; /* NULL: not ours */
	struct rbx_context *ctx;
	struct rbx_peer *peer;
	struct rbx_remote *remote; /* TENANT_SLAB_BYTES */
};

/* For a server in this environment. */
void tenant_server_options(struct rbx_server_options *options);
/* A server of this process; ends with rbx_server_stop(). */
struct rbx_server *tenant_server(void);
/* A context with "mode=single window=1M"; ends with rbx_close(). */
struct rbx_context *tenant_context(const char *settings);

void tenant_open(struct tenant *tenant, const char *settings);
void tenant_open_at(struct tenant *tenant, const char *address,
		    const char *settings);
/* What tenant_open() starts from, and opening with options of any kind. */
void tenant_options(struct rbx_options *options);
void tenant_open_with(struct tenant *tenant, const struct rbx_options *options);
void tenant_close(struct tenant *tenant);

struct rbx_stats tenant_stats(struct rbx_context *ctx);

/* One request, waited for; its status. */
int tenant_transfer(struct tenant *tenant, enum rbx_op op, void *buf,
		    uint32_t length_bytes, uint64_t offset);
/* Submits, waiting for room where there is none. */
void tenant_submit(struct tenant *tenant, struct rbx_request *request);
/* Writes `count` pages one by one, to be reaped: page i of bytes to page i. */
void tenant_submit_pages(struct tenant *tenant, struct rbx_request *requests,
			 uint8_t *bytes, uint32_t count);
/* Reaps `count` requests; each must end with 0. */
void tenant_reap(struct rbx_context *ctx, uint32_t count);

/* Bytes that tell where they belong. */
void tenant_fill(uint8_t *bytes, uint64_t length_bytes, uint64_t seed);

/* Waits until *counter is at least `count`. Where that is not reached it tells
 * where the requests of ctx stand, if that is not NULL, and aborts the program.
 * Where the program polls itself (poll), it polls. */
void tenant_wait(struct rbx_context *ctx, const uint32_t *counter,
		 uint32_t count, bool poll);

#endif
