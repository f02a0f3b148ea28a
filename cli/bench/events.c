/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints events of the volume: servers that were lost, and replicas that were rebuilt.
 *
 * The library calls the callback from a thread of its own. It only stores the line, so that the
 * thread that watches the run prints it between two of its own.
 */
#include <stdio.h>
#include <unistd.h>

#include "cli/bench/bench.h"

#define LINES_COUNT \
	(sizeof(((struct bench_events *)0)->lines) / \
	 sizeof(((struct bench_events *)0)->lines[0]))

void bench_events_init(struct bench_events *events)
{
	*events = (struct bench_events){ .count = 0 };
	pthread_mutex_init(&events->lock, NULL);
}

void bench_events_note(struct rbx_volume *volume,
		       const struct rbx_event *event, void *user)
{
	struct bench_events *events = user;
	char *line;

	(void)volume;
	/* While the volume is opened nobody prints them. */
	if (event->kind == RBX_EVENT_OPENING) {
		fprintf(stderr, "rdmabox bench: opening: %u slabs, %s\n", event->slab_count,
			event->reason);
		return;
	}
	pthread_mutex_lock(&events->lock);
	line = events->lines[events->count++ % LINES_COUNT];
	if (event->kind == RBX_EVENT_STOPPED || event->kind == RBX_EVENT_GOES_ON)
		snprintf(line, sizeof(events->lines[0]), "the volume %s: %s%s%s",
			 rbx_event_name(event->kind), event->server, *event->server ? ", " : "",
			 event->reason);
	else if (event->kind == RBX_EVENT_POOL_TROUBLE)
		snprintf(line, sizeof(events->lines[0]), "%s: %s", rbx_event_name(event->kind),
			 event->reason);
	else
		snprintf(line, sizeof(events->lines[0]), "%s: %s%s%u slabs, %s",
			 rbx_event_name(event->kind), event->server, *event->server ? ", " : "",
			 event->slab_count, event->reason);
	if (event->kind == RBX_EVENT_STOPPED ||
	    (event->kind == RBX_EVENT_SERVER_DOWN && !*events->down))
		snprintf(events->down, sizeof(events->down), "%s", line);
	pthread_mutex_unlock(&events->lock);
}

/* The library tells of a server when the first requests have failed already. */
#define DOWN_LOOKS 50
#define DOWN_LOOK_US 10000

void bench_events_await_down(struct bench_events *events, char *line, size_t bytes)
{
	int looks;

	for (looks = 0; looks < DOWN_LOOKS; looks++) {
		pthread_mutex_lock(&events->lock);
		snprintf(line, bytes, "%s", events->down);
		pthread_mutex_unlock(&events->lock);
		if (*line)
			return;
		usleep(DOWN_LOOK_US);
	}
}

/* Takes the oldest line that was not printed; "" if there is none. */
static void take_line(struct bench_events *events, char *line, size_t bytes)
{
	line[0] = 0;
	pthread_mutex_lock(&events->lock);
	if (events->count - events->printed_count > LINES_COUNT)
		events->printed_count = events->count - LINES_COUNT;
	if (events->printed_count != events->count)
		snprintf(line, bytes, "%s",
			 events->lines[events->printed_count++ % LINES_COUNT]);
	pthread_mutex_unlock(&events->lock);
}

void bench_events_print(struct bench_events *events)
{
	char line[sizeof(events->lines[0])];

	for (;;) {
		take_line(events, line, sizeof(line));
		if (!*line)
			return;
		fprintf(stderr, "rdmabox bench: %s\n", line);
	}
}
