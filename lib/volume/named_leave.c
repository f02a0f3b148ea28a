/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_leave.c - moves what a named volume has at one of its servers to the others
 * (include/rdmabox/named_volume.h, core/slab_leaving.c).
 *
 * The first call looks whether the others can take it. Each call has what is there leave, and
 * counts what is left; the rounds of the upkeep do the rest, as they do for a server that drains.
 */
#include <inttypes.h>
#include <string.h>

#include "client/keeper.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/volume/named.h"
#include "lib/volume/named_admin.h"

/* The place of a server that is there, by its address or its incarnation; or -1. */
static int place_of(const struct rbx_volume *volume, const char *server)
{
	const struct rbx_volume_control *control = &volume->control;
	uint64_t incarnation = rbx_incarnation_of_text(server);
	uint32_t i;

	for (i = 0; i < control->server_count; i++) {
		const struct rbx_peer *peer = control->servers[i].peer;
		uint64_t there;

		if (!peer || rbx_upkeep_server_is_down(&control->upkeep, i))
			continue;
		there = rbx_upkeep_server_incarnation(&control->upkeep, i);
		if (incarnation ? there == incarnation : !strcmp(rbx_peer_name(peer), server))
			return (int)i;
	}
	return -1;
}

/* The servers that stay: those that slabs leave as well do not. */
struct others {
	uint32_t count;
	uint32_t leavers_count;
	uint32_t domains_count; /* failure domains, with one of its own for each that has none */
	uint64_t free_slabs;
};

static bool is_there(const struct rbx_volume_control *control, uint32_t server)
{
	return control->servers[server].peer &&
	       !rbx_upkeep_server_is_down(&control->upkeep, server);
}

static bool stays(struct rbx_volume_control *control, uint32_t server)
{
	return is_there(control, server) &&
	       !rbx_upkeep_server_leaves(&control->upkeep, server);
}

/* Whether one before it is in the same domain. */
static bool is_same_again(struct rbx_volume_control *control, uint32_t server, uint32_t leaver)
{
	uint32_t i;

	for (i = 0; i < server; i++)
		if (i != leaver && stays(control, i) &&
		    rbx_domains_are_same(&control->flow.domains, i, server))
			return true;
	return false;
}

/* leaver: is left out; any other number: nobody is. */
static struct others others_count(struct rbx_volume_control *control, uint32_t leaver)
{
	uint32_t shift = control->flow.map->shape.slab_shift, i;
	struct others others = { .count = 0 };

	for (i = 0; i < control->server_count; i++) {
		if (i == leaver || !is_there(control, i))
			continue;
		if (!stays(control, i)) {
			others.leavers_count++;
			continue;
		}
		others.count++;
		others.domains_count += !is_same_again(control, i, leaver);
		others.free_slabs += rbx_peer_free_bytes(control->servers[i].peer) >> shift;
	}
	return others;
}

static uint32_t slabs_at(const struct rbx_volume_control *control, uint32_t server)
{
	const struct rbx_volume_map *map = control->flow.map;
	uint32_t i, count = 0;

	for (i = 0; i < rbx_volume_map_slabs(map); i++) {
		struct rbx_slab *slab = rbx_slab_at(&map->shape, i);

		rbx_slab_lock(slab);
		count += rbx_slab_has_server(slab, server);
		rbx_slab_unlock(slab);
	}
	return count;
}

/* Whether the others can take all that is there. */
static int others_check(struct rbx_volume *volume, uint32_t leaver, const char *server)
{
	struct rbx_volume_control *control = &volume->control;
	const char *name = control->named->record.name;
	uint32_t replicas = control->flow.map->shape.replicas;
	struct others all = others_count(control, RBX_SERVERS_MAX);
	struct others others = others_count(control, leaver);
	const char *and = others.leavers_count ? " and those that slabs are moved off already" : "";
	uint32_t slabs = slabs_at(control, leaver);

	if (others.count < replicas)
		return rbx_error(-ENOSPC, "without server %s%s volume %s has %u server%s for %u replicas: add one first",
				 server, and, name, others.count,
				 others.count == 1 ? "" : "s", replicas);
	if (others.domains_count < replicas && all.domains_count >= replicas)
		return rbx_error(-ENOSPC, "without server %s%s the servers of volume %s are in %u failure domain%s, and it has %u replicas: add one in another domain first",
				 server, and, name, others.domains_count,
				 others.domains_count == 1 ? "" : "s", replicas);
	if (others.free_slabs < slabs)
		return rbx_error(-ENOSPC, "server %s has %u slabs of volume %s, and the others have room for %" PRIu64 ": add a server first, or give them more memory",
				 server, slabs, name, others.free_slabs);
	return 0;
}

static int kind_check(const struct rbx_volume *volume)
{
	if (!volume->control.named)
		return rbx_error(-EOPNOTSUPP, "only what a named volume has can be moved off a server; let the server drain");
	if (!volume->control.keeper)
		return rbx_error(-EOPNOTSUPP, "volume %s has one replica of each slab, which cannot be moved: copy it to a volume on other servers",
				 volume->control.named->record.name);
	return 0;
}

/* With add_lock held: no place gets another server. Returns how many slabs are left, or -errno. */
static int move_off(struct rbx_volume *volume, const char *server)
{
	struct rbx_upkeep *upkeep = &volume->control.upkeep;
	uint32_t left;
	int err, place;

	if (rbx_keeper_is_over(volume->control.keeper))
		return rbx_error(-ESTALE, "another program has opened volume %s, or too few of its servers answer",
				 volume->control.named->record.name);
	place = place_of(volume, server);
	if (place < 0)
		return rbx_error(-ENODEV, "server %s is none of those of volume %s that are there",
				 server, volume->control.named->record.name);
	err = rbx_upkeep_server_leaves(upkeep, (uint32_t)place) ?
		      0 :
		      others_check(volume, (uint32_t)place, server);
	if (err)
		return err;
	if (rbx_held_has_failed(&volume->control.flow.held, (uint32_t)place))
		return rbx_error(-EIO, "server %s of volume %s was out of reach while it had the last copy of something: open the volume anew",
				 server, volume->control.named->record.name);
	left = rbx_upkeep_server_leave(upkeep, (uint32_t)place);
	if (left && rbx_upkeep_is_stuck(upkeep))
		return rbx_error(-ENOSPC, "no other server of volume %s takes %u slabs that server %s has: add a server, or give the others more memory",
				 volume->control.named->record.name, left, server);
	return (int)left;
}

int rbx_volume_move_off(struct rbx_volume *volume, const char *server)
{
	int rc = rbx_guard_wait(volume->ctx, "rbx_volume_move_off");

	if (!rc)
		rc = rbx_volume_may_change(volume);
	if (!rc)
		rc = kind_check(volume);
	if (!rc && (!server || !*server))
		rc = rbx_error(-EINVAL, "the server to move from must be given");
	if (rc)
		return rc;
	pthread_mutex_lock(&volume->add_lock);
	rc = move_off(volume, server);
	pthread_mutex_unlock(&volume->add_lock);
	return rc;
}
