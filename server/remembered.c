/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remembered.c - which memory file a server may take, and what it writes there while it runs;
 * see remembered.h. restore.c makes a server of what it finds.
 */
#include "server/remembered.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "server/huge_pages.h"
#include "server/state.h"

/* Epochs are written down this many at a time. A start skips those that are left. */
#define EPOCHS_AT_ONCE (1u << 16)

/* ---- Whether the file is fit ------------------------------------------------------*/

static uint64_t round_up(uint64_t bytes, uint64_t to_bytes)
{
	return (bytes + to_bytes - 1) / to_bytes * to_bytes;
}

/* Where a slab begins, it may be on a huge page. */
static uint64_t apart(const struct rbx_memory_file *file, const struct rbx_state_head *head)
{
	uint64_t tail_bytes = rbx_wire_tail_bytes(head->slab_bytes);
	uint64_t unit_bytes = file->page_bytes;

	if (head->slab_bytes % RBX_HUGE_PAGE_BYTES == 0)
		unit_bytes = RBX_MAX(unit_bytes, (uint64_t)RBX_HUGE_PAGE_BYTES);
	return head->slab_bytes + round_up(tail_bytes, unit_bytes);
}

uint64_t rbx_remembered_apart(const struct rbx_remembered *remembered)
{
	return apart(&remembered->file, &remembered->head);
}

/* The length of the file for these options. */
static uint64_t size_of(const struct rbx_memory_file *file, const struct rbx_state_head *head,
			const struct rbx_server_options *o)
{
	return head->memory_at_bytes + rbx_slabs_of_memory(o) * apart(file, head);
}

static int slabs_check(const struct rbx_memory_file *file, const struct rbx_server_options *o)
{
	if (o->slab_bytes % file->page_bytes == 0)
		return 0;
	return rbx_error(-EINVAL, "memory file %s is on pages of %llu KiB, and a slab of %llu KiB "
			 "is not made of whole ones: take larger slabs (--slab)",
			 file->path, (unsigned long long)file->page_bytes >> 10,
			 (unsigned long long)o->slab_bytes >> 10);
}

static int is_no_good(const struct rbx_memory_file *file, int err, const char *why)
{
	return rbx_error(err, "memory file %s %s; it is left as it is: name another file, or remove "
			 "it if nothing in it is wanted",
			 file->path, why);
}

/* Whether what the file says of itself is true, here and now. */
static int head_check(const struct rbx_server *s, const struct rbx_state_head *head)
{
	const struct rbx_memory_file *file = &s->remembered.file;

	if (head->slab_bytes != s->options.slab_bytes)
		return rbx_error(-EINVAL, "memory file %s has slabs of %llu KiB and not of %llu KiB: "
				 "give --slab %lluK, or name another file",
				 file->path, (unsigned long long)head->slab_bytes >> 10,
				 (unsigned long long)s->options.slab_bytes >> 10,
				 (unsigned long long)head->slab_bytes >> 10);
	if (file->size_bytes < head->memory_at_bytes + head->slabs_count * apart(file, head) ||
	    head->memory_at_bytes % file->page_bytes)
		return is_no_good(file, -EBADMSG, "was cut short");
	if (head->file_id != file->id || head->file_born != file->born)
		return is_no_good(file, -ESTALE, "is a copy, and may be older than what was promised "
				  "since it was made");
	if (!head->is_clean && !*head->boot)
		return is_no_good(file, -ESTALE, "could not be written to its medium once: what clients "
				  "wrote may be missing in it");
	if (!head->is_clean && strcmp(head->boot, file->boot))
		return is_no_good(file, -ESTALE, "was in use when its machine went down: what clients "
				  "wrote may be missing in it");
	return 0;
}

/* Too few slabs for what it has. */
static int memory_check(const struct rbx_server *s, const struct rbx_state_head *head)
{
	const struct rbx_memory_file *file = &s->remembered.file;
	struct rbx_state_slab slab;
	uint64_t needed_count;
	uint32_t i, last = 0;

	for (i = 0; i < head->slabs_count; i++)
		if (!rbx_state_slab_get(file->state, i, &slab))
			last = i + 1;
	needed_count = last;
	if (needed_count <= rbx_slabs_of_memory(&s->options))
		return 0;
	return rbx_error(-EINVAL, "memory file %s has slabs up to number %u: give --memory %lluK or "
			 "more, or name another file",
			 file->path, last,
			 (unsigned long long)(needed_count * head->slab_bytes) >> 10);
}

