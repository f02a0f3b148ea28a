/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes.c - the table of named volumes: how they begin and end, and who is bound to them.
 * volume_requests.c has the requests about them.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/record.h"
#include "server/volume_state.h"

#define NONE UINT32_MAX
#define CHECK_NS 1000000000ull

int rbx_volumes_init(struct rbx_server *s)
{
	struct rbx_volumes *v = &s->volumes;
	void *places = malloc(rbx_id_map_size(RBX_KEPT_VOLUMES_MAX));

	v->kept = calloc(RBX_KEPT_VOLUMES_MAX, sizeof(*v->kept));
	v->first_free = NONE;
	if (!places || !v->kept) {
		free(places);
		return rbx_error(-ENOMEM, "no memory for the table of volumes");
	}
	rbx_id_map_init(&v->holders, places, RBX_KEPT_VOLUMES_MAX);
	return 0;
}

void rbx_volumes_destroy(struct rbx_server *s)
{
	struct rbx_volumes *v = &s->volumes;
	uint32_t i;

	for (i = 0; i < v->used; i++)
		if (v->kept[i].holder.domain)
			s->fabric.ops->destroy_domain(v->kept[i].holder.domain);
	free(v->kept);
	free(v->holders.places);
}

/* ---- The table -------------------------------------------------------------*/

static uint32_t index_of(const struct rbx_server *s, const struct rbx_kept_volume *kept)
{
	return (uint32_t)(kept - s->volumes.kept);
}

static void entry_give(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	*kept = (struct rbx_kept_volume){ .next_free = s->volumes.first_free };
	s->volumes.first_free = index_of(s, kept);
}

bool rbx_volume_is_there(const struct rbx_kept_volume *kept)
{
	return kept->holder.id != 0;
}

static bool is_removed(const struct rbx_kept_volume *kept)
{
	return kept->record.flags & RBX_WIRE_REMOVED;
}

/* Of what is known of a volume that was removed: whether another volume may have its entry. */
static bool makes_room(const struct rbx_kept_volume *kept)
{
	return is_removed(kept) && !kept->holder.domain;
}

/* The oldest one of an owner that makes room, or NONE. */
static uint32_t removed_first(const struct rbx_volumes *v, const char *credential)
{
	uint32_t i, first = NONE;

	for (i = 0; i < v->used; i++)
		if (makes_room(&v->kept[i]) && !strcmp(v->kept[i].record.owner, credential) &&
		    (first == NONE || v->kept[i].closed_ns < v->kept[first].closed_ns))
			first = i;
	return first;
}

/* The owner of most of those; NULL: there are none. */
static const char *removed_most(const struct rbx_volumes *v)
{
	bool is_counted[RBX_KEPT_VOLUMES_MAX] = { false };
	uint32_t i, j, count, most_count = 0;
	const char *owner, *most = NULL;

	for (i = 0; i < v->used; i++) {
		if (is_counted[i] || !makes_room(&v->kept[i]))
			continue;
		owner = v->kept[i].record.owner;
		for (j = i, count = 0; j < v->used; j++)
			if (makes_room(&v->kept[j]) && !strcmp(v->kept[j].record.owner, owner)) {
				is_counted[j] = true;
				count++;
			}
		if (count > most_count) {
			most_count = count;
			most = owner;
		}
	}
	return most;
}

/* Whoever makes and removes many volumes drives out what is known of its own. */
static uint32_t removed_choose(const struct rbx_volumes *v, const char *credential)
{
	uint32_t index = removed_first(v, credential);
	const char *most = index == NONE ? removed_most(v) : NULL;

	return most ? removed_first(v, most) : index;
}

/* It is not known any more that a volume was removed. */
static void removed_forget(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	rbx_forget_volume(s, kept);
	kept->record.flags &= ~(uint32_t)RBX_WIRE_REMOVED;
	if (!kept->holder.domain) /* else when its last slab ends */
		entry_give(s, kept);
}

static struct rbx_kept_volume *entry_take(struct rbx_server *s, const char *credential)
{
	struct rbx_volumes *v = &s->volumes;
	uint32_t index = v->first_free;

	if (index == NONE && v->used < RBX_KEPT_VOLUMES_MAX)
		return &v->kept[v->used++];
	if (index == NONE) {
		index = removed_choose(v, credential);
		if (index == NONE)
			return NULL;
		removed_forget(s, &v->kept[index]);
	}
	v->first_free = v->kept[index].next_free;
	return &v->kept[index];
}

