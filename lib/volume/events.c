/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* events.c - see events.h. */
#include "lib/volume/events.h"

#include <stdlib.h>

#include "lib/guard.h"

static void tell(const struct rbx_events *events, const struct rbx_event_kept *kept)
{
	const struct rbx_event event = {
		.kind = kept->kind,
		.server = kept->server,
		.slab_count = kept->slab_count,
		.reason = kept->reason,
	};
	const char *before = rbx_callback_enter("event callback");

	events->tell(events->volume, &event, events->user);
	rbx_callback_leave(before);
}

/* False: there is none, and there will be none. */
static bool take(struct rbx_events *events, struct rbx_event_kept *kept)
{
	bool any;

	rbx_monitor_enter(&events->monitor);
	while (!events->count && !events->stop)
		rbx_monitor_wait(&events->monitor);
	any = events->count;
	if (any) {
		*kept = events->queue[events->first];
		events->first = (events->first + 1) % RBX_EVENTS_MAX;
		events->count--;
	}
	rbx_monitor_leave(&events->monitor);
	return any;
}

static void *events_main(void *argument)
{
	struct rbx_events *events = argument;
	struct rbx_event_kept kept;

	while (take(events, &kept))
		tell(events, &kept);
	return NULL;
}

int rbx_events_begin(struct rbx_events *events, struct rbx_volume *volume,
		     void (*tell)(struct rbx_volume *volume, const struct rbx_event *event,
				  void *user),
		     void *user)
{
	int err;

	*events = (struct rbx_events){ .volume = volume, .tell = tell, .user = user };
	if (!tell)
		return 0;
	events->queue = calloc(RBX_EVENTS_MAX, sizeof(*events->queue));
	if (!events->queue)
		return rbx_error(-ENOMEM, "out of memory");
	rbx_monitor_init(&events->monitor);
	err = rbx_thread_start(&events->thread, "events", events_main, events);
	if (!err)
		return 0;
	rbx_monitor_destroy(&events->monitor);
	free(events->queue);
	events->queue = NULL;
	return rbx_error(err, "cannot start the thread that tells events");
}

/* The last place is that of RBX_EVENT_MISSED. */
static void keep(struct rbx_events *events, const struct rbx_event *event)
{
	static const struct rbx_event missed = {
		.kind = RBX_EVENT_MISSED,
		.server = "",
		.reason = "the event callback took too long",
	};
	bool is_last = events->count >= RBX_EVENTS_MAX - 1;
	struct rbx_event_kept *kept;

	if (events->count < RBX_EVENTS_MAX) {
		kept = &events->queue[(events->first + events->count++) % RBX_EVENTS_MAX];
		if (is_last)
			event = &missed;
		kept->kind = event->kind;
		kept->slab_count = event->slab_count;
		rbx_text_copy(kept->server, sizeof(kept->server), event->server);
		rbx_text_copy(kept->reason, sizeof(kept->reason), event->reason);
	}
	if (is_last)
		events->queue[(events->first + events->count - 1) % RBX_EVENTS_MAX].slab_count++;
}

void rbx_events_put(struct rbx_events *events, const struct rbx_event *event)
{
	if (!events->queue)
		return;
	rbx_monitor_enter(&events->monitor);
	if (!events->stop)
		keep(events, event);
	rbx_monitor_wake(&events->monitor);
	rbx_monitor_leave(&events->monitor);
}

void rbx_events_end(struct rbx_events *events)
{
	if (!events->queue)
		return;
	rbx_monitor_enter(&events->monitor);
	events->stop = true;
	rbx_monitor_wake(&events->monitor);
	rbx_monitor_leave(&events->monitor);
	rbx_thread_join(&events->thread);
	rbx_monitor_destroy(&events->monitor);
	free(events->queue);
	events->queue = NULL;
}
