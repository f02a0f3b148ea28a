/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper_test.c - who is put out of a named volume, when, and what follows if nobody accepts that.
 */
#include "client/keeper.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SERVERS 4u
#define SLABS 2u
#define SLAB_BYTES RBX_SLAB_BYTES_MIN
#define AGAIN_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)

/* ---- Servers, in the place of client/peer.c ---------------------------------------------*/

static struct server {
	struct rbx_ask *ask; /* that it has not answered */
	struct rbx_wire_record asked; /* what it was asked to accept last */
	uint32_t asks_count;
	int answer;
	bool has_answered;
	bool is_silent; /* not up */
} servers[SERVERS];

static struct server *of_peer(const struct rbx_peer *peer)
{
	return (struct server *)(uintptr_t)peer;
}

void rbx_peer_ask(struct rbx_peer *peer, struct rbx_ask *ask)
{
	struct server *server = of_peer(peer);

	assert_int_equal(ask->kind, RBX_CALL_TALK);
	assert_int_equal(ask->message->type, RBX_WIRE_VOLUME_ACCEPT);
	assert_null(server->ask);
	server->ask = ask;
	server->asked = ask->message->record;
	server->asks_count++;
	server->has_answered = false;
}

int rbx_peer_answer(struct rbx_peer *peer, struct rbx_ask *ask, struct rbx_loan *loan)
{
	struct server *server = of_peer(peer);

	(void)loan;
	assert_ptr_equal(server->ask, ask);
	if (!server->has_answered)
		return -EAGAIN;
	server->ask = NULL;
	return server->answer;
}

bool rbx_peer_is_up(struct rbx_peer *peer)
{
	return !of_peer(peer)->is_silent;
}

uint64_t rbx_peer_incarnation(const struct rbx_peer *peer)
{
	return (uint64_t)(of_peer(peer) - servers) + 1;
}

struct rbx_session *rbx_peer_session(struct rbx_peer *peer)
{
	(void)peer;
	return NULL;
}

void rbx_volume_upkeep_wake(struct rbx_volume_control *control)
{
	(void)control;
}

/* ---- In the place of client/session.c: at the close, servers are asked one by one ----------*/

static struct rbx_wire_record closed_with; /* epoch 0: nobody was asked */

