/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_call.c - the requests of a client to a server, and what the answers mean.
 *
 * All values from the server are checked before they are used. During a handshake nothing is
 * believed before the proof in WELCOME is checked; until then an answer can only make the
 * handshake fail.
 */
#include "core/borrower.h"

#include "wire/reason.h"
#include "wire/terms.h"

static void call_over(struct rbx_borrower *b, int status, const char *why)
{
	b->call.status = status;
	b->call.why = why;
	b->call.state = RBX_CALL_ENDED;
}

void rbx_borrower_call_fail(struct rbx_borrower *b, int status)
{
	if (b->call.state != RBX_CALL_IDLE && b->call.state != RBX_CALL_ENDED)
		call_over(b, status, b->why);
}

void rbx_borrower_call_leave(struct rbx_borrower *b, int status, const char *why)
{
	RBX_ASSERT(b->call.kind != RBX_CALL_HANDSHAKE);
	if (b->call.state == RBX_CALL_SENT) {
		b->late_id = b->call.request_id;
		b->late_kind = b->call.kind;
		b->late_has_label = b->call.kind == RBX_CALL_MAP && b->call.message.map.label;
		b->late_lent_bytes = b->call.lent_bytes;
	}
	b->call.message.type = 0; /* the server has not refused */
	call_over(b, status, why);
}

static void spare_take(struct rbx_borrower *b)
{
	if (!b->has_spare || b->call.kind != RBX_CALL_MAP ||
	    b->call.state != RBX_CALL_READY)
		return;
	b->has_spare = false;
	b->call.loan = b->spare;
	call_over(b, 0, NULL);
}

void rbx_borrower_late_answered(struct rbx_borrower *b,
				const struct rbx_wire_message *answer)
{
	b->late_id = 0;
	/* Even if the server refuses, the loan has ended. */
	if (answer->request_id == b->return_id)
		b->returns_spare = false;
	/* Nothing is borrowed before the returned loan is done, so its place is free. */
	RBX_ASSERT(b->late_kind != RBX_CALL_MAP || !b->returns_spare);
	if (b->late_kind != RBX_CALL_MAP || answer->type != RBX_WIRE_SLAB_LOAN ||
	    rbx_last_loan_map(&b->last_loan, answer, b->late_lent_bytes, &b->spare))
		return;
	/* A slab of a named volume is of use for nothing else. */
	b->has_spare = !b->late_has_label;
	b->returns_spare = b->late_has_label;
	spare_take(b);
}

/* The request is in the call's message, except for its type. */
static int call_begin(struct rbx_borrower *b, enum rbx_call_kind kind, uint16_t type,
		      uint32_t answer_ms, uint64_t now_ns)
{
	struct rbx_call *call = &b->call;

	RBX_ASSERT(call->state == RBX_CALL_IDLE);
	call->why = b->why;
	if (b->phase != RBX_BORROWER_UP || b->closing)
		return -ENOTCONN;
	call->kind = kind;
	call->state = RBX_CALL_READY;
	call->lent_bytes = rbx_wire_lent_bytes(b->welcome.slab_bytes, kind == RBX_CALL_MAP &&
							       call->message.map.has_tail);
	call->deadline_ns = now_ns + rbx_wire_answer_ms(type, answer_ms) * 1000000ull;
	call->message.type = type;
	spare_take(b);
	return 0;
}

int rbx_borrower_call(struct rbx_borrower *b, enum rbx_call_kind kind,
		      const struct rbx_loan *loan, uint32_t answer_ms,
		      uint64_t now_ns)
{
	static const uint16_t types[] = {
		[RBX_CALL_MAP] = RBX_WIRE_SLAB_MAP,
		[RBX_CALL_UNMAP] = RBX_WIRE_SLAB_UNMAP,
		[RBX_CALL_CHECK] = RBX_WIRE_SLAB_QUERY,
		[RBX_CALL_LABEL] = RBX_WIRE_SLAB_COMPLETE,
		[RBX_CALL_UNLABEL] = RBX_WIRE_SLAB_INCOMPLETE,
		[RBX_CALL_STATS] = RBX_WIRE_STATS,
	};
	struct rbx_call *call = &b->call;

	RBX_ASSERT(kind != RBX_CALL_HANDSHAKE && kind != RBX_CALL_TALK);
	call->message = (struct rbx_wire_message){ 0 };
	if (kind != RBX_CALL_MAP && kind != RBX_CALL_STATS) {
		call->loan = *loan;
		call->message.epoch = loan->epoch;
		call->message.slab_id = loan->slab_id;
	}
	return call_begin(b, kind, types[kind], answer_ms, now_ns);
}

int rbx_borrower_call_map(struct rbx_borrower *b, const struct rbx_wire_map *map,
			  uint32_t answer_ms, uint64_t now_ns)
{
	b->call.message = (struct rbx_wire_message){ .map = *map };
	return call_begin(b, RBX_CALL_MAP, RBX_WIRE_SLAB_MAP, answer_ms, now_ns);
}

