/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_test.c - a borrower and a server that is scripted, one rule at a time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/borrower.h"
#include "wire/reason.h"

#define MS 1000000ull
#define SILENCE_NS (1000 * MS)
#define LEASE_MS 8000
#define SLAB_BYTES (1u << 20)
#define ANSWER_MS 500
#define DEADLINE_NS (ANSWER_MS * MS)

/* A borrower, and what is known of it on the other side. */
struct pair {
	struct rbx_borrower b;
	uint64_t now_ns;
	struct rbx_wire_message sent; /* the last one */
	int slot; /* of it */
	uint32_t sent_count;
	struct rbx_root root;
	struct rbx_transcript transcript;
	struct rbx_key session_key;
	struct rbx_wire_message welcome; /* what the server says; no proof yet */
};

static const uint8_t secret[] = "a secret that both sides have";
static const uint8_t nonce[RBX_WIRE_NONCE_BYTES] = { 1, 2, 3 };

/* Takes what is to be sent; each buffer is free at once. */
static void pump(struct pair *p)
{
	struct rbx_wire_message m;
	int slot;

	while ((slot = rbx_borrower_next(&p->b, p->now_ns, &m)) >= 0) {
		p->sent = m;
		p->slot = slot;
		p->sent_count++;
		rbx_borrower_sent(&p->b, (uint32_t)slot);
	}
}

static void say(struct pair *p, const struct rbx_wire_message *m)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];

	rbx_borrower_message(&p->b, bytes, rbx_wire_encode(m, bytes),
			     p->now_ns);
}

static struct pair *pair_make(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->now_ns = 1000 * MS;
	p->root = (struct rbx_root){ secret, sizeof(secret) - 1 };
	rbx_borrower_init(&p->b, &(struct rbx_borrower_config){
					 .secret = p->root,
					 .silence_ns = SILENCE_NS,
				 });
	p->welcome = (struct rbx_wire_message){
		.type = RBX_WIRE_WELCOME,
		.welcome = {
			.session_id = 77,
			.incarnation = 5,
			.slab_bytes = SLAB_BYTES,
			.memory_bytes = 64 * SLAB_BYTES,
			.free_bytes = 60 * SLAB_BYTES,
			.quota_bytes = UINT64_MAX,
			.lease_ms = LEASE_MS,
			.requests_max = 7,
			.queue_pairs_max = 16,
		},
	};
	return p;
}

static void connect(struct pair *p)
{
	rbx_borrower_connected(&p->b, nonce, p->now_ns + DEADLINE_NS);
	pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_HELLO);
}

static void think(struct pair *p)
{
	assert_true(rbx_borrower_has_to_think(&p->b));
	rbx_borrower_think(&p->b);
	rbx_borrower_go_on(&p->b, p->now_ns);
	pump(p);
}

static void challenge(struct pair *p)
{
	struct rbx_wire_message m = {
		.type = RBX_WIRE_CHALLENGE,
		.request_id = p->sent.request_id,
		.challenge = { .nonce = { 9 }, .incarnation = 5 },
	};

	rbx_transcript_make(&p->transcript, &p->sent, &m);
	say(p, &m);
	think(p);
	assert_int_equal(p->sent.type, RBX_WIRE_AUTH);
}

static void welcome(struct pair *p)
{
	p->welcome.request_id = p->sent.request_id;
	rbx_proof_of_server(p->root, &p->transcript, &p->welcome,
			    p->welcome.welcome.proof);
	say(p, &p->welcome);
	think(p);
}

static struct pair *pair_up(void)
{
	struct pair *p = pair_make();

	connect(p);
	challenge(p);
	rbx_key_of_session(p->root, &p->transcript, &p->session_key);
	welcome(p);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	p->root = rbx_root_of_key(&p->session_key); /* from here on */
	return p;
}

static void resume(struct pair *p)
{
	connect(p);
	challenge(p);
	welcome(p);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
}

static void call(struct pair *p, enum rbx_call_kind kind,
		 const struct rbx_loan *loan)
{
	assert_int_equal(rbx_borrower_call(&p->b, kind, loan,
					   ANSWER_MS, p->now_ns),
			 0);
	pump(p);
}

static void grant(struct pair *p, uint64_t slab_id, uint64_t epoch)
{
	say(p, &(struct rbx_wire_message){
			 .type = RBX_WIRE_SLAB_GRANT,
			 .request_id = p->sent.request_id,
			 .epoch = epoch,
			 .grant = { .slab_id = slab_id,
				    .remote_addr = slab_id << 20,
				    .length_bytes = SLAB_BYTES,
				    .rkey = (uint32_t)slab_id },
		 });
}

