/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_reserve.c - a reserved volume that is open gets the memory of the slabs by which it is to
 * grow, before its record says that it does (named_grow.c, docs/named-volumes.md).
 *
 *	all servers      give up what lies beyond the slabs that there are: a growth that failed
 *	                 may have left it. If one is not there, the volume does not grow: what it
 *	                 has could be found later, and lack what is written meanwhile
 *	borrow           complete, with zeros, by a plan (named_memory.h), over the sessions of the
 *	                 volume
 *	adopt            the upkeep thread, which owns the index of loans, adds the slabs to the
 *	                 map. No request goes there yet. From then on they are slabs like all
 *	                 others: what becomes of their servers is handled like everywhere
 *
 * If anything fails before the last step, all servers give up again what lies beyond. A client that
 * dies leaves it to the next one, which does the same when it opens the volume. After the last step
 * the memory is the volume's, even if the record is not accepted, for then it may have been: the
 * next call goes on with these slabs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/at_once.h"
#include "client/session.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"
#include "lib/volume/named.h"
#include "lib/volume/named_memory.h"

/* add_lock is held: no place of the table gets another server. */
struct more {
	struct rbx_volume_control *control;
	uint64_t slabs_count; /* that there are; later ones are beyond */
	struct rbx_memory_wanted wanted;
	uint32_t places[RBX_MEMBERS_MAX]; /* of the servers that are wanted */
	struct rbx_returned lent[RBX_MEMBERS_MAX];
	int err; /* of the upkeep thread */
	uint32_t failed; /* which server it is about */
};

/* ---- The servers -------------------------------------------------------------------------- */

/* Whether what it has will count. One that is about to be OUT is shunned. */
static bool is_in_use(struct rbx_volume_control *control, uint32_t place)
{
	const struct rbx_volume_server *server = &control->servers[place];

	return server->peer && !RBX_LOAD_ACQUIRE(&server->is_given_up) &&
	       !RBX_LOAD_ACQUIRE(&server->is_shunned) && !RBX_LOAD_ACQUIRE(&server->has_failed) &&
	       !rbx_upkeep_server_is_down(&control->upkeep, place);
}

/* Those that are not OUT. The upkeep thread may be about to change the record. */
static uint32_t members_in(struct rbx_named *named, struct rbx_member_set *in)
{
	uint32_t i;

	in->count = 0;
	rbx_lock(&named->lock);
	for (i = 0; i < named->record.members_count; i++)
		if (rbx_record_is_in(&named->record, named->record.incarnations[i]))
			rbx_member_set_add(in, named->record.incarnations[i]);
	rbx_unlock(&named->lock);
	return in->count;
}

static void server_want(struct more *more, uint32_t place)
{
	struct rbx_volume_control *control = more->control;
	struct rbx_session *session = rbx_peer_session(control->servers[place].peer);
	uint32_t i = more->wanted.servers_count++;

	more->places[i] = place;
	more->wanted.servers[i] = (struct rbx_memory_server){
		.session = session,
		.domain = control->flow.domains.of[place],
		.lends = !rbx_session_drains(session) &&
			 !rbx_upkeep_server_leaves(&control->upkeep, place),
		.lent = &more->lent[i],
	};
}

static int servers_find(struct more *more)
{
	struct rbx_volume_control *control = more->control;
	uint32_t i, members_count;
	struct rbx_member_set in;

	members_count = members_in(control->named, &in);
	for (i = 0; i < control->server_count; i++)
		if (is_in_use(control, i) && more->wanted.servers_count < members_count &&
		    rbx_member_set_has(&in, rbx_peer_incarnation(control->servers[i].peer)))
			server_want(more, i);
	if (more->wanted.servers_count == members_count)
		return 0;
	return rbx_error(-EHOSTUNREACH, "volume %s is reserved, and does not grow while %u of its %u servers are away",
			 control->named->record.name, members_count - more->wanted.servers_count,
			 members_count);
}