/* ---- Start -------------------------------------------------------------------------*/

static int begin_new(struct rbx_server *s)
{
	struct rbx_memory_file *file = &s->remembered.file;
	struct rbx_state_head head = {
		.incarnation = s->incarnation,
		.file_id = file->id,
		.file_born = file->born,
		.slab_bytes = s->options.slab_bytes,
		.slabs_count = rbx_slabs_of_memory(&s->options),
		.memory_at_bytes = round_up(RBX_STATE_BYTES,
					    RBX_MAX(file->page_bytes,
						    (uint64_t)RBX_HUGE_PAGE_BYTES)),
	};
	int err = rbx_memory_file_map_state(file, size_of(file, &head, &s->options),
					    rbx_state_bytes_of(head.slabs_count));

	if (err)
		return err;
	if (rbx_memory_file_punch(file, head.memory_at_bytes, head.slab_bytes))
		return rbx_error(-EOPNOTSUPP, "memory file %s is on a file system that cannot punch "
				 "holes: take tmpfs, hugetlbfs, ext4 or xfs", file->path);
	memcpy(head.boot, file->boot, sizeof(head.boot));
	rbx_state_format(file->state, &head);
	s->remembered.head = head;
	return 0;
}

static int go_on(struct rbx_server *s)
{
	struct rbx_memory_file *file = &s->remembered.file;
	struct rbx_state_head *head = &s->remembered.head;
	int err;

	if (file->size_bytes < RBX_STATE_BYTES)
		return is_no_good(file, -EBADMSG, "is none of rdmabox serve");
	err = rbx_memory_file_map_state(file, 0, 0);
	if (err)
		return err;
	err = rbx_state_head_get(file->state, head);
	if (err == -EPROTONOSUPPORT)
		return is_no_good(file, err, "is of another version of RDMAbox");
	if (err)
		return is_no_good(file, err, "is none of rdmabox serve, or is damaged");
	err = head_check(s, head);
	if (err)
		return err;
	if (rbx_state_check(file->state, head))
		return is_no_good(file, -EBADMSG, "is damaged");
	err = memory_check(s, head);
	if (!err)
		s->incarnation = head->incarnation;
	return err;
}

int rbx_remembered_open(struct rbx_server *s)
{
	struct rbx_memory_file *file = &s->remembered.file;
	int err;

	file->fd = -1;
	if (!*s->options.memory_file)
		return 0;
	err = rbx_memory_file_open(file, s->options.memory_file);
	if (!err)
		err = slabs_check(file, &s->options);
	if (err)
		return err;
	return file->is_new ? begin_new(s) : go_on(s);
}

int rbx_remembered_make_room(struct rbx_server *s, const struct rbx_server_options *o)
{
	struct rbx_remembered *r = &s->remembered;
	uint64_t slabs_count = rbx_slabs_of_memory(o);
	int err;

	if (!rbx_remembers(r) || slabs_count <= r->head.slabs_count)
		return 0;
	err = rbx_memory_file_grow(&r->file, size_of(&r->file, &r->head, o),
				   rbx_state_bytes_of(slabs_count));
	if (err)
		return err;
	r->head.slabs_count = slabs_count;
	rbx_state_head_put(r->file.state, &r->head);
	return 0;
}

/* What clients wrote may be missing on the medium, and the kernel tells of that once: the next one
 * to ask would hear that all is well. So no start takes the file from now on. */
static void damage_note(struct rbx_remembered *r)
{
	r->head.is_clean = 0;
	memset(r->head.boot, 0, sizeof(r->head.boot));
	rbx_state_head_put(r->file.state, &r->head);
}

int rbx_remembered_begin(struct rbx_server *s)
{
	struct rbx_remembered *r = &s->remembered;
	struct rbx_state_head before;
	int err;

	if (!rbx_remembers(r))
		return 0;
	err = rbx_remembered_make_room(s, &s->options);
	if (err)
		return err;
	before = r->head;
	memcpy(r->head.boot, r->file.boot, sizeof(r->head.boot));
	r->head.starts_count++;
	r->head.is_clean = 0;
	rbx_state_head_put(r->file.state, &r->head);
	/* The medium must not call it clean any more when the first client writes. */
	err = rbx_memory_file_sync(&r->file);
	if (err) {
		r->head = before;
		if (before.is_clean) /* all of it is there, but for what was changed just now */
			rbx_state_head_put(r->file.state, &r->head);
		else
			damage_note(r);
		return rbx_error(err, "cannot write memory file %s to its medium: %s", r->file.path,
				 strerror(-err));
	}
	r->is_in_use = true;
	return rbx_memory_file_publish(&r->file);
}

