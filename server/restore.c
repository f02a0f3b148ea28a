/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * restore.c - makes the volumes and slabs of a memory file those of this server; see
 * remembered.h.
 *
 * The keys of slabs are new ones: a client learns them as it opens the volume. All memory that is
 * not of a volume is emptied before it can be lent.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/error.h"
#include "server/remembered.h"
#include "server/volume_state.h"

struct found {
	uint64_t slab_id;
	struct rbx_state_slab slab;
};

static int volumes_restore(struct rbx_server *s)
{
	const uint8_t *state = s->remembered.file.state;
	struct rbx_state_volume volume;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < RBX_KEPT_VOLUMES_MAX; i++)
		if (!rbx_state_volume_get(state, i, &volume))
			err = rbx_volume_restore(s, i, &volume);
	rbx_volumes_restored(s);
	return err;
}

static int by_epoch(const void *one, const void *other)
{
	uint64_t a = ((const struct found *)one)->slab.epoch;
	uint64_t b = ((const struct found *)other)->slab.epoch;

	return (a > b) - (a < b);
}

/* Those of volumes that are there, in the order of their epochs. The others end. */
static uint32_t slabs_find(struct rbx_server *s, struct found *found)
{
	uint8_t *state = s->remembered.file.state;
	struct rbx_state_slab slab;
	uint32_t count = 0, i;

	for (i = 0; i < s->remembered.head.slabs_count; i++) {
		if (rbx_state_slab_get(state, i, &slab))
			continue;
		if (rbx_volume_of_holder(s, slab.holder_id))
			found[count++] = (struct found){ i + 1, slab };
		else
			rbx_state_slab_put(state, i, NULL);
	}
	qsort(found, count, sizeof(*found), by_epoch);
	return count;
}

/* Nothing of it is lent. */
static int part_empty(const struct rbx_remembered *r, uint64_t at_bytes, uint64_t length_bytes)
{
	int err = rbx_memory_file_punch(&r->file, at_bytes, length_bytes);

	return err ? rbx_error(err, "cannot empty what is not lent of memory file %s: %s",
			       r->file.path, strerror(-err)) :
		     0;
}

/* A tail that the volume says it has not is what anybody wrote there. */
static int past_end_empty(const struct rbx_server *s, const struct rbx_slab_memory *memory,
			  uint64_t slab_id)
{
	const struct rbx_remembered *r = &s->remembered;
	uint64_t at_bytes = rbx_remembered_at(r, slab_id) + memory->lent_bytes;
	uint64_t rest_bytes = rbx_remembered_apart(r) - memory->lent_bytes;

	return rest_bytes ? part_empty(r, at_bytes, rest_bytes) : 0;
}

static int slab_restore(struct rbx_server *s, const struct found *found)
{
	const struct rbx_lender_loan loan = { found->slab_id, found->slab.epoch };
	struct rbx_kept_volume *kept = rbx_volume_of_holder(s, found->slab.holder_id);
	struct rbx_slab_memory *memory = &s->workers.slabs[found->slab_id - 1];
	struct rbx_slab *slab = &s->slabs[found->slab_id - 1];
	int err;

	if (loan.epoch <= rbx_lender_last_epoch(s->lender))
		return rbx_error(-EBADMSG, "memory file %s is damaged: two loans have one epoch",
				 s->remembered.file.path);
	rbx_lender_restore(s->lender, kept->holder.id, &loan);
	slab->holder = &kept->holder;
	slab->map.label = found->slab.label;
	slab->map.is_complete = 1;
	slab->intent = found->slab.intent;
	slab->behind = found->slab.behind;
	kept->holder.slabs_held++;
	memory->domain = kept->holder.domain;
	memory->is_kept = true;
	memory->lent_bytes = rbx_wire_lent_bytes(s->options.slab_bytes,
						 kept->record.flags & RBX_WIRE_CHECKSUMS);
	memory->work = RBX_SLAB_PREPARE;
	err = past_end_empty(s, memory, found->slab_id);
	return err ? err : rbx_slab_attach(s, memory);
}

/* What lies between slabs that are remembered, and behind them. */
static int rest_empty(struct rbx_server *s)
{
	const struct rbx_remembered *r = &s->remembered;
	uint64_t first, count = r->head.slabs_count, next;
	int err = 0;

	for (first = 1; !err && first <= count; first = next + 1) {
		next = first;
		while (next <= count && !rbx_slab_is_remembered(s, next))
			next++;
		if (next > first)
			err = part_empty(r, rbx_remembered_at(r, first),
					 (next - first) * rbx_remembered_apart(r));
	}
	return err;
}

/* Some devices can reach anonymous memory alone: better to hear of it now than with the first
 * slab. */
static int registration_try(struct rbx_server *s)
{
	const struct rbx_memory_file *file = &s->remembered.file;
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_mr_init init = {
		.addr = file->state,
		.length_bytes = file->page_bytes,
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	struct rbx_mr *mr;
	int err = s->fabric.ops->register_memory(s->device, &init, 1, &mr, error);

	if (err)
		return rbx_error(err, "the device cannot reach memory file %s: %s; take one on tmpfs "
				 "or hugetlbfs", file->path, error);
	s->fabric.ops->deregister_memory(s->device, &mr, 1);
	return 0;
}

int rbx_remembered_restore(struct rbx_server *s)
{
	struct rbx_remembered *r = &s->remembered;
	struct found *found;
	uint32_t count, i;
	int err;

	if (!rbx_remembers(r))
		return 0;
	err = registration_try(s);
	if (err)
		return err;
	found = calloc(r->head.slabs_count, sizeof(*found));
	if (!found)
		return rbx_error(-ENOMEM, "no memory for the table of slabs");
	err = volumes_restore(s);
	count = err ? 0 : slabs_find(s, found);
	for (i = 0; !err && i < count; i++)
		err = slab_restore(s, &found[i]);
	free(found);
	if (!err)
		err = rest_empty(s);
	if (err)
		return err;
	rbx_lender_restored(s->lender, r->head.epoch_limit);
	if (r->file.is_new)
		rbx_log(&s->log, "memory file %s is new", r->file.path);
	else
		rbx_log(&s->log, "memory file %s: start %llu, %u slabs of named volumes are there again",
			r->file.path, (unsigned long long)r->head.starts_count + 1, count);
	return 0;
}
