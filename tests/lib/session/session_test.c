/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * session_test.c - a session and servers that are not what they should be:
 * silent, misbehaving, talking nonsense.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "core/port.h"
#include "include/rdmabox/rdmabox.h"
#include "lib/clock.h"
#include "lib/session/sessions.h"
#include "tests/lib/misbehaving_server.h"
#include "wire/reason.h"

#define PEER_TIMEOUT_MS 800
#define WAIT_MS 20000 /* against hangs only */

/* A misbehaving server, and a client that wants to open a session with it. */
struct meeting {
	struct misbehaving_server server;
	struct rbx_device *device;
	struct rbx_sessions *set;
	struct rbx_session *session;
	int lost_count; /* atomic */
	char reason[RBX_ERROR_TEXT_MAX]; /* once lost_count is not 0 */
};

static void lost(void *user, const char *reason)
{
	struct meeting *meeting = user;

	strcpy(meeting->reason, reason);
	RBX_FETCH_ADD(&meeting->lost_count, 1);
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	(void)eviction;
	(void)user;
}

/* The server waits, and the client has a device. */
static void meeting_make(struct meeting *meeting, enum server_mode mode,
			 struct rbx_secret *secret)
{
	struct rbx_fabric_choice choice;

	memset(meeting, 0, sizeof(*meeting));
	assert_int_equal(rbx_fabric_choose("soft:tcp", "", -1, NULL, &choice), 0);
	meeting->server.secret = mode == SERVER_IMPOSTOR ? NULL : secret;
	misbehaving_server_start(&meeting->server, mode, &choice);
	assert_int_equal(choice.ops->open(&choice.options, &meeting->device,
					  NULL),
			 0);
}

/* Returns what rbx_session_open_name() says. */
static int session_make(struct meeting *meeting, struct rbx_secret *secret)
{
	const struct rbx_session_events events = { .lost = lost, .evict = evict, .user = meeting };
	struct rbx_sessions_options options = {
		.device = meeting->device,
		.secret = secret,
		.silence_ms = PEER_TIMEOUT_MS,
	};
	int err;

	assert_int_equal(rbx_sessions_open(&meeting->set, &options), 0);
	err = rbx_session_open_name(meeting->set,
				    meeting->server.listener->address, &events, &meeting->session);
	if (err)
		print_message("open: %s\n", rbx_last_error());
	return err;
}

static int meet(struct meeting *meeting, enum server_mode mode,
		struct rbx_secret *secret)
{
	meeting_make(meeting, mode, secret);
	return session_make(meeting, secret);
}

static void leave(struct meeting *meeting)
{
	if (meeting->session)
		rbx_session_close(meeting->session);
	rbx_sessions_close(meeting->set);
	meeting->device->ops->close(meeting->device);
}

static void part(struct meeting *meeting)
{
	leave(meeting);
	misbehaving_server_stop(&meeting->server);
}

static void open_fails_with(enum server_mode mode, struct rbx_secret *secret,
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
	open_fails_with(SERVER_SILENT, NULL, -ETIMEDOUT);
}

static void open_of_a_babbling_server_fails(void **state)
{
	(void)state;
	open_fails_with(SERVER_GARBAGE, NULL, -EHOSTUNREACH);
}

static void open_of_a_server_that_leaves_fails(void **state)
{
	(void)state;
	open_fails_with(SERVER_LEAVES, NULL, -EHOSTUNREACH);
}

static void open_of_an_impostor_is_refused(void **state)
{
	struct rbx_secret secret = { .length_bytes = 16, .bytes = { 1, 2 } };

	(void)state;
	open_fails_with(SERVER_IMPOSTOR, &secret, -EACCES);
}

/* Who recorded a handshake, and has no secret, can only say it again. */
static void welcome_of_another_handshake_is_refused(void **state)
{
	struct rbx_secret secret = { .length_bytes = 16, .bytes = { 1, 2 } };

	(void)state;
	open_fails_with(SERVER_WELCOME_OF_ANOTHER_HELLO, &secret, -EACCES);
	open_fails_with(SERVER_WELCOME_OF_ANOTHER_CHALLENGE, &secret, -EACCES);
}

