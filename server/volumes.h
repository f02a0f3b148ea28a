/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volumes.h - the named volumes that a server keeps (docs/named-volumes.md).
 *
 * A named volume holds slabs as a client does, but its slabs stay when a client goes. One
 * session at a time writes it. A session that opens it is bound to it: its data queue pairs
 * are made in the domain of the volume, and the loans that it asks for are the volume's. To
 * shut a writer out, its queue pairs and connections are ended, and its session with them; the
 * keys of the slabs can stay, as no other queue pair is in their domain. So an open costs no
 * registration of memory.
 *
 * With the shared mapping of the soft fabric a client copies by itself, and cannot be held
 * back by its server. So slabs of volumes are not mapped by clients (slab_memory.c).
 *
 * All functions are called with the server's lock held.
 */
#ifndef RBX_SERVER_VOLUMES_H
#define RBX_SERVER_VOLUMES_H

#include "core/acceptor.h"
#include "core/id_map.h"
#include "wire/message.h"

struct rbx_client;
struct rbx_connection;
struct rbx_domain;
struct rbx_owner;
struct rbx_server;

/* Who slabs are lent to: a client, or a named volume. When it has left, its domain ends after
 * its last slab, because the keys of the slabs are in it. */
struct rbx_holder {
	uint64_t id; /* the lender knows it by this; 0: it has left */
	struct rbx_domain *domain;
	uint32_t slabs_held; /* slabs that still use the domain */
	uint32_t number; /* the workers know it by this */
	bool is_volume;
};

/* The last version that a client may give a record. What the server adds to it when the volume is
 * removed is still one that rbx_membership_fault() allows: else the memory file would be
 * damaged. */
#define RBX_KEPT_VERSION_MAX (UINT64_MAX / 4)

struct rbx_kept_volume {
	struct rbx_holder holder;
	struct rbx_owner *owner; /* the credential that it was made with; NULL: it has ended */
	struct rbx_acceptor acceptor;
	/* As it was accepted; before that name and id alone. Of a volume that was removed it says
	 * so, and stays. */
	struct rbx_wire_record record;
	/* A name that no other volume may get: that it will have, or had until now; "": none. */
	char reserved_name[RBX_WIRE_VOLUME_NAME_BYTES];
	char writer_name[RBX_WIRE_HOLDER_BYTES]; /* of the last writer */
	struct rbx_client *writer; /* the session that is bound to it, or NULL */
	uint64_t shut_out_session_id; /* the last one that was ended for another one; 0: none */
	struct rbx_client *readers; /* sessions that only read it, by next_reader */
	uint32_t readers_count;
	/* How often a label has changed, and how often one of a complete slab has ended or been
	 * taken back: both since this process began. */
	uint64_t changes_count, losses_count;
	uint64_t closed_ns; /* when the last writer went, or it was removed */
	uint64_t returns_count; /* how often it was opened to return */
	/* A writer has said that the server is OUT and has no vote, and no record came since. */
	bool is_spared;
	uint32_t next_free;
};

struct rbx_volumes {
	struct rbx_kept_volume *kept; /* RBX_KEPT_VOLUMES_MAX of them */
	uint32_t used; /* entries from this index on were never used */
	uint32_t first_free;
	struct rbx_id_map holders; /* from the id of a holder to its index */
	uint64_t checked_ns;
};

/* 0 or -ENOMEM. */
int rbx_volumes_init(struct rbx_server *s);
/* Without control thread and workers; no slab is left. */
void rbx_volumes_destroy(struct rbx_server *s);

/* The requests about volumes: VOLUME_OPEN, VOLUME_LIST, VOLUME_ACCEPT, VOLUME_REMOVE,
 * VOLUME_RESERVE, LABELS, SLAB_COMPLETE, SLAB_INCOMPLETE, VOLUME_BEHIND,
 * INTENTS and VOLUME_READ. */
void rbx_volume_request(struct rbx_server *s, struct rbx_connection *connection,
			const struct rbx_wire_message *message);

/* A session ends that is bound to a volume. Its queue pairs have ended. */
void rbx_volume_client_left(struct rbx_server *s, struct rbx_client *client);
/* A session that is bound to a volume is back. */
void rbx_volume_client_resumed(struct rbx_server *s, struct rbx_client *client,
			       uint64_t last_epoch);
/* A session ends that only reads a volume. Its queue pairs have ended. */
void rbx_volume_reader_left(struct rbx_client *client);
/* A label of this holder, if it is a volume, is another one from now on; is_lost: a slab may have
 * ceased to be complete here. Before anybody is told the labels once more. */
void rbx_volume_labels_changed(struct rbx_holder *holder, bool is_lost);
/* The memory of one of its slabs has ended. */
void rbx_volume_slab_ended(struct rbx_server *s, struct rbx_kept_volume *kept);
/* NULL: no volume has this holder id. */
struct rbx_kept_volume *rbx_volume_of_holder(const struct rbx_server *s, uint64_t holder_id);
/* Whether a volume needs this server, so that a drain waits. */
bool rbx_volumes_need_us(const struct rbx_server *s);
/* Removes volumes that nobody has opened for as long as their record says. */
void rbx_volumes_tick(struct rbx_server *s, uint64_t now_ns);

#endif
