/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * notice.c - gives events of a volume and lines of a server's log to Python.
 *
 * They are copied, since the library's data are only valid during the callback. If nobody
 * takes them, later ones are dropped, and the next one that is taken says how many. If
 * there is no memory for one, it is dropped too.
 */
#include "native.h"

#include <stdio.h>
#include <stdlib.h>

struct rbxpy_notices {
	struct rbxpy_queue *queue;
	atomic_int waiting;
	atomic_ullong dropped;
};

struct rbxpy_notices *rbxpy_notices_new(struct rbxpy_queue *queue)
{
	struct rbxpy_notices *notices = calloc(1, sizeof(*notices));

	if (notices)
		notices->queue = queue;
	return notices;
}

void rbxpy_notices_free(struct rbxpy_notices *notices)
{
	free(notices);
}

static void put(struct rbxpy_notices *notices, int kind, uint32_t slab_count,
		const char *server, const char *text)
{
	struct rbxpy_notice *notice = NULL;

	if (atomic_fetch_add(&notices->waiting, 1) < RBXPY_NOTICES_MAX)
		notice = calloc(1, sizeof(*notice));
	if (!notice) {
		atomic_fetch_sub(&notices->waiting, 1);
		atomic_fetch_add(&notices->dropped, 1);
		return;
	}
	notice->kind = kind;
	notice->slab_count = slab_count;
	notice->dropped_count = atomic_exchange(&notices->dropped, 0);
	snprintf(notice->server, sizeof(notice->server), "%s", server);
	snprintf(notice->text, sizeof(notice->text), "%s", text);
	rbxpy_queue_put(notices->queue, &notice->item);
}

struct rbxpy_notice *rbxpy_notices_take(struct rbxpy_notices *notices)
{
	struct rbxpy_notice *notice =
		(struct rbxpy_notice *)rbxpy_queue_take(notices->queue);

	if (notice)
		atomic_fetch_sub(&notices->waiting, 1);
	return notice;
}

void rbxpy_notice_free(struct rbxpy_notice *notice)
{
	free(notice);
}

void rbxpy_volume_event(struct rbx_volume *volume, const struct rbx_event *event,
			void *user)
{
	(void)volume;
	put(user, (int)event->kind, event->slab_count, event->server, event->reason);
}

void rbxpy_server_log(const char *line, void *user)
{
	put(user, -1, 0, "", line);
}
