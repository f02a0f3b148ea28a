/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state_file.c - reads and writes the entries of state_file.h.
 *
 * A copy of an entry is
 *
 *	0  u32  CRC32C of all that follows, and of where it stands
 *	4  u32  1: the entry is there, 0: it was removed
 *	8  u64  sequence number, from 1
 *	16      the entry, as a list of fields (wire/cursor.h)
 *
 * An entry of which one copy is zeros and the other one is no good was never there: its first
 * update was cut short. If neither is good, the file is damaged.
 */
#include "server/state_file.h"

#include <errno.h>
#include <string.h>

#include "core/loan.h"
#include "core/record.h"
#include "wire/cursor.h"

#define COPY_BYTES_MAX RBX_STATE_VOLUME_BYTES
#define COPY_HEAD_BYTES 16u

static const char magic[8] = "RDMAbox\x01";

/* Two copies, one behind the other. */
struct place {
	size_t at_bytes;
	size_t copy_bytes;
};

struct copy {
	uint32_t is_there;
	uint64_t sequence;
	const uint8_t *fields;
};

typedef void walk_fn(struct rbx_cursor *c, void *entry);

/* ---- Copies ----------------------------------------------------------------*/

/* The same bytes at another place are not good there. */
static uint32_t sum_of(const uint8_t *bytes, size_t at_bytes, size_t copy_bytes)
{
	const uint64_t salt = at_bytes;

	return rbx_port_crc32c(rbx_port_crc32c(0, &salt, sizeof(salt)), bytes + 4,
			       copy_bytes - 4);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, length - 1);
}

/* False: it is no good. */
static bool copy_get(const uint8_t *state, size_t at_bytes, size_t copy_bytes, struct copy *copy)
{
	struct rbx_cursor c = { .from = state + at_bytes, .end_bytes = COPY_HEAD_BYTES };
	uint32_t sum = 0;

	rbx_cursor_u32(&c, &sum);
	rbx_cursor_u32(&c, &copy->is_there);
	rbx_cursor_u64(&c, &copy->sequence);
	copy->fields = state + at_bytes + COPY_HEAD_BYTES;
	return copy->sequence && copy->is_there <= 1 &&
	       sum == sum_of(state + at_bytes, at_bytes, copy_bytes);
}

/* Which copy counts: 0 or 1; -ENOENT: there never was one; -EBADMSG: none is good. */
static int newest(const uint8_t *state, const struct place *place, struct copy *copy)
{
	struct copy copies[2];
	bool good[2];
	int i, which;

	for (i = 0; i < 2; i++)
		good[i] = copy_get(state, place->at_bytes + (size_t)i * place->copy_bytes,
				   place->copy_bytes, &copies[i]);
	if (!good[0] && !good[1])
		return is_zero(state + place->at_bytes, place->copy_bytes) ||
				       is_zero(state + place->at_bytes + place->copy_bytes,
					       place->copy_bytes) ?
			       -ENOENT :
			       -EBADMSG;
	if (good[0] && good[1] && copies[0].sequence == copies[1].sequence)
		return -EBADMSG;
	which = good[1] && (!good[0] || copies[1].sequence > copies[0].sequence);
	*copy = copies[which];
	return which;
}

static int entry_get(const uint8_t *state, const struct place *place, walk_fn *walk, void *entry)
{
	struct rbx_cursor c = { .end_bytes = place->copy_bytes - COPY_HEAD_BYTES };
	struct copy copy;
	int which = newest(state, place, &copy);

	if (which < 0)
		return which;
	c.from = copy.fields;
	if (copy.is_there)
		walk(&c, entry);
	rbx_cursor_zeros(&c, c.end_bytes - c.at_bytes);
	if (c.bad)
		return -EBADMSG;
	return copy.is_there ? 0 : -ENOENT;
}

