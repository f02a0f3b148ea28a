/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * share.h - a volume of one job, or one that several threads of a process share.
 */
#ifndef RDMABOX_FIO_SHARE_H
#define RDMABOX_FIO_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/rdmabox.h>

struct share;

/* The volume that a job needs. */
struct share_wish {
	const char *servers; /* this and the name of the volume: borrowed by share_join() */
	struct rbx_options options;
	struct rbx_volume_options volume;
	uint64_t bytes; /* of a named volume: that it has */
	bool tell_counters; /* when it is closed */
	bool is_thread; /* of a process with others: may share */
};

/**
 * share_join() - counts a job in that wants a volume; opens nothing yet.
 *
 * Threads that want the same share it; it will be as large as the largest of them
 * wants. Returns NULL without memory.
 */
struct share *share_join(const struct share_wish *wish);

/**
 * share_open() - opens the volume, unless another job has done so already.
 *
 * In the process that uses it. Returns 0 or -errno, having told the user.
 */
int share_open(struct share *share, uint64_t bytes);

/** share_leave() - counts a job out; the last one closes all. */
void share_leave(struct share *share);

/* Between open and leave. */
struct rbx_context *share_context(const struct share *share);
struct rbx_volume *share_volume(const struct share *share);

#endif
