/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scrubber.h - a thread that scrubs a volume while it is in use (`scrub_rate` of its options).
 *
 * It reads what each replica has (scrub.c), a portion after another, and rests between them, so
 * that it keeps its rate. After the end it goes on at the beginning. It begins anywhere: volumes
 * that are open for a short time would only be looked at in their first part otherwise.
 */
#ifndef RBX_LIB_SCRUBBER_H
#define RBX_LIB_SCRUBBER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/host.h"

struct rbx_volume;

struct rbx_scrubber {
	struct rbx_volume *volume;
	struct rbx_thread thread;
	char *buf; /* NULL: there is no thread */
	struct rbx_monitor monitor; /* guards the rest */
	bool stop;
	uint64_t passes; /* of the whole volume, since it was opened */
	uint64_t bad_pages; /* in the last of them: that could be read at no server */
};

void rbx_scrubber_init(struct rbx_scrubber *scrubber);
void rbx_scrubber_destroy(struct rbx_scrubber *scrubber);
/* Whether the volume may be scrubbed, if that is wanted: by its options, before it is taken from
 * anybody; and by what it is, when that is known. 0, or -EINVAL that was reported. */
int rbx_scrubber_rate_check(const struct rbx_volume *volume);
int rbx_scrubber_volume_check(const struct rbx_volume *volume);
/* 0, also if the volume is not to be scrubbed; or -errno, reported. */
int rbx_scrubber_start(struct rbx_scrubber *scrubber, struct rbx_volume *volume);
/* Blocks until what is being read has been read. It has found what it has found. */
void rbx_scrubber_stop(struct rbx_scrubber *scrubber);
/* What it has found so far. */
void rbx_scrubber_get(struct rbx_scrubber *scrubber, uint64_t *passes, uint64_t *bad_pages);

#endif
