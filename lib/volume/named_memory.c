/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_memory.c - see named_memory.h.
 *
 * First a plan says which server lends which slabs, by what each says it has free: so what does not
 * fit is refused before anything is borrowed. Then a few servers are asked in parallel, each for
 * one slab after another. If one refuses all the same, as another client was faster, the others
 * stop.
 *
 * A server takes it for possible that a slab is written anywhere, until it is told. If another
 * server has a replica, that would cost a copy of the slab after a crash. So each server is told of
 * its slabs that nothing is written there.
 */
#include "lib/volume/named_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/at_once.h"
#include "client/session.h"
#include "core/placement.h"
#include "core/reservation.h"
#include "core/server_labels.h"
#include "include/rdmabox/pool.h"
#include "lib/error.h"

#define MIB 1048576.0

struct borrowing {
	struct rbx_crowd *crowd;
	const struct rbx_named *named;
	const struct rbx_memory_wanted *wanted;
	uint32_t replicas;
	uint64_t slabs_count;
	uint8_t *plan; /* for each slab, as many servers as replicas */
	bool has_failed; /* atomic: no server is asked for one more */
	pthread_mutex_t lock; /* guards what follows */
	uint64_t done_count; /* replicas */
};

/* ---- The plan -------------------------------------------------------------------------*/

/* What a pool tells of its members, for servers that have no labels of their own. */
static void domains_of_pool(const struct rbx_crowd *crowd, const char *servers,
			    struct rbx_reservation *plan)
{
	struct rbx_pool_member *members = calloc(RBX_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	size_t count, j;
	uint32_t i;

	if (!members || rbx_pool_open(&pool, servers)) {
		free(members);
		return;
	}
	count = rbx_pool_members_get(pool, members, RBX_MEMBERS_MAX);
	rbx_pool_close(pool);
	for (i = 0; i < crowd->count; i++)
		for (j = 0; j < RBX_MIN(count, RBX_MEMBERS_MAX) && !plan->domains[i]; j++)
			if (!strcmp(members[j].address, crowd->names[i]))
				plan->domains[i] = rbx_server_domain(members[j].labels,
								     RBX_SPREAD_DEFAULT);
	free(members);
}

/* A server that was not granted the volume, or is OUT, lends nothing. */
static bool lends(const struct borrowing *b, uint32_t server)
{
	const struct rbx_named *named = b->named;
	uint64_t incarnation = rbx_session_incarnation(b->crowd->sessions[server]);

	return named->is_made || (b->crowd->has[server] &&
				  rbx_record_is_in(&named->record, incarnation));
}

static void room_ask(const struct borrowing *b, struct rbx_reservation *plan)
{
	uint32_t i;

	*plan = (struct rbx_reservation){ .servers_count = b->crowd->count };
	for (i = 0; i < b->crowd->count; i++) {
		const struct rbx_session *session = b->crowd->sessions[i];

		if (!lends(b, i))
			continue;
		plan->room[i] = rbx_session_free_bytes(session) / b->named->record.slab_bytes;
		plan->domains[i] =
			rbx_server_domain(rbx_session_labels(session), RBX_SPREAD_DEFAULT);
	}
	domains_of_pool(b->crowd, b->wanted->servers, plan);
}

static bool plan_make(struct borrowing *b, struct rbx_reservation plan, bool apart)
{
	uint64_t i;

	for (i = 0; i < b->slabs_count; i++)
		if (!rbx_reservation_next(&plan, b->replicas, apart, &b->plan[i * b->replicas]))
			return false;
	return true;
}

/* Adds what is wanted, and what each server has. */
static int room_explain(const struct borrowing *b, int err, const char *why)
{
	double slab_mib = (double)b->named->record.slab_bytes / MIB;
	char rooms[RBX_ERROR_TEXT_MAX] = "";
	size_t end = 0;
	uint32_t i;

	for (i = 0; i < b->crowd->count && end < sizeof(rooms); i++)
		if (lends(b, i))
			end += (size_t)snprintf(
				rooms + end, sizeof(rooms) - end, "; %s has %.10g MiB free",
				b->crowd->names[i],
				(double)rbx_session_free_bytes(b->crowd->sessions[i]) / MIB);
	return rbx_error(err, "%s (to be reserved: %.10g MiB, %u cop%s, in slabs of %.10g MiB%s)",
			 why, (double)b->slabs_count * slab_mib, b->replicas,
			 b->replicas == 1 ? "y" : "ies", slab_mib, rooms);
}

static int plan_all(struct borrowing *b)
{
	struct rbx_reservation plan;
	char why[RBX_ERROR_TEXT_MAX];

	b->plan = malloc(b->slabs_count * b->replicas);
	if (!b->plan)
		return rbx_error(-ENOMEM, "out of memory");
	room_ask(b, &plan);
	if (plan_make(b, plan, true) || plan_make(b, plan, false))
		return 0;
	snprintf(why, sizeof(why), "volume %s: its servers have not enough memory free; start more servers, or take a smaller size",
		 b->named->record.name);
	return room_explain(b, -ENOSPC, why);
}

/* ---- Borrowing ------------------------------------------------------------------------*/

static void progressed(struct borrowing *b)
{
	uint64_t slab_bytes = b->named->record.slab_bytes;

	pthread_mutex_lock(&b->lock);
	b->done_count++;
	if (b->wanted->progress)
		b->wanted->progress(b->done_count * slab_bytes,
				    b->slabs_count * b->replicas * slab_bytes, b->wanted->user);
	pthread_mutex_unlock(&b->lock);
}

/* Nothing is written to these slabs; the list is empty again. */
static int unwritten_tell(struct rbx_session *session, struct rbx_wire_intents *intents)
{
	struct rbx_wire_message m = { .type = RBX_WIRE_INTENTS, .intents = *intents };

	if (!intents->count)
		return 0;
	*intents = (struct rbx_wire_intents){ 0 };
	return rbx_session_talk(session, &m);
}

static int slab_borrow(const struct rbx_named *named, struct rbx_session *session, uint64_t slab,
		       struct rbx_wire_intents *intents)
{
	const struct rbx_wire_map map = {
		.label = slab + 1,
		.is_complete = 1,
		.has_tail = rbx_named_has_tails(named),
	};
	struct rbx_loan loan;
	int err = rbx_session_map_for(session, &map, &loan);

