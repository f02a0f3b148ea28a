/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lender_table.h - the tables of a lender; for lender.c, lender_lists.c,
 * lender_reclaim.c and lender_volumes.c.
 *
 * Slabs and clients are in tables and in lists, all linked by index:
 *
 *	slabs	FREE: a queue. ENDING: a queue of those that the host has not been
 *		told of. PREPARING and LENT: a list of their client, LENT ones by
 *		their epochs, behind those that were asked for and are not any more.
 *		ASKED: two more, with and without a deadline, each by when the client
 *		is told next.
 *	clients	by when they were heard of, the first one longest ago. All leases
 *		have one length, so that is also the order in which they end. Those
 *		that have ASKED slabs in a list besides, in which they take turns. Named
 *		volumes have entries among them, but no lease.
 *	owners	by the numbers that the host gives them.
 *
 * So an event touches few entries, however many clients and slabs there are. Choosing slabs
 * to ask for looks at all clients a few times, but only at slabs that are chosen.
 */
#ifndef RBX_LENDER_TABLE_H
#define RBX_LENDER_TABLE_H

#include "core/id_map.h"
#include "core/lender.h"

#define RBX_LENDER_NONE UINT32_MAX

enum rbx_lender_slab_state {
	SLAB_FREE, /* nobody can reach it */
	SLAB_PREPARING, /* its client will get it; the host makes its memory */
	SLAB_LENT, /* its client reads and writes it */
	SLAB_ASKED, /* as LENT, and the client was asked to give it back */
	SLAB_ENDING, /* it belongs to no client; the host ends the access */
};

struct rbx_lender_slab {
	uint64_t epoch; /* of the last loan */
	uint64_t revoke_ns; /* ASKED: when it is taken back */
	uint64_t remind_ns; /* ASKED: when the client is reminded next */
	uint32_t client; /* PREPARING, LENT, ASKED: index of the client */
	uint32_t next; /* of its queue or list */
	uint32_t prev; /* PREPARING, LENT, ASKED */
	uint16_t owner; /* of all but FREE ones: its client's, which may have left */
	uint8_t state; /* enum rbx_lender_slab_state */
};

RBX_STATIC_ASSERT(sizeof(struct rbx_lender_slab) == 40,
		  "RBX_LENT_SLABS_MAX of them are 2.5 MiB, as limits.h says");
RBX_STATIC_ASSERT(RBX_OWNERS_MAX <= UINT16_MAX, "a slab has room for its owner");

struct rbx_lender_list {
	uint32_t first; /* RBX_LENDER_NONE: it is empty */
	uint32_t last;
};

struct rbx_lender_client {
	uint64_t session_id; /* 0: the entry is free */
	uint64_t heard_ns;
	uint32_t next; /* of the free entries, or of the clients heard later */
	uint32_t prev;
	struct rbx_lender_list slabs; /* PREPARING and LENT */
	struct rbx_lender_list asked; /* ASKED without a deadline */
	struct rbx_lender_list due; /* ASKED with one */
	uint32_t asking_next; /* of those with ASKED slabs */
	uint32_t asking_prev;
	uint32_t slabs_count; /* PREPARING, LENT and ASKED */
	uint32_t preparing_count; /* PREPARING */
	uint32_t asked_count; /* ASKED */
	uint32_t owner;
	bool expired; /* the host has been told to end it */
	bool is_kept; /* a named volume: it has no lease, and nothing of it is revoked */
	bool has_writer; /* is_kept: somebody is there who can move its data */
	uint64_t kept_epoch; /* is_kept: loans up to here are not those of this writer */
};

/* All sessions of one credential. */
struct rbx_lender_owner {
	uint32_t quota_count; /* 0: all */
	uint32_t clients_count;
	uint32_t slabs_count; /* PREPARING, LENT and ASKED */
	uint32_t ending_count; /* ENDING */
};

struct rbx_lender {
	struct rbx_lender_config config;
	struct rbx_id_map sessions; /* from session id to client */
	struct rbx_lender_client *clients;
	struct rbx_lender_owner *owners;
	struct rbx_lender_slab *slabs;
	uint32_t slabs_used; /* entries from there on were never used */
	uint32_t client_free; /* the first free one */
	struct rbx_lender_list heard; /* clients that have not expired */
	struct rbx_lender_list free_slabs;
	struct rbx_lender_list ending;
	struct rbx_lender_list asking; /* clients with ASKED slabs */
	uint32_t asking_count;
	uint32_t asking_left; /* to be looked at in this round of next() */
	bool round_is_on;
	uint64_t last_epoch;
	bool draining;
	bool host_is_short;
	struct rbx_lender_counts counts;
};

/* Entries for clients and volumes. */
static inline uint32_t rbx_lender_entries(const struct rbx_lender_config *config)
{
	return config->clients_max + config->volumes_max;
}

static inline bool rbx_lender_slab_is_had(const struct rbx_lender_slab *slab)
{
	return slab->state == SLAB_LENT || slab->state == SLAB_ASKED;
}

/* An entry for a new client or volume. There is a free one. */
uint32_t rbx_lender_entry_take(struct rbx_lender *l, uint64_t id, uint32_t owner);

/* Of a client: ends what is being prepared, and what was lent after an epoch. Returns how many
 * of the latter. */
uint32_t rbx_lender_slabs_end_after(struct rbx_lender *l, uint32_t client, uint64_t epoch);

/* PREPARING, LENT or ASKED -> ENDING: from here on it belongs to no client. */
void rbx_lender_slab_end(struct rbx_lender *l, uint32_t index);

/* LENT -> ASKED: behind all that this client was asked for before. */
void rbx_lender_slab_ask(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
			 uint64_t revoke_ns);

/* Counts a slab no longer among those that its client is asked for. */
void rbx_lender_slab_unask(struct rbx_lender *l, uint32_t index);

/* A slab that was asked for without a deadline gets one. */
void rbx_lender_slab_set_due(struct rbx_lender *l, uint32_t index, uint64_t now_ns,
			     uint64_t revoke_ns);

/* ASKED -> LENT: before the client's others, as the oldest are asked for first. */
void rbx_lender_slab_withdraw(struct rbx_lender *l, uint32_t index);

/* Lists: of the client of a slab, by the state of the slab; and queues. */
void rbx_lender_slab_join(struct rbx_lender *l, uint32_t index);
void rbx_lender_slab_part(struct rbx_lender *l, uint32_t index);
void rbx_lender_queue_put(struct rbx_lender *l, struct rbx_lender_list *queue,
			  uint32_t index);

/* Moves a slab that its client was asked for to the front or end of that client's list. */
void rbx_lender_asked_move(struct rbx_lender *l, uint32_t index, bool to_front);

/* A client was asked for something: the others come before it. */
void rbx_lender_asking_rotate(struct rbx_lender *l, uint32_t index);

/* Removes it from the list of clients whose leases may end. */
void rbx_lender_client_expire(struct rbx_lender *l, uint32_t index);

#endif
