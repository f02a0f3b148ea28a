/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remembered.h - a server that is started again with its memory file is the same server.
 *
 * It has the incarnation of before, so it is still a member of its volumes and keeps its vote. What
 * it promised is in the file (state_file.h) before it says so: an epoch, a record, a name that is
 * reserved, a label, a label or volume that is no more. So is what it lent to named volumes and
 * labelled as complete. All other slabs are given up: those of sessions, which have ended with
 * the process, and those without a label, which nobody could use.
 *
 * A process that is killed loses nothing of that, as the pages are the kernel's. A machine that
 * loses its power does: what clients have written may not have got to the medium, even if the
 * promises have. A server with old contents and a vote would be worse than none. So the file says
 * when the machine was started, and it is refused after another start, unless the server was
 * stopped in order: then all was written to the medium. A file that the medium has once refused is
 * taken by no server again. A copy of the file is refused, too, as it
 * may be older than what was promised since. It is told by its inode and by when it was made. What
 * is written over the file itself cannot be told.
 *
 * Without a memory file none of these functions does anything. They are called with the server's
 * lock, or before the control thread runs.
 */
#ifndef RBX_SERVER_REMEMBERED_H
#define RBX_SERVER_REMEMBERED_H

#include "server/memory_file.h"
#include "wire/terms.h"

struct rbx_kept_volume;
struct rbx_server;
struct rbx_server_options;

struct rbx_remembered {
	struct rbx_memory_file file; /* state NULL: there is no memory file */
	struct rbx_state_head head;
	bool is_in_use; /* the server runs, or did */
};

static inline bool rbx_remembers(const struct rbx_remembered *remembered)
{
	return remembered->file.state != NULL;
}

/* ---- Start and end ------------------------------------------------------------*/

/* Opens the file that the options name, if they do, and takes the incarnation from it. 0, or
 * -errno with rbx_last_error(): the file is not fit. It was not changed then. */
int rbx_remembered_open(struct rbx_server *s);
/* When there is a device: the volumes and slabs of before are there again. 0 or -errno with
 * rbx_last_error(). */
int rbx_remembered_restore(struct rbx_server *s);
/* The server is about to run: from now on the file is in use. 0 or -errno with
 * rbx_last_error(). */
int rbx_remembered_begin(struct rbx_server *s);
/* Room for the slabs of these options. 0 or -errno with rbx_last_error(). */
int rbx_remembered_make_room(struct rbx_server *s, const struct rbx_server_options *options);
/* All of it to the medium, and the file is free for another server. 0, or -errno with
 * rbx_last_error(): it is not, and no server will take it. */
int rbx_remembered_close(struct rbx_server *s);

/* ---- Before an answer says so --------------------------------------------------*/

/* What was promised for a volume, and its record, as they are now. Without a record it is
 * still being made, and ends with the session that makes it. */
void rbx_remember_volume(struct rbx_server *s, const struct rbx_kept_volume *kept);
void rbx_forget_volume(struct rbx_server *s, const struct rbx_kept_volume *kept);
/* A slab was lent in this epoch; its label counts if it is complete. */
void rbx_remember_slab(struct rbx_server *s, uint64_t slab_id, uint64_t epoch);
/* It is about to end. */
void rbx_forget_slab(struct rbx_server *s, uint64_t slab_id);

/* Whether a slab outlives the process. */
bool rbx_slab_is_remembered(const struct rbx_server *s, uint64_t slab_id);

/* How far slabs are apart in the file: each has room for a tail (wire/terms.h). That of a slab
 * without one is a hole. */
uint64_t rbx_remembered_apart(const struct rbx_remembered *remembered);

/* Where a slab lies in the file. */
static inline uint64_t rbx_remembered_at(const struct rbx_remembered *remembered, uint64_t slab_id)
{
	return remembered->head.memory_at_bytes +
	       (slab_id - 1) * rbx_remembered_apart(remembered);
}

#endif