struct rbx_kept_volume *rbx_volume_of_holder(const struct rbx_server *s, uint64_t holder_id)
{
	uint32_t index = rbx_id_map_find(&s->volumes.holders, holder_id);

	return index == RBX_ID_MAP_NONE ? NULL : &s->volumes.kept[index];
}

struct rbx_kept_volume *rbx_volume_find(const struct rbx_server *s,
					const char name[RBX_WIRE_VOLUME_NAME_BYTES])
{
	struct rbx_kept_volume *kept;
	uint32_t i;

	for (i = 0; i < s->volumes.used; i++) {
		kept = &s->volumes.kept[i];
		if (rbx_volume_is_there(kept) && !strcmp(kept->record.name, name))
			return kept;
	}
	return NULL;
}

struct rbx_kept_volume *rbx_volume_find_id(const struct rbx_server *s, uint64_t volume_id)
{
	struct rbx_kept_volume *kept;
	uint32_t i;

	for (i = 0; i < s->volumes.used; i++) {
		kept = &s->volumes.kept[i];
		if (rbx_volume_is_there(kept) && kept->record.volume_id == volume_id)
			return kept;
	}
	return NULL;
}

struct rbx_kept_volume *rbx_volume_find_removed(const struct rbx_server *s, uint64_t volume_id)
{
	uint32_t i;

	for (i = 0; i < s->volumes.used; i++)
		if (is_removed(&s->volumes.kept[i]) &&
		    s->volumes.kept[i].record.volume_id == volume_id)
			return &s->volumes.kept[i];
	return NULL;
}

bool rbx_volume_name_is_taken(const struct rbx_server *s,
			      const char name[RBX_WIRE_VOLUME_NAME_BYTES],
			      const struct rbx_kept_volume *but)
{
	const struct rbx_kept_volume *kept;
	uint32_t i;

	for (i = 0; i < s->volumes.used; i++) {
		kept = &s->volumes.kept[i];
		if (rbx_volume_is_there(kept) && kept != but &&
		    (!strcmp(kept->record.name, name) || !strcmp(kept->reserved_name, name)))
			return true;
	}
	return false;
}

/* Takes an entry, and one of its owner. */
static uint32_t kept_take(struct rbx_server *s, const char *credential, uint64_t id,
			  struct rbx_kept_volume **out)
{
	struct rbx_owner *owner = rbx_owner_take(s, credential);
	struct rbx_kept_volume *kept = NULL;
	uint32_t reason;

	RBX_ASSERT(owner); /* there are as many as clients and volumes */
	reason = owner->volumes_max < RBX_KEPT_VOLUMES_MAX ? RBX_REASON_VOLUMES_QUOTA :
							     RBX_REASON_TOO_MANY_VOLUMES;
	/* Who makes and removes volumes faster than they are emptied must not have all entries. */
	if (owner->volumes_count < owner->volumes_max &&
	    owner->volumes_ending <= owner->volumes_max) {
		kept = entry_take(s, credential);
		reason = kept ? rbx_lender_keep(s->lender, id, rbx_owner_number(s, owner)) :
				RBX_REASON_TOO_MANY_VOLUMES;
	}
	if (!reason) {
		*kept = (struct rbx_kept_volume){ .owner = owner };
		owner->volumes_count++;
		*out = kept;
		return reason;
	}
	if (kept)
		entry_give(s, kept);
	rbx_owner_give(s, owner);
	return reason;
}

/* Makes an entry the holder of what is lent under an id, in a domain of its own. */
static void holder_begin(struct rbx_server *s, struct rbx_kept_volume *kept, uint64_t id,
			 struct rbx_domain *domain)
{
	kept->holder = (struct rbx_holder){
		.id = id,
		.domain = domain,
		.number = s->clients_max + index_of(s, kept),
		.is_volume = true,
	};
	rbx_id_map_put(&s->volumes.holders, id, index_of(s, kept));
}

uint32_t rbx_volume_make(struct rbx_server *s, const struct rbx_client *client,
			 const struct rbx_wire_volume_open *open,
			 struct rbx_kept_volume **out)
{
	const char *credential = client->owner->credential;
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_kept_volume *kept, *removed;
	struct rbx_domain *domain;
	uint64_t id;
	uint32_t reason;

