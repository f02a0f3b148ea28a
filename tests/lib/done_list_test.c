/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * done_list_test.c - how a program hears that a request is done: by callback,
 * by reaping, by a descriptor, or by polling itself.
 */
#include "tests/lib/cable.h"
#include "tests/lib/tenant.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/port.h"
#include "lib/context.h"

#define PAGE 4096u
#define DEPTH 32u

static uint8_t bytes[DEPTH * PAGE];

/* A request that submits itself again from its completion. */
struct runner {
	struct tenant *tenant;
	struct rbx_request request;
	uint32_t left_count;
	uint32_t *finished_count; /* atomic */
	pthread_t thread; /* of the last callback */
};

static void runner_go(struct rbx_request *request)
{
	struct runner *runner = request->user;
	struct rbx_request *list[] = { request };

	runner->thread = pthread_self();
	if (request->status == 0 && runner->left_count-- > 0) {
		request->offset = (request->offset + 7 * PAGE) % (256 * PAGE);
		if (rbx_remote_submit(runner->tenant->remote, list, 1) == 0)
			return;
	}
	RBX_FETCH_ADD(runner->finished_count, 1);
}

/* Keeps DEPTH requests outstanding, each `times` times. */
static void run(struct tenant *tenant, uint32_t times, bool poll)
{
	struct runner runners[DEPTH];
	struct rbx_request *list[DEPTH];
	uint32_t finished_count = 0;

	for (uint32_t i = 0; i < DEPTH; i++) {
		runners[i] = (struct runner){
			.tenant = tenant,
			.left_count = times - 1,
			.finished_count = &finished_count,
			.request = {
				.op = i % 2 ? RBX_WRITE : RBX_READ,
				.length_bytes = PAGE,
				.offset = i * PAGE,
				.buf = bytes + i * PAGE,
				.complete = runner_go,
				.user = &runners[i],
			},
		};
		list[i] = &runners[i].request;
	}
	assert_int_equal(rbx_remote_submit(tenant->remote, list, DEPTH), 0);
	tenant_wait(tenant->ctx, &finished_count, DEPTH, poll);
	for (uint32_t i = 0; i < DEPTH; i++) {
		assert_int_equal(runners[i].request.status, 0);
		assert_int_equal(pthread_equal(runners[i].thread,
					       pthread_self()) != 0,
				 poll);
	}
}

/* ---- Callbacks -------------------------------------------------------------*/

static void resubmission_from_callbacks_makes_batches(void **state)
{
	struct tenant tenant;
	struct rbx_stats stats;

	(void)state;
	tenant_open(&tenant, "mode=doorbell");
	run(&tenant, 300, false);
	stats = tenant_stats(tenant.ctx);
	assert_int_equal(stats.requests, DEPTH * 300);
	assert_true(stats.doorbells < stats.requests / 4);
	tenant_close(&tenant);
}

static struct {
	struct rbx_volume *volume;
	int read_result;
	uint32_t done_count; /* atomic */
} forbidden;

static void reads_in_callback(struct rbx_request *request)
{
	(void)request;
	forbidden.read_result = rbx_read(forbidden.volume, bytes, PAGE, 0);
	RBX_FETCH_ADD(&forbidden.done_count, 1);
}

static void waiting_read_from_a_callback_is_refused(void **state)
{
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx = tenant_context("");
	struct rbx_request request = {
		.op = RBX_WRITE,
		.length_bytes = PAGE,
		.buf = bytes,
		.complete = reads_in_callback,
	};
	struct rbx_request *list[] = { &request };

	(void)state;
	assert_int_equal(rbx_volume_open(ctx, &forbidden.volume,
					 rbx_server_address(server), 1 << 20,
					 NULL),
			 0);
	assert_int_equal(rbx_submit(forbidden.volume, list, 1), 0);
	tenant_wait(ctx, &forbidden.done_count, 1, false);
	assert_int_equal(forbidden.read_result, -EDEADLK);
	rbx_volume_close(forbidden.volume);
	rbx_close(ctx);
	rbx_server_stop(server);
}