	if (err)
		return err;
	intents->intents[intents->count++] = (struct rbx_wire_intent){
		.slab_id = loan.slab_id,
		.epoch = loan.epoch,
	};
	return intents->count == RBX_WIRE_INTENTS_MAX ? unwritten_tell(session, intents) : 0;
}

static bool is_planned(const struct borrowing *b, uint64_t slab, uint32_t server)
{
	return memchr(&b->plan[slab * b->replicas], (int)server, b->replicas);
}

/* All slabs of one server. */
static int server_act(void *user, uint32_t server)
{
	struct borrowing *b = user;
	struct rbx_session *session = b->crowd->sessions[server];
	struct rbx_wire_intents intents = { 0 };
	uint64_t i;
	int err = 0;

	for (i = 0; i < b->slabs_count && !err && !RBX_LOAD_RELAXED(&b->has_failed); i++) {
		if (!is_planned(b, i, server))
			continue;
		err = slab_borrow(b->named, session, b->wanted->from_slab + i, &intents);
		if (!err)
			progressed(b);
	}
	if (!err)
		err = unwritten_tell(session, &intents);
	if (err)
		RBX_STORE_RELAXED(&b->has_failed, true);
	return err;
}

static int borrow_all(struct borrowing *b)
{
	int err = rbx_at_once(b->crowd->count, server_act, b);
	char why[RBX_ERROR_TEXT_MAX];

	if (err != -ENOSPC && err != -EDQUOT)
		return err;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	return room_explain(b, err, why);
}

int rbx_named_borrow(struct rbx_crowd *crowd, const struct rbx_named *named,
		     const struct rbx_memory_wanted *wanted)
{
	uint64_t slabs_count = rbx_named_slabs(wanted->size_bytes, named->record.slab_bytes);
	struct borrowing b = {
		.crowd = crowd,
		.named = named,
		.wanted = wanted,
		.replicas = named->record.replicas,
	};
	int err;

	if (slabs_count <= wanted->from_slab)
		return 0;
	b.slabs_count = slabs_count - wanted->from_slab;
	pthread_mutex_init(&b.lock, NULL);
	err = plan_all(&b);
	if (!err)
		err = borrow_all(&b);
	free(b.plan);
	pthread_mutex_destroy(&b.lock);
	return err;
}
