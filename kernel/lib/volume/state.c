/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.c - how a volume and each of its servers are, in a word; and tells the owner of the volume
 * when the first changes.
 *
 * What the upkeep finds (news.c) starts a look a second later, however much it finds meanwhile. As
 * long as the volume is not whole, it is looked at each second. So the owner is told once of a
 * change, and at most once a second.
 */
#include <linux/export.h>

#include "client/session.h"
#include "kernel/lib/volume/volume.h"

#define LOOK_EVERY_MS 1000

/* ---- The volume ------------------------------------------------------------------------*/

enum rbx_volume_state rbx_volume_state(struct rbx_volume *volume)
{
	struct rbx_upkeep *upkeep = &volume->control.upkeep;
	struct rbx_census census;

	rbx_upkeep_census(upkeep, &census);
	if (census.dead || census.holes)
		return RBX_VOLUME_LOST;
	if (census.whole + census.blank == census.slabs && !rbx_upkeep_any_went_down(upkeep))
		return RBX_VOLUME_WHOLE;
	return rbx_upkeep_is_stuck(upkeep) ? RBX_VOLUME_DEGRADED : RBX_VOLUME_REBUILDING;
}
EXPORT_SYMBOL_GPL(rbx_volume_state);

const char *rbx_volume_state_name(enum rbx_volume_state state)
{
	static const char *const names[] = {
		[RBX_VOLUME_WHOLE] = "whole",
		[RBX_VOLUME_REBUILDING] = "rebuilding",
		[RBX_VOLUME_DEGRADED] = "degraded",
		[RBX_VOLUME_LOST] = "lost",
	};

	return names[state];
}
EXPORT_SYMBOL_GPL(rbx_volume_state_name);

static void look_soon(struct rbx_volume_state_watch *watch)
{
	queue_delayed_work(system_unbound_wq, &watch->work, msecs_to_jiffies(LOOK_EVERY_MS));
}

static void look(struct work_struct *work)
{
	struct rbx_volume_state_watch *watch =
		container_of(to_delayed_work(work), struct rbx_volume_state_watch, work);
	struct rbx_volume *volume = container_of(watch, struct rbx_volume, state_watch);
	enum rbx_volume_state state = rbx_volume_state(volume);

	if (state != watch->told) {
		watch->told = state;
		watch->changed(watch->user, state);
	}
	if (state != RBX_VOLUME_WHOLE)
		look_soon(watch);
}

/* ---- By the owner ----------------------------------------------------------------------*/

void rbx_volume_state_begin(struct rbx_volume *volume, const struct rbx_volume_options *options)
{
	volume->state_watch = (struct rbx_volume_state_watch){
		.changed = options->state_changed,
		.user = options->user,
	};
	INIT_DELAYED_WORK(&volume->state_watch.work, look);
}

/* What was found while it was opened is no change. */
void rbx_volume_state_start(struct rbx_volume *volume)
{
	struct rbx_volume_state_watch *watch = &volume->state_watch;

	if (!watch->changed)
		return;
	watch->told = rbx_volume_state(volume);
	smp_store_release(&watch->is_on, true); /* after what was told last */
	look_soon(watch);
}

void rbx_volume_state_news(struct rbx_volume *volume)
{
	if (smp_load_acquire(&volume->state_watch.is_on))
		look_soon(&volume->state_watch);
}

void rbx_volume_state_stop(struct rbx_volume *volume)
{
	struct rbx_volume_state_watch *watch = &volume->state_watch;

	WRITE_ONCE(watch->is_on, false);
	cancel_delayed_work_sync(&watch->work);
}

/* ---- Its servers -----------------------------------------------------------------------*/

static const char *state_of(const struct rbx_volume_server *server)
{
	if (RBX_LOAD_ACQUIRE(&server->has_failed))
		return "failed";
	if (rbx_peer_is_broken(server->peer))
		return "silent";
	return rbx_session_drains(rbx_peer_session(server->peer)) ? "draining" : "up";
}

/* Whether it is the server of this place, which has not been given up. servers_lock is held, so it
 * stays there. */
static bool is_at(const struct rbx_volume_control *control, u32 index, const char *address)
{
	const struct rbx_volume_server *server = &control->servers[index];

	return server->peer && !rbx_upkeep_server_is_down(&control->upkeep, index) &&
	       !strcmp(rbx_peer_name(server->peer), address);
}

int rbx_volume_server_status(struct rbx_volume *volume, u32 index,
			     struct rbx_server_status *status)
{
	struct rbx_volume_control *control = &volume->control;
	struct rbx_upkeep *upkeep = &control->upkeep;
	u32 i;

	*status = (struct rbx_server_status){ .state = "away" };
	if (rbx_volume_joins_address(volume, index, status->address))
		return -ENOENT;
	rbx_lock(rbx_upkeep_servers_lock(upkeep));
	for (i = 0; i < READ_ONCE(control->server_count); i++) {
		if (!is_at(control, i, status->address))
			continue;
		status->state = state_of(&control->servers[i]);
		status->slabs = rbx_upkeep_server_replicas(upkeep, i);
		status->free_bytes = rbx_peer_free_bytes(control->servers[i].peer);
	}
	rbx_unlock(rbx_upkeep_servers_lock(upkeep));
	return 0;
}
EXPORT_SYMBOL_GPL(rbx_volume_server_status);
