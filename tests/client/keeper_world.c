/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* keeper_world.c - see keeper_world.h. */
#include "tests/client/keeper_world.h"

#include <semaphore.h>

#define SLABS 2u
#define SLAB_BYTES RBX_SLAB_BYTES_MIN

/* ---- Servers: what asked_peers.c does not say of them ----------------------------------------*/

bool rbx_peer_is_up(struct rbx_peer *peer)
{
	return !of_peer(peer)->is_silent;
}

void rbx_peer_renounce(struct rbx_peer *peer, const char *reason)
{
	(void)reason;
	of_peer(peer)->is_renounced = true;
}

uint64_t rbx_peer_incarnation(const struct rbx_peer *peer)
{
	return (uint64_t)(of_peer(peer) - servers) + 1;
}

struct rbx_session *rbx_peer_session(struct rbx_peer *peer)
{
	return (struct rbx_session *)peer;
}

static const struct server *of_session(const struct rbx_session *session)
{
	return (const struct server *)session;
}

uint64_t rbx_session_lease_half_ns(const struct rbx_session *session)
{
	const struct server *server = of_session(session);

	return server->lease_ns ? server->answered_ns + server->lease_ns / 2 : UINT64_MAX;
}

uint64_t rbx_session_lease_ns(const struct rbx_session *session)
{
	return of_session(session)->lease_ns;
}

bool rbx_session_drains(const struct rbx_session *session)
{
	return of_session(session)->drains;
}

const char *rbx_peer_name(const struct rbx_peer *peer)
{
	(void)peer;
	return "a server";
}

const char *rbx_peer_reason(const struct rbx_peer *peer)
{
	(void)peer;
	return "it was lost";
}

struct stopped stopped;

void rbx_volume_stopped(struct rbx_volume_control *control, const char *server, const char *why)
{
	(void)control;
	stopped.count++;
	rbx_text_copy(stopped.server, sizeof(stopped.server), server);
	rbx_text_copy(stopped.why, sizeof(stopped.why), why);
}

void rbx_volume_goes_on(struct rbx_volume_control *control)
{
	(void)control;
	stopped = (struct stopped){ .count = 0 };
}

static sem_t woken;

void rbx_volume_upkeep_wake(struct rbx_volume_control *control)
{
	(void)control;
	sem_post(&woken);
}

void woken_wait(void)
{
	while (sem_wait(&woken))
		;
}

/* ---- In the place of client/session.c: at the close, servers are asked one by one ----------*/

struct rbx_wire_record closed_with;
struct rbx_wire_labels told_labels;
struct rbx_wire_intents noted_intents;
struct rbx_wire_record looked_record;
enum rbx_wire_open_mode opened_mode;
int talk_err;

int rbx_session_talk(struct rbx_session *session, struct rbx_wire_message *message)
{
	(void)session;
	if (message->type == RBX_WIRE_LABELS) {
		*message = (struct rbx_wire_message){ .labels = told_labels };
	} else if (message->type == RBX_WIRE_INTENTS) {
		noted_intents = message->intents;
	} else if (message->type == RBX_WIRE_VOLUME_OPEN) {
		opened_mode = message->volume_open.mode;
		*message = (struct rbx_wire_message){ .volume.record = looked_record };
	} else {
		closed_with = message->record;
	}
	return talk_err;
}

int rbx_session_map_for(struct rbx_session *session, const struct rbx_wire_map *map,
			struct rbx_loan *loan)
{
	(void)session;
	(void)map;
	(void)loan;
	fail();
	return 0;
}

uint64_t rbx_session_slab_bytes(const struct rbx_session *session)
{
	(void)session;
	return SLAB_BYTES;
}

uint64_t rbx_session_incarnation(const struct rbx_session *session)
{
	(void)session;
	return 1;
}

int rbx_session_unmap(struct rbx_session *session, const struct rbx_loan *loan)
{
	(void)session;
	(void)loan;
	fail();
	return 0;
}

const char *rbx_session_name(const struct rbx_session *session)
{
	(void)session;
	return "a server";
}

/* ---- A volume with two replicas on them --------------------------------------------------*/

static void wake(struct rbx_flow *flow)
{
	(void)flow;
}

static void end_later(struct rbx_flow *flow, struct rbx_fragment *fragment)
{
	(void)flow;
	(void)fragment;
	fail(); /* nothing is under way */
}

static void tell(struct rbx_upkeep *upkeep, enum rbx_news news, uint32_t count, uint32_t server,
		 int err)
{
	(void)upkeep;
	(void)news;
	(void)count;
	(void)server;
	(void)err;
}

static const struct rbx_upkeep_ops upkeep_ops = { .tell = tell };

static const struct rbx_flow_ops flow_ops = { .wake = wake, .end_later = end_later };