/* Over the copy that does not count. entry: NULL removes it. */
static void entry_put(uint8_t *state, const struct place *place, walk_fn *walk, void *entry)
{
	struct copy before = { .sequence = 0 };
	int which = newest(state, place, &before);
	size_t at_bytes = place->at_bytes + (which == 0 ? place->copy_bytes : 0);
	uint8_t bytes[COPY_BYTES_MAX] = { 0 };
	struct rbx_cursor c = { .to = bytes, .end_bytes = place->copy_bytes };
	uint32_t is_there = entry != NULL, sum = 0;
	uint64_t sequence = before.sequence + 1;

	rbx_cursor_u32(&c, &sum);
	rbx_cursor_u32(&c, &is_there);
	rbx_cursor_u64(&c, &sequence);
	if (entry)
		walk(&c, entry);
	RBX_ASSERT(!c.bad);
	sum = sum_of(bytes, at_bytes, place->copy_bytes);
	c.at_bytes = 0;
	rbx_cursor_u32(&c, &sum);
	memcpy(state + at_bytes, bytes, place->copy_bytes);
}

/* ---- The head ----------------------------------------------------------------*/

static const struct place head_place = { RBX_STATE_HEAD_AT, RBX_STATE_HEAD_BYTES };

static void walk_magic(struct rbx_cursor *c, uint32_t *version)
{
	uint8_t bytes[sizeof(magic)];

	memcpy(bytes, magic, sizeof(magic));
	rbx_cursor_bytes(c, bytes, sizeof(bytes));
	if (memcmp(bytes, magic, sizeof(magic)))
		c->bad = true;
	rbx_cursor_u32(c, version);
	rbx_cursor_zeros(c, 4);
}

static void walk_head(struct rbx_cursor *c, void *entry)
{
	struct rbx_state_head *head = entry;

	rbx_cursor_u64(c, &head->incarnation);
	rbx_cursor_u64(c, &head->file_id);
	rbx_cursor_u64(c, &head->file_born);
	rbx_cursor_u64(c, &head->slab_bytes);
	rbx_cursor_u64(c, &head->slabs_count);
	rbx_cursor_u64(c, &head->memory_at_bytes);
	rbx_cursor_u64(c, &head->epoch_limit);
	rbx_cursor_u64(c, &head->starts_count);
	rbx_wire_walk_text(c, head->boot, sizeof(head->boot));
	rbx_cursor_u32(c, &head->is_clean);
}

void rbx_state_format(uint8_t *state, const struct rbx_state_head *head)
{
	struct rbx_cursor c = { .to = state, .end_bytes = sizeof(magic) + 8 };
	uint32_t version = RBX_STATE_VERSION;

	walk_magic(&c, &version);
	rbx_state_head_put(state, head);
}

static bool head_makes_sense(const struct rbx_state_head *head)
{
	return head->incarnation && head->slab_bytes && head->slab_bytes <= 1ull << 40 &&
	       head->slabs_count && head->slabs_count <= RBX_LENT_SLABS_MAX &&
	       head->memory_at_bytes >= RBX_STATE_BYTES && head->memory_at_bytes <= 1ull << 40 &&
	       head->epoch_limit >> RBX_LOAN_EPOCH_BITS == 0 &&
	       head->is_clean <= 1 && rbx_wire_text_makes_sense(head->boot, sizeof(head->boot));
}

int rbx_state_head_get(const uint8_t *state, struct rbx_state_head *head)
{
	struct rbx_cursor c = { .from = state, .end_bytes = sizeof(magic) + 8 };
	uint32_t version = 0;

	walk_magic(&c, &version);
	if (c.bad)
		return -EBADMSG;
	if (version != RBX_STATE_VERSION)
		return -EPROTONOSUPPORT;
	if (entry_get(state, &head_place, walk_head, head) || !head_makes_sense(head))
		return -EBADMSG;
	return 0;
}

void rbx_state_head_put(uint8_t *state, const struct rbx_state_head *head)
{
	struct rbx_state_head copy = *head;

	entry_put(state, &head_place, walk_head, &copy);
}

/* ---- Volumes ---------------------------------------------------------------------*/

