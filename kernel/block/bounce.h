/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounce.h - bounce buffers, for requests whose segments do not hold whole 4 KiB blocks.
 *
 * A checksum covers a whole 4 KiB block, which has to lie in one range of memory. Pages
 * do. But with O_DIRECT a program may pass a buffer that begins 512 bytes into a page;
 * then each block is the end of one page and the beginning of the next. Such a request
 * uses a bounce buffer: data that it writes are copied before, data that it reads
 * afterwards.
 *
 * There are RBX_BOUNCES of them, allocated at attach: 512 KiB. If none is free, the
 * request is tried again when another has ended, or after some milliseconds. So it is
 * slow, as programs know to use aligned buffers, but it does end.
 */
#ifndef RBX_KERNEL_BOUNCE_H
#define RBX_KERNEL_BOUNCE_H

#include "kernel/api.h"

#define RBX_BOUNCES 4u

struct rbx_bounce;
struct rbx_bounces;

/* NULL: no memory. */
struct rbx_bounces *rbx_bounces_make(u32 bounce_bytes);
/* None may be in use. NULL: does nothing. */
void rbx_bounces_free(struct rbx_bounces *bounces);

/* Whether each segment of the I/O consists of whole blocks, so that it needs no buffer. */
bool rbx_bounce_spares(const struct rbx_io *io);

/* Replaces the memory of the I/O by a bounce buffer. NULL: none is free. Never blocks. */
struct rbx_bounce *rbx_bounce_begin(struct rbx_bounces *bounces,
				    struct rbx_io *io);

/* Gives the I/O its own memory back: it has ended, or was not submitted. After a
 * successful read its data are copied there. Any context. */
void rbx_bounce_end(struct rbx_bounce *bounce, struct rbx_io *io);

#endif