/* To the medium, and then that this was done. */
static int clean(struct rbx_remembered *r)
{
	int err = rbx_memory_file_sync(&r->file);

	if (err)
		return err;
	r->head.is_clean = 1;
	rbx_state_head_put(r->file.state, &r->head);
	return rbx_memory_file_sync(&r->file);
}

/* A file that is new still has no name, and is thrown away. */
int rbx_remembered_close(struct rbx_server *s)
{
	struct rbx_remembered *r = &s->remembered;
	int err = r->is_in_use ? clean(r) : 0;

	if (err) {
		damage_note(r);
		rbx_log(&s->log, "memory file %s cannot be written to its medium: %s; it cannot be used "
			"any more", r->file.path, strerror(-err));
		(void)rbx_error(err, "memory file %s cannot be written to its medium: %s", r->file.path,
				strerror(-err));
	}
	rbx_memory_file_unmap_state(&r->file);
	rbx_memory_file_close(&r->file);
	return err;
}

/* ---- While it runs --------------------------------------------------------------*/

static uint32_t index_of(const struct rbx_server *s, const struct rbx_kept_volume *kept)
{
	return (uint32_t)(kept - s->volumes.kept);
}

void rbx_remember_volume(struct rbx_server *s, const struct rbx_kept_volume *kept)
{
	struct rbx_state_volume volume = {
		.holder_id = kept->holder.id,
		.promised_epoch = kept->acceptor.promised_epoch,
		.record = kept->record,
	};

	if (!rbx_remembers(&s->remembered) || !kept->record.epoch)
		return;
	memcpy(volume.reserved_name, kept->reserved_name, sizeof(volume.reserved_name));
	memcpy(volume.writer_name, kept->writer_name, sizeof(volume.writer_name));
	rbx_state_volume_put(s->remembered.file.state, index_of(s, kept), &volume);
}

void rbx_forget_volume(struct rbx_server *s, const struct rbx_kept_volume *kept)
{
	struct rbx_state_volume volume;
	uint32_t index = index_of(s, kept);

	if (rbx_remembers(&s->remembered) &&
	    !rbx_state_volume_get(s->remembered.file.state, index, &volume))
		rbx_state_volume_put(s->remembered.file.state, index, NULL);
}

/* No loan of a later start may have the epoch of one of this start. */
static void epoch_note(struct rbx_remembered *r, uint64_t epoch)
{
	if (epoch <= r->head.epoch_limit)
		return;
	r->head.epoch_limit = epoch + EPOCHS_AT_ONCE;
	rbx_state_head_put(r->file.state, &r->head);
}

void rbx_remember_slab(struct rbx_server *s, uint64_t slab_id, uint64_t epoch)
{
	const struct rbx_slab *slab = &s->slabs[slab_id - 1];
	struct rbx_remembered *r = &s->remembered;
	const struct rbx_state_slab entry = {
		.holder_id = slab->holder->id,
		.label = slab->map.label,
		.epoch = epoch,
		.intent = slab->intent,
		.behind = slab->behind,
	};

	if (!rbx_remembers(r))
		return;
	epoch_note(r, epoch);
	if (slab->holder->is_volume && slab->map.is_complete)
		rbx_state_slab_put(r->file.state, (uint32_t)slab_id - 1, &entry);
}

bool rbx_slab_is_remembered(const struct rbx_server *s, uint64_t slab_id)
{
	struct rbx_state_slab entry;

	return rbx_remembers(&s->remembered) &&
	       slab_id <= s->remembered.head.slabs_count &&
	       !rbx_state_slab_get(s->remembered.file.state, (uint32_t)slab_id - 1, &entry);
}

void rbx_forget_slab(struct rbx_server *s, uint64_t slab_id)
{
	if (rbx_slab_is_remembered(s, slab_id))
		rbx_state_slab_put(s->remembered.file.state, (uint32_t)slab_id - 1, NULL);
}
