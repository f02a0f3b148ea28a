/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reader.h - a named volume that is only read, beside its writer (docs/named-volumes.md, "Reading
 * beside the writer").
 *
 *	reader.c          opens and closes
 *	reader_servers.c  connects to servers, and again to those that were lost
 *	reader_watch.c    a thread that asks each of them again and again how the volume is
 *	reader_path.c     reads
 *
 * Requests are split and joined as those of any volume (submit.c); of the core's map it uses
 * nothing but the shape. In place of slabs with steps there is a table: which servers have each
 * slab complete, and under which key. The thread that watches keeps it up to date; core/reading.h
 * judges until when it may be believed. A read goes to one server after another of those that may
 * be read. If none is left it waits, for the next answers, and fails if these do not help in time.
 *
 * Locks: the monitor wakes the thread that watches, and is taken with locks of sessions held. The
 * lock guards the table and what it says of servers; nothing else is taken in it.
 */
#ifndef RBX_LIB_READER_H
#define RBX_LIB_READER_H

#include "core/reading.h"
#include "lib/volume/volume.h"

/* A read sees what was acknowledged so long before it began. */
#define RBX_READER_LAG_NS (RBX_READ_ONLY_LAG_MS * 1000000ull)
/* Each server is asked so often, so that an answer or two may be lost. */
#define RBX_READER_LOOK_NS (RBX_READER_LAG_NS / 4)
/* A server that cannot be connected is tried again after so long; at most. */
#define RBX_READER_TRY_NS 1000000000ull
#define RBX_READER_TRY_MOST_NS (16 * 1000000000ull)
/* How often a page whose checksum does not match is read, as it may be being written. */
#define RBX_READER_CHECKS_MAX 64u

/* A slab at a server. */
struct rbx_reader_copy {
	uint64_t remote_addr;
	uint32_t rkey;
	uint16_t server; /* its place plus 1; 0: there is none */
	uint16_t walk; /* it was found when the server told its labels for this time */
};

struct rbx_reader_server {
	struct rbx_reader *reader;
	char address[RBX_POOL_ADDRESS_BYTES];

	/* Under the lock: */
	struct rbx_peer *peer; /* NULL: none, or it is about to be closed */
	uint32_t parts_count; /* that are under way to it */
	bool is_down; /* it was given up */
	uint64_t incarnation; /* of the one that is there; 0: none */
	bool is_asked; /* the thread that watches uses it */
	bool is_in; /* it is, by the record that counts */
	uint64_t until_ns; /* what begins before may be read there */
	uint64_t failed_ns; /* a read has failed there: it is asked first */
	bool is_new; /* nothing that was heard of it before counts */
	uint64_t gone_incarnation; /* it has told that the volume was removed; 0: it has not */
	int open_err; /* why it is not there; 0: it was not tried yet, or is */
	char why[RBX_ERROR_TEXT_MAX];

	/* Of the thread that watches: */
	struct rbx_ask ask;
	struct rbx_wire_message message;
	uint64_t asked_ns, look_at_ns;
	uint64_t size_bytes; /* of its record */
	uint64_t changes_count, losses_count; /* of its last answer */
	uint64_t walked_changes_count, walked_ns; /* of the labels that are in the table */
	uint64_t walking_changes_count, walking_ns;
	uint32_t told_count; /* labels, since then */
	uint16_t walk;
	bool is_out; /* it was asked, and has not answered */
	bool has_answered, has_labels;
	bool is_void; /* what it tells of its labels this time is not whole */

	/* Of the thread that connects: */
	uint64_t try_at_ns, try_after_ns;
};

struct rbx_reader {
	struct rbx_volume *volume;
	struct rbx_wire_record record; /* as it was when the volume was opened */
	struct rbx_pool *pool;
	struct rbx_pool_member *members; /* of the thread that connects */
	struct rbx_reader_server *servers; /* RBX_SERVERS_MAX */
	struct rbx_reading_server *heard; /* what each has told: of the thread that watches */
	uint32_t server_count; /* atomic */
	struct rbx_reader_copy *copies; /* RBX_SLOTS_MAX for each slab that there is room for */
	struct rbx_reading reading; /* of the thread that watches */
	bool is_ending; /* the same: it asks nothing more */

	struct rbx_lock lock; /* guards what follows, and the above */
	uint64_t zeros_until_ns; /* reads that begin before get zeros where nobody has a slab */
	bool has_lost; /* what nobody has is no zeros, but lost or was never written */
	bool is_gone; /* the volume was removed */
	struct rbx_piece_list waiting; /* reads that nobody can serve now */
	bool wants_looks; /* all are to be asked at once */

	struct rbx_monitor monitor; /* guards what follows */
	bool is_woken;
	bool stop;
	bool has_thread;
	struct rbx_thread thread;
	struct rbx_pool_worker worker; /* the thread that connects */
	bool has_worker;
};

/* Opens it: all that rbx_volume_open() does for it. 0, or -errno that was reported. Blocks. */
int rbx_reader_open(struct rbx_volume *volume, const char *servers);
/* For rbx_volume_status(). */
void rbx_reader_census(struct rbx_reader *reader, struct rbx_census *census);
/* No request is under way. Its threads end: no event comes after this. Blocks. */
void rbx_reader_stop(struct rbx_reader *reader);
/* Nobody asks for its status any more. Blocks. */
void rbx_reader_free(struct rbx_reader *reader);

/* reader_servers.c. Blocks. */

int rbx_reader_names_take(struct rbx_reader *reader);
/* Tries once to connect to each that is not there and is due. */
void rbx_reader_connect(struct rbx_reader *reader);
int rbx_reader_connects_start(struct rbx_reader *reader);
void rbx_reader_connects_stop(struct rbx_reader *reader);
void rbx_reader_leave(struct rbx_reader *reader);

/* reader_watch.c */

int rbx_reader_watch_start(struct rbx_reader *reader);
void rbx_reader_watch_stop(struct rbx_reader *reader);
/* There is something to do. Any thread, that holds nothing of the reader; does not block. */
void rbx_reader_wake(struct rbx_reader *reader);

/* reader_path.c */

void rbx_reader_start(struct rbx_reader *reader, struct rbx_piece_list *pieces);
/* Reads that wait are tried once more. */
void rbx_reader_go_on(struct rbx_reader *reader);

static inline struct rbx_reader_copy *rbx_reader_copies(const struct rbx_reader *reader,
							uint32_t slab_index)
{
	return &reader->copies[(size_t)slab_index * RBX_SLOTS_MAX];
}

#endif
