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
#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"

#define MIB 1048576.0

struct borrowing {
	const struct rbx_named *named;
	struct rbx_memory_wanted *wanted;
	uint32_t replicas;
	uint64_t slabs_count;
	uint8_t *plan; /* for each slab, as many servers as replicas */
	bool has_failed; /* atomic: no server is asked for one more */
	pthread_mutex_t lock; /* guards what follows */
	uint64_t done_count; /* replicas */
};

/* ---- The plan -------------------------------------------------------------------------*/

static void room_ask(const struct borrowing *b, struct rbx_reservation *plan)
{
	uint32_t i;

	*plan = (struct rbx_reservation){ .servers_count = b->wanted->servers_count };
	for (i = 0; i < plan->servers_count; i++) {
		const struct rbx_memory_server *server = &b->wanted->servers[i];

		if (!server->lends)
			continue;
		plan->room[i] = rbx_session_free_bytes(server->session) /
				b->named->record.slab_bytes;
		plan->domains[i] = server->domain;
	}
}

static bool plan_make(struct borrowing *b, struct rbx_reservation plan, bool apart)
{
	uint64_t i;

	for (i = 0; i < b->slabs_count; i++)
		if (!rbx_reservation_next(&plan, b->replicas, apart, &b->plan[i * b->replicas]))
			return false;
	return true;
}

/* What would have to be free besides. A server has one replica of a slab at most. */
static uint64_t missing_slabs(const struct borrowing *b)
{
	uint64_t wanted = b->slabs_count * b->replicas - b->done_count, room = 0;
	struct rbx_reservation plan;
	uint32_t i;

	room_ask(b, &plan);
	for (i = 0; i < plan.servers_count; i++)
		room += RBX_MIN(plan.room[i], b->slabs_count);
	return wanted - RBX_MIN(wanted, room);
}