static struct place volume_place(uint32_t index)
{
	RBX_ASSERT(index < RBX_KEPT_VOLUMES_MAX);
	return (struct place){ RBX_STATE_VOLUMES_AT + index * 2ul * RBX_STATE_VOLUME_BYTES,
			       RBX_STATE_VOLUME_BYTES };
}

static void walk_volume(struct rbx_cursor *c, void *entry)
{
	struct rbx_state_volume *volume = entry;

	rbx_cursor_u64(c, &volume->holder_id);
	rbx_cursor_u64(c, &volume->promised_epoch);
	rbx_wire_walk_record(c, &volume->record);
	rbx_wire_walk_text(c, volume->reserved_name, sizeof(volume->reserved_name));
	rbx_wire_walk_text(c, volume->writer_name, sizeof(volume->writer_name));
}

/* A record is accepted under an epoch that was promised. */
static bool volume_makes_sense(const struct rbx_state_volume *volume)
{
	struct rbx_membership membership;

	if (!volume->holder_id || !rbx_wire_record_makes_sense(&volume->record) ||
	    volume->promised_epoch < volume->record.epoch ||
	    !rbx_wire_text_makes_sense(volume->writer_name, sizeof(volume->writer_name)) ||
	    !rbx_wire_text_makes_sense(volume->reserved_name, sizeof(volume->reserved_name)))
		return false;
	rbx_record_get_membership(&volume->record, &membership);
	return !rbx_membership_fault(&membership);
}

int rbx_state_volume_get(const uint8_t *state, uint32_t index, struct rbx_state_volume *volume)
{
	const struct place place = volume_place(index);
	int err = entry_get(state, &place, walk_volume, volume);

	return !err && !volume_makes_sense(volume) ? -EBADMSG : err;
}

void rbx_state_volume_put(uint8_t *state, uint32_t index, const struct rbx_state_volume *volume)
{
	const struct place place = volume_place(index);
	struct rbx_state_volume copy;

	if (volume)
		copy = *volume;
	entry_put(state, &place, walk_volume, volume ? &copy : NULL);
}

/* ---- Slabs -----------------------------------------------------------------------*/

static struct place slab_place(uint32_t index)
{
	RBX_ASSERT(index < RBX_LENT_SLABS_MAX);
	return (struct place){ RBX_STATE_SLABS_AT + index * 2ul * RBX_STATE_SLAB_BYTES,
			       RBX_STATE_SLAB_BYTES };
}

static void walk_slab(struct rbx_cursor *c, void *entry)
{
	struct rbx_state_slab *slab = entry;

	rbx_cursor_u64(c, &slab->holder_id);
	rbx_cursor_u64(c, &slab->label);
	rbx_cursor_u64(c, &slab->epoch);
	rbx_cursor_u64(c, &slab->intent);
	rbx_cursor_u64(c, &slab->behind);
}

int rbx_state_slab_get(const uint8_t *state, uint32_t index, struct rbx_state_slab *slab)
{
	const struct place place = slab_place(index);
	int err = entry_get(state, &place, walk_slab, slab);

	return !err && (!slab->holder_id || !slab->label || !slab->epoch) ? -EBADMSG : err;
}

void rbx_state_slab_put(uint8_t *state, uint32_t index, const struct rbx_state_slab *slab)
{
	const struct place place = slab_place(index);
	struct rbx_state_slab copy;

	if (slab)
		copy = *slab;
	entry_put(state, &place, walk_slab, slab ? &copy : NULL);
}

/* ---- All of it -----------------------------------------------------------------*/

int rbx_state_check(const uint8_t *state, const struct rbx_state_head *head)
{
	struct rbx_state_volume volume;
	struct rbx_state_slab slab;
	uint32_t i;
	int err;

	for (i = 0; i < RBX_KEPT_VOLUMES_MAX; i++)
		if (rbx_state_volume_get(state, i, &volume) == -EBADMSG)
			return -EBADMSG;
	for (i = 0; i < head->slabs_count; i++) {
		err = rbx_state_slab_get(state, i, &slab);
		if (err == -EBADMSG || (!err && slab.epoch > head->epoch_limit))
			return -EBADMSG;
	}
	return 0;
}
