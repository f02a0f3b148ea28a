/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_state.h - the table of named volumes (volumes.c), for the requests about them
 * (volume_requests.c).
 */
#ifndef RBX_SERVER_VOLUME_STATE_H
#define RBX_SERVER_VOLUME_STATE_H

#include <string.h>

#include "lib/error.h"
#include "server/state.h"

/* Whether the entry is in use by a volume that has not ended. */
bool rbx_volume_is_there(const struct rbx_kept_volume *kept);
/* NULL: there is none of this name. */
struct rbx_kept_volume *rbx_volume_find(const struct rbx_server *s,
					const char name[RBX_WIRE_VOLUME_NAME_BYTES]);
/* NULL: there is none of this id. */
struct rbx_kept_volume *rbx_volume_find_id(const struct rbx_server *s, uint64_t volume_id);
/* What is known of a volume that was removed; NULL: nothing, or not any more. */
struct rbx_kept_volume *rbx_volume_find_removed(const struct rbx_server *s, uint64_t volume_id);
/* Whether another volume has the name, or has reserved it. but: NULL for a new volume. */
bool rbx_volume_name_is_taken(const struct rbx_server *s,
			      const char name[RBX_WIRE_VOLUME_NAME_BYTES],
			      const struct rbx_kept_volume *but);
/* Makes a volume without a record, of the owner of a client. Returns RBX_REASON_NONE, or the
 * reason against it. */
uint32_t rbx_volume_make(struct rbx_server *s, const struct rbx_client *client,
			 const struct rbx_wire_volume_open *open,
			 struct rbx_kept_volume **kept);
/* A volume of a former server, at its place in the table: in the order of the places, and then
 * restored(). 0 or -errno with rbx_last_error(). */
int rbx_volume_restore(struct rbx_server *s, uint32_t index,
		       const struct rbx_state_volume *volume);
void rbx_volumes_restored(struct rbx_server *s);
/* Whether it is being made by a client that has lost its connection: then it can end. */
bool rbx_volume_is_abandoned(const struct rbx_kept_volume *kept);
/* Nobody is bound to it. Its slabs begin to end, and it is forgotten. */
void rbx_volume_end(struct rbx_server *s, struct rbx_kept_volume *kept);
/* The same, by a client that removes it everywhere, in the epoch that was promised. That is known
 * until other volumes need the entry. */
void rbx_volume_end_everywhere(struct rbx_server *s, struct rbx_kept_volume *kept);
/* The session becomes the volume's, and the one before ends. May release the lock for
 * callbacks of messages of that one. */
void rbx_volume_bind(struct rbx_server *s, struct rbx_kept_volume *kept,
		     struct rbx_client *client);
/* The session, which has no queue pair, is that of no volume. */
void rbx_volume_unbind(struct rbx_client *client);

/* volume_readers.c: VOLUME_READ. */
void rbx_volume_read(struct rbx_server *s, struct rbx_connection *c,
		     const struct rbx_wire_message *message);
/* The volume ends: sessions that only read it end first. May release the lock, as bind(). */
void rbx_volume_readers_end(struct rbx_server *s, struct rbx_kept_volume *kept);

/* Whether a session has neither borrowed anything nor a data queue pair. */
static inline bool rbx_session_has_nothing(const struct rbx_server *s,
					   const struct rbx_client *client)
{
	return !client->qps_count && !client->own.slabs_held &&
	       !rbx_lender_lent_to(s->lender, client->session_id);
}

#endif
