/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox.h - remote memory for programs.
 *
 * A program hands RDMAbox reads and writes of remote memory. RDMAbox merges
 * neighbours into one work request, chains the rest behind one doorbell, keeps
 * what is in flight inside a window, posts, polls and reaps. It does so over an
 * RDMA NIC or, if there is none, over a software device of its own.
 *
 *	struct rbx_context *ctx;
 *	struct rbx_volume *volume;
 *
 *	rbx_open(&ctx, NULL);
 *	rbx_volume_open(ctx, &volume, "127.0.0.1:7471", 1 << 30, NULL);
 *	rbx_write(volume, page, sizeof(page), 4096);
 *	rbx_read(volume, page, sizeof(page), 4096);
 *	rbx_volume_close(volume);
 *	rbx_close(ctx);
 *
 * Beyond loopback a secret is needed: options.secret_file. A program includes this
 * header, which has all of these; read them in this order:
 *	context.h	a device, and how it is to be used
 *	volume.h	a range of bytes on memory servers
 *	request.h	reads and writes, many at once, and how each ends
 *	region.h	local memory that is registered once
 *	peer.h		one server's memory, without a volume
 *	stats.h		the numbers of a context
 * Others are included when they are wanted:
 *	named_volume.h	volumes that outlive their programs
 *	endpoint.h	a connection between two programs, without a server
 *	message.h	messages to the program that serves
 *	tuning.h	what a device likes
 *	congestion.h	how much may be in flight
 *	integrity.h	what protects the bytes on the network
 *	verbs.h		plain verbs beside RDMAbox
 *	server.h	serving memory from a program
 *	pool.h		where the servers of a volume come from
 *
 * Four rules hold for all calls:
 * - A call returns 0, a count, or -errno. After a failure rbx_last_error() says
 *   in one line what failed, why, and how to mend it.
 * - Any thread may call, unless "Context" says otherwise. A handle must not be
 *   used while it is closed, or after. To close NULL does nothing.
 * - Callbacks (of completions, messages and events) run on threads of the
 *   library, which have to go on. A call that would wait there returns -EDEADLK
 *   and does nothing; each such call lists that error.
 * - After fork() a context and all that was opened with it belong to the parent,
 *   and the child opens a context of its own. In the child a call that would use
 *   the device, wait or close something returns -EINVAL, or does nothing if it
 *   returns nothing. The parent is not disturbed.
 *
 * The comment above each function has one form, from which the manual pages are
 * made; include/README.md tells it.
 */
#ifndef RDMABOX_H
#define RDMABOX_H

#include <rdmabox/context.h>
#include <rdmabox/peer.h>
#include <rdmabox/region.h>
#include <rdmabox/request.h>
#include <rdmabox/stats.h>
#include <rdmabox/volume.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RBX_VERSION "0.1.0"

/**
 * rbx_last_error() - tells why the last failed call of this thread failed.
 *
 * Returns one line without a newline, or "" if nothing failed yet.
 * Context: any thread, callbacks too; never blocks.
 * Lifetime: until the next call of this thread that fails.
 */
const char *rbx_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
