/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state_file.h - what a server knows of named volumes, as it stands at the beginning of its
 * memory file (memory_file.h).
 *
 *	0	a magic number and a version, which never change
 *	HEAD	one entry: which server this is, and how the file is laid out
 *	VOLUMES	an entry for each named volume: its record, and what was promised
 *	SLABS	an entry for each slab: the volume and the label that it is complete for
 *
 * A server may be killed in the middle of an update, after any byte of it. So each entry has two
 * copies with a sequence number and a checksum. An update writes the older copy; the newer good
 * copy counts. What is found later is the entry of before, or that of after, and nothing between.
 *
 * No update needs two entries at once. A slab names its volume by the id of its holder, which is
 * random and never used again. So a volume is removed by one update, and its slabs with it.
 *
 * These functions work on mapped memory alone. They do no I/O, and trust no byte that they find.
 */
#ifndef RBX_SERVER_STATE_FILE_H
#define RBX_SERVER_STATE_FILE_H

#include "core/limits.h"
#include "wire/record.h"

#define RBX_STATE_VERSION 3u
#define RBX_STATE_BOOT_BYTES 40u /* a text, zeros from its end on */

/* The length of a copy of each kind of entry, and where the entries begin. */
#define RBX_STATE_HEAD_BYTES 256u
#define RBX_STATE_VOLUME_BYTES 1024u
#define RBX_STATE_SLAB_BYTES 64u
#define RBX_STATE_HEAD_AT 512u
#define RBX_STATE_VOLUMES_AT 4096u
#define RBX_STATE_SLABS_AT \
	(RBX_STATE_VOLUMES_AT + RBX_KEPT_VOLUMES_MAX * 2u * RBX_STATE_VOLUME_BYTES)
/* 10 MiB. Pages behind the slabs that there are need not be there. */
#define RBX_STATE_BYTES (RBX_STATE_SLABS_AT + RBX_LENT_SLABS_MAX * 2u * RBX_STATE_SLAB_BYTES)

struct rbx_state_head {
	uint64_t incarnation; /* the server's, not 0 */
	uint64_t file_id; /* the inode: a copy of the file has another one, as long as both exist */
	uint64_t file_born; /* as in memory_file.h: a copy has another one */
	uint64_t slab_bytes;
	uint64_t slabs_count; /* that there is room for */
	uint64_t memory_at_bytes; /* where the first slab begins in the file */
	uint64_t epoch_limit; /* no loan had a higher epoch */
	uint64_t starts_count;
	char boot[RBX_STATE_BOOT_BYTES]; /* when the machine was started that used it last */
	uint32_t is_clean; /* 1: everything is on the medium, and no server uses it */
};

struct rbx_state_volume {
	uint64_t holder_id; /* not 0 */
	uint64_t promised_epoch;
	struct rbx_wire_record record;
	char reserved_name[RBX_WIRE_VOLUME_NAME_BYTES]; /* "": none */
	char writer_name[RBX_WIRE_HOLDER_BYTES];
};

struct rbx_state_slab {
	uint64_t holder_id; /* of its volume, not 0 */
	uint64_t label; /* 1 + its index in the volume, for which it is complete */
	uint64_t epoch; /* of the loan */
	uint64_t intent; /* its words (wire/record.h) */
	uint64_t behind;
};

/* Makes an empty state of memory that is all zeros. */
void rbx_state_format(uint8_t *state, const struct rbx_state_head *head);

/* -EBADMSG: it is no state, or is damaged. -EPROTONOSUPPORT: it is of another version. */
int rbx_state_head_get(const uint8_t *state, struct rbx_state_head *head);
void rbx_state_head_put(uint8_t *state, const struct rbx_state_head *head);

/* -ENOENT: there is none of this index. -EBADMSG: it is damaged. NULL: removes it. */
int rbx_state_volume_get(const uint8_t *state, uint32_t index, struct rbx_state_volume *volume);
void rbx_state_volume_put(uint8_t *state, uint32_t index, const struct rbx_state_volume *volume);
int rbx_state_slab_get(const uint8_t *state, uint32_t index, struct rbx_state_slab *slab);
void rbx_state_slab_put(uint8_t *state, uint32_t index, const struct rbx_state_slab *slab);

/* Whether each entry can be read. 0 or -EBADMSG. */
int rbx_state_check(const uint8_t *state, const struct rbx_state_head *head);

/* The bytes of the state that a server with so many slabs touches. */
static inline uint64_t rbx_state_bytes_of(uint64_t slabs_count)
{
	return RBX_STATE_SLABS_AT + slabs_count * 2 * RBX_STATE_SLAB_BYTES;
}

#endif