static void welcome_changed_on_the_way_is_refused(void **state)
{
	struct rbx_secret secret = { .length_bytes = 16, .bytes = { 1, 2 } };
	enum server_mode field;

	(void)state;
	for (field = 0; field < SERVER_WELCOME_FIELDS; field++)
		open_fails_with(SERVER_CHANGES_WELCOME + field, &secret,
				-EACCES);
}

static void open_of_a_server_of_nonsense_is_refused(void **state)
{
	(void)state;
	open_fails_with(SERVER_NONSENSE, NULL, -EPROTO);
}

static void open_where_nobody_listens_is_refused(void **state)
{
	const struct rbx_session_events events = { .lost = lost, .evict = evict };
	struct rbx_sessions_options options = {
		.silence_ms = PEER_TIMEOUT_MS
	};
	struct rbx_fabric_choice choice;
	struct rbx_sessions *set;
	struct rbx_session *session;

	(void)state;
	assert_int_equal(rbx_fabric_choose("soft:tcp", "", -1, NULL, &choice), 0);
	assert_int_equal(choice.ops->open(&choice.options, &options.device,
					  NULL),
			 0);
	assert_int_equal(rbx_sessions_open(&set, &options), 0);
	assert_int_equal(rbx_session_open_name(set, "127.0.0.1:1", &events,
					       &session),
			 -ECONNREFUSED);
	/* Beyond loopback it asks for a secret before it asks anybody. */
	assert_int_equal(rbx_session_open_name(set, "192.0.2.1:1", &events,
					       &session),
			 -EPERM);
	assert_int_equal(rbx_session_open_name(set, "nonsense", &events, &session),
			 -EINVAL);
	rbx_sessions_close(set);
	choice.ops->close(options.device);
}

static void loan_that_cannot_be_is_refused(void **state)
{
	struct meeting meeting;
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_WRONG_LOAN, NULL), 0);
	assert_int_equal(rbx_session_map(meeting.session, &loan), -EPROTO);
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
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_FALLS_SILENT, NULL), 0);
	wait_lost(&meeting); /* nobody asked for anything: by heartbeat */
	assert_non_null(strstr(meeting.reason, "no answer for 800 ms"));
	assert_int_equal(rbx_session_map(meeting.session, &loan), -ENOTCONN);
	part(&meeting);
	assert_int_equal(meeting.lost_count, 1);
}

static void lease_is_given_up_at_half_its_term(void **state)
{
	struct meeting meeting;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_SHORT_LEASE, NULL), 0);
	wait_lost(&meeting);
	assert_non_null(strstr(meeting.reason, "half of the lease is over: no answer for 200 ms"));
	part(&meeting);
}

static void call_to_a_silent_server_times_out(void **state)
{
	struct meeting meeting;
	struct rbx_loan loan;
	int err;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_FALLS_SILENT, NULL), 0);
	err = rbx_session_map(meeting.session, &loan);
	assert_true(err == -ETIMEDOUT || err == -ENOTCONN);
	wait_lost(&meeting);
	part(&meeting);
	assert_int_equal(meeting.lost_count, 1);
}

struct resumption {
	struct rbx_session *session;
	pthread_t thread;
	int status;
	bool is_over; /* atomic */
};

static void *resume(void *argument)
{
	struct resumption *resumption = argument;

	resumption->status = rbx_session_resume(resumption->session,
						rbx_after_ms(WAIT_MS));
	RBX_STORE_RELEASE(&resumption->is_over, true);
	return NULL;
}

/* Who looks after a volume has other servers to ask. */
static void call_while_it_is_resumed_does_not_wait(void **state)
{
	struct resumption resumption = { 0 };
	struct meeting meeting;
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_FALLS_SILENT, NULL), 0);
	wait_lost(&meeting);
	resumption.session = meeting.session;
	pthread_create(&resumption.thread, NULL, resume, &resumption);
	do
		assert_int_equal(rbx_session_map(meeting.session, &loan),
				 -ENOTCONN);
	while (!strstr(rbx_last_error(), "reconnected"));
	assert_false(RBX_LOAD_ACQUIRE(&resumption.is_over));
	misbehaving_server_stop(&meeting.server); /* ends the try */
	pthread_join(resumption.thread, NULL);
	assert_int_not_equal(resumption.status, 0);
	leave(&meeting);
}