int rbx_session_talk(struct rbx_session *session, struct rbx_wire_message *message)
{
	(void)session;
	closed_with = message->record;
	return 0;
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

static void answers(uint32_t server, int err)
{
	servers[server].answer = err;
	servers[server].has_answered = true;
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

struct world {
	struct rbx_volume_control control;
	struct rbx_named named;
	struct rbx_keeper keeper;
	struct rbx_flow_counters counters;
	uint64_t now_ns;
};

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
	assert_int_equal(rbx_named_settle(named), 0);
	for (i = 0; i < count; i++)
		rbx_named_accepted(named, i + 1, named->record.version, 0);
	assert_true(rbx_named_is_chosen(named));
	rbx_named_change(named); /* whose voters are those of before */
	for (i = 0; i < count; i++)
		rbx_named_accepted(named, i + 1, named->record.version, 0);
	assert_true(rbx_named_is_chosen(named));
}

static struct world *make(uint32_t count)
{
	const struct rbx_volume_shape shape = { .size_bytes = SLABS * SLAB_BYTES,
						.slab_bytes = SLAB_BYTES,
						.fragment_bytes = RBX_PAGE_BYTES,
						.replicas = 2,
						.on_demand = true,
						.is_named = true };
	struct world *w = calloc(1, sizeof(*w));
	uint32_t i;

	memset(servers, 0, sizeof(servers));
	memset(&closed_with, 0, sizeof(closed_with));
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
	w->control.upkeep.copies_least = 2;
	rbx_keeper_init(&w->keeper, &w->control, &w->named);
	return w;
}

static void end(struct world *w)
{
	free(w->control.flow.pool.memory);
	free(w->control.flow.map);
	free(w->control.servers);
	free(w);
}

static void has_slab(struct world *w, uint32_t server, uint32_t slab)
{
	const struct rbx_loan loan = { .slab_id = slab + 1, .epoch = slab + 1, .rkey = slab + 1,
				       .remote_addr = (slab + 1ull) * SLAB_BYTES };

	assert_int_equal(rbx_upkeep_adopt(&w->control.upkeep, server, slab + 1, &loan), 0);
}

static uint64_t turn(struct world *w)
{
	return rbx_keeper_round(&w->keeper, w->now_ns);
}

static void suspect(struct world *w, uint32_t server)
{
	rbx_held_suspect(&w->control.flow.held, server);
}

static bool is_down(const struct world *w, uint32_t server)
{
	return rbx_upkeep_server_is_down(&w->control.upkeep, server);
}

static bool has_failed(struct world *w, uint32_t server)
{
	return rbx_held_has_failed(&w->control.flow.held, server);
}

/* ---- Tests --------------------------------------------------------------------------------*/

static void server_is_out_when_a_quorum_says_so(void **state)
{
	struct world *w = make(3);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 0);
	assert_int_equal(servers[1].asks_count, 1);
	assert_int_equal(servers[2].asks_count, 1);
	assert_false(rbx_record_is_in(&servers[1].asked, 1));
	/* Nothing is read there from the moment on that somebody may accept it. */
	assert_true(w->control.servers[0].is_shunned);
	answers(1, 0);
	(void)turn(w);
	assert_false(is_down(w, 0)); /* two of three are needed */
	answers(2, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	/* And one more record that needs no vote of it. */
	assert_int_equal(servers[1].asks_count, 2);
	assert_int_equal(servers[1].asked.member_flags[0], RBX_WIRE_MEMBER_OUT);
	answers(1, 0);
	answers(2, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[0].asks_count + servers[1].asks_count + servers[2].asks_count, 4);
	end(w);
}

/* The answer to the first record comes when the second one is asked for. */
static void answer_counts_for_the_record_that_was_asked_for(void **state)
{
	struct world *w = make(4);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, 0);
	answers(2, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	answers(3, 0); /* late */
	answers(1, 0);
	(void)turn(w);
	assert_false(rbx_named_is_chosen(&w->named));
	assert_int_equal(servers[3].asks_count, 2);
	answers(3, 0);
	(void)turn(w);
	assert_true(rbx_named_is_chosen(&w->named));
	end(w);
}

static void server_that_is_away_is_asked_again(void **state)
{
	struct world *w = make(2);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, -ENOTCONN);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[1].asks_count, 1);
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 2);
	answers(1, 0);
	(void)turn(w);
	assert_true(is_down(w, 0));
	end(w);
}

/* Nobody is left who could accept it. */
static void too_few_servers_are_left_all_fails(void **state)
{
	struct world *w = make(3);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, 0);
	suspect(w, 2);
	answers(2, -ENOTCONN);
	(void)turn(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1) && has_failed(w, 2));
	assert_false(is_down(w, 0));
	assert_int_equal(turn(w), UINT64_MAX);
	end(w);
}

static void another_client_has_the_volume_all_fails(void **state)
{
	struct world *w = make(3);

	(void)state;
	suspect(w, 0);
	(void)turn(w);
	answers(1, -ESTALE);
	(void)turn(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1) && has_failed(w, 2));
	assert_false(is_down(w, 0));
	end(w);
}

static void last_copy_is_not_put_out(void **state)
{
	struct world *w = make(3);

	(void)state;
	has_slab(w, 0, 1);
	suspect(w, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_true(has_failed(w, 0));
	assert_false(has_failed(w, 1));
	assert_int_equal(servers[1].asks_count + servers[2].asks_count, 0);
	end(w);
}

/* The other one that has it is silent: perhaps it is lost as well. */
static void copy_that_may_be_the_last_is_not_put_out_yet(void **state)
{
	struct world *w = make(4);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	servers[1].is_silent = true;
	suspect(w, 0);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[2].asks_count, 0);
	assert_false(has_failed(w, 0));
	suspect(w, 1);
	(void)turn(w);
	assert_true(has_failed(w, 0) && has_failed(w, 1));
	end(w);

	w = make(4);
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	servers[1].is_silent = true;
	suspect(w, 0);
	(void)turn(w);
	servers[1].is_silent = false; /* it is back */
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 1);
	assert_false(has_failed(w, 0));
	end(w);
}

/* Each slab that was written has two. One server is lost. */
static void record_says_how_many_copies_are_left(void **state)
{
	struct world *w = make(3);
	uint32_t i;

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	suspect(w, 0);
	(void)turn(w);
	assert_int_equal(servers[1].asked.copies, 1);
	assert_int_equal(w->control.upkeep.copies_least, 2); /* nobody has accepted it */
	for (i = 0; i < 2; i++) { /* the second one needs no vote of the server that is out */
		answers(1, 0);
		answers(2, 0);
		(void)turn(w);
		assert_int_equal(w->control.upkeep.copies_least, 1);
	}
	/* What the server had is not known yet, and then it lacks. */
	assert_int_equal(servers[1].asks_count, 2);
	(void)rbx_upkeep_servers_tend(&w->control.upkeep);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[1].asks_count, 2);
	end(w);
}

