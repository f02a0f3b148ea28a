/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_admin.c - makes and removes named volumes (include/rdmabox/named_volume.h), and what the
 * calls that change them share.
 *
 * Each server is asked over a session of its own. A volume that is being made has no record
 * until all servers were granted to us, and a server forgets it if our session ends before it has
 * one. So a process that dies half way leaves nothing, except between the first and the last
 * server that accepts the record; the next one who looks for the volume has these forget it
 * (client/removal.h). The memory of a volume that is reserved is borrowed before (named_memory.h).
 */
#include <stdlib.h>
#include <string.h>

#include "client/at_once.h"
#include "client/removal.h"
#include "client/session.h"
#include "core/record.h"
#include "core/volume.h"
#include "include/rdmabox/named_volume.h"
#include "lib/error.h"
#include "lib/guard.h"
#include "lib/session/sessions.h"
#include "lib/sized.h"
#include "lib/volume/named.h"
#include "lib/volume/named_admin.h"
#include "lib/volume/named_memory.h"

int rbx_admin_begin(struct rbx_context *ctx, const char *call, const char *servers,
		    const char *name,
		    int (*crowd_open)(struct rbx_context *ctx, const char *servers,
				      struct rbx_crowd **crowd),
		    struct rbx_named *named, struct rbx_crowd **crowd)
{
	char holder[RBX_WIRE_HOLDER_BYTES];
	int err;

	if (!ctx || !servers || !name)
		return rbx_error(-EINVAL, "context, servers and name must be given");
	err = rbx_guard_wait(ctx, call);
	rbx_holder_describe(holder);
	if (!err)
		err = rbx_named_init(named, name, holder);
	return err ? err : crowd_open(ctx, servers, crowd);
}

int rbx_admin_name_clear(struct rbx_crowd *crowd, const char *name)
{
	struct rbx_named before;
	int err = rbx_named_init(&before, name, "a client that needs the name");

	if (!err)
		err = rbx_crowd_look(crowd, &before);
	return err == -ENOENT || err == -EACCES ? 0 : err; /* the servers say whose it is */
}

struct asking {
	struct rbx_named *named;
	struct rbx_crowd *crowd;
};

static int grant_at(void *user, uint32_t index)
{
	const struct asking *asking = user;

	return asking->crowd->has[index] ?
		       rbx_named_grant(asking->named, asking->crowd->sessions[index]) :
		       0;
}

/* One that has fallen silent is not asked for more: the others may be enough. */
int rbx_admin_grant_all(struct rbx_named *named, struct rbx_crowd *crowd)
{
	struct asking asking = { named, crowd };
	struct rbx_at_once asked;
	uint32_t i;
	int err = rbx_at_once_do(&asked, crowd->count, false, grant_at, &asking);

	for (i = 0; i < crowd->count && !err; i++) {
		if (rbx_crowd_is_away(asked.results[i].err))
			crowd->has[i] = false;
		else
			err = rbx_at_once_error(&asked, i);
	}
	rbx_at_once_free(&asked);
	return err;
}

static int accept_at(void *user, uint32_t index)
{
	const struct asking *asking = user;

	return asking->crowd->has[index] ?
		       rbx_named_accept(asking->named, asking->crowd->sessions[index]) :
		       0;
}

int rbx_admin_accept_all(struct rbx_named *named, struct rbx_crowd *crowd, bool *by_all)
{
	struct asking asking = { named, crowd };
	struct rbx_at_once asked;
	uint32_t i;
	int err = rbx_at_once_do(&asked, crowd->count, false, accept_at, &asking);

	for (i = 0; i < crowd->count && !err; i++)
		err = rbx_at_once_error(&asked, i);
	rbx_at_once_free(&asked);
	*by_all = !err;
	if (rbx_named_is_chosen(named))
		return 0;
	return err ? err :
		     rbx_error(-EHOSTUNREACH, "volume %s: too few of its servers are there to change it",
			       named->record.name);
}

/* ---- Who is there ---------------------------------------------------------------------------- */

