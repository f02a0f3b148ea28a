/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * record.h - what the servers of a named volume know of it, as it travels: the record of the
 * volume, and a label and an intent word for each slab that a server has of it
 * (docs/named-volumes.md).
 *
 * The record fits into one message. That bounds the servers of a volume.
 */
#ifndef RBX_WIRE_RECORD_H
#define RBX_WIRE_RECORD_H

#include "wire/credential.h"
#include "wire/cursor.h"

#define RBX_WIRE_VOLUME_NAME_BYTES 64u /* with the zero at its end */
#define RBX_WIRE_HOLDER_BYTES 64u /* the same */
#define RBX_WIRE_MEMBERS_MAX 64u
#define RBX_WIRE_LABELS_MAX 15u /* in one message */
#define RBX_WIRE_INTENTS_MAX 29u /* the same */

enum rbx_wire_member_flags {
	RBX_WIRE_MEMBER_OUT = 1, /* it may have missed writes */
	RBX_WIRE_MEMBER_WAS_IN = 2, /* it voted before this version */
};

enum rbx_wire_record_flags {
	RBX_WIRE_CHECKSUMS = 1, /* each page has one, kept with its slab */
	RBX_WIRE_EVEN = 2, /* the writer has closed it, and the replicas of each slab are equal */
	RBX_WIRE_RESERVED = 4, /* the memory of each slab was borrowed before its first write */
	/* Servers were given up: a slab of which none has a label is lost, or was never written. */
	RBX_WIRE_LOST = 8,
	/* The same, and those left may not know that one of them was OUT: until the volume is EVEN,
	 * replicas may differ in what is behind as well. */
	RBX_WIRE_UNSURE = 16,
	/* There is no such volume any more. A server says so; nobody may tell it to a server. */
	RBX_WIRE_REMOVED = 0x10000,
};

struct rbx_wire_record {
	char name[RBX_WIRE_VOLUME_NAME_BYTES];
	char owner[RBX_CREDENTIAL_BYTES]; /* a credential; empty: the one without a name */
	uint64_t volume_id; /* not 0; never used again */
	uint64_t size_bytes;
	uint64_t slab_bytes;
	uint64_t keep_s; /* after its client has gone; all ones: for ever */
	uint64_t epoch; /* of the writer that proposed this version; 0: there is no record */
	uint64_t version;
	uint32_t replicas;
	uint32_t flags; /* enum rbx_wire_record_flags */
	uint32_t members_count;
	uint32_t copies; /* complete replicas that each slab has at least which was written */
	uint64_t incarnations[RBX_WIRE_MEMBERS_MAX]; /* zero from the count on */
	uint8_t member_flags[RBX_WIRE_MEMBERS_MAX]; /* the same */
};

/* A slab that a server has of a volume. */
struct rbx_wire_label {
	uint64_t label; /* 1 + the index of the slab in the volume */
	uint64_t slab_id;
	uint64_t epoch; /* of the loan */
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t is_complete; /* 0: its contents were never all there */
	uint64_t intent; /* a bit for each 64th of it that may be written just now */
	uint64_t behind; /* the same, that was written while a server was OUT */
};

struct rbx_wire_labels {
	uint64_t next; /* where to go on; 0: these are the last */
	uint32_t count;
	struct rbx_wire_label labels[RBX_WIRE_LABELS_MAX]; /* zero from the count on */
};

/* The words of a slab from now on. */
struct rbx_wire_intent {
	uint64_t slab_id;
	uint64_t epoch; /* of the loan */
	uint64_t word; /* intent */
	uint64_t behind;
};

struct rbx_wire_intents {
	uint32_t count;
	struct rbx_wire_intent intents[RBX_WIRE_INTENTS_MAX]; /* zero from the count on */
};

static inline bool rbx_record_is_newer(const struct rbx_wire_record *a,
				       const struct rbx_wire_record *b)
{
	return a->epoch > b->epoch || (a->epoch == b->epoch && a->version > b->version);
}

/* Whether they say the same in every field. */
bool rbx_record_is_equal(const struct rbx_wire_record *a, const struct rbx_wire_record *b);

/* Whether a server is a member, and is not OUT. */
static inline bool rbx_record_is_in(const struct rbx_wire_record *record, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < record->members_count; i++)
		if (record->incarnations[i] == incarnation)
			return !(record->member_flags[i] & RBX_WIRE_MEMBER_OUT);
	return false;
}

/* Whether it is OUT, and its vote is not needed either. */
static inline bool rbx_record_is_gone(const struct rbx_wire_record *record, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < record->members_count; i++)
		if (record->incarnations[i] == incarnation)
			return record->member_flags[i] == RBX_WIRE_MEMBER_OUT;
	return false;
}

/* So many servers may have had replicas of any slab, and are gone. A volume never gives up its last
 * copies. */
static inline void rbx_record_copies_lose(struct rbx_wire_record *record, uint32_t servers_count)
{
	record->copies = record->copies > servers_count ? record->copies - servers_count : 1;
}

/* Members that are not OUT. */
static inline uint32_t rbx_record_in_count(const struct rbx_wire_record *record)
{
	uint32_t i, count = 0;

	for (i = 0; i < record->members_count; i++)
		count += !(record->member_flags[i] & RBX_WIRE_MEMBER_OUT);
	return count;
}

static inline bool rbx_record_has_member(const struct rbx_wire_record *record,
					 uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < record->members_count; i++)
		if (record->incarnations[i] == incarnation)
			return true;
	return false;
}

/* Characters of a text, and zeros up to the end of the field. */
void rbx_wire_walk_text(struct rbx_cursor *c, char *text, size_t size);
void rbx_wire_walk_record(struct rbx_cursor *c, struct rbx_wire_record *record);
void rbx_wire_walk_labels(struct rbx_cursor *c, struct rbx_wire_labels *labels);
void rbx_wire_walk_intents(struct rbx_cursor *c, struct rbx_wire_intents *intents);

/* Whether it can be the name of a volume: 1 to 63 of A-Z a-z 0-9 . _ -, and it begins with a
 * letter or a digit. */
bool rbx_wire_volume_name_makes_sense(const char name[RBX_WIRE_VOLUME_NAME_BYTES]);
/* Puts a '?' for each byte that no text may have: what others have chosen, such as the name of a
 * host, is only to be read by people. */
void rbx_wire_text_clean(char *text);
/* Whether a text is printable, and has zeros from its end on. */
bool rbx_wire_text_makes_sense(const char *text, size_t size);
bool rbx_wire_record_makes_sense(const struct rbx_wire_record *record);
bool rbx_wire_labels_make_sense(const struct rbx_wire_labels *labels);
bool rbx_wire_intents_make_sense(const struct rbx_wire_intents *intents);

#endif