int rbx_borrower_call_talk(struct rbx_borrower *b, const struct rbx_wire_message *request,
			   uint32_t answer_ms, uint64_t now_ns)
{
	b->call.message = *request;
	b->call.talk_type = request->type;
	return call_begin(b, RBX_CALL_TALK, request->type, answer_ms, now_ns);
}

int rbx_borrower_call_end(struct rbx_borrower *b, struct rbx_loan *loan)
{
	RBX_ASSERT(b->call.state == RBX_CALL_ENDED);
	b->call.state = RBX_CALL_IDLE;
	if (loan && !b->call.status)
		*loan = b->call.loan;
	return b->call.status;
}

static int ask_call(struct rbx_borrower *b, const struct rbx_ask *ask, uint32_t answer_ms,
		    uint64_t now_ns)
{
	switch (ask->kind) {
	case RBX_CALL_MAP:
		return rbx_borrower_call_map(b, &ask->map, answer_ms, now_ns);
	case RBX_CALL_TALK:
		return rbx_borrower_call_talk(b, ask->message, answer_ms, now_ns);
	default:
		return rbx_borrower_call(b, (enum rbx_call_kind)ask->kind, &ask->loan,
					 answer_ms, now_ns);
	}
}

void rbx_borrower_ask(struct rbx_borrower *b, struct rbx_ask *ask,
		      uint32_t answer_ms, uint64_t now_ns)
{
	ask->state = RBX_ASK_OVER;
	ask->is_refused = false;
	ask->why = b->why;
	ask->status = -ENOTCONN;
	/* Also while another thread is about to connect: it has the call. */
	if (b->phase != RBX_BORROWER_UP || ask_call(b, ask, answer_ms, now_ns))
		return;
	RBX_ASSERT(!b->asked);
	ask->state = RBX_ASK_IS_OUT;
	b->asked = ask;
}

bool rbx_borrower_ask_end(struct rbx_borrower *b)
{
	struct rbx_ask *ask = b->asked;

	if (!ask || !rbx_borrower_call_is_over(b))
		return false;
	b->asked = NULL;
	ask->state = RBX_ASK_OVER;
	ask->is_refused = b->call.message.type == RBX_WIRE_ERROR;
	ask->why = b->call.why;
	if (ask->kind == RBX_CALL_TALK)
		*ask->message = b->call.message;
	ask->status = rbx_borrower_call_end(b, &ask->loan);
	return true;
}

/* ---- Answers --------------------------------------------------------------*/

static uint16_t talk_answer(uint16_t type)
{
	switch (type) {
	case RBX_WIRE_VOLUME_OPEN:
	case RBX_WIRE_VOLUME_LIST:
		return RBX_WIRE_VOLUME;
	case RBX_WIRE_VOLUME_READ:
		return RBX_WIRE_VOLUME_READING;
	case RBX_WIRE_LABELS:
		return RBX_WIRE_LABELS_REPLY;
	default:
		return RBX_WIRE_VOLUME_DONE;
	}
}

static uint16_t answer_expected(const struct rbx_borrower *b)
{
	switch (b->call.kind) {
	case RBX_CALL_HANDSHAKE:
		return b->phase == RBX_BORROWER_GREETING ? RBX_WIRE_CHALLENGE :
							   RBX_WIRE_WELCOME;
	case RBX_CALL_MAP:
	case RBX_CALL_CHECK:
		return RBX_WIRE_SLAB_LOAN;
	case RBX_CALL_UNMAP:
		return RBX_WIRE_SLAB_UNMAPPED;
	case RBX_CALL_LABEL:
	case RBX_CALL_UNLABEL:
		return RBX_WIRE_VOLUME_DONE;
	case RBX_CALL_TALK:
		return talk_answer(b->call.talk_type);
	case RBX_CALL_STATS:
		break;
	}
	return RBX_WIRE_STATS_REPLY;
}

/* HELLO is still there, to compare with. */
static void challenged(struct rbx_borrower *b,
		       const struct rbx_wire_message *challenge)
{
	if (b->call.message.type != RBX_WIRE_HELLO)
		return;
	rbx_transcript_make(&b->transcript, &b->call.message, challenge);
	b->incarnation = challenge->challenge.incarnation;
}

/* The volume is ours to write: with all that it was lent before. */
static void volume_opened(struct rbx_borrower *b, const struct rbx_wire_volume *volume)
{
	const struct rbx_wire_message *request = &b->call.message;

	if (request->type == RBX_WIRE_VOLUME_OPEN &&
	    request->volume_open.mode != RBX_WIRE_OPEN_LOOK)
		b->last_loan.epoch = RBX_MAX(b->last_loan.epoch, volume->last_epoch);
}

