/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* borrower_lender_server.c - see borrower_lender_server.h. */
#include "tests/core/borrower_lender_server.h"

#include <string.h>

#define INCARNATION 5

static const struct rbx_root no_secret;

static void answer(struct client *c, uint64_t request_id,
		   struct rbx_wire_message m)
{
	m.request_id = request_id;
	if (c->is_cut)
		return;
	queue_put(&c->down, &c->served.seals.out, &m);
	assert_in_range(c->down.count, 1, RBX_CLIENT_RECEIVES);
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
		assert_int_equal(rbx_lender_admit(w.lender, s->session_id, 0,
						  w.now_ns),
				 0);
		rbx_key_of_session(root, &s->transcript, &s->key);
	}
	s->is_open = true;
	welcome.welcome.session_id = s->session_id;
	rbx_proof_of_server(root, &s->transcript, &welcome,
			    welcome.welcome.proof);
	answer(c, m->request_id, welcome);
	rbx_seals_begin(&s->seals, RBX_SIDE_SERVER, root, &s->transcript);
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

void serve_map(struct client *c, uint64_t request_id)
{
	struct rbx_lender_loan loan;
	uint32_t reason = rbx_lender_lend(w.lender, c->served.session_id,
					  &loan);

	c->served.waiting_id = 0;
	if (reason == RBX_LENDER_LATER) {
		c->served.waiting_id = request_id;
	} else if (reason) {
		refuse(c, request_id, reason);
	} else {
		c->served.preparing = loan.slab_id;
		c->served.waiting_id = request_id;
	}
}

void serve_prepared(struct client *c)
{
	struct served *s = &c->served;
	struct rbx_lender_loan loan = { .slab_id = s->preparing };

	s->preparing = 0;
	if (!s->is_connected || !s->is_open || !s->waiting_id) {
		rbx_lender_unprepared(w.lender, loan.slab_id);
		return;
	}
	assert_true(rbx_lender_prepared(w.lender, &loan));
	answer(c, s->waiting_id,
	       (struct rbx_wire_message){
		       .type = RBX_WIRE_SLAB_LOAN,
		       .epoch = loan.epoch,
		       .loan = { .slab_id = loan.slab_id,
				 .remote_addr = loan.slab_id << 20,
				 .length_bytes = 1 << 20,
				 .rkey = (uint32_t)loan.epoch } });
	s->waiting_id = 0;
}

static void loan_again(struct client *c, const struct rbx_wire_message *m)
{
	answer(c, m->request_id,
	       (struct rbx_wire_message){
		       .type = RBX_WIRE_SLAB_LOAN,
		       .epoch = m->epoch,
		       .loan = { .slab_id = m->slab_id,
				 .remote_addr = m->slab_id << 20,
				 .length_bytes = 1 << 20,
				 .rkey = (uint32_t)m->epoch } });
}

static void serve_user_message(struct client *c,
			       const struct rbx_wire_message *m)
{
	struct served *s = &c->served;
	struct rbx_wire_message receipt;
	uint64_t number;

	if (rbx_mailbox_judge(&s->mailbox, m->user_message.sequence) ==
	    RBX_USER_MESSAGE_NEW) {
		memcpy(&number, m->user_message.bytes, sizeof(number));
		assert_int_equal(number, s->mailbox.heard_sequence + 1);
		rbx_mailbox_heard(&s->mailbox);
		w.user_messages++;
	} else {
		assert_int_equal(rbx_mailbox_judge(&s->mailbox,
						   m->user_message.sequence),
				 RBX_USER_MESSAGE_AGAIN);
	}
	receipt = rbx_mailbox_receipt(&s->mailbox, false);
	answer(c, m->request_id, receipt);
}

static void serve_slab(struct client *c, const struct rbx_wire_message *m)
{
	const struct rbx_lender_loan loan = { m->slab_id, m->epoch };
	uint64_t session_id = c->served.session_id;
	uint32_t reason = m->type == RBX_WIRE_SLAB_QUERY ?
				  rbx_lender_check(w.lender, session_id,
						   &loan) :
				  rbx_lender_unmap(w.lender, session_id,
						   &loan);

	if (reason)
		refuse(c, m->request_id, reason);
	else if (m->type == RBX_WIRE_SLAB_QUERY)
		loan_again(c, m);
	else
		answer(c, m->request_id,
		       (struct rbx_wire_message){
			       .type = RBX_WIRE_SLAB_UNMAPPED,
			       .epoch = m->epoch });
}

static void serve_open(struct client *c, const struct rbx_wire_message *m)
{
	struct served *s = &c->served;
	struct rbx_user_message_ends ends;

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
		rbx_unheard_heartbeat(&s->unheard);
		answer(c, m->request_id,
		       (struct rbx_wire_message){
			       .type = RBX_WIRE_HEARTBEAT_REPLY });
		break;
	case RBX_WIRE_USER_MESSAGE:
		serve_user_message(c, m);
		break;
	case RBX_WIRE_USER_MESSAGE_TAKEN:
		assert_int_equal(rbx_mailbox_taken(&s->mailbox,
						   &m->user_message_taken,
						   &ends),
				 0);
		rbx_user_message_ends_tell(&ends);
		break;
	default:
		fail_msg("type %u", m->type);
	}
}

void serve(struct client *c)
{
	struct served *s = &c->served;
	struct rbx_wire_message m;
	struct bytes *bytes;

	if (!s->is_connected || !c->up.count)
		return;
	bytes = queue_take(&c->up);
	assert_int_equal(rbx_seal_decode(&s->seals.in, bytes->bytes, bytes->length_bytes, &m),
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

void server_says_messages(struct client *c)
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

static void ask(const struct rbx_lender_action *action)
{
	struct client *c = client_of(action->session_id);

	if (!c->served.is_connected || !c->served.may_speak)
		return;
	if (rbx_unheard_is_full(&c->served.unheard)) {
		rbx_lender_ask_again(w.lender, action->loan.slab_id,
				     w.now_ns + MS);
		return;
	}
	rbx_unheard_add(&c->served.unheard);
	answer(c, 0, (struct rbx_wire_message){
			     .type = RBX_WIRE_SLAB_EVICT,
			     .epoch = action->loan.epoch,
			     .evict.slab_id = action->loan.slab_id });
}

void server_acts(void)
{
	struct rbx_lender_action action;

	while (rbx_lender_next(w.lender, w.now_ns, &action)) {
		switch (action.kind) {
		case RBX_LENDER_EXPIRE:
			expire(action.session_id);
			break;
		case RBX_LENDER_END:
			rbx_lender_ended(w.lender, action.loan.slab_id);
			w.ended++;
			break;
		case RBX_LENDER_ASK:
			ask(&action);
			break;
		}
	}
}