	if (rbx_random(&id, sizeof(id)) || !id || rbx_client_find(s, id) ||
	    rbx_volume_of_holder(s, id))
		return RBX_REASON_INTERNAL;
	if (s->fabric.ops->create_domain(s->device, &domain, error)) {
		rbx_log(&s->log, "cannot make volume %s: %s", open->name, error);
		return RBX_REASON_INTERNAL;
	}
	reason = kept_take(s, credential, id, &kept);
	if (reason) {
		s->fabric.ops->destroy_domain(domain);
		return reason;
	}
	removed = rbx_volume_find_removed(s, open->volume_id);
	if (removed) /* it was not, by the client that asks, or it was by a client before */
		removed_forget(s, removed);
	holder_begin(s, kept, id, domain);
	kept->record.volume_id = open->volume_id;
	memcpy(kept->record.owner, credential, sizeof(kept->record.owner));
	memcpy(kept->record.name, open->name, sizeof(kept->record.name));
	*out = kept;
	return RBX_REASON_NONE;
}

/* ---- Volumes of a server that was started again -------------------------------------*/

/* No two of them have one id, or one name. */
static bool is_at_odds(const struct rbx_server *s, const struct rbx_state_volume *volume)
{
	return rbx_volume_of_holder(s, volume->holder_id) ||
	       rbx_volume_find_id(s, volume->record.volume_id) ||
	       rbx_volume_name_is_taken(s, volume->record.name, NULL) ||
	       (*volume->reserved_name && rbx_volume_name_is_taken(s, volume->reserved_name, NULL));
}

/* Another volume may have its name. */
static int removed_restore(struct rbx_server *s, uint32_t index,
			   const struct rbx_state_volume *volume)
{
	s->volumes.kept[index] = (struct rbx_kept_volume){
		.record = volume->record,
		.acceptor.promised_epoch = volume->promised_epoch,
		.closed_ns = rbx_now_ns(),
	};
	s->volumes.used = index + 1;
	return 0;
}

int rbx_volume_restore(struct rbx_server *s, uint32_t index,
		       const struct rbx_state_volume *volume)
{
	struct rbx_kept_volume *kept = &s->volumes.kept[index];
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_domain *domain;
	struct rbx_owner *owner;
	uint32_t reason;
	int err;

	RBX_ASSERT(index >= s->volumes.used);
	if (volume->record.flags & RBX_WIRE_REMOVED)
		return removed_restore(s, index, volume);
	if (is_at_odds(s, volume))
		return rbx_error(-EBADMSG, "memory file %s is damaged: volume %s is at odds with "
				 "another one", s->options.memory_file, volume->record.name);
	err = s->fabric.ops->create_domain(s->device, &domain, error);
	if (err)
		return rbx_error(err, "cannot make volume %s: %s", volume->record.name, error);
	owner = rbx_owner_take(s, volume->record.owner);
	RBX_ASSERT(owner); /* there are more of them than volumes */
	*kept = (struct rbx_kept_volume){
		.owner = owner,
		.record = volume->record,
		.acceptor.promised_epoch = volume->promised_epoch,
		.closed_ns = rbx_now_ns(),
	};
	owner->volumes_count++;
	rbx_record_get_membership(&volume->record, &kept->acceptor.membership);
	memcpy(kept->reserved_name, volume->reserved_name, sizeof(kept->reserved_name));
	memcpy(kept->writer_name, volume->writer_name, sizeof(kept->writer_name));
	s->volumes.used = index + 1;
	holder_begin(s, kept, volume->holder_id, domain);
	reason = rbx_lender_keep(s->lender, volume->holder_id, rbx_owner_number(s, owner));
	RBX_ASSERT(!reason); /* it has an entry for each volume */
	(void)reason;
	return 0;
}

void rbx_volumes_restored(struct rbx_server *s)
{
	for (uint32_t i = 0; i < s->volumes.used; i++)
		if (!rbx_volume_is_there(&s->volumes.kept[i]) && !is_removed(&s->volumes.kept[i]))
			entry_give(s, &s->volumes.kept[i]);
}

/* ---- How they end ----------------------------------------------------------------*/