void rbx_borrower_call_answered(struct rbx_borrower *b,
				const struct rbx_wire_message *answer)
{
	int status = 0;

	if (answer->type == RBX_WIRE_CHALLENGE)
		challenged(b, answer);
	else if (answer->type == RBX_WIRE_VOLUME)
		volume_opened(b, &answer->volume);
	b->call.message = *answer;
	if (answer->type == RBX_WIRE_ERROR) {
		call_over(b, rbx_reason_errno(answer->status),
			  rbx_reason_sentence(answer->status));
		return;
	}
	if (answer->type != answer_expected(b)) {
		rbx_borrower_lost(b, "an answer of the wrong kind", 0);
		b->call.status = -EPROTO;
		return;
	}
	if (b->call.kind == RBX_CALL_HANDSHAKE) {
		b->is_welcomed = b->phase == RBX_BORROWER_PROVING;
		b->call.state = RBX_CALL_ANSWERED;
		return;
	}
	if (b->call.kind == RBX_CALL_MAP)
		status = rbx_last_loan_map(&b->last_loan, answer, b->call.lent_bytes,
					   &b->call.loan);
	else if (b->call.kind == RBX_CALL_CHECK)
		status = rbx_last_loan_query(answer, &b->call.loan);
	call_over(b, status, status == -EPROTO ?
				     "it lends a slab that cannot exist" :
				     "it has moved the slab");
}

/* ---- The handshake --------------------------------------------------------*/

static struct rbx_root root_of(const struct rbx_borrower *b)
{
	return b->welcome.session_id ? rbx_root_of_key(&b->session_key) :
				       b->config.secret;
}

static bool terms_make_sense(const struct rbx_borrower *b,
			     const struct rbx_wire_welcome *welcome)
{
	return rbx_wire_welcome_makes_sense(welcome, b->incarnation) &&
	       (!b->welcome.session_id ||
		rbx_wire_welcome_is_same(welcome, &b->welcome));
}

static int welcome_judge(struct rbx_borrower *b)
{
	const struct rbx_wire_message *welcome = &b->call.message;

	rbx_proof_of_server(root_of(b), &b->transcript, welcome, b->proof);
	if (!rbx_proof_equal(b->proof, welcome->welcome.proof,
			     sizeof(b->proof)))
		return -EACCES;
	if (!terms_make_sense(b, &welcome->welcome))
		return -EPROTO;
	rbx_key_of_connection(root_of(b), &b->transcript, &b->connection_key);
	rbx_seals_begin(&b->new_seals, RBX_SIDE_CLIENT, root_of(b), &b->transcript);
	if (!b->welcome.session_id)
		rbx_key_of_session(root_of(b), &b->transcript, &b->session_key);
	return 0;
}

void rbx_borrower_think(struct rbx_borrower *b)
{
	if (b->is_welcomed)
		b->verdict = welcome_judge(b);
	else
		rbx_proof_of_client(root_of(b), &b->transcript, b->proof);
}

/* The server has proved itself. Its lease runs from AUTH at the earliest. */
static void go_up(struct rbx_borrower *b, uint64_t now_ns)
{
	const struct rbx_wire_welcome *welcome = &b->call.message.welcome;

	b->phase = RBX_BORROWER_UP;
	b->seals = b->new_seals;
	if (!b->welcome.session_id) /* else it says the same again */
		b->welcome = *welcome;
	b->config.secret.bytes = NULL; /* the session has a key of its own (root_of()) */
	RBX_STORE_RELAXED(&b->free_bytes, welcome->free_bytes);
	rbx_borrower_drains_note(b, welcome->draining);
	b->attach_serial = 0;
	b->receipt_owed = true; /* the server waits for it */
	b->doubt_until_ns = 0;
	b->lease.timeout_ns = b->config.silence_ns;
	b->lease.lease_ns = b->welcome.lease_ms * 1000000ull;
	rbx_lease_begin(&b->lease, b->call.sent_ns, now_ns);
	call_over(b, 0, NULL);
}

static void auth_send(struct rbx_borrower *b)
{
	b->phase = RBX_BORROWER_PROVING;
	b->call.state = RBX_CALL_READY;
	b->call.message = (struct rbx_wire_message){ .type = RBX_WIRE_AUTH };
	rbx_port_copy(b->call.message.auth.proof, b->proof, sizeof(b->proof));
}

void rbx_borrower_go_on(struct rbx_borrower *b, uint64_t now_ns)
{
	if (b->call.state != RBX_CALL_ANSWERED)
		return; /* the connection was lost meanwhile */
	if (!b->is_welcomed) {
		auth_send(b);
	} else if (!b->verdict) {
		go_up(b, now_ns);
	} else {
		call_over(b, b->verdict,
			  b->verdict == -EACCES ?
				  "it could not prove that it has the secret" :
				  "it reports impossible values about itself");
		rbx_borrower_lost(b, b->call.why, 0);
	}
}

void rbx_borrower_attach(struct rbx_borrower *b,
			 struct rbx_wire_attach *attach)
{
	*attach = (struct rbx_wire_attach){
		.kind = RBX_WIRE_ATTACH_DATA,
		.session_id = b->welcome.session_id,
		.serial = ++b->attach_serial,
	};
	rbx_proof_of_attach(&b->connection_key, attach, attach->mac);
}
