/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_lender_test.c - borrowers and a lender, whose connections are cut anywhere.
 *
 * Two clients talk to one server over queues of bytes. At random they connect,
 * call, write user messages, lose a connection (of which the client may hear or
 * not), and time goes by; the server prepares slabs late, wants some back and
 * forgets who is silent.
 *
 * After each step: the server never ends what a client knows that it has, but for
 * what it revoked; what a client does not know of is not lent after a resume; no
 * lease is over before its client has noticed; each call ends in time; user messages
 * arrive in order, none is lost and none comes twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/core/borrower_lender_server.h"

#define STEPS 1000000

/* ---- The clients ------------------------------------------------------------*/

/* Half of the time at once, else with the next step that does the same. */
static void pump(struct client *c)
{
	struct rbx_wire_message m;
	int slot;

	while ((slot = rbx_borrower_next(&c->b, w.now_ns, &m)) >= 0) {
		if (!c->is_cut)
			queue_put(&c->up, &c->b.seals.out, &m);
		if (below(2))
			rbx_borrower_sent(&c->b, (uint32_t)slot);
	}
}

static void sends_complete(struct client *c)
{
	uint32_t slot;

	for (slot = 0; slot < RBX_BORROWER_SLOTS; slot++)
		rbx_borrower_sent(&c->b, slot);
}

static void user_message_ended(int status, void *user)
{
	uint64_t *count = user;

	assert_true(status == 0 || status == -EHOSTUNREACH);
	++*count;
}

static void forget(struct client *c, uint64_t epoch)
{
	uint32_t i;

	for (i = 0; i < c->known_count; i++)
		if (c->known[i].epoch == epoch) {
			c->known[i] = c->known[--c->known_count];
			return;
		}
}

/* The server does not know the session any more: a new one begins. */
static void begin_anew(struct client *c)
{
	w.stale++;
	assert_int_equal(held_count(c), 0);
	rbx_borrower_user_messages_stop(&c->b, -EHOSTUNREACH);
	while (rbx_borrower_news(&c->b) == RBX_BORROWER_ENDS)
		rbx_user_message_ends_tell(&c->b.ends);
	assert_int_equal(c->ended_count, c->put_count);
	memset(&c->served, 0, sizeof(c->served));
	c->known_count = 0;
	c->heard_count = c->put_count = c->ended_count = 0;
	rbx_borrower_init(&c->b, &(struct rbx_borrower_config){
					 .silence_ns = SILENCE_NS });
	rbx_borrower_listen(&c->b);
}

static void handshake_ended(struct client *c, int status)
{
	if (status == -ESTALE)
		begin_anew(c);
	else if (status)
		assert_true(status == -EHOSTUNREACH || status == -ETIMEDOUT);
	if (status) {
		rbx_borrower_drop(&c->b);
		return;
	}
	/* What is lent and not known of would stay lent for ever. */
	assert_int_equal(rbx_lender_lent_to(w.lender, c->b.welcome.session_id),
			 held_count(c));
}

static void call_ended(struct client *c)
{
	enum rbx_call_kind kind = c->b.call.kind;
	struct rbx_loan loan;
	int status;

	if (!rbx_borrower_call_is_over(&c->b))
		return;
	if (rbx_borrower_has_to_think(&c->b)) {
		rbx_borrower_think(&c->b);
		rbx_borrower_go_on(&c->b, w.now_ns);
		return;
	}
	status = rbx_borrower_call_end(&c->b, &loan);
	assert_int_not_equal(status, -EPROTO);
	switch (kind) {
	case RBX_CALL_HANDSHAKE:
		handshake_ended(c, status);
		break;
	case RBX_CALL_MAP:
		if (!status) {
			assert_true(c->known_count < KNOWN_MAX);
			c->known[c->known_count++] = loan;
			w.maps++;
		}
		break;
	case RBX_CALL_UNMAP:
		if (status == 0 || status == -ESTALE || status == -EPERM)
			forget(c, c->unmapping.epoch);
		break;
	case RBX_CALL_CHECK:
		if (status == -ESTALE || status == -EPERM)
			forget(c, c->unmapping.epoch);
		break;
	case RBX_CALL_STATS:
	case RBX_CALL_LABEL:
	case RBX_CALL_UNLABEL:
	case RBX_CALL_TALK:
		break;
	}
}