int rbx_admin_enough_check(const struct rbx_wire_record *record, const struct rbx_crowd *crowd)
{
	struct rbx_member_set there = { .count = 0 };
	struct rbx_membership membership;
	bool is_half;
	uint32_t i;

	for (i = 0; i < crowd->count; i++) /* a pool may have more servers than a volume */
		if (crowd->has[i])
			rbx_member_set_add(&there, rbx_session_incarnation(crowd->sessions[i]));
	rbx_record_get_membership(record, &membership);
	if (rbx_membership_can_open(&membership, &there))
		return 0;
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are away, were restarted, or are not among those given: too few are left to change it",
			 record->name, record->members_count,
			 rbx_crowd_lacks(crowd, record, &is_half));
}

int rbx_admin_members_check(const struct rbx_wire_record *record, const struct rbx_crowd *crowd,
			    const char *why)
{
	bool is_half;
	uint32_t missing = rbx_crowd_lacks(crowd, record, &is_half);

	if (!missing)
		return 0;
	return rbx_error(-EHOSTUNREACH, "volume %s has %u servers, and %u of them are away, have lost it, or are not among those given: %s",
			 record->name, record->members_count, missing, why);
}

/* ---- Making ---------------------------------------------------------------------------*/

void rbx_volume_create_options_defaults_sized(struct rbx_volume_create_options *options,
					      size_t size_bytes)
{
	static const struct rbx_volume_create_options defaults = { .keep_s = UINT64_MAX,
								   .replicas = 1 };

	rbx_sized_fill(options, size_bytes, &defaults, sizeof(defaults));
}

static int slab_bytes_check(const struct rbx_crowd *crowd)
{
	uint64_t first = rbx_session_slab_bytes(crowd->sessions[0]);
	uint32_t i;

	for (i = 1; i < crowd->count; i++)
		if (rbx_session_slab_bytes(crowd->sessions[i]) != first)
			return rbx_error(-EINVAL, "servers %s and %s lend slabs of different lengths; start both with the same --slab",
					 crowd->names[0], crowd->names[i]);
	return 0;
}

int rbx_admin_size_check(uint64_t size, uint64_t slab_bytes)
{
	const struct rbx_volume_shape shape = {
		.size_bytes = size,
		.slab_bytes = slab_bytes,
		.fragment_bytes = RBX_PAGE_BYTES,
		.replicas = 1,
	};

	if (rbx_volume_shape_check(&shape))
		return rbx_error(-EINVAL, "a volume of %llu bytes: it must be a multiple of %u, above 0, and at most %u slabs of %llu bytes",
				 (unsigned long long)size, RBX_PAGE_BYTES, RBX_SLABS_MAX,
				 (unsigned long long)slab_bytes);
	return 0;
}

static int replicas_check(const struct rbx_volume_create_options *options,
			  const struct rbx_crowd *crowd)
{
	if (!options->replicas || options->replicas > RBX_REPLICAS_MAX)
		return rbx_error(-EINVAL, "replicas=%u: it must be 1 to %u", options->replicas,
				 RBX_REPLICAS_MAX);
	if (options->checksums && options->replicas == 1)
		return rbx_error(-EINVAL, "checksums need 2 replicas or more: with one, what a program leaves that dies could not be told from damage");
	if (options->replicas > crowd->count)
		return rbx_error(-EINVAL, "%u replicas need as many servers, but %u %s given",
				 options->replicas, crowd->count, crowd->count == 1 ? "is" : "are");
	return 0;
}

static int record_make(struct rbx_named *named, const struct rbx_crowd *crowd, uint64_t size,
		       const struct rbx_volume_create_options *options)
{
	uint64_t slab_bytes = rbx_session_slab_bytes(crowd->sessions[0]);
	uint64_t incarnations[RBX_MEMBERS_MAX], id = 0;
	uint32_t i;
	int err = replicas_check(options, crowd);

	if (!err)
		err = slab_bytes_check(crowd);
	if (!err)
		err = rbx_admin_size_check(size, slab_bytes);
	if (!err)
		err = rbx_random(&id, sizeof(id));
	if (err)
		return err;
	for (i = 0; i < crowd->count; i++)
		incarnations[i] = rbx_session_incarnation(crowd->sessions[i]);
	named->record.size_bytes = size;
	named->record.slab_bytes = slab_bytes;
	named->record.keep_s = options->keep_s;
	named->record.replicas = options->replicas;
	named->record.copies = options->replicas;
	named->record.flags = RBX_WIRE_EVEN | (options->reserve ? RBX_WIRE_RESERVED : 0) |
			      (options->checksums ? RBX_WIRE_CHECKSUMS : 0);
	rbx_named_make(named, id | 1, incarnations, crowd->count);
	return 0;
}