/* ---- Reaping ---------------------------------------------------------------*/

static void reap_without_requests_returns_at_its_time(void **state)
{
	struct rbx_request *done[4];
	struct rbx_context *ctx = tenant_context("");

	(void)state;
	assert_int_equal(rbx_reap(ctx, done, 4, 0), 0);
	assert_int_equal(rbx_reap(ctx, done, 4, 30), 0);
	rbx_close(ctx);
}

static void reap_takes_at_most_what_is_asked(void **state)
{
	struct rbx_request requests[DEPTH], *done[DEPTH];
	bool seen[DEPTH] = { false };
	struct tenant tenant;
	uint32_t count = 0;

	(void)state;
	tenant_open(&tenant, "");
	tenant_submit_pages(&tenant, requests, bytes, DEPTH);
	while (count < DEPTH) {
		int taken = rbx_reap(tenant.ctx, done, 5, -1);

		assert_in_range(taken, 1, 5);
		for (int i = 0; i < taken; i++) {
			assert_false(seen[done[i] - requests]);
			seen[done[i] - requests] = true;
		}
		count += (uint32_t)taken;
	}
	assert_int_equal(rbx_reap(tenant.ctx, done, 5, 0), 0);
	tenant_close(&tenant);
}

static void *reap_one(void *ctx)
{
	struct rbx_request *done;

	assert_int_equal(rbx_reap(ctx, &done, 1, -1), 1);
	return NULL;
}

static void reaping_threads_all_get_one(void **state)
{
	struct rbx_request requests[DEPTH];
	pthread_t threads[DEPTH];
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reap_one,
						tenant.ctx),
				 0);
	tenant_submit_pages(&tenant, requests, bytes, DEPTH);
	for (uint32_t i = 0; i < DEPTH; i++)
		pthread_join(threads[i], NULL);
	tenant_close(&tenant);
}

/* ---- The descriptor --------------------------------------------------------*/

static int epoll_on(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	assert_true(epoll_fd >= 0);
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
	return epoll_fd;
}

static int readable(int epoll_fd, int timeout_ms)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, timeout_ms);
}

static void event_fd_is_readable_while_there_is_something(void **state)
{
	struct rbx_request requests[DEPTH], *done[DEPTH];
	struct tenant tenant;
	uint32_t reaped = 0;
	int epoll_fd;

	(void)state;
	tenant_open(&tenant, "");
	epoll_fd = epoll_on(rbx_event_fd(tenant.ctx));
	assert_int_equal(readable(epoll_fd, 0), 0);
	for (int round = 0; round < 20; round++) {
		tenant_submit_pages(&tenant, requests, bytes, DEPTH);
		for (reaped = 0; reaped < DEPTH;) {
			assert_int_equal(readable(epoll_fd, TENANT_WAIT_MS), 1);
			reaped += (uint32_t)rbx_reap(tenant.ctx, done, 3, 0);
		}
		assert_int_equal(readable(epoll_fd, 0), 0);
	}
	close(epoll_fd);
	tenant_close(&tenant);
}

/* It guesses after 1 ms: only a shorter time can be over before. */
static void wait_for_room_is_over_after_its_time(void **state)
{
	struct rbx_context *ctx = tenant_context("");

	(void)state;
	assert_int_equal(rbx_wait_room(ctx, 0), -ETIMEDOUT);
	assert_non_null(strstr(rbx_last_error(), "within 0 ms"));
	assert_int_equal(rbx_wait_room(ctx, 1), -ETIMEDOUT);
	assert_non_null(strstr(rbx_last_error(), "within 1 ms"));
	assert_int_equal(rbx_wait_room(ctx, 2), 0);
	assert_int_equal(rbx_wait_room(ctx, -1), 0);
	assert_int_equal(rbx_close(ctx), 0);
}

/* ---- pollers = 0 -----------------------------------------------------------*/