static void news_take(struct client *c)
{
	enum rbx_borrower_news news;

	while ((news = rbx_borrower_news(&c->b)) != RBX_BORROWER_NO_NEWS) {
		uint64_t number;

		if (news == RBX_BORROWER_ENDS)
			rbx_user_message_ends_tell(&c->b.ends);
		if (news != RBX_BORROWER_HEAR)
			continue;
		memcpy(&number, c->b.user_message.bytes, sizeof(number));
		assert_int_equal(number, ++c->heard_count);
		rbx_borrower_user_message_heard(&c->b);
		w.user_messages++;
	}
}

/* ---- Steps ----------------------------------------------------------------------*/

static void connection_ends(struct client *c)
{
	c->up.count = c->down.count = 0;
	c->served.is_connected = c->served.is_open = c->served.may_speak = false;
	c->served.waiting_id = 0;
	c->served.unheard = (struct rbx_unheard){ 0 };
	c->served.seals = (struct rbx_seals){ 0 };
}

static void step_connect(struct client *c)
{
	uint8_t nonce[RBX_WIRE_NONCE_BYTES];
	uint32_t i;

	if (c->b.call.state != RBX_CALL_IDLE ||
	    c->b.phase != RBX_BORROWER_AWAY || w.now_ns < c->away_until_ns)
		return;
	for (i = 0; i < sizeof(nonce); i++)
		nonce[i] = (uint8_t)below(256);
	connection_ends(c);
	c->is_cut = false;
	c->served.is_connected = true;
	c->served.seen_request_id = 0;
	rbx_borrower_connected(&c->b, nonce, w.now_ns + DEADLINE_NS);
}

static void step_cut(struct client *c)
{
	if (c->b.phase == RBX_BORROWER_AWAY)
		return;
	connection_ends(c);
	if (!below(30))
		c->away_until_ns = w.now_ns + below(2 * LEASE_NS / MS) * MS;
	if (below(4)) {
		rbx_borrower_lost(&c->b, "cut", 0);
		assert_int_equal(c->b.phase, RBX_BORROWER_AWAY);
	} else {
		c->is_cut = true;
	}
}

static void step_call(struct client *c)
{
	static const enum rbx_call_kind kinds[] = {
		RBX_CALL_MAP,	RBX_CALL_UNMAP, RBX_CALL_CHECK,
		RBX_CALL_STATS,
	};
	enum rbx_call_kind kind = kinds[below(4)];

	if (c->b.call.state != RBX_CALL_IDLE)
		return;
	if (kind == RBX_CALL_UNMAP || kind == RBX_CALL_CHECK) {
		if (!c->known_count)
			return;
		c->unmapping = c->known[below(c->known_count)];
	}
	/* What is asked for and may come later has a place. */
	if (kind == RBX_CALL_MAP && c->known_count == KNOWN_MAX)
		return;
	rbx_borrower_call(&c->b, kind, &c->unmapping, DEADLINE_NS / MS,
			  w.now_ns);
}

static void step_user_message(struct client *c)
{
	uint64_t number = c->b.mailbox.put_sequence + 1;

	if (!rbx_borrower_user_message_put(&c->b, &number, sizeof(number),
					   user_message_ended, &c->ended_count))
		c->put_count++;
	number = c->served.mailbox.put_sequence + 1;
	if (c->served.session_id &&
	    !rbx_mailbox_put(&c->served.mailbox, &number, sizeof(number), NULL,
			     NULL))
		c->served.put_count++;
}

static void step_receive(struct client *c)
{
	struct bytes *bytes;

	if (!c->down.count)
		return;
	bytes = queue_take(&c->down);
	rbx_borrower_message(&c->b, bytes->bytes, bytes->length_bytes,
			     w.now_ns);
}

/* Time goes by for all. What is there is read before anybody is counted as lost. */
static void step_time(void)
{
	uint32_t i;

	w.now_ns += below(below(50) ? 5 : 400) * MS;
	for (i = 0; i < CLIENTS; i++) {
		struct client *c = &w.clients[i];
		uint64_t due_ns = rbx_borrower_tick(&c->b, w.now_ns);

		/* A host wakes in time; a doubt is settled before others act. */
		if (c->b.doubt_until_ns)
			rbx_borrower_tick(&c->b, due_ns);
		if (c->b.call.state == RBX_CALL_READY ||
		    c->b.call.state == RBX_CALL_SENT)
			assert_true(w.now_ns < c->b.call.deadline_ns);
	}
}