static void volume_that_is_whole_again_has_all_copies(void **state)
{
	struct world *w = make(2);

	(void)state;
	w->named.record.copies = w->control.upkeep.copies_least = 1;
	has_slab(w, 0, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(servers[0].asks_count, 0);
	has_slab(w, 1, 0);
	(void)turn(w);
	assert_int_equal(servers[0].asked.copies, 2);
	assert_int_equal(w->control.upkeep.copies_least, 2); /* somebody may have accepted it */
	answers(0, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	end(w);
}

/* Too few servers have lent for a first write. */
static void record_allows_fewer_copies(void **state)
{
	struct world *w = make(3);
	struct rbx_borrowing *borrowing = &w->control.upkeep.borrowings[0];

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	has_slab(w, 0, 1); /* stands for what was lent */
	borrowing->slab = rbx_slab_at(&w->control.flow.map->shape, 1);
	borrowing->is_short = true;
	w->control.upkeep.borrowings_count = 1;
	(void)turn(w);
	assert_int_equal(servers[1].asked.copies, 1);
	assert_int_equal(w->control.upkeep.copies_least, 2);
	answers(0, 0);
	answers(1, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_int_equal(w->control.upkeep.copies_least, 1);
	end(w);
}

/* Those that are left cannot keep another client out. */
static void writer_that_is_cut_off_sends_nothing_any_more(void **state)
{
	struct world *w = make(3);
	uint32_t i;

	(void)state;
	w->control.servers[0].is_given_up = true;
	assert_int_equal(turn(w), UINT64_MAX);
	assert_false(w->control.servers[2].is_shunned);
	w->control.servers[1].is_given_up = true;
	assert_int_equal(turn(w), UINT64_MAX);
	for (i = 0; i < 3; i++)
		assert_true(w->control.servers[i].is_shunned && has_failed(w, i));
	assert_int_equal(w->control.upkeep.copies_least, 0);
	end(w);

	w = make(2); /* the other one alone lets nobody in */
	w->control.servers[0].is_given_up = true;
	(void)turn(w);
	assert_false(w->control.servers[1].is_shunned);
	end(w);
}

static void last_voter_is_not_put_out(void **state)
{
	struct world *w = make(1);

	(void)state;
	suspect(w, 0);
	assert_int_equal(turn(w), UINT64_MAX);
	assert_true(has_failed(w, 0));
	end(w);
}

/* The next client need not copy anything. But not if a record was not accepted, or replicas are
 * being made equal. */
static void volume_that_is_closed_well_is_even(void **state)
{
	struct world *w = make(2);

	(void)state;
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_true(closed_with.flags & RBX_WIRE_EVEN);
	end(w);

	w = make(3);
	suspect(w, 0);
	(void)turn(w);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);

	w = make(2);
	has_slab(w, 0, 0);
	has_slab(w, 1, 0);
	rbx_upkeep_found_intent(&w->control.upkeep, 1, 1);
	rbx_upkeep_even_out(&w->control.upkeep);
	rbx_keeper_end(&w->keeper);
	rbx_keeper_close(&w->keeper);
	assert_int_equal(closed_with.epoch, 0);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_is_out_when_a_quorum_says_so),
		cmocka_unit_test(answer_counts_for_the_record_that_was_asked_for),
		cmocka_unit_test(server_that_is_away_is_asked_again),
		cmocka_unit_test(too_few_servers_are_left_all_fails),
		cmocka_unit_test(another_client_has_the_volume_all_fails),
		cmocka_unit_test(last_copy_is_not_put_out),
		cmocka_unit_test(copy_that_may_be_the_last_is_not_put_out_yet),
		cmocka_unit_test(record_says_how_many_copies_are_left),
		cmocka_unit_test(volume_that_is_whole_again_has_all_copies),
		cmocka_unit_test(record_allows_fewer_copies),
		cmocka_unit_test(writer_that_is_cut_off_sends_nothing_any_more),
		cmocka_unit_test(last_voter_is_not_put_out),
		cmocka_unit_test(volume_that_is_closed_well_is_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
