/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joining.c - see joining.h.
 */
#include "client/joining.h"

#include "client/keeper.h"

/* ---- Each server only once ---------------------------------------------------------*/

/* Whether the server of this place has FAILED (core/held.h), and may be asked for the volume once
 * more. */
static bool may_come_again(const struct rbx_volume_control *control, uint32_t index)
{
	const struct rbx_volume_server *server = &control->servers[index];

	return RBX_LOAD_ACQUIRE(&server->has_failed) && !rbx_named_is_shut_out(control->named) &&
	       (RBX_LOAD_ACQUIRE(&server->is_given_up) || RBX_LOAD_ACQUIRE(&server->is_shunned));
}

bool rbx_joining_is_used(const struct rbx_volume_control *control, const char *address)
{
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (control->servers[i].peer &&
		    !rbx_upkeep_server_is_down(&control->upkeep, i) &&
		    !may_come_again(control, i) &&
		    !strcmp(rbx_peer_name(control->servers[i].peer), address))
			return true;
	return false;
}

int rbx_volume_twice_check(struct rbx_volume_control *control, uint32_t index)
{
	struct rbx_peer *peer = control->servers[index].peer;
	uint32_t other;

	if (!rbx_upkeep_server_connected(&control->upkeep, index,
					 rbx_peer_incarnation(peer), &other))
		return 0;
	if (control->servers[index].failed_incarnation == rbx_peer_incarnation(peer)) {
		rbx_upkeep_server_set_incarnation(&control->upkeep, index,
						  rbx_peer_incarnation(peer));
		return 0;
	}
	return rbx_error(-EINVAL, "server %s is named twice: %s is the same one",
			 rbx_peer_name(peer),
			 rbx_peer_name(control->servers[other].peer));
}

struct rbx_peer *rbx_volume_server_first(const struct rbx_volume_control *control)
{
	const struct rbx_volume_server *server = control->servers;

	while (!server->peer)
		server++;
	return server->peer;
}

int rbx_volume_slab_bytes_check(const struct rbx_volume_control *control, uint32_t index)
{
	struct rbx_peer *first = rbx_volume_server_first(control);
	struct rbx_peer *peer = control->servers[index].peer;

	if (!rbx_slab_bytes_are_good(rbx_peer_slab_bytes(peer)))
		return rbx_error(-EINVAL, "server %s lends slabs of %llu bytes: start it with a --slab that is a power of two from %u to %u",
				 rbx_peer_name(peer),
				 (unsigned long long)rbx_peer_slab_bytes(peer),
				 RBX_SLAB_BYTES_MIN, RBX_SLAB_BYTES_MAX);
	if (rbx_peer_slab_bytes(peer) == rbx_peer_slab_bytes(first))
		return 0;
	return rbx_error(-EINVAL, "server %s lends slabs of %llu bytes, %s of %llu; start both with the same --slab",
			 rbx_peer_name(peer),
			 (unsigned long long)rbx_peer_slab_bytes(peer),
			 rbx_peer_name(first),
			 (unsigned long long)rbx_peer_slab_bytes(first));
}

/* ---- One more server ---------------------------------------------------------------*/

void rbx_volume_server_drop(struct rbx_volume_control *control, uint32_t index)
{
	rbx_volume_server_close(control, index);
	rbx_upkeep_server_failed(&control->upkeep, index);
}

static int connect_one(struct rbx_volume_control *control, uint32_t index,
		       const struct rbx_joining *joining)
{
	struct rbx_volume_server *server = &control->servers[index];
	int err;

	/* Two replicas on one server would be lost together. */
	if (rbx_joining_is_used(control, joining->address))
		return rbx_error(-EINVAL, "server %s is named twice", joining->address);
	/* The server that was at this index is dead and nothing refers to it. Its last
	 * completion may still be in a poller's hands. */
	rbx_volume_pollers_visit(control);
	rbx_volume_server_close(control, index);
	server->name = joining->name;
	server->labels = joining->labels;
	err = rbx_volume_server_open(control, index);
	if (!err)
		err = rbx_volume_twice_check(control, index);
	if (err)
		rbx_volume_server_drop(control, index);
	else
		control->server_count = RBX_MAX(control->server_count, index + 1);
	return err;
}

/* All that were connected before may be gone, so those say nothing. */
static int shape_check(const struct rbx_volume_control *control, uint32_t index)
{
	const struct rbx_peer *peer = control->servers[index].peer;
	uint64_t slab_bytes = 1ull << control->flow.map->shape.slab_shift;

	if (rbx_peer_slab_bytes(peer) == slab_bytes)
		return 0;
	return rbx_error(-EINVAL, "server %s lends slabs of %llu bytes, and the volume has slabs of %llu; start it with that --slab",
			 rbx_peer_name(peer), (unsigned long long)rbx_peer_slab_bytes(peer),
			 (unsigned long long)slab_bytes);
}