static void polling_program_runs_its_own_callbacks(void **state)
{
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "pollers=0");
	run(&tenant, 200, true);
	tenant_close(&tenant);
}

/* Without end it would poll a million times. */
static void polling_program_that_waits_for_nothing_sleeps(void **state)
{
	struct rbx_request *done;
	struct tenant tenant;
	uint64_t before;

	(void)state;
	tenant_open(&tenant, "pollers=0");
	before = tenant_stats(tenant.ctx).polls;
	assert_int_equal(rbx_reap(tenant.ctx, &done, 1, 300), 0);
	assert_in_range(tenant_stats(tenant.ctx).polls - before, 1, 20000);
	tenant_close(&tenant);
}

static void poll_is_refused_where_pollers_are(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=1");

	(void)state;
	assert_int_equal(rbx_poll(ctx), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "pollers=0"));
	rbx_close(ctx);
}

struct nested {
	struct rbx_context *ctx;
	int poll_result;
	uint32_t done_count;
};

static void polls_in_callback(struct rbx_request *request)
{
	struct nested *nested = request->user;

	nested->poll_result = rbx_poll(nested->ctx);
	RBX_FETCH_ADD(&nested->done_count, 1);
}

static void poll_from_a_callback_is_refused(void **state)
{
	struct nested nested = { 0 };
	struct rbx_request request = {
		.op = RBX_READ,
		.length_bytes = PAGE,
		.buf = bytes,
		.complete = polls_in_callback,
		.user = &nested,
	};
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "pollers=0");
	nested.ctx = tenant.ctx;
	tenant_submit(&tenant, &request);
	tenant_wait(tenant.ctx, &nested.done_count, 1, true);
	assert_int_equal(nested.poll_result, -EBUSY);
	tenant_close(&tenant);
}

static void count_done(struct rbx_request *request)
{
	RBX_FETCH_ADD((uint32_t *)request->user, 1);
}

/* Polls while there is something, then sleeps on the descriptor: one wake-up
 * that is lost, and it sleeps for ever. */
static void ping_pong(struct tenant *tenant, int epoll_fd, uint32_t times)
{
	uint32_t done_count = 0;
	struct rbx_request request = {
		.op = RBX_WRITE,
		.length_bytes = PAGE,
		.buf = bytes,
		.complete = count_done,
		.user = &done_count,
	};

	for (uint32_t i = 0; i < times; i++) {
		request.op ^= 1;
		tenant_submit(tenant, &request);
		while (done_count == i) {
			if (rbx_poll(tenant->ctx) == 0 && done_count == i)
				assert_int_equal(readable(epoll_fd,
							  TENANT_WAIT_MS),
						 1);
		}
	}
	assert_int_equal(request.status, 0);
}

static void polling_program_that_sleeps_is_always_woken(void **state)
{
	struct tenant tenant;
	int epoll_fd;

	(void)state;
	tenant_open(&tenant, "pollers=0");
	epoll_fd = epoll_on(rbx_event_fd(tenant.ctx));
	ping_pong(&tenant, epoll_fd, 20000);
	close(epoll_fd);
	tenant_close(&tenant);
}

struct event_witness {
	pthread_t thread; /* that may handle the event */
	uint32_t done_count;
	uint32_t elsewhere_count; /* atomic */
};

static void event_handler(struct rbx_request *request)
{
	struct event_witness *witness = request->user;

	if (!pthread_equal(pthread_self(), witness->thread))
		RBX_FETCH_ADD(&witness->elsewhere_count, 1);
	witness->done_count++;
}

