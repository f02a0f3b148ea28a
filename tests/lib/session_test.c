/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_test.c - a session and servers that are not what they should be:
 * silent, rogue, talking nonsense.
 *
 * The rogue server speaks the protocol by the book up to the point where it
 * does what its mode says.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/port.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/fabric_choice.h"
#include "lib/secret.h"
#include "lib/session/session.h"
#include "wire/attach.h"
#include "wire/message.h"
#include "wire/reason.h"

#define RECEIVES 8
#define BUFFER_BYTES RBX_WIRE_MESSAGE_BYTES_MAX
#define PEER_TIMEOUT_MS 800
#define WAIT_MS 20000 /* against hangs only */

enum mode {
	SILENT, /* accepts and says nothing */
	GARBAGE, /* answers HELLO with no message */
	IMPOSTOR, /* has no secret: sends back the client's own proof */
	NONSENSE, /* proves itself, and lends slabs of three bytes */
	WRONG_GRANT, /* lends a slab that reaches beyond the address space */
	FALLS_SILENT, /* welcomes, and never answers again */
	SHORT_LEASE, /* the same, with a lease that is over first */
	CHATTERS, /* welcomes, then answers what nobody asked */
	LEAVES, /* ends the connection after AUTH */
	LEAVES_OUT, /* says its second message, and never its first */
	HAS_HAD, /* has had a message that we never sent */
};

struct rogue {
	enum mode mode;
	const struct rbx_fabric_ops *ops;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_listener *listener;
	struct rbx_qp *qp;
	struct rbx_mr *mr;
	uint8_t buffers[RECEIVES + 1][BUFFER_BYTES]; /* the last one to send */
	struct rbx_wire_message hello, challenge;
	struct rbx_secret *secret;
	bool stopping; /* atomic */
	pthread_t thread;
};

static void rogue_receive(struct rogue *rogue, uint64_t number)
{
	struct rbx_recv_wr *bad;
	struct rbx_recv_wr wr = {
		.wr_id = number,
		.sge = {
			.addr = (uintptr_t)rogue->buffers[number],
			.length_bytes = BUFFER_BYTES,
			.lkey = rogue->mr->lkey,
		},
	};

	rogue->ops->post_recv(rogue->qp, &wr, &bad);
}

static void rogue_accept(struct rogue *rogue)
{
	struct rbx_conn_request *request;
	struct rbx_qp_init init = {
		.send_cq = rogue->cq,
		.recv_cq = rogue->cq,
		.send_depth_count = 32,
		.recv_depth_count = RECEIVES,
		.max_sge = 1,
	};
	uint64_t i;

	if (rogue->ops->get_request(rogue->listener, &request))
		return;
	if (rogue->qp || rogue->ops->accept(request, &init, NULL, 0, &rogue->qp,
					    NULL))
		return;
	for (i = 0; i < RECEIVES; i++)
		rogue_receive(rogue, i);
}

static void rogue_send_bytes(struct rogue *rogue, size_t length)
{
	const struct rbx_sge sge = {
		.addr = (uintptr_t)rogue->buffers[RECEIVES],
		.length_bytes = (uint32_t)length,
		.lkey = rogue->mr->lkey,
	};
	struct rbx_wr *bad;
	struct rbx_wr wr = {
		.wr_id = RECEIVES,
		.sges = &sge,
		.sge_count = 1,
		.opcode = RBX_OP_SEND,
		.flags = RBX_WR_SIGNALED,
	};

	rogue->ops->post_send(rogue->qp, &wr, &bad);
}

static void rogue_send(struct rogue *rogue,
		       const struct rbx_wire_message *message)
{
	rogue_send_bytes(rogue, rbx_wire_encode(message,
						rogue->buffers[RECEIVES]));
}

static void rogue_welcome(struct rogue *rogue,
			  const struct rbx_wire_message *auth)
{
	struct rbx_root root = rbx_root_of_secret(rogue->secret);
	struct rbx_transcript transcript;
	struct rbx_wire_message welcome = {
		.type = RBX_WIRE_WELCOME,
		.request_id = auth->request_id,
		.welcome = {
			.session_id = 1,
			.incarnation = 2,
			.slab_bytes = rogue->mode == NONSENSE ? 3 : 65536,
			.lease_ms = rogue->mode == SHORT_LEASE ? 400 : 60000,
		},
	};

	rbx_transcript_make(&transcript, &rogue->hello, &rogue->challenge);
	rbx_proof_of_server(root, &transcript, &welcome, welcome.welcome.proof);
	if (rogue->mode == IMPOSTOR)
		memcpy(welcome.welcome.proof, auth->auth.proof,
		       RBX_WIRE_PROOF_BYTES);
	rogue_send(rogue, &welcome);
}

