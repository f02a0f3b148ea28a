/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Servers that are lost, and the spare.
 *
 * The library reports events from a thread of its own, which must not be delayed:
 * health_note() only stores them. The thread that moves the files calls health_look() from
 * time to time. That function prints, and adds the spare, which takes time because it
 * connects. From then on the library rebuilds the lost copies on the spare by itself, while
 * reads and writes go on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "keep_tree.h"

#define LINES_COUNT 16
#define HEAL_LIMIT_S 300
#define HEAL_LOOK_MS 20

static const char *const event_names[] = {
	[RBX_EVENT_SERVER_DOWN] = "server-down",
	[RBX_EVENT_REBUILD_STARTED] = "rebuild-started",
	[RBX_EVENT_REBUILD_DONE] = "rebuild-done",
	[RBX_EVENT_REBUILD_STUCK] = "rebuild-stuck",
	[RBX_EVENT_DATA_LOST] = "data-lost",
};

/* Others are there, and more may come. */
static const char *name_of(enum rbx_event_kind kind)
{
	return (size_t)kind < sizeof(event_names) / sizeof(event_names[0]) ? event_names[kind] :
									      rbx_event_name(kind);
}

void health_init(struct health *health, const char *spare)
{
	*health = (struct health){ .spare = spare };
	pthread_mutex_init(&health->lock, NULL);
}

void health_note(struct rbx_volume *volume, const struct rbx_event *event,
		 void *health_pointer)
{
	struct health *health = health_pointer;

	(void)volume;
	pthread_mutex_lock(&health->lock);
	snprintf(health->lines[health->events_count++ % LINES_COUNT],
		 sizeof(health->lines[0]), "event %s %s %" PRIu32 " slabs: %s",
		 name_of(event->kind),
		 *event->server ? event->server : "-", event->slab_count,
		 event->reason);
	if (event->kind == RBX_EVENT_SERVER_DOWN)
		health->is_server_lost = true;
	else if (event->kind == RBX_EVENT_DATA_LOST)
		health->is_data_lost = true;
	health->is_stuck = event->kind == RBX_EVENT_REBUILD_STUCK;
	pthread_mutex_unlock(&health->lock);
}

/* Copies the oldest event that was not printed; false if there is none. */
static bool take_line(struct health *health, char *line, size_t bytes)
{
	bool is_there;

	pthread_mutex_lock(&health->lock);
	if (health->events_count - health->printed_count > LINES_COUNT)
		health->printed_count = health->events_count - LINES_COUNT;
	is_there = health->printed_count != health->events_count;
	if (is_there)
		snprintf(line, bytes, "%s",
			 health->lines[health->printed_count++ % LINES_COUNT]);
	pthread_mutex_unlock(&health->lock);
	return is_there;
}

static bool read_flag(struct health *health, const bool *flag)
{
	bool value;

	pthread_mutex_lock(&health->lock);
	value = *flag;
	pthread_mutex_unlock(&health->lock);
	return value;
}

int health_look(struct health *health)
{
	char line[sizeof(health->lines[0])];

	while (take_line(health, line, sizeof(line)))
		puts(line);
	if (read_flag(health, &health->is_data_lost))
		return complain("data is lost: more servers are gone than "
				"there are spare replicas");
	if (health->spare && read_flag(health, &health->is_server_lost)) {
		printf("spare %s joins\n", health->spare);
		fflush(stdout);
		if (rbx_volume_add_server(health->volume, health->spare))
			return complain("%s", rbx_last_error());
		health->spare = NULL;
		/* Rebuilds that were stuck have a server now. */
		pthread_mutex_lock(&health->lock);
		health->is_stuck = false;
		pthread_mutex_unlock(&health->lock);
	}
	fflush(stdout);
	return 0;
}

/* Waits until all slabs have all replicas. Returns 0 or -1. */
static int wait_whole(struct health *health)
{
	struct timespec pause = { .tv_nsec = HEAL_LOOK_MS * 1000000 };
	struct rbx_volume_status status;

	for (int i = 0; i < HEAL_LIMIT_S * 1000 / HEAL_LOOK_MS; i++) {
		if (health_look(health))
			return -1;
		rbx_volume_status(health->volume, &status);
		if (status.slabs_whole == status.slabs) {
			printf("rebuilt %" PRIu64 " bytes on %" PRIu32
			       " servers, %" PRIu32 " slabs whole\n",
			       status.rebuilt_bytes, status.servers_up,
			       status.slabs_whole);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
	return complain("%" PRIu32 " of %" PRIu32 " slabs are whole after %d s",
			status.slabs_whole, status.slabs, HEAL_LIMIT_S);
}

int health_heal(struct health *health)
{
	struct rbx_volume_status status;
	bool is_stuck;

	if (health_look(health))
		return -1;
	if (!read_flag(health, &health->is_server_lost))
		return 0;
	is_stuck = read_flag(health, &health->is_stuck);
	pthread_mutex_lock(&health->lock);
	health->is_server_lost = false;
	pthread_mutex_unlock(&health->lock);
	if (!is_stuck)
		return wait_whole(health) ? -1 : 1;
	rbx_volume_status(health->volume, &status);
	printf("degraded %" PRIu32 " of %" PRIu32 " slabs whole; no server can "
	       "take the lost copies\n", status.slabs_whole, status.slabs);
	return 1;
}