/* The status of a MAP that is answered so. */
static int map(struct pair *p, uint64_t slab_id, uint64_t epoch,
	       struct rbx_loan *loan)
{
	call(p, RBX_CALL_MAP, NULL);
	assert_int_equal(p->sent.type, RBX_WIRE_SLAB_MAP);
	grant(p, slab_id, epoch);
	return rbx_borrower_call_end(&p->b, loan);
}

/* ---- The handshake ----------------------------------------------------------*/

static void first_connection_opens_next_resumes(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	/* The first word after WELCOME is the receipt that the server awaits. */
	assert_int_equal(p->sent.type, RBX_WIRE_LETTER_TAKEN);
	rbx_borrower_lost(&p->b, "cut", -EIO);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	connect(p);
	assert_int_equal(p->sent.hello.flags,
			 RBX_WIRE_HAS_SECRET | RBX_WIRE_RESUME);
	assert_int_equal(p->sent.hello.session_id, 77);
	assert_int_equal(p->sent.hello.incarnation, 5);
	challenge(p);
	welcome(p);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

static int handshake_status(struct pair *p)
{
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	return rbx_borrower_call_end(&p->b, NULL);
}

static void server_without_the_secret_is_eacces(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	connect(p);
	challenge(p);
	p->root.length_bytes--;
	welcome(p);
	assert_int_equal(handshake_status(p), -EACCES);
	free(p);
}

/* WELCOME is covered by its proof, but an old one is of another transcript. */
static void welcome_of_another_handshake_is_eacces(void **state)
{
	struct pair *p = pair_make();
	struct rbx_wire_message old;

	(void)state;
	connect(p);
	challenge(p);
	p->transcript.bytes[70] ^= 1;
	welcome(p);
	assert_int_equal(handshake_status(p), -EACCES);
	old = p->welcome;
	connect(p);
	challenge(p);
	old.request_id = p->sent.request_id;
	say(p, &old);
	think(p);
	assert_int_equal(handshake_status(p), -EACCES);
	free(p);
}

static void resume_into_other_terms_is_eproto(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	rbx_borrower_drop(&p->b);
	p->welcome.welcome.slab_bytes *= 2;
	connect(p);
	challenge(p);
	welcome(p);
	assert_int_equal(handshake_status(p), -EPROTO);
	free(p);
}

static void refusal_tells_its_reason(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	connect(p);
	say(p, &(struct rbx_wire_message){
			 .type = RBX_WIRE_ERROR,
			 .request_id = p->sent.request_id,
			 .status = RBX_REASON_STALE_SESSION });
	rbx_borrower_lost(&p->b, "the connection was ended", 0); /* no news */
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ESTALE);
	assert_string_equal(p->b.call.why,
			    rbx_reason_sentence(RBX_REASON_STALE_SESSION));
	free(p);
}

static void cut_during_the_handshake_is_ehostunreach(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	connect(p);
	challenge(p);
	rbx_borrower_lost(&p->b, "cut", 0);
	assert_int_equal(handshake_status(p), -EHOSTUNREACH);
	free(p);
}

/* It is lost while the thread that proves holds no lock. */
static void cut_while_thinking_ends_the_handshake(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	connect(p);
	say(p, &(struct rbx_wire_message){
			 .type = RBX_WIRE_CHALLENGE,
			 .request_id = p->sent.request_id,
			 .challenge.incarnation = 5 });
	rbx_borrower_lost(&p->b, "cut", 0);
	rbx_borrower_think(&p->b);
	rbx_borrower_go_on(&p->b, p->now_ns);
	assert_int_equal(handshake_status(p), -EHOSTUNREACH);
	free(p);
}

/* ---- Calls --------------------------------------------------------------------*/

