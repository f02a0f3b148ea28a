/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_lender_test.c - borrowers and a lender, whose connections are cut anywhere.
 *
 * Two clients talk to one server over queues of bytes. At random they connect, call,
 * write letters, lose a connection (of which the client may hear or not), and time
 * goes by; the server prepares slabs late, wants some back and forgets who is silent.
 *
 * After each step: the server never ends what a client knows that it has, but for
 * what it revoked; what a client does not know of is not lent after a resume; no
 * lease is over before its client has noticed; each call ends in time; letters
 * arrive in order, none is lost and none comes twice.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/borrower.h"
#include "core/lender.h"
#include "core/random.h"

#define STEPS 1000000
#define CLIENTS 2
#define SLABS 7
#define KNOWN_MAX SLABS
#define QUEUE_MAX 64
#define MS 1000000ull
#define LEASE_NS (4000 * MS)
#define SILENCE_NS (600 * MS)
#define DEADLINE_NS (300 * MS)
#define INCARNATION 5

struct bytes {
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];
	size_t length_bytes;
};

struct queue {
	struct bytes messages[QUEUE_MAX];
	uint32_t first, count;
};

/* The server's end of a session: its mailbox stays, the connection comes and goes. */
struct served {
	uint64_t session_id; /* 0: nobody's yet */
	bool is_connected;
	bool is_open; /* welcomed */
	bool may_speak; /* the client has spoken after WELCOME */
	uint64_t seen_request_id;
	struct rbx_wire_message hello;
	struct rbx_transcript transcript;
	struct rbx_key key;
	uint64_t preparing; /* slab id; 0: none */
	uint64_t waiting_id; /* request id of a MAP that waits; 0: none */
	struct rbx_mailbox mailbox;
	uint64_t put_count, ended_count;
};

struct client {
	struct rbx_borrower b;
	struct queue up, down;
	bool is_cut; /* nothing passes, and nobody has told the borrower */
	uint64_t away_until_ns; /* no connection before */
	struct rbx_loan known[KNOWN_MAX];
	uint32_t known_count;
	struct rbx_loan unmapping;
	uint64_t put_count, ended_count, heard_count;
	struct served served;
};

static struct world {
	struct rbx_random random;
	uint64_t now_ns;
	struct rbx_lender *lender;
	uint64_t last_session_id;
	struct client clients[CLIENTS];
	uint64_t resumes, maps, ended, expired, stale, letters;
} w;

static const struct rbx_root no_secret;

static uint32_t below(uint32_t bound)
{
	return rbx_random_below(&w.random, bound);
}

/* ---- The wire -----------------------------------------------------------------*/

static void queue_put(struct queue *q, const struct rbx_wire_message *m)
{
	struct bytes *slot = &q->messages[(q->first + q->count++) % QUEUE_MAX];

	assert_true(q->count <= QUEUE_MAX);
	slot->length_bytes = rbx_wire_encode(m, slot->bytes);
}

static const struct bytes *queue_take(struct queue *q)
{
	const struct bytes *taken = &q->messages[q->first];

	q->first = (q->first + 1) % QUEUE_MAX;
	q->count--;
	return taken;
}