/* The paper's handler of CQ events, in the event loop of the program. */
static void event_handler_runs_on_the_thread_of_the_programs_loop(void **state)
{
	struct event_witness witness = { .thread = pthread_self() };
	struct rbx_request request = {
		.op = RBX_READ,
		.length_bytes = PAGE,
		.buf = bytes,
		.complete = event_handler,
		.user = &witness,
	};
	struct tenant tenant;
	int epoll_fd;

	(void)state;
	tenant_open(&tenant, "pollers=0");
	epoll_fd = epoll_on(rbx_event_fd(tenant.ctx));
	for (uint32_t i = 0; i < 100; i++) {
		tenant_submit(&tenant, &request);
		while (witness.done_count == i) {
			if (rbx_poll(tenant.ctx) == 0 &&
			    witness.done_count == i)
				assert_int_equal(readable(epoll_fd,
							  TENANT_WAIT_MS),
						 1);
		}
		assert_int_equal(request.status, 0);
	}
	assert_int_equal(RBX_LOAD_ACQUIRE(&witness.elsewhere_count), 0);
	close(epoll_fd);
	tenant_close(&tenant);
}

/* Who repairs a connection has to look into the poller, and has announced itself;
 * a program that polls without end must not keep it out. */
static void poll_makes_way_for_a_lock_waiter(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=0");
	struct rbx_poller *poller = ctx->pollers[0];
	uint64_t polls_count = poller->round.counters.polls;

	(void)state;
	RBX_FETCH_ADD(&poller->lock_waiters, 1);
	assert_int_equal(rbx_poll(ctx), 0);
	assert_int_equal(poller->round.counters.polls, polls_count);
	RBX_FETCH_ADD(&poller->lock_waiters, (uint32_t)-1);
	assert_int_equal(rbx_poll(ctx), 0);
	assert_true(poller->round.counters.polls > polls_count);
	rbx_close(ctx);
}

/*
 * A request whose peer is given up ends without a completion, long after its
 * work request came back flushed; the program sleeps meanwhile.
 */
static void polling_program_hears_of_a_lost_peer(void **state)
{
	struct rbx_server *server = tenant_server();
	struct cable *cable = cable_lay(rbx_server_address(server));
	uint32_t done_count = 0;
	struct rbx_request request = {
		.op = RBX_READ,
		.length_bytes = PAGE,
		.buf = bytes,
		.complete = count_done,
		.user = &done_count,
	};
	struct tenant tenant;
	int epoll_fd;

	(void)state;
	tenant_open_at(&tenant, cable_address(cable),
		       "pollers=0 peer_timeout_ms=800");
	epoll_fd = epoll_on(rbx_event_fd(tenant.ctx));
	ping_pong(&tenant, epoll_fd, 10);
	cable_hold(cable, true);
	tenant_submit(&tenant, &request);
	cable_unplug(cable, true);
	cable_cut(cable);
	cable_hold(cable, false);
	while (done_count == 0) {
		if (rbx_poll(tenant.ctx) == 0 && done_count == 0)
			assert_int_equal(readable(epoll_fd, TENANT_WAIT_MS), 1);
	}
	assert_int_equal(request.status, -EHOSTUNREACH);
	close(epoll_fd);
	tenant_close(&tenant);
	cable_remove(cable);
	rbx_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resubmission_from_callbacks_makes_batches),
		cmocka_unit_test(waiting_read_from_a_callback_is_refused),
		cmocka_unit_test(reap_without_requests_returns_at_its_time),
		cmocka_unit_test(reap_takes_at_most_what_is_asked),
		cmocka_unit_test(reaping_threads_all_get_one),
		cmocka_unit_test(event_fd_is_readable_while_there_is_something),
		cmocka_unit_test(wait_for_room_is_over_after_its_time),
		cmocka_unit_test(polling_program_runs_its_own_callbacks),
		cmocka_unit_test(polling_program_that_waits_for_nothing_sleeps),
		cmocka_unit_test(poll_is_refused_where_pollers_are),
		cmocka_unit_test(poll_from_a_callback_is_refused),
		cmocka_unit_test(polling_program_that_sleeps_is_always_woken),
		cmocka_unit_test(
			event_handler_runs_on_the_thread_of_the_programs_loop),
		cmocka_unit_test(poll_makes_way_for_a_lock_waiter),
		cmocka_unit_test(polling_program_hears_of_a_lost_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