static void epoch_is_of_the_last_slab_lent(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan old, loan;

	(void)state;
	assert_int_equal(map(p, 3, 10, &old), 0);
	assert_int_equal(map(p, 4, 11, &loan), 0);
	/* The answer about the older one is of an older epoch. */
	call(p, RBX_CALL_CHECK, &old);
	grant(p, 3, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	rbx_borrower_drop(&p->b);
	connect(p);
	assert_int_equal(p->sent.hello.last_epoch, 11);
	free(p);
}

static void grant_that_cannot_be_moves_no_epoch(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan loan = { 0 };

	(void)state;
	assert_int_equal(map(p, 3, 10, &loan), 0);
	call(p, RBX_CALL_MAP, NULL);
	say(p, &(struct rbx_wire_message){
			 .type = RBX_WIRE_SLAB_GRANT,
			 .request_id = p->sent.request_id,
			 .epoch = 12,
			 .grant = { .slab_id = 9, .length_bytes = 4096 } });
	assert_int_equal(rbx_borrower_call_end(&p->b, &loan), -EPROTO);
	assert_int_equal(loan.slab_id, 3);
	assert_int_equal(map(p, 5, 10, &loan), -EPROTO); /* it went back */
	assert_int_equal(map(p, 5, 9, &loan), -EPROTO);
	rbx_borrower_drop(&p->b);
	connect(p);
	assert_int_equal(p->sent.hello.last_epoch, 10);
	free(p);
}

static void check_of_another_slab_is_estale(void **state)
{
	struct pair *p = pair_up();
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(map(p, 3, 10, &loan), 0);
	call(p, RBX_CALL_CHECK, &loan);
	grant(p, 3, 11);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ESTALE);
	call(p, RBX_CALL_CHECK, &loan);
	grant(p, 4, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ESTALE);
	free(p);
}

static void call_without_answer_loses_the_connection(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	call(p, RBX_CALL_STATS, NULL);
	assert_true(rbx_borrower_tick(&p->b, p->now_ns) <=
		    p->now_ns + DEADLINE_NS);
	p->now_ns += DEADLINE_NS - 1;
	rbx_borrower_tick(&p->b, p->now_ns);
	assert_false(rbx_borrower_call_is_over(&p->b));
	p->now_ns += 1;
	rbx_borrower_tick(&p->b, p->now_ns);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ETIMEDOUT);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_STATS, NULL, 0, 0),
			 -ENOTCONN);
	free(p);
}

static void call_waits_for_its_buffer(void **state)
{
	struct pair *p = pair_up();
	struct rbx_wire_message m;

	(void)state;
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL,
					   ANSWER_MS, p->now_ns),
			 0);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m),
			 RBX_BORROWER_CALL);
	p->sent = m;
	grant(p, 3, 10); /* before the completion of the send is seen */
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL,
					   ANSWER_MS, p->now_ns),
			 0);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m), -1);
	rbx_borrower_sent(&p->b, RBX_BORROWER_CALL);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m),
			 RBX_BORROWER_CALL);
	assert_true(m.request_id > p->sent.request_id);
	free(p);
}

static void ask_is_over_with_its_answer_and_frees_the_session(void **state)
{
	struct pair *p = pair_up();
	struct rbx_ask ask = { .kind = RBX_CALL_MAP };

	(void)state;
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	assert_int_equal(ask.state, RBX_ASK_IS_OUT);
	assert_false(rbx_borrower_ask_end(&p->b));
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &p->sent),
			 RBX_BORROWER_CALL);
	grant(p, 3, 10);
	assert_true(rbx_borrower_ask_end(&p->b));
	assert_int_equal(ask.state, RBX_ASK_OVER);
	assert_int_equal(ask.status, 0);
	assert_int_equal(ask.loan.slab_id, 3);
	assert_int_equal(ask.loan.epoch, 10);
	assert_false(rbx_borrower_ask_end(&p->b)); /* once */
	free(p);
}

static void ask_whose_connection_is_lost_is_over(void **state)
{
	struct pair *p = pair_up();
	struct rbx_ask ask = { .kind = RBX_CALL_MAP };

	(void)state;
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	rbx_borrower_lost(&p->b, "cut", 0);
	assert_true(rbx_borrower_ask_end(&p->b));
	assert_int_equal(ask.status, -ENOTCONN);
	/* And while it is away, or is being connected by somebody, nothing is asked. */
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	assert_int_equal(ask.state, RBX_ASK_OVER);
	assert_int_equal(ask.status, -ENOTCONN);
	connect(p);
	rbx_borrower_ask(&p->b, &ask, ANSWER_MS, p->now_ns);
	assert_int_equal(ask.state, RBX_ASK_OVER);
	assert_int_equal(ask.status, -ENOTCONN);
	assert_false(rbx_borrower_ask_end(&p->b));
	free(p);
}

