/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * early_test.c - a message is polled, and answered, before the call that makes the
 * endpoint has returned: the one that accepts, or the one that connects.
 *
 * One side, which has shared receives, is made by a thread that is held up on its way back
 * from the fabric, as a scheduler may; meanwhile the test polls its queue.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/endpoints.h"

#define WAIT_MS 20000
#define BYTES 64u
#define DEPTH 16u

/* ---- The fabric, which takes long to return ---------------------------------------*/

static const struct rbx_fabric_ops *true_ops;
static bool may_return; /* atomic */

static void hold_up(void)
{
	for (int ms = 0; ms < WAIT_MS && !RBX_LOAD_ACQUIRE(&may_return); ms++)
		usleep(1000);
}

static int accept_slowly(struct rbx_conn_request *request,
			 const struct rbx_qp_init *init, const void *private_data,
			 size_t private_data_bytes, struct rbx_qp **qp, char *error)
{
	int err = true_ops->accept(request, init, private_data, private_data_bytes,
				   qp, error);

	hold_up();
	return err;
}

static int connect_slowly(struct rbx_device *device, const struct rbx_qp_init *init,
			  struct rbx_connect_init *connect, struct rbx_qp **qp,
			  char *error)
{
	int err = true_ops->connect(device, init, connect, qp, error);

	hold_up();
	return err;
}

/* ---- Both sides -------------------------------------------------------------------*/

struct call {
	struct endpoints *endpoints;
	struct rbx_endpoint_options options;
	int err;
};

static void *accepts(void *user)
{
	struct call *call = user;
	struct side *b = &call->endpoints->b;
	struct rbx_endpoint_request *request;

	call->options.queue = b->queue;
	call->err = rbx_endpoint_next_request(call->endpoints->listener, WAIT_MS,
					      &request);
	if (!call->err)
		call->err = rbx_endpoint_accept(request, &call->options, NULL,
						&b->endpoint);
	return NULL;
}

static void *connects(void *user)
{
	struct call *call = user;
	struct side *a = &call->endpoints->a;

	call->options.queue = a->queue;
	call->err = rbx_endpoint_connect(
		a->ctx, rbx_endpoint_listener_address(call->endpoints->listener),
		&call->options, NULL, NULL, &a->endpoint);
	return NULL;
}

static struct rbx_shared_receives *share(const struct side *side)
{
	const struct rbx_shared_receives_options options = {
		.size_bytes = sizeof(options),
		.queue = side->queue,
	};
	struct rbx_segment segment = segment_of(side, 0, BYTES);
	const struct rbx_receive receive = { &segment, 1, (void *)7 };
	struct rbx_shared_receives *shared;

	assert_int_equal(rbx_shared_receives_create(side->ctx, &options, &shared), 0);
	assert_int_equal(rbx_shared_receives_post(shared, &receive, 1), 0);
	return shared;
}

static void send_by(const struct side *side, struct rbx_endpoint *endpoint,
		    uintptr_t user)
{
	struct rbx_segment segment = segment_of(side, BYTES, BYTES);
	const struct rbx_operation send = {
		.kind = RBX_OPERATION_SEND,
		.segments = &segment,
		.segments_count = 1,
		.user = (void *)user,
	};

	if (rbx_endpoint_post(endpoint, &send, 1))
		fail_msg("%s", rbx_last_error());
}

/* The endpoint of `early` is whole, though the call that makes it has not returned. */
static struct rbx_endpoint *message_answer(const struct side *early)
{
	struct rbx_completion message = next_of(early);

	assert_int_equal(message.status, 0);
	assert_int_equal(message.kind, RBX_COMPLETION_RECEIVED);
	assert_ptr_equal(message.user, (void *)7);
	assert_null(early->endpoint);
	assert_ptr_equal(rbx_endpoint_user(message.endpoint), early);
	assert_int_not_equal(strlen(rbx_endpoint_name(message.endpoint)), 0);
	assert_int_equal(rbx_endpoint_send_depth(message.endpoint), DEPTH);
	send_by(early, message.endpoint, 8);
	return message.endpoint;
}

/* early_options: of the side whose call is held up. */
static void meet_early(struct endpoints *e, bool early_accepts,
		       const struct rbx_endpoint_options *early_options)
{
	struct side *early = early_accepts ? &e->b : &e->a;
	struct side *other = early_accepts ? &e->a : &e->b;
	struct call calls[2] = { { e, *early_options, 0 }, { e, endpoint_options, 0 } };
	struct rbx_shared_receives *shared = share(early);
	struct rbx_fabric_ops slow_ops;
	struct rbx_endpoint *told;
	pthread_t thread;

	true_ops = early->ctx->device->ops;
	slow_ops = *true_ops;
	slow_ops.accept = accept_slowly;
	slow_ops.connect = connect_slowly;
	device_play(early->ctx, &slow_ops);
	RBX_STORE_RELEASE(&may_return, false);
	calls[0].options.receives = shared;
	calls[0].options.user = early;
	assert_int_equal(pthread_create(&thread, NULL,
					early_accepts ? accepts : connects,
					&calls[0]), 0);
	(early_accepts ? connects : accepts)(&calls[1]);
	assert_int_equal(calls[1].err, 0);
	receive_at(other, 0, BYTES, 9);
	send_by(other, other->endpoint, 10);
	told = message_answer(early);
	RBX_STORE_RELEASE(&may_return, true);
	pthread_join(thread, NULL);
	assert_int_equal(calls[0].err, 0);
	assert_ptr_equal(early->endpoint, told);
	expect(early, RBX_COMPLETION_POSTED, 8, 0);
	/* Its own completion, and the answer, in whatever order. */
	assert_int_equal(next_of(other).status + next_of(other).status, 0);
	assert_int_equal(rbx_endpoint_close(early->endpoint), 0);
	early->endpoint = NULL;
	assert_int_equal(rbx_shared_receives_destroy(shared), 0);
	device_play(early->ctx, true_ops);
}

/* ---- Tests ------------------------------------------------------------------------*/

static void meet_early_in_all_ways(bool early_accepts)
{
	for (uint8_t way = 0; way < 4; way++) {
		struct rbx_endpoint_options options = endpoint_options;
		struct endpoints e;

		options.send_depth = DEPTH;
		options.works_when_polled = way & 1;
		options.paced = way >> 1;
		sides_open(&e);
		meet_early(&e, early_accepts, &options);
		sides_close(&e);
	}
}

static void message_before_accept_returns_is_answered(void **state)
{
	(void)state;
	meet_early_in_all_ways(true);
}

static void message_before_connect_returns_is_answered(void **state)
{
	(void)state;
	meet_early_in_all_ways(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_before_accept_returns_is_answered),
		cmocka_unit_test(message_before_connect_returns_is_answered),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
