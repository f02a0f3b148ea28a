/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* borrower_pair.c - see borrower_pair.h. */
#include "tests/core/borrower_pair.h"

#include <errno.h>
#include <stdlib.h>

static const uint8_t secret[] = "a secret that both sides have";
static const uint8_t nonce[RBX_WIRE_NONCE_BYTES] = { 1, 2, 3 };

void pair_pump(struct pair *p)
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

void pair_say(struct pair *p, const struct rbx_wire_message *m)
{
	uint8_t bytes[RBX_WIRE_MESSAGE_BYTES_MAX];

	rbx_borrower_message(&p->b, bytes, rbx_seal_encode(&p->seals.out, m, bytes),
			     p->now_ns);
}

struct pair *pair_make(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->now_ns = 1000 * MS;
	p->root = (struct rbx_root){ secret, sizeof(secret) - 1 };
	rbx_borrower_init(&p->b, &(struct rbx_borrower_config){
					 .secret = p->root,
					 .credential = "backup",
					 .silence_ns = SILENCE_NS,
				 });
	p->welcome = scripted_welcome();
	return p;
}

void pair_connect(struct pair *p)
{
	p->seals = (struct rbx_seals){ 0 };
	rbx_borrower_connected(&p->b, nonce, p->now_ns + DEADLINE_NS);
	pair_pump(p);
	assert_int_equal(p->sent.type, RBX_WIRE_HELLO);
}

void pair_think(struct pair *p)
{
	assert_true(rbx_borrower_has_to_think(&p->b));
	rbx_borrower_think(&p->b);
	rbx_borrower_go_on(&p->b, p->now_ns);
	pair_pump(p);
}

void pair_challenge(struct pair *p)
{
	struct rbx_wire_message m = scripted_challenge(p->sent.request_id);

	rbx_transcript_make(&p->transcript, &p->sent, &m);
	pair_say(p, &m);
	pair_think(p);
	assert_int_equal(p->sent.type, RBX_WIRE_AUTH);
}

void pair_welcome(struct pair *p)
{
	p->welcome.request_id = p->sent.request_id;
	rbx_proof_of_server(p->root, &p->transcript, &p->welcome,
			    p->welcome.welcome.proof);
	pair_say(p, &p->welcome);
	rbx_seals_begin(&p->seals, RBX_SIDE_SERVER, p->root, &p->transcript);
	pair_think(p);
}

struct pair *pair_up(void)
{
	struct pair *p = pair_make();

	pair_connect(p);
	pair_challenge(p);
	rbx_key_of_session(p->root, &p->transcript, &p->session_key);
	pair_welcome(p);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
	assert_int_equal(p->b.phase, RBX_BORROWER_UP);
	p->root = rbx_root_of_key(&p->session_key); /* from here on */
	return p;
}

void pair_resume(struct pair *p)
{
	pair_connect(p);
	pair_challenge(p);
	pair_welcome(p);
	assert_int_equal(rbx_borrower_call_end(&p->b, NULL), 0);
}

void pair_call(struct pair *p, enum rbx_call_kind kind,
	       const struct rbx_loan *loan)
{
	assert_int_equal(rbx_borrower_call(&p->b, kind, loan,
					   ANSWER_MS, p->now_ns),
			 0);
	pair_pump(p);
}

void pair_lend(struct pair *p, uint64_t slab_id, uint64_t epoch)
{
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_SLAB_LOAN,
			    .request_id = p->sent.request_id,
			    .epoch = epoch,
			    .loan = { .slab_id = slab_id,
				      .remote_addr = slab_id << 20,
				      .length_bytes = SCRIPTED_SLAB_BYTES,
				      .rkey = (uint32_t)slab_id },
		    });
}

int pair_map(struct pair *p, uint64_t slab_id, uint64_t epoch,
	     struct rbx_loan *loan)
{
	pair_call(p, RBX_CALL_MAP, NULL);
	assert_int_equal(p->sent.type, RBX_WIRE_SLAB_MAP);
	pair_lend(p, slab_id, epoch);
	return rbx_borrower_call_end(&p->b, loan);
}

void pair_say_user_message(struct pair *p, uint64_t sequence)
{
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_USER_MESSAGE,
			    .user_message = { .sequence = sequence,
					      .length_bytes = 1,
					      .bytes = { 'x' } } });
}