static void new_connection_has_free_buffers(void **state)
{
	struct pair *p = pair_up();
	struct rbx_wire_message m;

	(void)state;
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL,
					   ANSWER_MS, p->now_ns),
			 0);
	assert_int_equal(rbx_borrower_next(&p->b, p->now_ns, &m),
			 RBX_BORROWER_CALL);
	rbx_borrower_lost(&p->b, "cut", 0); /* its completion never comes */
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -ENOTCONN);
	resume(p);
	free(p);
}

static void answer_of_the_wrong_kind_is_eproto(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	call(p, RBX_CALL_STATS, NULL);
	grant(p, 3, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), -EPROTO);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void unasked_answer_ends_the_connection(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	p->sent.request_id = 4711;
	grant(p, 3, 10);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	free(p);
}

/* ---- The clock ------------------------------------------------------------------*/

static void heartbeat_keeps_the_session_up(void **state)
{
	struct pair *p = pair_up();
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++) {
		p->now_ns += SILENCE_NS / 4;
		rbx_borrower_tick(&p->b, p->now_ns);
		pump(p);
		assert_int_equal(p->sent.type, RBX_WIRE_HEARTBEAT);
		say(p, &(struct rbx_wire_message){
				 .type = RBX_WIRE_HEARTBEAT_REPLY,
				 .request_id = p->sent.request_id,
				 .heartbeat_reply.free_bytes = i });
		assert_int_equal(rbx_borrower_news(&p->b),
				 RBX_BORROWER_NO_NEWS);
		assert_int_equal(p->b.free_bytes, i);
	}
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

static void silence_is_doubted_once(void **state)
{
	struct pair *p = pair_up();
	uint64_t due_ns;

	(void)state;
	p->now_ns += SILENCE_NS / 4;
	rbx_borrower_tick(&p->b, p->now_ns);
	pump(p);
	p->now_ns += SILENCE_NS;
	due_ns = rbx_borrower_tick(&p->b, p->now_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	assert_true(due_ns > p->now_ns && due_ns <= p->now_ns + 20 * MS);
	rbx_borrower_tick(&p->b, due_ns - 1); /* it is not said twice for once */
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	rbx_borrower_tick(&p->b, due_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	free(p);
}

static void answer_in_the_queue_ends_the_doubt(void **state)
{
	struct pair *p = pair_up();
	uint64_t due_ns;

	(void)state;
	p->now_ns += SILENCE_NS / 4;
	rbx_borrower_tick(&p->b, p->now_ns);
	pump(p);
	p->now_ns += SILENCE_NS;
	due_ns = rbx_borrower_tick(&p->b, p->now_ns);
	say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_HEARTBEAT_REPLY,
					   .request_id = p->sent.request_id });
	rbx_borrower_tick(&p->b, due_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	free(p);
}

/* The server may have heard of us as early as we said it. */
static void lease_counts_from_what_was_sent(void **state)
{
	struct pair *p = pair_up();
	uint64_t sent_ns, over_ns;

	(void)state;
	p->b.lease.timeout_ns = 10 * LEASE_MS * MS;
	p->now_ns += 100 * MS;
	sent_ns = p->now_ns;
	call(p, RBX_CALL_MAP, NULL);
	p->now_ns += DEADLINE_NS - 1;
	grant(p, 3, 10);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	over_ns = sent_ns + LEASE_MS * MS / 2;
	rbx_borrower_tick(&p->b, over_ns - 1);
	assert_false(p->b.doubt_until_ns);
	rbx_borrower_tick(&p->b, over_ns);
	assert_true(p->b.doubt_until_ns);
	rbx_borrower_tick(&p->b, over_ns + 20 * MS);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

/* ---- Letters, news, the end ---------------------------------------------------*/

static void letter_say(struct pair *p, uint64_t sequence)
{
	say(p, &(struct rbx_wire_message){
			 .type = RBX_WIRE_LETTER,
			 .letter = { .sequence = sequence,
				     .length_bytes = 1,
				     .bytes = { 'x' } } });
}

static void letter_is_told_then_taken(void **state)
{
	struct pair *p = pair_up();
	uint32_t sent_count;

	(void)state;
	assert_int_equal(rbx_borrower_listen(&p->b), 0);
	assert_int_equal(rbx_borrower_listen(&p->b), -EBUSY);
	letter_say(p, 1);
	sent_count = p->sent_count;
	pump(p);
	assert_int_equal(p->sent_count, sent_count); /* nobody has had it */
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_HEAR);
	assert_int_equal(p->b.letter.bytes[0], 'x');
	rbx_borrower_letter_heard(&p->b);
	pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_LETTER_TAKEN);
	assert_int_equal(p->sent.letter_taken.sequence, 1);
	assert_int_equal(p->sent.letter_taken.refused, 0);
	letter_say(p, 1); /* again: not told, but taken */
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	sent_count = p->sent_count;
	pump(p);
	assert_int_equal(p->sent_count, sent_count + 1);
	letter_say(p, 3);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void letter_that_nobody_hears_is_refused(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	letter_say(p, 1);
	pump(p);
	assert_int_equal(p->sent.letter_taken.refused, 1);
	assert_int_equal(rbx_borrower_listen(&p->b), -EBUSY);
	free(p);
}

static void count_end(int status, void *user)
{
	int *statuses = user;

	statuses[0]++;
	statuses[1] = status;
}

static void letters_survive_a_cut_and_end_once(void **state)
{
	struct pair *p = pair_up();
	int ended[2] = { 0 };

	(void)state;
	rbx_borrower_letter_put(&p->b, "a", 1, count_end, ended);
	pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_LETTER);
	rbx_borrower_drop(&p->b);
	resume(p);
	pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_LETTER);
	assert_int_equal(p->sent.letter.sequence, 1);
	say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_LETTER_TAKEN,
					   .letter_taken.sequence = 1 });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_ENDS);
	rbx_letter_ends_tell(&p->b.ends);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	rbx_borrower_letter_put(&p->b, "b", 1, count_end, ended);
	rbx_borrower_letters_stop(&p->b, -ECANCELED);
	rbx_borrower_letters_stop(&p->b, -EHOSTUNREACH);
	assert_int_equal(rbx_borrower_letter_put(&p->b, "c", 1, NULL, NULL),
			 -ECANCELED);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_ENDS);
	rbx_letter_ends_tell(&p->b.ends);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	assert_int_equal(ended[0], 2);
	assert_int_equal(ended[1], -ECANCELED);
	free(p);
}