static void domain_end(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	if (kept->holder.id || kept->holder.slabs_held)
		return;
	kept->owner->volumes_ending--;
	s->fabric.ops->destroy_domain(kept->holder.domain);
	rbx_owner_give(s, kept->owner);
	kept->holder.domain = NULL;
	kept->owner = NULL;
	if (!is_removed(kept)) /* else until another volume needs the entry */
		entry_give(s, kept);
}

void rbx_volume_slab_ended(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	RBX_ASSERT(kept->holder.slabs_held > 0);
	kept->holder.slabs_held--;
	domain_end(s, kept);
}

static void holder_end(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	uint64_t id = kept->holder.id;

	RBX_ASSERT(!kept->writer);
	rbx_log(&s->log, "volume %s removed", kept->record.name);
	kept->holder.id = 0;
	kept->owner->volumes_count--;
	kept->owner->volumes_ending++;
	rbx_id_map_remove(&s->volumes.holders, id);
	rbx_lender_leave(s->lender, id);
	domain_end(s, kept);
	pthread_cond_broadcast(&s->slab_ended); /* a drain may not wait for it any more */
}

void rbx_volume_end(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	rbx_volume_readers_end(s, kept);
	rbx_forget_volume(s, kept);
	holder_end(s, kept);
}

/* In a memory file the record takes the place of that of the volume by one update. */
void rbx_volume_end_everywhere(struct rbx_server *s, struct rbx_kept_volume *kept)
{
	rbx_volume_readers_end(s, kept);
	kept->record.flags |= RBX_WIRE_REMOVED;
	kept->record.epoch = kept->acceptor.promised_epoch;
	if (kept->record.version < UINT64_MAX / 2) /* what rbx_membership_fault() allows */
		kept->record.version++;
	kept->closed_ns = rbx_now_ns();
	rbx_remember_volume(s, kept);
	holder_end(s, kept);
}

/* The clock was read when a pass began, and it may have been closed in the same pass. */
static bool is_over(const struct rbx_kept_volume *kept, uint64_t now_ns)
{
	return rbx_volume_is_there(kept) && !kept->writer &&
	       kept->record.keep_s < UINT64_MAX / 1000000000 && now_ns >= kept->closed_ns &&
	       now_ns - kept->closed_ns >= kept->record.keep_s * 1000000000;
}

/*
 * A writer puts a server that drains OUT as soon as nothing is left there, and says so; or it has
 * put it OUT while it was cut off, and says so when it is back (client/newcomer.h). Until then it
 * may be needed to open the volume, although it has nothing of it: if the record says one copy, or
 * if the last writer has not closed the volume, as servers may have been lost meanwhile of which
 * the record says nothing. So that is waited for if nobody has the volume open as well, unless the
 * server remembers it. A volume with one replica lets nobody go, and the last server of one cannot
 * be put OUT.
 */
static bool needs_us(const struct rbx_server *s, const struct rbx_kept_volume *kept)
{
	const struct rbx_wire_record *record = &kept->record;

	if (!rbx_volume_is_there(kept) || kept->is_spared || !record->epoch ||
	    record->replicas < 2 || rbx_record_in_count(record) < 2)
		return false;
	if (!kept->writer && rbx_remembers(&s->remembered))
		return false;
	if (!kept->writer && record->copies > 1 && record->flags & RBX_WIRE_EVEN)
		return false;
	return rbx_record_has_member(record, s->incarnation) &&
	       !rbx_record_is_gone(record, s->incarnation);
}

bool rbx_volumes_need_us(const struct rbx_server *s)
{
	const struct rbx_volumes *v = &s->volumes;
	uint32_t i;

	for (i = 0; i < v->used; i++)
		if (needs_us(s, &v->kept[i]))
			return true;
	return false;
}

void rbx_volumes_tick(struct rbx_server *s, uint64_t now_ns)
{
	struct rbx_volumes *v = &s->volumes;
	uint32_t i;

	if (now_ns - v->checked_ns < CHECK_NS)
		return;
	v->checked_ns = now_ns;
	for (i = 0; i < v->used; i++) {
		if (rbx_volume_is_abandoned(&v->kept[i]))
			rbx_client_leave(s, v->kept[i].writer);
		else if (is_over(&v->kept[i], now_ns))
			rbx_volume_end(s, &v->kept[i]);
	}
}
