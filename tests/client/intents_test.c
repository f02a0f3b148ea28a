/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * intents_test.c - what the servers of a named volume are asked to note, and until when writes wait
 * for that (client/intents.h).
 */
#include "client/intents.h"

#include "tests/client/asked_peers.h"

#define SERVERS 3u
#define SLABS (RBX_WIRE_INTENTS_MAX + 2)
#define SLAB_BYTES RBX_SLAB_BYTES_MIN
#define AGAIN_NS (RBX_UPKEEP_RETRY_MS * 1000000ull)
#define PIECES 64u

void rbx_volume_upkeep_wake(struct rbx_volume_control *control)
{
	(void)control;
}

/* ---- A volume with two replicas on them --------------------------------------------------*/

static uint32_t sent_count, ended_count; /* parts */

static void submit(struct rbx_flow *flow, uint32_t server, struct rbx_fragment *first,
		   struct rbx_fragment *last)
{
	(void)flow;
	(void)server;
	(void)last;
	for (; first; first = rbx_fragment_next(first))
		sent_count++;
}

static void end_later(struct rbx_flow *flow, struct rbx_fragment *fragment)
{
	(void)flow;
	(void)fragment;
	ended_count++;
}

static void wake(struct rbx_flow *flow)
{
	(void)flow;
}

static const struct rbx_flow_ops flow_ops = {
	.submit = submit,
	.end_later = end_later,
	.wake = wake,
};

struct world {
	struct rbx_volume_control control;
	struct rbx_intents_round intents;
	struct rbx_flow_counters counters;
	uint64_t now_ns;
};

/* Slab i is at servers i and i + 1. */
static struct world *make(void)
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
	sent_count = ended_count = 0;
	w->now_ns = 1;
	w->control.servers = calloc(RBX_SERVERS_MAX, sizeof(*w->control.servers));
	rbx_flow_init(&w->control.flow, &flow_ops, &w->counters);
	rbx_upkeep_init(&w->control.upkeep, &w->control.flow, NULL, 1000000000);
	for (i = 0; i < SERVERS; i++)
		w->control.servers[i].peer = (struct rbx_peer *)&servers[i];
	rbx_flow_open(&w->control.flow, &shape, calloc(1, rbx_volume_map_size(&shape)), 1, SERVERS,
		      calloc(1, rbx_flow_pool_size(&shape, PIECES)), PIECES);
	for (i = 0; i < 2 * SLABS; i++) {
		const struct rbx_loan loan = { .slab_id = i + 1, .epoch = i + 10, .rkey = i + 1,
					       .remote_addr = (i + 1ull) * SLAB_BYTES };

		assert_int_equal(rbx_upkeep_adopt(&w->control.upkeep, (i / 2 + i % 2) % SERVERS,
						  i / 2 + 1, &loan),
				 0);
	}
	rbx_intents_init(&w->intents, &w->control);
	return w;
}

static void end(struct world *w)
{
	free(w->control.flow.pool.memory);
	free(w->control.flow.map);
	free(w->control.servers);
	free(w);
}

/* To the first extent of a slab. */
static void write_to(struct world *w, uint32_t slab)
{
	struct rbx_piece_list pieces = { 0 };
	struct rbx_piece *piece;

	assert_int_equal(rbx_piece_pool_take(&w->control.flow.pool, 1, &pieces), 0);
	piece = rbx_piece_of(pieces.first);
	piece->kind = RBX_PIECE_WRITE;
	piece->fragment_flags = 0;
	(void)rbx_volume_map_aim(w->control.flow.map, piece, (uint64_t)slab * SLAB_BYTES, 512);
	rbx_flow_start(&w->control.flow, &pieces);
}

static uint64_t turn(struct world *w)
{
	return rbx_intents_round(&w->intents, w->now_ns);
}

/* ---- Tests --------------------------------------------------------------------------------*/

static void write_waits_until_both_servers_have_noted_it(void **state)
{
	struct world *w = make();

	(void)state;
	assert_int_equal(turn(w), UINT64_MAX);
	write_to(w, 0);
	(void)turn(w);
	assert_int_equal(servers[0].asked.intents.count, 1);
	assert_int_equal(servers[0].asked.intents.intents[0].slab_id, 1);
	assert_int_equal(servers[0].asked.intents.intents[0].epoch, 10);
	assert_int_equal(servers[0].asked.intents.intents[0].word, 1);
	assert_int_equal(servers[1].asked.intents.intents[0].slab_id, 2);
	assert_int_equal(servers[2].asks_count, 0);
	answers(0, 0);
	(void)turn(w);
	assert_int_equal(sent_count, 0);
	answers(1, 0);
	assert_int_equal(turn(w), w->now_ns + RBX_EXTENTS_QUIET_NS);
	assert_int_equal(sent_count, 2);
	assert_int_equal(servers[0].asks_count + servers[1].asks_count, 2);
	end(w);
}