static void eviction_names_its_epoch(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	say(p, &(struct rbx_wire_message){
			 .type = RBX_WIRE_SLAB_EVICT,
			 .epoch = 31,
			 .evict = { .slab_id = 3, .grace_ms = 250 } });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_EVICT);
	assert_int_equal(p->b.eviction.slab_id, 3);
	assert_int_equal(p->b.eviction.epoch, 31);
	assert_int_equal(p->b.eviction.until_ns, p->now_ns + 250 * MS);
	free(p);
}

static void one_who_closes_says_bye_and_hears_nothing(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	rbx_borrower_bye(&p->b);
	pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_BYE);
	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL, 0, 0),
			 -ENOTCONN);
	say(p, &(struct rbx_wire_message){ .type = RBX_WIRE_SLAB_EVICT,
					   .epoch = 1,
					   .evict.slab_id = 3 });
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	rbx_borrower_lost(&p->b, "the connection was ended", 0);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	free(p);
}

static void bytes_that_are_no_message_end_the_connection(void **state)
{
	struct pair *p = pair_up();
	const uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX + 1] = { 0 };

	(void)state;
	rbx_borrower_message(&p->b, bytes, sizeof(bytes), p->now_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	resume(p);
	rbx_borrower_message(&p->b, bytes, 64, p->now_ns);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void attach_has_a_new_serial_each_time(void **state)
{
	struct pair *p = pair_up();
	struct rbx_wire_attach first, second;

	(void)state;
	rbx_borrower_attach(&p->b, &first);
	rbx_borrower_attach(&p->b, &second);
	assert_int_equal(first.session_id, 77);
	assert_int_equal(first.serial, 1);
	assert_int_equal(second.serial, 2);
	assert_memory_not_equal(first.mac, second.mac, sizeof(first.mac));
	rbx_borrower_drop(&p->b);
	resume(p);
	rbx_borrower_attach(&p->b, &second); /* under another key */
	assert_int_equal(second.serial, 1);
	free(p);
}

/* ---- All at once ------------------------------------------------------------*/

/* A message takes a receive, and none is posted again meanwhile. */
static void arrive(uint32_t *receives)
{
	if (*receives == 0)
		fail_msg("a message came and found no receive");
	--*receives;
}

/* As many letters as may be under way; returns how many. */
static uint32_t letters_arrive(struct rbx_mailbox *server, uint32_t *receives)
{
	struct rbx_wire_message m;
	uint32_t count = 0;

	for (; rbx_mailbox_next(server, &m); count++) {
		rbx_mailbox_sent(server);
		arrive(receives);
	}
	return count;
}

/* How many messages leave that wait for an answer. */
static uint32_t ask_all(struct pair *p)
{
	uint32_t before, i;

	assert_int_equal(rbx_borrower_call(&p->b, RBX_CALL_MAP, NULL, 60000,
					   p->now_ns),
			 0);
	for (i = 0; i < 2 * RBX_WIRE_LETTERS_MAX; i++)
		assert_int_equal(rbx_borrower_letter_put(&p->b, "x", 1, NULL,
							 NULL),
				 0);
	p->now_ns += SILENCE_NS / 2; /* a heartbeat is due */
	rbx_borrower_tick(&p->b, p->now_ns);
	before = p->sent_count;
	pump(p);
	rbx_borrower_bye(&p->b);
	pump(p);
	return p->sent_count - before;
}

/*
 * A server of the protocol, which waits until it may say most, and a client that posts
 * no receive again before it has handled all: four letters that it has had and said so;
 * then an answer to each request, and all that nobody asked for.
 */
static void receives_are_enough_for_all_that_may_come_at_once(void **state)
{
	struct pair *p = pair_up();
	struct rbx_letter_ends ends;
	struct rbx_mailbox server = { 0 };
	uint32_t receives = RBX_CLIENT_RECEIVES, unasked, i;

	(void)state;
	rbx_borrower_listen(&p->b);
	for (i = 0; i < 2 * RBX_WIRE_LETTERS_MAX; i++)
		assert_int_equal(rbx_mailbox_put(&server, "x", 1, NULL, NULL), 0);
	unasked = letters_arrive(&server, &receives);
	assert_int_equal(unasked, RBX_WIRE_LETTERS_MAX);
	for (i = 1; i <= unasked; i++) {
		letter_say(p, i);
		assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_HEAR);
		rbx_borrower_letter_heard(&p->b);
	}
	pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_LETTER_TAKEN);
	assert_int_equal(rbx_mailbox_taken(&server, &p->sent.letter_taken, &ends),
			 0);
	for (i = ask_all(p); i > 0; i--)
		arrive(&receives);
	for (unasked = letters_arrive(&server, &receives);
	     unasked < RBX_UNASKED_MAX; unasked++)
		arrive(&receives);
	assert_int_equal(receives, 0); /* nor is there one in vain */
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_connection_opens_next_resumes),
		cmocka_unit_test(server_without_the_secret_is_eacces),
		cmocka_unit_test(welcome_of_another_handshake_is_eacces),
		cmocka_unit_test(resume_into_other_terms_is_eproto),
		cmocka_unit_test(refusal_tells_its_reason),
		cmocka_unit_test(cut_during_the_handshake_is_ehostunreach),
		cmocka_unit_test(cut_while_thinking_ends_the_handshake),
		cmocka_unit_test(epoch_is_of_the_last_slab_lent),
		cmocka_unit_test(grant_that_cannot_be_moves_no_epoch),
		cmocka_unit_test(check_of_another_slab_is_estale),
		cmocka_unit_test(call_without_answer_loses_the_connection),
		cmocka_unit_test(call_waits_for_its_buffer),
		cmocka_unit_test(
			ask_is_over_with_its_answer_and_frees_the_session),
		cmocka_unit_test(ask_whose_connection_is_lost_is_over),
		cmocka_unit_test(new_connection_has_free_buffers),
		cmocka_unit_test(answer_of_the_wrong_kind_is_eproto),
		cmocka_unit_test(unasked_answer_ends_the_connection),
		cmocka_unit_test(heartbeat_keeps_the_session_up),
		cmocka_unit_test(silence_is_doubted_once),
		cmocka_unit_test(answer_in_the_queue_ends_the_doubt),
		cmocka_unit_test(lease_counts_from_what_was_sent),
		cmocka_unit_test(letter_is_told_then_taken),
		cmocka_unit_test(letter_that_nobody_hears_is_refused),
		cmocka_unit_test(letters_survive_a_cut_and_end_once),
		cmocka_unit_test(eviction_names_its_epoch),
		cmocka_unit_test(one_who_closes_says_bye_and_hears_nothing),
		cmocka_unit_test(bytes_that_are_no_message_end_the_connection),
		cmocka_unit_test(attach_has_a_new_serial_each_time),
		cmocka_unit_test(
			receives_are_enough_for_all_that_may_come_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