static void step(struct client *c)
{
	switch (below(16)) {
	case 0:
		step_connect(c);
		break;
	case 1:
		if (!below(12))
			step_cut(c);
		break;
	case 2:
	case 3:
		step_call(c);
		break;
	case 4:
		step_user_message(c);
		break;
	case 5:
		step_time();
		break;
	case 6:
		if (!below(20))
			rbx_lender_shrink(w.lender, 1, w.now_ns,
					  below(1000) * MS);
		break;
	case 7:
		if (c->served.preparing)
			serve_prepared(c);
		break;
	case 8:
		if (c->served.waiting_id && !c->served.preparing)
			serve_map(c, c->served.waiting_id);
		break;
	case 9:
		sends_complete(c);
		break;
	case 10:
	case 11:
	case 12:
		serve(c);
		break;
	default:
		step_receive(c);
		break;
	}
	news_take(c);
	call_ended(c);
	pump(c);
	server_acts();
	server_says_messages(c);
}

static void world_begin(void)
{
	const struct rbx_lender_config config = { .slabs_count = SLABS,
						  .lend_max = SLABS,
						  .owners_max = 1,
						  .clients_max = 2 * CLIENTS,
						  .lease_ns = LEASE_NS };
	uint32_t i;

	memset(&w, 0, sizeof(w));
	rbx_random_seed(&w.random, 42);
	w.now_ns = 1000 * MS;
	w.lender = rbx_lender_init(malloc(rbx_lender_size(&config)), &config);
	for (i = 0; i < CLIENTS; i++) {
		rbx_borrower_init(&w.clients[i].b,
				  &(struct rbx_borrower_config){
					  .silence_ns = SILENCE_NS });
		rbx_borrower_listen(&w.clients[i].b);
	}
}

/* What has been said is heard, and what comes of it. */
static void exchange(struct client *c)
{
	for (uint32_t i = 0; i < 20; i++) {
		sends_complete(c);
		pump(c);
		serve(c);
		step_receive(c);
		news_take(c);
		server_acts();
	}
}

/* A slab that takes too long to prepare is lent when nobody waits for it any more. */
static void lend_late(struct client *c)
{
	uint64_t end_ns;

	assert_int_equal(rbx_borrower_call(&c->b, RBX_CALL_MAP, NULL,
					   DEADLINE_NS / MS, w.now_ns),
			 0);
	end_ns = c->b.call.deadline_ns;
	while (w.now_ns < end_ns) {
		exchange(c);
		w.now_ns += 50 * MS;
		rbx_borrower_tick(&c->b, w.now_ns);
	}
	assert_int_equal(rbx_borrower_call_end(&c->b, NULL), -ETIMEDOUT);
	serve_prepared(c);
	exchange(c);
	assert_int_equal(rbx_lender_lent_to(w.lender, c->b.welcome.session_id), 1);
}

/* The server waits until it has all back, without end. */
static void loan_that_came_too_late_keeps_no_drain_waiting(void **state)
{
	struct client *c = &w.clients[0];

	(void)state;
	world_begin();
	step_connect(c);
	while (c->b.phase != RBX_BORROWER_UP) {
		exchange(c);
		call_ended(c);
	}
	call_ended(c);
	lend_late(c);
	rbx_lender_drain(w.lender, w.now_ns);
	exchange(c);
	assert_int_equal(rbx_lender_lent_to(w.lender, c->b.welcome.session_id), 0);
	assert_int_equal(w.ended, 1);
	assert_int_equal(c->b.phase, RBX_BORROWER_UP);
	free(w.lender);
}

static void nothing_is_lost_or_kept(void **state)
{
	uint32_t i;

	(void)state;
	world_begin();
	for (i = 0; i < STEPS; i++)
		step(&w.clients[below(CLIENTS)]);
	print_message("%lu resumes, %lu loans, %lu ended, %lu messages, "
		      "%lu expired, %lu begun anew\n",
		      w.resumes, w.maps, w.ended, w.user_messages, w.expired,
		      w.stale);
	/* All of it has been tried, and often. */
	assert_true(w.resumes > 1000 && w.maps > 1000 &&
		    w.user_messages > 10000);
	assert_true(w.expired > 5 && w.stale > 5);
	free(w.lender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loan_that_came_too_late_keeps_no_drain_waiting),
		cmocka_unit_test(nothing_is_lost_or_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
