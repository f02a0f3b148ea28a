/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.h - tells a program the events of a volume, by a thread that does nothing else.
 *
 * The program's callback may write to a log or a pipe, and be held up there. Threads of the volume
 * must not be: that of the upkeep alone sees that the volume is another client's by now
 * (client/keeper.h). So they only put an event into a queue. Its order is kept.
 *
 * The queue has an end. If the callback is held up for so long that it fills, its last place is an
 * RBX_EVENT_MISSED, which counts what does not fit. Events that come later stand behind it.
 */
#ifndef RBX_LIB_EVENTS_H
#define RBX_LIB_EVENTS_H

#include "client/host.h"
#include "include/rdmabox/pool.h"
#include "include/rdmabox/volume.h"

/* As many servers as a named volume has may be lost at once, and what is done about it is told. */
#define RBX_EVENTS_MAX 128u

struct rbx_events {
	struct rbx_volume *volume;
	void (*tell)(struct rbx_volume *volume, const struct rbx_event *event, void *user);
	void *user;
	struct rbx_event_kept {
		enum rbx_event_kind kind;
		uint32_t slab_count;
		char server[RBX_POOL_ADDRESS_BYTES];
		char reason[RBX_ERROR_BYTES];
	} *queue; /* NULL: it was not begun, and nobody is told */
	struct rbx_thread thread;
	struct rbx_monitor monitor; /* guards what follows */
	uint32_t first; /* the place of the oldest one */
	uint32_t count;
	bool stop;
};

/* tell: the program's callback; NULL: nothing is done here, and by the others. 0, or -errno that
 * was reported. */
int rbx_events_begin(struct rbx_events *events, struct rbx_volume *volume,
		     void (*tell)(struct rbx_volume *volume, const struct rbx_event *event,
				  void *user),
		     void *user);
/* Any thread, which does not wait for the callback. event: copied. */
void rbx_events_put(struct rbx_events *events, const struct rbx_event *event);
/* What was put is told, if it was begun. Nothing is put any more. Blocks for as long as the
 * callback does. */
void rbx_events_end(struct rbx_events *events);

#endif