/* Adds what is wanted, and what each server has. */
static int room_explain(const struct borrowing *b, int err, const char *why)
{
	double slab_mib = (double)b->named->record.slab_bytes / MIB;
	const struct rbx_memory_server *server = b->wanted->servers;
	char rooms[RBX_ERROR_TEXT_MAX] = "";
	size_t end = 0;
	uint32_t i;

	for (i = 0; i < b->wanted->servers_count && end < sizeof(rooms); i++, server++)
		if (server->lends)
			end += (size_t)snprintf(
				rooms + end, sizeof(rooms) - end, "; %s has %.10g MiB free",
				rbx_session_name(server->session),
				(double)rbx_session_free_bytes(server->session) / MIB);
	return rbx_error(err, "%s (to be reserved: %.10g MiB, %u cop%s, in slabs of %.10g MiB; missing: %.10g MiB%s)",
			 why, (double)b->slabs_count * slab_mib, b->replicas,
			 b->replicas == 1 ? "y" : "ies", slab_mib,
			 (double)missing_slabs(b) * slab_mib, rooms);
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
	snprintf(why, sizeof(why), "volume %s: its servers have not enough memory free; add servers, or take less",
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

static int lent_note(struct rbx_returned *lent, uint64_t slab, const struct rbx_loan *loan)
{
	const struct rbx_wire_label label = { .label = slab + 1, .is_complete = 1 };

	return lent ? rbx_returned_note(lent, &label, loan) : 0;
}

static int slab_borrow(const struct rbx_named *named, const struct rbx_memory_server *server,
		       uint64_t slab, struct rbx_wire_intents *intents)
{
	const struct rbx_wire_map map = {
		.label = slab + 1,
		.is_complete = 1,
		.has_tail = rbx_named_has_tails(named),
	};
	struct rbx_loan loan;
	int err = rbx_session_map_for(server->session, &map, &loan);

	if (!err)
		err = lent_note(server->lent, slab, &loan);
	if (err)
		return err;
	intents->intents[intents->count++] = (struct rbx_wire_intent){
		.slab_id = loan.slab_id,
		.epoch = loan.epoch,
	};
	return intents->count == RBX_WIRE_INTENTS_MAX ? unwritten_tell(server->session, intents) :
							0;
}

static bool is_planned(const struct borrowing *b, uint64_t slab, uint32_t server)
{
	return memchr(&b->plan[slab * b->replicas], (int)server, b->replicas);
}

/* All slabs of one server. */
static int server_act(void *user, uint32_t index)
{
	struct borrowing *b = user;
	const struct rbx_memory_server *server = &b->wanted->servers[index];
	struct rbx_wire_intents intents = { 0 };
	uint64_t i;
	int err = 0;

	for (i = 0; i < b->slabs_count && !err && !RBX_LOAD_RELAXED(&b->has_failed); i++) {
		if (!is_planned(b, i, index))
			continue;
		err = slab_borrow(b->named, server, b->wanted->from_slab + i, &intents);
		if (!err)
			progressed(b);
	}
	if (!err)
		err = unwritten_tell(server->session, &intents);
	if (err)
		RBX_STORE_RELAXED(&b->has_failed, true);
	return err;
}

static int borrow_all(struct borrowing *b)
{
	int err = rbx_at_once(b->wanted->servers_count, server_act, b);
	char why[RBX_ERROR_TEXT_MAX];

	if (err != -ENOSPC && err != -EDQUOT)
		return err;
	snprintf(why, sizeof(why), "%s", rbx_last_error());
	return room_explain(b, err, why);
}

int rbx_named_borrow(const struct rbx_named *named, struct rbx_memory_wanted *wanted)
{
	uint64_t slabs_count = rbx_named_slabs(wanted->size_bytes, named->record.slab_bytes);
	struct borrowing b = {
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

/* ---- Servers that are only asked for this ------------------------------------------------- */

/* What a pool tells of its members, for servers that have no labels of their own. */
static void domains_of_pool(const struct rbx_crowd *crowd, const char *servers,
			    struct rbx_memory_server *lenders)
{
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	struct rbx_pool *pool;
	size_t count, j;
	uint32_t i;

	if (!members || rbx_pool_open(&pool, servers)) {
		free(members);
		return;
	}
	count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
	rbx_pool_close(pool);
	for (i = 0; i < crowd->count; i++)
		for (j = 0; j < count && !lenders[i].domain; j++)
			if (!strcmp(members[j].address, crowd->names[i]))
				lenders[i].domain = rbx_server_domain(members[j].labels,
								      RBX_SPREAD_DEFAULT);
	free(members);
}

/* A server that was not granted the volume, or is OUT, lends nothing. */
static bool lends(const struct rbx_crowd *crowd, const struct rbx_named *named, uint32_t server)
{
	uint64_t incarnation = rbx_session_incarnation(crowd->sessions[server]);

	return named->is_made ||
	       (crowd->has[server] && rbx_record_is_in(&named->record, incarnation));
}

int rbx_named_borrow_of(const struct rbx_crowd *crowd, const struct rbx_named *named,
			const char *servers, struct rbx_memory_wanted *wanted)
{
	uint32_t i;

	wanted->servers_count = crowd->count;
	for (i = 0; i < crowd->count; i++)
		wanted->servers[i] = (struct rbx_memory_server){
			.session = crowd->sessions[i],
			.domain = rbx_server_domain(rbx_session_labels(crowd->sessions[i]),
						    RBX_SPREAD_DEFAULT),
			.lends = lends(crowd, named, i),
		};
	domains_of_pool(crowd, servers, wanted->servers);
	return rbx_named_borrow(named, wanted);
}

/* ---- What there is in all ----------------------------------------------------------------- */

/* If each slab is at as many servers as there are replicas, and at none of them twice, all have
 * room just if the servers have for so many replicas together, each for one of a slab at most. */
int rbx_named_fit_check(const struct rbx_crowd *crowd, const struct rbx_named *named,
			uint64_t size_bytes)
{
	const struct rbx_wire_record *record = &named->record;
	uint64_t slabs_count = rbx_named_slabs(size_bytes, record->slab_bytes);
	uint64_t wanted = slabs_count * record->replicas, room = 0, memory_bytes = 0;
	uint32_t i, servers_count = 0;

	for (i = 0; i < crowd->count; i++) {
		uint64_t bytes = rbx_session_memory_bytes(crowd->sessions[i]);

		if (!lends(crowd, named, i))
			continue;
		servers_count++;
		memory_bytes += bytes;
		room += RBX_MIN(bytes / record->slab_bytes, slabs_count);
	}
	if (room >= wanted)
		return 0;
	return rbx_error(-ENOSPC, "volume %s: %.10g MiB with %u cop%s can never be written in full, as its %u server%s %s %.10g MiB in all: add servers, take less, or allow it (overcommit, --overcommit)",
			 record->name, (double)size_bytes / MIB, record->replicas,
			 record->replicas == 1 ? "y" : "ies", servers_count,
			 servers_count == 1 ? "" : "s",
			 servers_count == 1 ? "that is there has" : "that are there have",
			 (double)memory_bytes / MIB);
}