/* The volume is open: its record is accepted by all. */
static void record_choose(struct rbx_named *named, uint32_t count)
{
	const struct rbx_membership none = { .epoch = 0 };
	const uint64_t incarnations[SERVERS] = { 1, 2, 3, 4 };
	uint32_t i;

	assert_int_equal(rbx_named_init(named, "db", "a test"), 0);
	rbx_named_make(named, 77, incarnations, count);
	for (i = 0; i < count; i++)
		rbx_proposer_promised(&named->proposer, i + 1, &none);
	assert_int_equal(rbx_named_take_newest(named), 0);
	for (i = 0; i < count; i++)
		rbx_named_accepted(named, i + 1, named->record.version, 0);
	assert_true(rbx_named_is_chosen(named));
	rbx_named_change(named); /* whose voters are those of before */
	for (i = 0; i < count; i++)
		rbx_named_accepted(named, i + 1, named->record.version, 0);
	assert_true(rbx_named_is_chosen(named));
}

struct world *make(uint32_t count)
{
	return make_with(count, false);
}

struct world *make_with(uint32_t count, bool checksums)
{
	const struct rbx_volume_shape shape = { .size_bytes = SLABS * SLAB_BYTES,
						.size_max_bytes = 8 * SLAB_BYTES,
						.slab_bytes = SLAB_BYTES,
						.fragment_bytes = RBX_PAGE_BYTES,
						.replicas = 2,
						.checksums = checksums,
						.on_demand = true,
						.is_named = true };
	struct world *w = calloc(1, sizeof(*w));
	uint32_t i;

	memset(servers, 0, sizeof(servers));
	memset(&closed_with, 0, sizeof(closed_with));
	memset(&told_labels, 0, sizeof(told_labels));
	memset(&noted_intents, 0, sizeof(noted_intents));
	talk_err = 0;
	w->now_ns = 1;
	w->control.servers = calloc(RBX_SERVERS_MAX, sizeof(*w->control.servers));
	w->control.server_count = count;
	rbx_flow_init(&w->control.flow, &flow_ops, &w->counters);
	rbx_upkeep_init(&w->control.upkeep, &w->control.flow, &upkeep_ops, 1000000000);
	for (i = 0; i < count; i++) {
		w->control.servers[i].peer = (struct rbx_peer *)&servers[i];
		w->control.upkeep.servers[i].incarnation = i + 1;
	}
	rbx_flow_open(&w->control.flow, &shape, calloc(1, rbx_volume_map_size(&shape)), 1, count,
		      calloc(1, rbx_flow_pool_size(&shape, 1)), 1);
	record_choose(&w->named, count);
	w->named.record.replicas = w->named.record.copies = 2;
	w->named.record.slab_bytes = SLAB_BYTES;
	w->control.upkeep.copies_least = 2;
	rbx_keeper_init(&w->keeper, &w->control, &w->named);
	rbx_keeper_begin(&w->keeper);
	sem_init(&woken, 0, 0);
	return w;
}

void end(struct world *w)
{
	free(w->control.flow.pool.memory);
	free(w->control.flow.map);
	free(w->control.servers);
	rbx_keeper_destroy(&w->keeper);
	free(w);
}

void has_slab(struct world *w, uint32_t server, uint32_t slab)
{
	const struct rbx_loan loan = { .slab_id = slab + 1, .epoch = slab + 1, .rkey = slab + 1,
				       .remote_addr = (slab + 1ull) * SLAB_BYTES };

	assert_int_equal(rbx_upkeep_adopt(&w->control.upkeep, server, slab + 1, &loan), 0);
}

uint64_t turn(struct world *w)
{
	return rbx_keeper_round(&w->keeper, w->now_ns);
}

void suspect(struct world *w, uint32_t server)
{
	rbx_held_suspect(&w->control.flow.held, server);
}

bool is_down(const struct world *w, uint32_t server)
{
	return rbx_upkeep_server_is_down(&w->control.upkeep, server);
}

bool has_failed(struct world *w, uint32_t server)
{
	return rbx_held_has_failed(&w->control.flow.held, server);
}

/* ---- The thread that has connected one that comes again, and waits ------------------------- */

static void *comer_run(void *argument)
{
	struct comer *comer = argument;

	comer->err = rbx_keeper_again(&comer->w->keeper, comer->place, comer->failed_place);
	return NULL;
}

static bool is_seen(struct world *w)
{
	bool is;

	rbx_monitor_enter(&w->keeper.newcomer.monitor);
	is = w->keeper.newcomer.is_new;
	rbx_monitor_leave(&w->keeper.newcomer.monitor);
	return is;
}

void newcomer_wait(struct world *w)
{
	do
		woken_wait();
	while (!is_seen(w));
}

void comes_again(struct comer *comer, struct world *w, uint32_t place,
		 uint32_t failed_place)
{
	*comer = (struct comer){ .w = w, .place = place, .failed_place = failed_place };
	w->control.servers[place].peer = w->control.servers[failed_place].peer;
	w->control.servers[place].is_shunned = true;
	assert_int_equal(pthread_create(&comer->thread, NULL, comer_run, comer), 0);
	newcomer_wait(w);
}

int came(struct comer *comer)
{
	assert_int_equal(pthread_join(comer->thread, NULL), 0);
	return comer->err;
}

void two_are_lost(struct world *w)
{
	w->control.servers[0].is_given_up = true;
	w->control.servers[1].is_given_up = true;
	(void)turn(w);
	assert_true(w->keeper.is_over);
}
