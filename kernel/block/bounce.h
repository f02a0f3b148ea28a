/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce.h - memory for the requests whose own is cut where checksums cannot be.
 *
 * A checksum is that of a whole 4 KiB block, which has to lie in one stretch of
 * memory. Pages do. A program that reads past the page cache (O_DIRECT) may give a
 * buffer that begins 512 bytes into a page, and then each block is the end of one
 * page and the beginning of the next. Such a request goes by way of a buffer here:
 * what it writes is copied before, what it reads afterwards.
 *
 * There are RBX_BOUNCES of them, had at attach: 512 KiB. Whoever finds none free is
 * tried again when a request has ended, or after some milliseconds. So it is slow,
 * as programs know that aligned buffers are the better ones; and it ends.
 */
#ifndef RBX_KERNEL_BOUNCE_H
#define RBX_KERNEL_BOUNCE_H

#include "kernel/api.h"

#define RBX_BOUNCES 4u

struct rbx_bounce;
struct rbx_bounces;

/* NULL: no memory. */
struct rbx_bounces *rbx_bounces_make(u32 bounce_bytes);
/* None is in use. NULL: nothing to do. */
void rbx_bounces_free(struct rbx_bounces *bounces);

/* Whether the I/O is of whole blocks in each segment. */
bool rbx_bounce_spares(const struct rbx_io *io);

/* Lends the I/O the memory of a buffer in the place of its own; NULL: none is
 * free. Never blocks. */
struct rbx_bounce *rbx_bounce_begin(struct rbx_bounces *bounces,
				    struct rbx_io *io);

/* The I/O has ended with its status, or was not submitted: its own memory is back,
 * with what a good read has read. Any context. */
void rbx_bounce_end(struct rbx_bounce *bounce, struct rbx_io *io);

#endif