/* ---- What is beyond ------------------------------------------------------------------------- */

static int trim_at(void *user, uint32_t index)
{
	const struct more *more = user;

	return rbx_named_trim_beyond(more->control->named, more->wanted.servers[index].session,
				     more->slabs_count);
}

static int trim_all(struct more *more)
{
	return rbx_at_once(more->wanted.servers_count, trim_at, more);
}

/* ---- By the upkeep thread ------------------------------------------------------------------ */

/* All that was lent can be used, or nothing is. */
static int lent_check(const struct more *more, uint32_t index)
{
	const struct rbx_returned *lent = &more->lent[index];
	uint32_t i, place = more->places[index];
	int err = is_in_use(more->control, place) ? 0 : -EHOSTUNREACH;

	for (i = 0; i < lent->count && !err; i++)
		err = rbx_upkeep_may_adopt(&more->control->upkeep, place, &lent->slabs[i].loan);
	return err;
}

/* A server that has lent the same memory twice has not told the truth. */
static void lent_adopt(const struct more *more, uint32_t index)
{
	const struct rbx_returned *lent = &more->lent[index];
	uint32_t i, place = more->places[index];
	int err = 0;

	for (i = 0; i < lent->count; i++)
		err |= rbx_upkeep_adopt_reserved(&more->control->upkeep, place,
						 lent->slabs[i].label, &lent->slabs[i].loan);
	if (err)
		rbx_peer_renounce(more->control->servers[place].peer,
				  "it has lent the same memory twice");
}

static void adopt(struct rbx_volume_control *control, void *user)
{
	struct rbx_volume_map *map = control->flow.map;
	struct more *more = user;
	uint32_t i;

	more->err = 0;
	for (i = 0; i < more->wanted.servers_count && !more->err; i++) {
		more->err = lent_check(more, i);
		more->failed = i;
	}
	if (!more->err)
		more->err = rbx_volume_map_add_slabs(
			map, rbx_named_slabs(more->wanted.size_bytes,
					     (uint64_t)1 << map->shape.slab_shift));
	for (i = 0; i < more->wanted.servers_count && !more->err; i++)
		lent_adopt(more, i);
}

/* ---- All of it ------------------------------------------------------------------------------ */

static int adopt_all(struct more *more)
{
	const struct rbx_memory_server *failed = more->wanted.servers;

	rbx_volume_upkeep_call(more->control, adopt, more);
	failed += more->failed;
	if (more->err == -EHOSTUNREACH)
		return rbx_error(more->err, "volume %s does not grow: %s was lost meanwhile",
				 more->control->named->record.name,
				 rbx_session_name(failed->session));
	return more->err ? rbx_error(-EAGAIN, "volume %s does not grow: %s has lent memory that is in use; try it again",
				     more->control->named->record.name,
				     rbx_session_name(failed->session)) :
			   0;
}

static int memory_get(struct more *more)
{
	char why[RBX_ERROR_TEXT_MAX];
	int err = rbx_named_borrow(more->control->named, &more->wanted);

	if (!err)
		err = adopt_all(more);
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	(void)trim_all(more);
	return rbx_error(err, "%s", why);
}

int rbx_volume_named_reserve(struct rbx_volume *volume, uint64_t size)
{
	struct rbx_volume_control *control = &volume->control;
	struct more *more;
	uint32_t i;
	int err;

	more = calloc(1, sizeof(*more));
	if (!more)
		return rbx_error(-ENOMEM, "out of memory");
	more->control = control;
	more->slabs_count = rbx_volume_map_slabs(control->flow.map);
	more->wanted.from_slab = more->slabs_count;
	more->wanted.size_bytes = size;
	err = servers_find(more);
	if (!err)
		err = trim_all(more);
	if (!err)
		err = memory_get(more);
	for (i = 0; i < more->wanted.servers_count; i++)
		rbx_returned_forget(&more->lent[i]);
	free(more);
	return err;
}