/* Half of the time at once, else with the next step that does the same. */
static void pump(struct client *c)
{
	struct rbx_wire_message m;
	int slot;

	while ((slot = rbx_borrower_next(&c->b, w.now_ns, &m)) >= 0) {
		if (!c->is_cut)
			queue_put(&c->up, &m);
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

/* ---- What the clients know ----------------------------------------------------*/

static void letter_ended(int status, void *user)
{
	uint64_t *count = user;

	assert_true(status == 0 || status == -EHOSTUNREACH);
	++*count;
}

static bool is_held(const struct client *c, const struct rbx_loan *loan)
{
	const struct rbx_lending lending = { loan->slab_id, loan->epoch };

	return !rbx_lender_check(w.lender, c->b.welcome.session_id, &lending);
}

static uint32_t held_count(const struct client *c)
{
	uint32_t i, count = 0;

	for (i = 0; i < c->known_count; i++)
		count += is_held(c, &c->known[i]);
	return count;
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
	rbx_borrower_letters_stop(&c->b, -EHOSTUNREACH);
	while (rbx_borrower_news(&c->b) == RBX_BORROWER_ENDS)
		rbx_letter_ends_tell(&c->b.ends);
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
		break;
	}
}

static void news_take(struct client *c)
{
	enum rbx_borrower_news news;

	while ((news = rbx_borrower_news(&c->b)) != RBX_BORROWER_NO_NEWS) {
		uint64_t number;

		if (news == RBX_BORROWER_ENDS)
			rbx_letter_ends_tell(&c->b.ends);
		if (news != RBX_BORROWER_HEAR)
			continue;
		memcpy(&number, c->b.letter.bytes, sizeof(number));
		assert_int_equal(number, ++c->heard_count);
		rbx_borrower_letter_heard(&c->b);
		w.letters++;
	}
}

/* ---- The server ---------------------------------------------------------------*/

static void answer(struct client *c, uint64_t request_id,
		   struct rbx_wire_message m)
{
	m.request_id = request_id;
	if (!c->is_cut)
		queue_put(&c->down, &m);
}

static void refuse(struct client *c, uint64_t request_id, uint32_t reason)
{
	answer(c, request_id, (struct rbx_wire_message){ .type = RBX_WIRE_ERROR,
							 .status = reason });
}

/* Whoever connected last has the session; what it had open before is ended. */
static void serve_resume(struct client *c)
{
	struct served *s = &c->served;
	uint32_t before = held_count(c);

	s->preparing = 0;
	assert_int_equal(rbx_lender_resumed(w.lender, s->session_id, w.now_ns,
					    s->hello.hello.last_epoch),
			 0);
	assert_int_equal(held_count(c), before);
	rbx_mailbox_rewind(&s->mailbox);
	w.resumes++;
}

static void serve_auth(struct client *c, const struct rbx_wire_message *m)
{
	struct served *s = &c->served;
	bool resumes = s->hello.hello.flags & RBX_WIRE_RESUME;
	struct rbx_root root = resumes ? rbx_root_of_key(&s->key) : no_secret;
	uint8_t proof[RBX_WIRE_PROOF_BYTES];
	struct rbx_wire_message welcome = {
		.type = RBX_WIRE_WELCOME,
		.request_id = m->request_id,
		.welcome = { .incarnation = INCARNATION,
			     .slab_bytes = 1 << 20,
			     .memory_bytes = SLABS << 20,
			     .quota_bytes = UINT64_MAX,
			     .lease_ms = LEASE_NS / MS,
			     .requests_max = 7,
			     .queue_pairs_max = 1 },
	};

	rbx_proof_of_client(root, &s->transcript, proof);
	assert_memory_equal(proof, m->auth.proof, sizeof(proof));
	if (resumes) {
		if (s->session_id != s->hello.hello.session_id) {
			refuse(c, m->request_id, RBX_REASON_STALE_SESSION);
			return;
		}
		serve_resume(c);
	} else {
		if (s->session_id) /* its WELCOME never came */
			rbx_lender_leave(w.lender, s->session_id);
		s->session_id = ++w.last_session_id;
		assert_int_equal(rbx_lender_admit(w.lender, s->session_id,
						  w.now_ns),
				 0);
		rbx_key_of_session(root, &s->transcript, &s->key);
	}
	s->is_open = true;
	welcome.welcome.session_id = s->session_id;
	rbx_proof_of_server(root, &s->transcript, &welcome,
			    welcome.welcome.proof);
	answer(c, m->request_id, welcome);
}

static void serve_hello(struct client *c, const struct rbx_wire_message *m)
{
	struct rbx_wire_message challenge = {
		.type = RBX_WIRE_CHALLENGE,
		.request_id = m->request_id,
		.challenge.incarnation = INCARNATION,
	};

	c->served.hello = *m;
	challenge.challenge.nonce[0] = (uint8_t)below(256);
	rbx_transcript_make(&c->served.transcript, m, &challenge);
	if (m->hello.flags & RBX_WIRE_RESUME &&
	    m->hello.session_id != c->served.session_id)
		refuse(c, m->request_id, RBX_REASON_STALE_SESSION);
	else
		answer(c, m->request_id, challenge);
}

static void serve_map(struct client *c, uint64_t request_id)
{
	struct rbx_lending lending;
	uint32_t reason = rbx_lender_lend(w.lender, c->served.session_id,
					  &lending);

	c->served.waiting_id = 0;
	if (reason == RBX_LENDER_LATER) {
		c->served.waiting_id = request_id;
	} else if (reason) {
		refuse(c, request_id, reason);
	} else {
		c->served.preparing = lending.slab_id;
		c->served.waiting_id = request_id;
	}
}

/* A slab that was asked for is ready; the client may be gone meanwhile. */
static void serve_prepared(struct client *c)
{
	struct served *s = &c->served;
	struct rbx_lending lending = { .slab_id = s->preparing };

	s->preparing = 0;
	if (!s->is_connected || !s->is_open || !s->waiting_id) {
		rbx_lender_unprepared(w.lender, lending.slab_id);
		return;
	}
	assert_true(rbx_lender_prepared(w.lender, &lending));
	answer(c, s->waiting_id,
	       (struct rbx_wire_message){
		       .type = RBX_WIRE_SLAB_GRANT,
		       .epoch = lending.epoch,
		       .grant = { .slab_id = lending.slab_id,
				  .remote_addr = lending.slab_id << 20,
				  .length_bytes = 1 << 20,
				  .rkey = (uint32_t)lending.epoch } });
	s->waiting_id = 0;
}

static void grant_again(struct client *c, const struct rbx_wire_message *m)
{
	answer(c, m->request_id,
	       (struct rbx_wire_message){
		       .type = RBX_WIRE_SLAB_GRANT,
		       .epoch = m->epoch,
		       .grant = { .slab_id = m->slab_id,
				  .remote_addr = m->slab_id << 20,
				  .length_bytes = 1 << 20,
				  .rkey = (uint32_t)m->epoch } });
}

static void serve_letter(struct client *c, const struct rbx_wire_message *m)
{
	struct served *s = &c->served;
	struct rbx_wire_message receipt;
	uint64_t number;

	if (rbx_mailbox_judge(&s->mailbox, m->letter.sequence) ==
	    RBX_LETTER_NEW) {
		memcpy(&number, m->letter.bytes, sizeof(number));
		assert_int_equal(number, s->mailbox.heard_sequence + 1);
		rbx_mailbox_heard(&s->mailbox);
		w.letters++;
	} else {
		assert_int_equal(rbx_mailbox_judge(&s->mailbox,
						   m->letter.sequence),
				 RBX_LETTER_AGAIN);
	}
	receipt = rbx_mailbox_receipt(&s->mailbox, false);
	answer(c, m->request_id, receipt);
}

static void serve_slab(struct client *c, const struct rbx_wire_message *m)
{
	const struct rbx_lending lending = { m->slab_id, m->epoch };
	uint64_t session_id = c->served.session_id;
	uint32_t reason = m->type == RBX_WIRE_SLAB_QUERY ?
				  rbx_lender_check(w.lender, session_id,
						   &lending) :
				  rbx_lender_unmap(w.lender, session_id,
						   &lending);

	if (reason)
		refuse(c, m->request_id, reason);
	else if (m->type == RBX_WIRE_SLAB_QUERY)
		grant_again(c, m);
	else
		answer(c, m->request_id,
		       (struct rbx_wire_message){
			       .type = RBX_WIRE_SLAB_UNMAPPED,
			       .epoch = m->epoch });
}

static void serve_open(struct client *c, const struct rbx_wire_message *m)
{
	struct served *s = &c->served;
	struct rbx_letter_ends ends;

	if (rbx_lender_heard(w.lender, s->session_id, w.now_ns))
		return; /* about to be thrown out */
	s->may_speak = true;
	switch (m->type) {
	case RBX_WIRE_SLAB_MAP:
		serve_map(c, m->request_id);
		break;
	case RBX_WIRE_SLAB_QUERY:
	case RBX_WIRE_SLAB_UNMAP:
		serve_slab(c, m);
		break;
	case RBX_WIRE_STATS:
		answer(c, m->request_id,
		       (struct rbx_wire_message){
			       .type = RBX_WIRE_STATS_REPLY });
		break;
	case RBX_WIRE_HEARTBEAT:
		answer(c, m->request_id,
		       (struct rbx_wire_message){
			       .type = RBX_WIRE_HEARTBEAT_REPLY });
		break;
	case RBX_WIRE_LETTER:
		serve_letter(c, m);
		break;
	case RBX_WIRE_LETTER_TAKEN:
		assert_int_equal(rbx_mailbox_taken(&s->mailbox,
						   &m->letter_taken, &ends),
				 0);
		rbx_letter_ends_tell(&ends);
		break;
	default:
		fail_msg("type %u", m->type);
	}
}

static void serve(struct client *c)
{
	struct served *s = &c->served;
	struct rbx_wire_message m;
	const struct bytes *bytes;

	if (!s->is_connected || !c->up.count)
		return;
	bytes = queue_take(&c->up);
	assert_int_equal(rbx_wire_decode(bytes->bytes, bytes->length_bytes, &m),
			 0);
	assert_true(m.request_id > s->seen_request_id);
	s->seen_request_id = m.request_id;
	if (s->is_open)
		serve_open(c, &m);
	else if (m.type == RBX_WIRE_HELLO)
		serve_hello(c, &m);
	else
		serve_auth(c, &m);
}

static void server_says_letters(struct client *c)
{
	struct served *s = &c->served;
	struct rbx_wire_message m;

	while (s->is_connected && s->may_speak &&
	       rbx_mailbox_next(&s->mailbox, &m)) {
		rbx_mailbox_sent(&s->mailbox);
		answer(c, 0, m);
	}
}

static struct client *client_of(uint64_t session_id)
{
	uint32_t i;

	for (i = 0; i < CLIENTS; i++)
		if (w.clients[i].served.session_id == session_id)
			return &w.clients[i];
	fail();
	return NULL;
}

static void expire(uint64_t session_id)
{
	struct client *c = client_of(session_id);

	/* A client that has not noticed would write to another's slab. */
	if (c->b.welcome.session_id == session_id)
		assert_int_not_equal(c->b.phase, RBX_BORROWER_UP);
	c->served.preparing = 0;
	c->served.session_id = 0;
	c->served.is_connected = false;
	rbx_lender_leave(w.lender, session_id);
	w.expired++;
}

static void server_acts(void)
{
	struct rbx_lender_action action;

	while (rbx_lender_next(w.lender, w.now_ns, &action)) {
		struct client *c;

		switch (action.kind) {
		case RBX_LENDER_EXPIRE:
			expire(action.session_id);
			break;
		case RBX_LENDER_END:
			rbx_lender_ended(w.lender, action.lending.slab_id);
			w.ended++;
			break;
		case RBX_LENDER_ASK:
			c = client_of(action.session_id);
			if (c->served.is_connected && c->served.may_speak)
				answer(c, 0,
				       (struct rbx_wire_message){
					       .type = RBX_WIRE_SLAB_EVICT,
					       .epoch = action.lending.epoch,
					       .evict.slab_id =
						       action.lending.slab_id });
			break;
		}
	}
}

/* ---- Steps ----------------------------------------------------------------------*/

static void connection_ends(struct client *c)
{
	c->up.count = c->down.count = 0;
	c->served.is_connected = c->served.is_open = c->served.may_speak = false;
	c->served.waiting_id = 0;
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

static void step_letter(struct client *c)
{
	uint64_t number = c->b.mailbox.put_sequence + 1;

	if (!rbx_borrower_letter_put(&c->b, &number, sizeof(number),
				     letter_ended, &c->ended_count))
		c->put_count++;
	number = c->served.mailbox.put_sequence + 1;
	if (c->served.session_id &&
	    !rbx_mailbox_put(&c->served.mailbox, &number, sizeof(number), NULL,
			     NULL))
		c->served.put_count++;
}

static void step_receive(struct client *c)
{
	const struct bytes *bytes;

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
		step_letter(c);
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
	server_says_letters(c);
}

static void nothing_is_lost_or_kept(void **state)
{
	const struct rbx_lender_config config = { .slabs_count = SLABS,
						  .clients_max = 2 * CLIENTS,
						  .lease_ns = LEASE_NS };
	uint32_t i;

	(void)state;
	rbx_random_seed(&w.random, 42);
	w.now_ns = 1000 * MS;
	w.lender = rbx_lender_init(malloc(rbx_lender_size(&config)), &config);
	for (i = 0; i < CLIENTS; i++) {
		rbx_borrower_init(&w.clients[i].b,
				  &(struct rbx_borrower_config){
					  .silence_ns = SILENCE_NS });
		rbx_borrower_listen(&w.clients[i].b);
	}
	for (i = 0; i < STEPS; i++)
		step(&w.clients[below(CLIENTS)]);
	print_message("%lu resumes, %lu loans, %lu ended, %lu letters, "
		      "%lu expired, %lu begun anew\n",
		      w.resumes, w.maps, w.ended, w.letters, w.expired,
		      w.stale);
	/* All of it has been tried, and often. */
	assert_true(w.resumes > 1000 && w.maps > 1000 && w.letters > 10000);
	assert_true(w.expired > 5 && w.stale > 5);
	free(w.lender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_or_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