static void rogue_answer(struct rogue *rogue,
			 const struct rbx_wire_message *m)
{
	struct rbx_wire_message grant = {
		.type = RBX_WIRE_SLAB_GRANT,
		.request_id = m->request_id,
		.epoch = 1,
		.grant = {
			.slab_id = 1,
			.remote_addr = UINT64_MAX - 4096,
			.length_bytes = 65536,
		},
	};

	const struct rbx_wire_message second = {
		.type = RBX_WIRE_LETTER,
		.letter.sequence = 2,
	};
	const struct rbx_wire_message had = {
		.type = RBX_WIRE_LETTER_TAKEN,
		.letter_taken.sequence = 1,
	};

	switch (m->type) {
	case RBX_WIRE_HELLO:
		if (rogue->mode == GARBAGE) {
			memset(rogue->buffers[RECEIVES], 0x99, BUFFER_BYTES);
			rogue_send_bytes(rogue, 100);
			break;
		}
		rogue->hello = *m;
		rogue->challenge = (struct rbx_wire_message){
			.type = RBX_WIRE_CHALLENGE,
			.request_id = m->request_id,
			.challenge.incarnation = 2,
		};
		rogue_send(rogue, &rogue->challenge);
		break;
	case RBX_WIRE_AUTH:
		if (rogue->mode == LEAVES)
			rogue->ops->disconnect(rogue->qp);
		else
			rogue_welcome(rogue, m);
		break;
	case RBX_WIRE_LETTER_TAKEN:
		if (rogue->mode == LEAVES_OUT)
			rogue_send(rogue, &second);
		else if (rogue->mode == HAS_HAD)
			rogue_send(rogue, &had);
		break;
	case RBX_WIRE_SLAB_MAP:
		if (rogue->mode == CHATTERS)
			grant.request_id = m->request_id + 17;
		if (rogue->mode != FALLS_SILENT)
			rogue_send(rogue, &grant);
		break;
	}
}

static void *rogue_run(void *argument)
{
	struct rogue *rogue = argument;
	struct rbx_wire_message m;
	struct rbx_wc wc;

	while (!RBX_LOAD_ACQUIRE(&rogue->stopping)) {
		if (!rogue->qp)
			rogue_accept(rogue);
		while (rogue->ops->poll(rogue->cq, &wc, 1) == 1) {
			if (wc.status || wc.opcode != RBX_OP_RECV)
				continue;
			if (rogue->mode != SILENT &&
			    !rbx_wire_decode(rogue->buffers[wc.wr_id],
					     wc.length_bytes, &m))
				rogue_answer(rogue, &m);
			rogue_receive(rogue, wc.wr_id);
		}
		poll(NULL, 0, 1);
	}
	return NULL;
}

/* A rogue, and a client that wants to open a session with it. */
struct meeting {
	struct rogue rogue;
	struct rbx_device *device;
	struct rbx_session_set *set;
	struct rbx_session *session;
	int lost_count; /* atomic */
	char reason[RBX_ERROR_TEXT_MAX]; /* once lost_count is not 0 */
};

static void lost(struct rbx_session *session, const char *reason, void *user)
{
	struct meeting *meeting = user;

	(void)session;
	strcpy(meeting->reason, reason);
	RBX_FETCH_ADD(&meeting->lost_count, 1);
}

static void evict(struct rbx_session *session, uint64_t slab_id,
		  uint32_t grace_ms, void *user)
{
	(void)session;
	(void)slab_id;
	(void)grace_ms;
	(void)user;
}

static void rogue_start(struct rogue *rogue, enum mode mode,
			struct rbx_fabric_choice *choice)
{
	const struct rbx_mr_init init = {
		.addr = rogue->buffers,
		.length_bytes = sizeof(rogue->buffers),
		.rights = RBX_LOCAL_WRITE,
		.memory_fd = -1,
	};
	const struct rbx_fabric_ops *ops = choice->ops;