static int forget(struct rbx_session *session)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_REMOVE };

	return rbx_session_talk(session, &m);
}

/* What was accepted by some is taken back: the volume is there, or it is not. */
static void take_back(const struct rbx_crowd *crowd)
{
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		(void)forget(crowd->sessions[i]);
}

static int make(struct rbx_named *named, struct rbx_crowd *crowd, const char *servers,
		struct rbx_memory_wanted *memory)
{
	char why[RBX_ERROR_TEXT_MAX];
	uint32_t i;
	int err = 0;

	for (i = 0; i < crowd->count && !err; i++)
		err = rbx_named_grant(named, crowd->sessions[i]);
	if (!err)
		err = rbx_named_take_newest(named);
	if (!err && named->record.flags & RBX_WIRE_RESERVED)
		err = rbx_named_borrow_of(crowd, named, servers, memory);
	if (err)
		return err; /* no server has a record: they forget it */
	for (i = 0; i < crowd->count && !err; i++)
		err = rbx_named_accept(named, crowd->sessions[i]);
	if (!err)
		return 0;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	take_back(crowd);
	return rbx_error(err, "%s", why);
}

int rbx_volume_create(struct rbx_context *ctx, const char *servers, const char *name,
		      uint64_t size, const struct rbx_volume_create_options *options)
{
	struct rbx_volume_create_options taken;
	struct rbx_memory_wanted memory = { .size_bytes = size };
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err = 0;

	rbx_volume_create_options_defaults(&taken);
	if (options)
		err = rbx_sized_take("rbx_volume_create_options", sizeof(taken.size_bytes),
				     &taken, sizeof(taken), options);
	if (!err)
		err = rbx_admin_begin(ctx, "rbx_volume_create", servers, name,
				      rbx_crowd_open_to_make, &named, &crowd);
	if (err)
		return err;
	memory.progress = taken.progress;
	memory.user = taken.user;
	err = rbx_crowd_choose(crowd, name);
	if (!err)
		err = record_make(&named, crowd, size, &taken);
	if (!err && !taken.overcommit && !taken.reserve)
		err = rbx_named_fit_check(crowd, &named, size);
	if (!err)
		err = rbx_admin_name_clear(crowd, name);
	if (!err)
		err = make(&named, crowd, servers, &memory);
	rbx_crowd_close(crowd);
	return err;
}

/* ---- Removing -------------------------------------------------------------------------*/

/* Nothing is removed before all servers that are there have shut out everybody else: who is refused
 * by one of them has changed nothing. If another client has found what we had removed, it finishes
 * that. One that is away gives the memory back when it is asked for the volume next.
 *
 * A removal that was left, and is finished now, is the one that was asked for. Another volume that
 * has the name meanwhile stays: an operator who says that servers of the one will not come back
 * has not said it of the other. */
static int remove_all(struct rbx_named *named, struct rbx_crowd *crowd, bool force)
{
	char why[RBX_ERROR_TEXT_MAX];
	int err, look_err;

	named->is_removed = true;
	named->needs_few = force;
	err = rbx_crowd_look(crowd, named);
	if (named->was_left && (!err || err == -ENOENT))
		return 0;
	if (!err)
		err = rbx_named_begin(named, force);
	if (!err)
		err = rbx_removal_do(named, crowd);
	if (err != -ESTALE)
		return err;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	look_err = rbx_crowd_look(crowd, named);
	return look_err == -ENOENT ? 0 : rbx_error(err, "%s", why);
}

int rbx_volume_remove(struct rbx_context *ctx, const char *servers, const char *name,
		      int force)
{
	struct rbx_crowd *crowd;
	struct rbx_named named;
	int err = rbx_admin_begin(ctx, "rbx_volume_remove", servers, name, rbx_crowd_open_there,
				  &named, &crowd);

	if (err)
		return err;
	err = remove_all(&named, crowd, force != 0);
	if (!err)
		rbx_crowd_away_tell(ctx, crowd);
	rbx_crowd_close(crowd);
	return err;
}