static void message_that_leaves_one_out_ends_the_connection(void **state)
{
	struct meeting meeting;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_LEAVES_OUT, NULL), 0);
	wait_lost(&meeting);
	assert_non_null(strstr(meeting.reason, "is missing"));
	part(&meeting);
}

static void receipt_for_no_message_ends_the_connection(void **state)
{
	struct meeting meeting;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_HAS_HAD, NULL), 0);
	wait_lost(&meeting);
	assert_non_null(strstr(meeting.reason, "never sent"));
	part(&meeting);
}

static void answer_that_nobody_asked_for_ends_the_session(void **state)
{
	struct meeting meeting;
	struct rbx_loan loan;

	(void)state;
	assert_int_equal(meet(&meeting, SERVER_CHATTERS, NULL), 0);
	assert_int_equal(rbx_session_map(meeting.session, &loan), -ENOTCONN);
	wait_lost(&meeting);
	part(&meeting);
}

/* A device that counts receives: posted, and not taken by a message. */
static struct rbx_fabric_ops counting;
static const struct rbx_fabric_ops *counted;
static int receives_count; /* atomic */

static int post_recv_counted(struct rbx_qp *qp, struct rbx_recv_wr *first,
			     struct rbx_recv_wr **bad)
{
	struct rbx_recv_wr *wr;
	int err = counted->post_recv(qp, first, bad);

	for (wr = first; !err && wr; wr = wr->next)
		RBX_FETCH_ADD(&receives_count, 1);
	return err;
}

static int poll_counted(struct rbx_cq *cq, struct rbx_wc *wcs, int max)
{
	int i, n = counted->poll(cq, wcs, max);

	for (i = 0; i < n; i++)
		if (wcs[i].opcode == RBX_OP_RECV)
			RBX_FETCH_ADD(&receives_count, -1);
	return n;
}

/* As many as tests/core/borrower_receives_test.c shows to be enough. */
static void open_session_has_a_receive_for_all_that_may_come(void **state)
{
	struct meeting meeting;

	(void)state;
	meeting_make(&meeting, SERVER_FALLS_SILENT, NULL);
	counted = meeting.device->ops;
	counting = *counted;
	counting.post_recv = post_recv_counted;
	counting.poll = poll_counted;
	meeting.device->ops = &counting;
	assert_int_equal(session_make(&meeting, NULL), 0);
	assert_int_equal(RBX_LOAD_ACQUIRE(&receives_count),
			 RBX_CLIENT_RECEIVES);
	part(&meeting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_of_a_silent_server_times_out),
		cmocka_unit_test(open_of_a_babbling_server_fails),
		cmocka_unit_test(open_of_a_server_that_leaves_fails),
		cmocka_unit_test(open_of_an_impostor_is_refused),
		cmocka_unit_test(welcome_of_another_handshake_is_refused),
		cmocka_unit_test(welcome_changed_on_the_way_is_refused),
		cmocka_unit_test(open_of_a_server_of_nonsense_is_refused),
		cmocka_unit_test(open_where_nobody_listens_is_refused),
		cmocka_unit_test(loan_that_cannot_be_is_refused),
		cmocka_unit_test(server_that_falls_silent_is_lost_once),
		cmocka_unit_test(lease_is_given_up_at_half_its_term),
		cmocka_unit_test(call_to_a_silent_server_times_out),
		cmocka_unit_test(call_while_it_is_resumed_does_not_wait),
		cmocka_unit_test(
			message_that_leaves_one_out_ends_the_connection),
		cmocka_unit_test(receipt_for_no_message_ends_the_connection),
		cmocka_unit_test(answer_that_nobody_asked_for_ends_the_session),
		cmocka_unit_test(
			open_session_has_a_receive_for_all_that_may_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