	rogue->mode = mode;
	rogue->ops = ops;
	assert_int_equal(ops->open(&choice->options, &rogue->device, NULL), 0);
	assert_int_equal(ops->create_cq(rogue->device, 64, &rogue->cq, NULL),
			 0);
	assert_int_equal(ops->register_memory(rogue->device, &init, 1,
					      &rogue->mr, NULL),
			 0);
	assert_int_equal(ops->listen(rogue->device, "127.0.0.1:0",
				     &rogue->listener, NULL),
			 0);
	assert_int_equal(pthread_create(&rogue->thread, NULL, rogue_run, rogue),
			 0);
}

static void rogue_stop(struct rogue *rogue)
{
	RBX_STORE_RELEASE(&rogue->stopping, true);
	pthread_join(rogue->thread, NULL);
	rogue->ops->close_listener(rogue->listener);
	if (rogue->qp)
		rogue->ops->destroy_qp(rogue->qp);
	rogue->ops->deregister_memory(rogue->device, &rogue->mr, 1);
	rogue->ops->destroy_cq(rogue->cq);
	rogue->ops->close(rogue->device);
}

/* Returns what rbx_session_open() says. */
static int meet(struct meeting *meeting, enum mode mode,
		struct rbx_secret *secret)
{
	const struct rbx_session_events events = { lost, evict, meeting };
	struct rbx_session_set_options options = {
		.secret = secret,
		.peer_timeout_ms = PEER_TIMEOUT_MS,
	};
	struct rbx_fabric_choice choice;
	int err;

	memset(meeting, 0, sizeof(*meeting));
	assert_int_equal(rbx_fabric_choose("soft:tcp", "", -1, NULL, &choice), 0);
	meeting->rogue.secret = mode == IMPOSTOR ? NULL : secret;
	rogue_start(&meeting->rogue, mode, &choice);
	assert_int_equal(choice.ops->open(&choice.options, &meeting->device,
					  NULL),
			 0);
	options.device = meeting->device;
	assert_int_equal(rbx_session_set_open(&meeting->set, &options), 0);
	err = rbx_session_open(meeting->set, meeting->rogue.listener->address,
			       &events, &meeting->session);
	if (err)
		print_message("open: %s\n", rbx_last_error());
	return err;
}

static void part(struct meeting *meeting)
{
	if (meeting->session)
		rbx_session_close(meeting->session);
	rbx_session_set_close(meeting->set);
	meeting->device->ops->close(meeting->device);
	rogue_stop(&meeting->rogue);
}

static void open_fails_with(enum mode mode, struct rbx_secret *secret,
			    int expected)
{
	struct meeting meeting;

	assert_int_equal(meet(&meeting, mode, secret), expected);
	assert_null(meeting.session);
	assert_true(rbx_last_error()[0] != '\0');
	part(&meeting);
	assert_int_equal(meeting.lost_count, 0);
}

static void open_of_a_silent_server_times_out(void **state)
{
	(void)state;
	open_fails_with(SILENT, NULL, -ETIMEDOUT);
}

static void open_of_a_babbling_server_fails(void **state)
{
	(void)state;
	open_fails_with(GARBAGE, NULL, -EHOSTUNREACH);
}

static void open_of_a_server_that_leaves_fails(void **state)
{
	(void)state;
	open_fails_with(LEAVES, NULL, -EHOSTUNREACH);
}

static void open_of_an_impostor_is_refused(void **state)
{
	struct rbx_secret secret = { .length_bytes = 16, .bytes = { 1, 2 } };

	(void)state;
	open_fails_with(IMPOSTOR, &secret, -EACCES);
}

static void open_of_a_server_of_nonsense_is_refused(void **state)
{
	(void)state;
	open_fails_with(NONSENSE, NULL, -EPROTO);
}

static void open_where_nobody_listens_is_refused(void **state)
{
	const struct rbx_session_events events = { lost, evict, NULL };
	struct rbx_session_set_options options = {
		.peer_timeout_ms = PEER_TIMEOUT_MS
	};
	struct rbx_fabric_choice choice;
	struct rbx_session_set *set;
	struct rbx_session *session;

	(void)state;
	assert_int_equal(rbx_fabric_choose("soft:tcp", "", -1, NULL, &choice), 0);
	assert_int_equal(choice.ops->open(&choice.options, &options.device,
					  NULL),
			 0);
	assert_int_equal(rbx_session_set_open(&set, &options), 0);
	assert_int_equal(rbx_session_open(set, "127.0.0.1:1", &events,
					  &session),
			 -ECONNREFUSED);
	/* Beyond loopback it asks for a secret before it asks anybody. */
	assert_int_equal(rbx_session_open(set, "192.0.2.1:1", &events,
					  &session),
			 -EPERM);
	assert_int_equal(rbx_session_open(set, "nonsense", &events, &session),
			 -EINVAL);
	rbx_session_set_close(set);
	choice.ops->close(options.device);
}

