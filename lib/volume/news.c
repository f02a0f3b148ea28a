/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * news.c - tells the program what the upkeep finds, which servers of a pool join, and why an open
 * takes long. Three threads do that: that of the upkeep, that of joins.c and the one that opens the
 * volume. None of them calls the program (events.h).
 */
#include "client/named.h"
#include "client/opening.h"
#include "lib/volume/volume.h"

RBX_STATIC_ASSERT((int)RBX_NEWS_SERVER_DOWN == RBX_EVENT_SERVER_DOWN &&
			  (int)RBX_NEWS_REBUILD_STARTED ==
				  RBX_EVENT_REBUILD_STARTED &&
			  (int)RBX_NEWS_REBUILD_DONE ==
				  RBX_EVENT_REBUILD_DONE &&
			  (int)RBX_NEWS_REBUILD_STUCK ==
				  RBX_EVENT_REBUILD_STUCK &&
			  (int)RBX_NEWS_DATA_LOST == RBX_EVENT_DATA_LOST,
		  "same numbers");

const char *rbx_event_name(enum rbx_event_kind kind)
{
	switch (kind) {
	case RBX_EVENT_SERVER_DOWN:
		return "server down";
	case RBX_EVENT_REBUILD_STARTED:
		return "rebuild started";
	case RBX_EVENT_REBUILD_DONE:
		return "rebuild done";
	case RBX_EVENT_REBUILD_STUCK:
		return "rebuild stuck";
	case RBX_EVENT_DATA_LOST:
		return "data lost";
	case RBX_EVENT_SERVER_ADDED:
		return "server added";
	case RBX_EVENT_SERVER_LEFT_OUT:
		return "server left out";
	case RBX_EVENT_OPENING:
		return "opening";
	case RBX_EVENT_MISSED:
		return "missed";
	case RBX_EVENT_STOPPED:
		return "stopped";
	case RBX_EVENT_GOES_ON:
		return "goes on";
	case RBX_EVENT_POOL_TROUBLE:
		return "pool trouble";
	}
	return "event";
}

static struct rbx_volume *volume_of(struct rbx_upkeep *upkeep)
{
	return rbx_volume_of_control(rbx_volume_control_of_upkeep(upkeep));
}

void rbx_volume_refused(struct rbx_upkeep *upkeep)
{
	struct rbx_volume *volume = volume_of(upkeep);

	rbx_text_copy(volume->refusal, sizeof(volume->refusal),
		      rbx_last_error());
}

void rbx_volume_opening_tell(struct rbx_volume_control *control, const char *what,
			     uint32_t slabs_count)
{
	const struct rbx_event event = {
		.kind = RBX_EVENT_OPENING,
		.server = "",
		.slab_count = slabs_count,
		.reason = what,
	};

	rbx_events_put(&rbx_volume_of_control(control)->events, &event);
}

static const char *reason_of(const struct rbx_volume *volume,
			     const struct rbx_volume_server *server,
			     enum rbx_news news, int err)
{
	switch (news) {
	case RBX_NEWS_SERVER_DOWN:
		/* Its connection has not failed, or not for that. */
		return server->has_drained ? "it drains, and has nothing of the volume any more" :
					     rbx_peer_reason(server->peer);
	case RBX_NEWS_REBUILD_STARTED:
		return "replicas are missing and are made anew";
	case RBX_NEWS_REBUILD_DONE:
		return "all replicas are live";
	case RBX_NEWS_REBUILD_STUCK:
		return err == -ENODEV ?
			       "no server of the volume is left that could take a replica; add a server" :
			       volume->refusal;
	case RBX_NEWS_DATA_LOST:
		return "the last replica is gone; reads end with -EIO";
	}
	return "";
}

void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err)
{
	struct rbx_volume *volume = volume_of(upkeep);
	const struct rbx_volume_server *whose =
		&volume->control.servers[server];
	struct rbx_event event = {
		.kind = (enum rbx_event_kind)news,
		.server = news == RBX_NEWS_SERVER_DOWN ?
				  rbx_peer_name(whose->peer) :
				  "",
		.slab_count = count,
		.reason = reason_of(volume, whose, news, err),
	};

	rbx_events_put(&volume->events, &event);
	/* With one replica nothing else says why requests fail. */
	if (news == RBX_NEWS_SERVER_DOWN && volume->control.named && !volume->control.keeper)
		rbx_named_stopped(volume->control.named, event.server, event.reason, true);
}

void rbx_volume_stopped(struct rbx_volume_control *control, const char *server, const char *why)
{
	const struct rbx_event event = {
		.kind = RBX_EVENT_STOPPED,
		.server = server,
		.reason = why,
	};

	rbx_events_put(&rbx_volume_of_control(control)->events, &event);
}

void rbx_volume_goes_on(struct rbx_volume_control *control)
{
	static const struct rbx_event event = {
		.kind = RBX_EVENT_GOES_ON,
		.server = "",
		.reason = "enough of its servers are there again",
	};

	rbx_events_put(&rbx_volume_of_control(control)->events, &event);
}