/* To a volume without a name it is added at once. */
static int join(struct rbx_volume_control *control, uint32_t index,
		const struct rbx_joining *joining)
{
	int err = connect_one(control, index, joining);

	if (err)
		return err;
	err = shape_check(control, index);
	if (err)
		rbx_volume_server_drop(control, index);
	else
		rbx_upkeep_server_added(&control->upkeep, index);
	return err;
}

/* ---- Who was at the same address ------------------------------------------------------- */

static const char *name_at(const struct rbx_volume_control *control, uint32_t index)
{
	return rbx_peer_name(control->servers[index].peer);
}

static bool is_dead(const struct rbx_volume_control *control, uint32_t index)
{
	return control->servers[index].peer &&
	       rbx_upkeep_server_is_down(&control->upkeep, index);
}

/* The one at this address that is dead: what is there now is another one, or that one again. */
static uint64_t former_of(const struct rbx_volume_control *control, const char *address)
{
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (is_dead(control, i) && !strcmp(name_at(control, i), address))
			return rbx_upkeep_server_incarnation(&control->upkeep, i);
	return rbx_keeper_former_at(control->keeper, address);
}

/* The place of a dead one is about to be given away, perhaps for nothing. */
static void former_note(struct rbx_volume_control *control, uint32_t index)
{
	if (is_dead(control, index))
		rbx_keeper_former_note(control->keeper, name_at(control, index),
				       rbx_upkeep_server_incarnation(&control->upkeep, index));
}

/* ---- Who has FAILED ---------------------------------------------------------------------- */

bool rbx_joining_may_return(const struct rbx_volume_control *control)
{
	uint32_t i;

	if (rbx_keeper_any_is_out(control->named))
		return true;
	for (i = 0; i < control->server_count; i++)
		if (may_come_again(control, i))
			return true;
	return false;
}

const char *rbx_joining_failed_address(const struct rbx_volume_control *control, uint32_t index)
{
	return may_come_again(control, index) ? name_at(control, index) : NULL;
}

int rbx_joining_failed_at(const struct rbx_volume_control *control, const char *address)
{
	uint32_t i;

	for (i = 0; i < control->server_count; i++)
		if (may_come_again(control, i) && !strcmp(name_at(control, i), address))
			return (int)i;
	return -1;
}

/* ---- It becomes a member ----------------------------------------------------------------*/

/* It is connected. What is at the address of one that has FAILED may be another one. */
static int take(struct rbx_volume_control *control, uint32_t index, uint64_t former,
		int failed_place)
{
	struct rbx_upkeep *upkeep = &control->upkeep;
	int err;

	if (failed_place < 0)
		return rbx_keeper_take(control->keeper, index, former);
	if (rbx_upkeep_server_incarnation(upkeep, index) !=
	    rbx_upkeep_server_incarnation(upkeep, (uint32_t)failed_place))
		return rbx_keeper_take(control->keeper, index, 0);
	err = rbx_keeper_again(control->keeper, index, (uint32_t)failed_place);
	if (!err) /* nobody takes the place of it */
		rbx_upkeep_server_set_incarnation(upkeep, (uint32_t)failed_place, 0);
	return err;
}

static int join_named(struct rbx_volume_control *control, uint32_t index,
		      const struct rbx_joining *joining)
{
	struct rbx_volume_server *server = &control->servers[index];
	int err, failed_place;
	uint64_t former;

	if (!control->keeper)
		return rbx_error(-EOPNOTSUPP, "a named volume with one replica gets servers when nobody has it open: rbx_volume_members_add()");
	if (index >= RBX_MEMBERS_MAX)
		return rbx_error(-ENOSPC, "a named volume has at most %u servers, including lost ones that are not replaced yet",
				 RBX_MEMBERS_MAX);
	if (!rbx_keeper_is_done_with(control->keeper, index))
		return rbx_error(-EAGAIN, "the server that had the place of %s is still waited for",
				 joining->address);
	former = former_of(control, joining->address);
	failed_place = rbx_joining_failed_at(control, joining->address);
	former_note(control, index);
	server->coming = joining->returns ? RBX_COMES_BACK : RBX_COMES;
	server->failed_incarnation =
		failed_place < 0 ? 0 :
				   rbx_upkeep_server_incarnation(&control->upkeep,
								 (uint32_t)failed_place);
	err = connect_one(control, index, joining);
	server->coming = RBX_COMES_NOT;
	server->failed_incarnation = 0;
	if (err)
		return err;
	err = take(control, index, former, failed_place);
	if (err)
		rbx_volume_server_drop(control, index);
	else
		rbx_keeper_former_drop(control->keeper, former);
	return err;
}

int rbx_joining_add(struct rbx_volume_control *control, const struct rbx_joining *joining)
{
	uint32_t index;
	int err = rbx_upkeep_server_place(&control->upkeep, &index);

	if (err)
		return rbx_error(err, "a volume has at most %u servers, including lost ones that are not replaced yet",
				 RBX_SERVERS_MAX);
	return control->named ? join_named(control, index, joining) :
				join(control, index, joining);
}
