/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_handshake_test.c - how a borrower and a server prove themselves: the first
 * connection, the next ones, and how a handshake fails.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/core/borrower_pair.h"
#include "wire/terms.h"
#include "wire/reason.h"

static void first_connection_opens_next_resumes(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	/* The first word after WELCOME is the receipt that the server awaits. */
	assert_int_equal(p->sent.type, RBX_WIRE_USER_MESSAGE_TAKEN);
	rbx_borrower_lost(&p->b, "cut", -EIO);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_LOST);
	assert_int_equal(rbx_borrower_news(&p->b), RBX_BORROWER_NO_NEWS);
	assert_null(p->b.config.secret.bytes); /* its owner may have freed it */
	pair_connect(p);
	assert_int_equal(p->sent.hello.flags,
			 RBX_WIRE_HAS_SECRET | RBX_WIRE_RESUME);
	assert_int_equal(p->sent.hello.session_id, 77);
	assert_int_equal(p->sent.hello.incarnation, 5);
	assert_string_equal(p->sent.hello.credential, "backup");
	pair_challenge(p);
	pair_welcome(p);
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
	pair_connect(p);
	pair_challenge(p);
	p->root.length_bytes--;
	pair_welcome(p);
	assert_int_equal(handshake_status(p), -EACCES);
	free(p);
}

/* WELCOME is covered by its proof, but an old one is of another transcript. */
static void welcome_of_another_handshake_is_eacces(void **state)
{
	struct pair *p = pair_make();
	struct rbx_wire_message old;

	(void)state;
	pair_connect(p);
	pair_challenge(p);
	p->transcript.bytes[70] ^= 1;
	pair_welcome(p);
	assert_int_equal(handshake_status(p), -EACCES);
	old = p->welcome;
	pair_connect(p);
	pair_challenge(p);
	old.request_id = p->sent.request_id;
	pair_say(p, &old);
	pair_think(p);
	assert_int_equal(handshake_status(p), -EACCES);
	free(p);
}

static void resume_into_other_terms_is_eproto(void **state)
{
	struct pair *p = pair_up();

	(void)state;
	rbx_borrower_drop(&p->b);
	p->welcome.welcome.slab_bytes *= 2;
	pair_connect(p);
	pair_challenge(p);
	pair_welcome(p);
	assert_int_equal(handshake_status(p), -EPROTO);
	free(p);
}

static void lease_of_more_than_an_hour_is_nonsense(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	p->welcome.welcome.lease_ms = RBX_WIRE_LEASE_MS_MAX + 1;
	pair_connect(p);
	pair_challenge(p);
	pair_welcome(p);
	assert_int_equal(handshake_status(p), -EPROTO);
	assert_int_equal(p->b.phase, RBX_BORROWER_AWAY);
	free(p);
}

static void refusal_tells_its_reason(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	pair_connect(p);
	pair_say(p, &(struct rbx_wire_message){
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
	pair_connect(p);
	pair_challenge(p);
	rbx_borrower_lost(&p->b, "cut", 0);
	assert_int_equal(handshake_status(p), -EHOSTUNREACH);
	free(p);
}

/* It is lost while the thread that proves holds no lock. */
static void cut_while_thinking_ends_the_handshake(void **state)
{
	struct pair *p = pair_make();

	(void)state;
	pair_connect(p);
	pair_say(p, &(struct rbx_wire_message){
			    .type = RBX_WIRE_CHALLENGE,
			    .request_id = p->sent.request_id,
			    .challenge.incarnation = 5 });
	rbx_borrower_lost(&p->b, "cut", 0);
	rbx_borrower_think(&p->b);
	rbx_borrower_go_on(&p->b, p->now_ns);
	assert_int_equal(handshake_status(p), -EHOSTUNREACH);
	free(p);
}

/* The server falls silent when it has sent CHALLENGE. The clock is looked at as late as
 * it asked for, and perhaps while the borrower thinks. */
static void silence_after_the_challenge_is_etimedout(void **state)
{
	struct pair *p = pair_make();
	struct rbx_wire_message challenge;
	uint64_t due_ns;

	(void)state;
	pair_connect(p);
	challenge = scripted_challenge(p->sent.request_id);
	pair_say(p, &challenge);
	assert_true(rbx_borrower_has_to_think(&p->b));
	due_ns = rbx_borrower_tick(&p->b, p->now_ns);
	assert_true(due_ns < UINT64_MAX);
	pair_think(p);
	assert_int_equal(p->sent.type, RBX_WIRE_AUTH);
	rbx_borrower_tick(&p->b, due_ns);
	assert_int_equal(handshake_status(p), -ETIMEDOUT);
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
	pair_resume(p);
	rbx_borrower_attach(&p->b, &second); /* under another key */
	assert_int_equal(second.serial, 1);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_connection_opens_next_resumes),
		cmocka_unit_test(server_without_the_secret_is_eacces),
		cmocka_unit_test(welcome_of_another_handshake_is_eacces),
		cmocka_unit_test(resume_into_other_terms_is_eproto),
		cmocka_unit_test(lease_of_more_than_an_hour_is_nonsense),
		cmocka_unit_test(refusal_tells_its_reason),
		cmocka_unit_test(cut_during_the_handshake_is_ehostunreach),
		cmocka_unit_test(cut_while_thinking_ends_the_handshake),
		cmocka_unit_test(silence_after_the_challenge_is_etimedout),
		cmocka_unit_test(attach_has_a_new_serial_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