static void grant_that_cannot_be_is_refused(void **state)
{
	struct meeting meeting;
	struct rbx_grant grant;

	(void)state;
	assert_int_equal(meet(&meeting, WRONG_GRANT, NULL), 0);
	assert_int_equal(rbx_session_map(meeting.session, &grant), -EPROTO);
	part(&meeting);
}

static void wait_lost(struct meeting *meeting)
{
	int waited_ms;

	for (waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 5) {
		if (RBX_LOAD_ACQUIRE(&meeting->lost_count))
			return;
		poll(NULL, 0, 5);
	}
	fail_msg("not lost");
}

static void server_that_falls_silent_is_lost_once(void **state)
{
	struct meeting meeting;
	struct rbx_grant grant;

	(void)state;
	assert_int_equal(meet(&meeting, FALLS_SILENT, NULL), 0);
	wait_lost(&meeting); /* nobody asked for anything: by heartbeat */
	assert_non_null(strstr(meeting.reason, "no answer for 800 ms"));
	assert_int_equal(rbx_session_map(meeting.session, &grant), -ENOTCONN);
	part(&meeting);
	assert_int_equal(meeting.lost_count, 1);
}

static void lease_is_given_up_at_half_its_term(void **state)
{
	struct meeting meeting;

	(void)state;
	assert_int_equal(meet(&meeting, SHORT_LEASE, NULL), 0);
	wait_lost(&meeting);
	assert_non_null(strstr(meeting.reason, "half the lease (200 ms)"));
	part(&meeting);
}

static void call_to_a_silent_server_times_out(void **state)
{
	struct meeting meeting;
	struct rbx_grant grant;
	int err;

	(void)state;
	assert_int_equal(meet(&meeting, FALLS_SILENT, NULL), 0);
	err = rbx_session_map(meeting.session, &grant);
	assert_true(err == -ETIMEDOUT || err == -ENOTCONN);
	wait_lost(&meeting);
	part(&meeting);
	assert_int_equal(meeting.lost_count, 1);
}

static void message_that_leaves_one_out_ends_the_connection(void **state)
{
	struct meeting meeting;

	(void)state;
	assert_int_equal(meet(&meeting, LEAVES_OUT, NULL), 0);
	wait_lost(&meeting);
	assert_non_null(strstr(meeting.reason, "is missing"));
	part(&meeting);
}

static void receipt_for_no_message_ends_the_connection(void **state)
{
	struct meeting meeting;

	(void)state;
	assert_int_equal(meet(&meeting, HAS_HAD, NULL), 0);
	wait_lost(&meeting);
	assert_non_null(strstr(meeting.reason, "never sent"));
	part(&meeting);
}

static void answer_that_nobody_asked_for_ends_the_session(void **state)
{
	struct meeting meeting;
	struct rbx_grant grant;

	(void)state;
	assert_int_equal(meet(&meeting, CHATTERS, NULL), 0);
	assert_int_equal(rbx_session_map(meeting.session, &grant), -ENOTCONN);
	wait_lost(&meeting);
	part(&meeting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_of_a_silent_server_times_out),
		cmocka_unit_test(open_of_a_babbling_server_fails),
		cmocka_unit_test(open_of_a_server_that_leaves_fails),
		cmocka_unit_test(open_of_an_impostor_is_refused),
		cmocka_unit_test(open_of_a_server_of_nonsense_is_refused),
		cmocka_unit_test(open_where_nobody_listens_is_refused),
		cmocka_unit_test(grant_that_cannot_be_is_refused),
		cmocka_unit_test(server_that_falls_silent_is_lost_once),
		cmocka_unit_test(lease_is_given_up_at_half_its_term),
		cmocka_unit_test(call_to_a_silent_server_times_out),
		cmocka_unit_test(
			message_that_leaves_one_out_ends_the_connection),
		cmocka_unit_test(receipt_for_no_message_ends_the_connection),
		cmocka_unit_test(answer_that_nobody_asked_for_ends_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