/* One message has room for so many, and the others are in the next. */
static void slabs_are_noted_together(void **state)
{
	struct world *w = make();
	uint32_t i, asked_count = 0;

	(void)state;
	for (i = 0; i < SLABS; i++)
		write_to(w, i);
	(void)turn(w);
	for (i = 0; i < SERVERS; i++) {
		asked_count += servers[i].asked.intents.count;
		answers(i, 0);
	}
	assert_int_equal(asked_count, 2 * RBX_WIRE_INTENTS_MAX);
	(void)turn(w);
	assert_int_equal(sent_count, 2 * RBX_WIRE_INTENTS_MAX);
	for (i = 0; i < SERVERS; i++)
		answers(i, 0);
	assert_int_equal(turn(w), w->now_ns + RBX_EXTENTS_QUIET_NS);
	assert_int_equal(sent_count, 2 * SLABS);
	end(w);
}

static void server_that_is_away_is_asked_again(void **state)
{
	struct world *w = make();

	(void)state;
	write_to(w, 0);
	(void)turn(w);
	answers(0, 0);
	answers(1, -ENOTCONN);
	assert_int_equal(turn(w), w->now_ns + AGAIN_NS);
	assert_int_equal(servers[1].asks_count, 1);
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[0].asks_count, 1); /* it has noted it */
	assert_int_equal(servers[1].asks_count, 2);
	assert_int_equal(servers[1].asked.intents.intents[0].word, 1);
	assert_int_equal(sent_count, 0);
	answers(1, 0);
	(void)turn(w);
	assert_int_equal(sent_count, 2);
	end(w);
}

/* The record says that it is out: it does not matter what it has noted. */
static void server_that_is_out_is_not_waited_for(void **state)
{
	struct world *w = make();

	(void)state;
	write_to(w, 0);
	(void)turn(w);
	answers(0, 0);
	(void)turn(w);
	rbx_upkeep_server_down(&w->control.upkeep, 1);
	(void)turn(w);
	assert_true(sent_count > 0);
	/* Its place is not given to another one before it has answered, or its peer has. */
	assert_false(rbx_intents_is_done_with(&w->intents, 1));
	answers(1, -ENOTCONN);
	(void)turn(w);
	assert_true(rbx_intents_is_done_with(&w->intents, 1));
	end(w);
}

/* Another one has its place before the others have noted the same words. */
static void server_that_takes_its_place_is_not_asked_in_its_stead(void **state)
{
	struct world *w = make();

	(void)state;
	write_to(w, 0);
	(void)turn(w);
	answers(1, -ENOTCONN);
	rbx_upkeep_server_down(&w->control.upkeep, 1);
	(void)turn(w);
	assert_true(rbx_intents_is_done_with(&w->intents, 1));
	rbx_upkeep_server_begins(&w->control.upkeep, 1);
	w->now_ns += AGAIN_NS;
	(void)turn(w);
	assert_int_equal(servers[1].asks_count, 1);
	answers(0, 0);
	(void)turn(w);
	assert_true(sent_count > 0);
	end(w);
}

/* It fences us, or what we say means nothing to it. */
static void server_that_refuses_is_a_suspect(void **state)
{
	struct rbx_server_set suspects, gone;
	struct world *w = make();

	(void)state;
	write_to(w, 0);
	(void)turn(w);
	answers(0, 0);
	answers(1, -EPROTO);
	(void)turn(w);
	assert_true(rbx_held_suspects(&w->control.flow.held, &suspects, &gone));
	assert_true(rbx_server_set_has(&suspects, 1));
	assert_int_equal(rbx_server_set_count(&suspects), 1);
	/* It may be the last that has something. Then nothing is written any more. */
	assert_null(rbx_held_failed(&w->control.flow.held, 1));
	(void)turn(w);
	assert_int_equal(sent_count, 0);
	assert_int_equal(ended_count, 1);
	end(w);
}

/* Nobody is asked, and the next round is at once: others may wait behind this batch. */
static void servers_have_failed_the_batch_ends_at_once(void **state)
{
	struct world *w = make();

	(void)state;
	assert_null(rbx_held_failed(&w->control.flow.held, 0));
	assert_null(rbx_held_failed(&w->control.flow.held, 1));
	write_to(w, 0);
	assert_int_equal(turn(w), w->now_ns);
	assert_int_equal(servers[0].asks_count + servers[1].asks_count, 0);
	(void)turn(w);
	assert_int_equal(ended_count, 1);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_waits_until_both_servers_have_noted_it),
		cmocka_unit_test(slabs_are_noted_together),
		cmocka_unit_test(server_that_is_away_is_asked_again),
		cmocka_unit_test(server_that_is_out_is_not_waited_for),
		cmocka_unit_test(server_that_takes_its_place_is_not_asked_in_its_stead),
		cmocka_unit_test(server_that_refuses_is_a_suspect),
		cmocka_unit_test(servers_have_failed_the_batch_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
