/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_grow.c - a named volume becomes larger while it is open (include/rdmabox/named_volume.h,
 * client/keeper_grow.c).
 *
 * With one replica there is no keeper. Its record changes only here while it is open, so this
 * thread asks the servers itself. If too few have accepted, the next call goes on with that record.
 *
 * If the volume is reserved, its new slabs have their memory before that (named_reserve.c).
 */
#include <inttypes.h>

#include "client/at_once.h"
#include "client/keeper.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/volume/named.h"
#include "lib/volume/named_admin.h"

static int check(const struct rbx_volume *volume, uint64_t size)
{
	const struct rbx_volume_map *map = volume->control.flow.map;
	const struct rbx_named *named = volume->control.named;
	uint64_t max_bytes = (uint64_t)map->slab_max << map->shape.slab_shift;

	if (!named)
		return rbx_error(-EOPNOTSUPP, "only a named volume grows");
	if (rbx_admin_lost_check(&named->record))
		return -EOWNERDEAD;
	if (!size || size % RBX_PAGE_BYTES)
		return rbx_error(-EINVAL, "a volume of %" PRIu64 " bytes: it must be a multiple of %u, above 0",
				 size, RBX_PAGE_BYTES);
	if (size < rbx_volume_map_bytes(map))
		return rbx_error(-EINVAL, "volume %s has %" PRIu64 " bytes already, and cannot become smaller",
				 named->record.name, rbx_volume_map_bytes(map));
	if (size > max_bytes)
		return rbx_error(-EFBIG, "volume %s was opened with room for %" PRIu64 " bytes: close it, and open it with a higher size_max",
				 named->record.name, max_bytes);
	return 0;
}

/* Of a volume that is reserved, what is new has its memory first. */
static int memory_add(struct rbx_volume *volume, uint64_t size)
{
	const struct rbx_wire_record *record = &volume->control.named->record;
	const struct rbx_keeper *keeper = volume->control.keeper;

	if (keeper && rbx_keeper_is_over(keeper))
		return rbx_keeper_growth_refused(keeper);
	if (!(record->flags & RBX_WIRE_RESERVED) ||
	    rbx_named_slabs(size, record->slab_bytes) <=
		    rbx_volume_map_slabs(volume->control.flow.map))
		return 0;
	return rbx_volume_named_reserve(volume, size);
}

static int accept_at(void *user, uint32_t index)
{
	struct rbx_volume_control *control = &((struct rbx_volume *)user)->control;

	return rbx_named_accept(control->named, rbx_peer_session(control->servers[index].peer));
}

/* What enough have accepted was chosen, whatever has become of the others. */
static int all_accept(struct rbx_volume *volume)
{
	struct rbx_named *named = volume->control.named;
	int err = rbx_at_once(volume->control.server_count, accept_at, volume);

	if (rbx_named_is_chosen(named))
		return 0;
	return err ? err :
		     rbx_error(-EHOSTUNREACH, "volume %s: too few of its servers are there to change it",
			       named->record.name);
}

static int grow_alone(struct rbx_volume *volume, uint64_t size)
{
	struct rbx_named *named = volume->control.named;
	int err = rbx_named_is_chosen(named) ? 0 : all_accept(volume);

	if (!err && size > named->record.size_bytes) {
		named->record.size_bytes = size;
		rbx_named_change(named);
		err = all_accept(volume);
	}
	return err ? err : rbx_volume_map_grow(volume->control.flow.map, named->record.size_bytes);
}

int rbx_volume_extend(struct rbx_volume *volume, uint64_t size)
{
	int err;

	if (!volume)
		return rbx_error(-EINVAL, "a volume must be given");
	err = rbx_guard_wait(volume->ctx, "rbx_volume_extend");
	if (!err)
		err = rbx_volume_may_change(volume);
	if (err)
		return err;
	pthread_mutex_lock(&volume->add_lock);
	err = check(volume, size);
	if (!err)
		err = memory_add(volume, size);
	if (!err && volume->control.keeper)
		err = rbx_keeper_grow(volume->control.keeper, size);
	else if (!err)
		err = grow_alone(volume, size);
	pthread_mutex_unlock(&volume->add_lock);
	return err;
}
