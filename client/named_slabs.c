/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_slabs.c - what a server has of a named volume, by the labels of its slabs; see named.h.
 *
 * A server tells its slabs in several answers. Each of them is kept, or given back to the server.
 */
#include "client/named.h"
#include "client/returned.h"
#include "client/session.h"
#include "core/upkeep.h"

/* What is kept of the slabs that a server has. */
struct kept {
	uint64_t labels_count; /* those with higher labels are given up */
	bool is_open; /* the others are in use, complete or not, and are left alone */
	struct rbx_upkeep *upkeep; /* takes them; NULL: they stay where they are */
	uint32_t server;
	struct rbx_returned *returned; /* they are noted there; or NULL */
	bool keeps_all; /* also those that are not complete */
	uint32_t count; /* out: those that are kept */
};

/* Extents in which the replicas of a slab may differ. */
static uint64_t unequal(const struct rbx_named *named, const struct rbx_wire_label *label)
{
	return label->intent | (named->record.flags & RBX_WIRE_UNSURE ? label->behind : 0);
}

/* Several servers tell their slabs at once, and the upkeep takes one at a time. */
static int adopt(struct rbx_named *named, const struct kept *kept,
		 const struct rbx_wire_label *label, const struct rbx_loan *loan)
{
	int err;

	rbx_lock(&named->lock);
	err = rbx_upkeep_adopt(kept->upkeep, kept->server, label->label, loan);
	if (!err)
		rbx_upkeep_found_intent(kept->upkeep, label->label, unequal(named, label),
					label->behind);
	rbx_unlock(&named->lock);
	return err;
}

/* A slab that was not complete has nothing that anybody could miss. */
static int found(struct rbx_named *named, struct rbx_session *session, struct kept *kept,
		 const struct rbx_wire_label *label)
{
	const struct rbx_loan loan = {
		.slab_id = label->slab_id,
		.epoch = label->epoch,
		.remote_addr = label->remote_addr,
		.rkey = label->rkey,
	};
	int err;

	if (kept->is_open && label->label <= kept->labels_count)
		return 0;
	if (!(label->is_complete || kept->keeps_all) || label->label > kept->labels_count)
		return rbx_session_unmap(session, &loan);
	kept->count++;
	if (kept->returned)
		return rbx_returned_note(kept->returned, label, &loan);
	if (!kept->upkeep)
		return 0;
	err = adopt(named, kept, label, &loan);
	if (!err)
		return 0;
	if (err == -ENOSPC) /* it was about to leave (core/slab_leaving.c) */
		return rbx_session_unmap(session, &loan);
	return rbx_error(-EPROTO, "volume %s: %s has slab %llu of it, %s", named->record.name,
			 rbx_session_name(session), (unsigned long long)label->label - 1,
			 err == -EEXIST ? "which is there too often" : "which cannot be");
}

/* All that a server has. */
static int each_label(struct rbx_named *named, struct rbx_session *session, struct kept *kept)
{
	uint32_t i, told_count = 0;
	uint64_t cursor = 0;
	int err;

	do {
		struct rbx_wire_message m = { .type = RBX_WIRE_LABELS, .cursor = cursor };

		err = rbx_session_talk(session, &m);
		for (i = 0; !err && i < m.labels.count; i++)
			err = found(named, session, kept, &m.labels.labels[i]);
		told_count += m.labels.count;
		/* Bounded: a server that does not come to an end is refused. */
		if (!err && m.labels.next &&
		    (!m.labels.count || told_count >= RBX_LENT_SLABS_MAX))
			err = rbx_error(-EPROTO, "%s tells its slabs again and again",
					rbx_session_name(session));
		cursor = m.labels.next;
	} while (!err && cursor);
	return err;
}

/* Of a volume that is not reserved, a slab beyond its end cannot be. */
static uint64_t labels_count(const struct rbx_named *named)
{
	const struct rbx_wire_record *record = &named->record;

	return record->flags & RBX_WIRE_RESERVED ?
		       rbx_named_slabs(record->size_bytes, record->slab_bytes) :
		       UINT64_MAX;
}

int rbx_named_find(struct rbx_named *named, struct rbx_session *session,
		   struct rbx_upkeep *upkeep, uint32_t server)
{
	struct kept kept = {
		.labels_count = labels_count(named),
		.upkeep = upkeep,
		.server = server,
	};

	return each_label(named, session, &kept);
}

int rbx_named_return(struct rbx_named *named, struct rbx_session *session,
		     struct rbx_returned *returned)
{
	struct kept all = { .labels_count = labels_count(named), .returned = returned };
	struct rbx_wire_message m = { .type = RBX_WIRE_VOLUME_BEHIND };
	int err;

	rbx_returned_forget(returned);
	err = each_label(named, session, &all);
	return err ? err : rbx_session_talk(session, &m);
}

int rbx_named_tell(struct rbx_named *named, struct rbx_session *session,
		   struct rbx_returned *returned)
{
	struct kept all = {
		.labels_count = UINT64_MAX,
		.returned = returned,
		.keeps_all = true,
	};

	rbx_returned_forget(returned);
	return each_label(named, session, &all);
}

int rbx_named_trim(struct rbx_named *named, struct rbx_session *session)
{
	struct kept all = { .labels_count = labels_count(named) };
	int err = each_label(named, session, &all);

	return err ? err : (int)all.count;
}

int rbx_named_trim_beyond(struct rbx_named *named, struct rbx_session *session,
			  uint64_t slabs_count)
{
	struct kept none = { .labels_count = slabs_count, .is_open = true };

	return each_label(named, session, &none);
}
