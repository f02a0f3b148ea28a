/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * guard_test.c - what would hang, or end the program, is refused with a sentence: calls
 * that wait in callbacks, a context in the child of its process, a request that is
 * outstanding already, and closing what is in use.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/rdmabox/endpoint.h"
#include "include/rdmabox/tuning.h"
#include "include/rdmabox/verbs.h"
#include "tests/lib/talk.h"

#define PAGE 4096u

/* All there is to be closed. */
static struct world {
	struct host host;
	struct guest guest;
	struct rbx_remote *remote;
	struct rbx_volume *volume;
	struct rbx_queue *queue;
	struct rbx_server_watch *watch;
	uint32_t tries_count; /* atomic: threads that have tried */
	int expected;
	char fault[256]; /* what was not as expected; "": nothing */
} world;

static uint8_t page[PAGE];

static void judge(const char *call, int err)
{
	if (err == world.expected && strstr(rbx_last_error(), call))
		return;
	snprintf(world.fault, sizeof(world.fault), "%s: %d (%s)", call, err,
		 rbx_last_error());
}

#define TRY(call, ...) judge(#call, call(__VA_ARGS__))

/* What waits for a thread of the library. */
static void try_all(void)
{
	const char *address = rbx_server_address(world.host.server);
	struct rbx_server_stats stats;
	struct rbx_context *ctx = world.guest.ctx;
	struct iovec parts = { page, PAGE };
	struct rbx_request *done;
	struct rbx_volume *volume;
	struct rbx_remote *remote;
	struct rbx_peer *peer;
	struct rbx_server_watch *watch;

	TRY(rbx_read, world.volume, page, PAGE, 0);
	TRY(rbx_write, world.volume, page, PAGE, 0);
	TRY(rbx_readv, world.volume, &parts, 1, 0);
	TRY(rbx_writev, world.volume, &parts, 1, 0);
	TRY(rbx_reap, ctx, &done, 1, -1);
	TRY(rbx_wait_room, ctx, -1);
	TRY(rbx_polling_set, ctx, "event");
	TRY(rbx_volume_open, ctx, &volume, address, PAGE, NULL);
	TRY(rbx_volume_add_server, world.volume, address);
	TRY(rbx_volume_close, world.volume);
	TRY(rbx_peer_connect, ctx, &peer, address);
	TRY(rbx_borrow, world.guest.peer, &remote, PAGE);
	TRY(rbx_return, world.remote);
	TRY(rbx_peer_close, world.guest.peer);
	TRY(rbx_message_send, world.guest.peer, "?", 1);
	TRY(rbx_server_query, ctx, address, &stats);
	TRY(rbx_server_watch_open, ctx, &watch, address);
	TRY(rbx_server_watch_stats, world.watch, &stats);
	TRY(rbx_server_watch_close, world.watch);
	TRY(rbx_close, ctx);
}

static void try_server(void)
{
	TRY(rbx_server_drain, world.host.server, 1000);
	TRY(rbx_server_stop, world.host.server);
}

static int world_open(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	host_start(&world.host, true);
	guest_open(&world.guest, rbx_server_address(world.host.server), true);
	assert_int_equal(rbx_borrow(world.guest.peer, &world.remote, PAGE), 0);
	assert_int_equal(rbx_volume_open(world.guest.ctx, &world.volume,
					 rbx_server_address(world.host.server),
					 1 << 20, NULL),
			 0);
	assert_int_equal(rbx_queue_create(world.guest.ctx, 1, &world.queue), 0);
	assert_int_equal(rbx_server_watch_open(world.guest.ctx, &world.watch,
					       rbx_server_address(world.host.server)),
			 0);
	return 0;
}

static int world_close(void **state)
{
	(void)state;
	assert_int_equal(rbx_volume_close(world.volume), 0);
	assert_int_equal(rbx_return(world.remote), 0);
	assert_int_equal(rbx_queue_destroy(world.queue), 0);
	assert_int_equal(rbx_server_watch_close(world.watch), 0);
	guest_close(&world.guest);
	assert_int_equal(rbx_server_stop(world.host.server), 0);
	return 0;
}

static void assert_no_fault(void)
{
	if (world.fault[0])
		fail_msg("%s", world.fault);
	/* And all of it is still of use. */
	assert_int_equal(rbx_write(world.volume, page, PAGE, 0), 0);
	assert_int_equal(rbx_read(world.volume, page, PAGE, 0), 0);
	assert_int_equal(rbx_message_send(world.guest.peer, "x", 1), 0);
}

/* ---- Callbacks --------------------------------------------------------------*/

static void try_in_completion(struct rbx_request *request)
{
	(void)request;
	try_all();
	try_server();
	RBX_FETCH_ADD(&world.tries_count, 1);
}

static void calls_that_wait_are_refused_in_completion_callbacks(void **state)
{
	struct rbx_request request = {
		.op = RBX_WRITE,
		.length_bytes = PAGE,
		.buf = page,
		.complete = try_in_completion,
	};
	struct rbx_request *list[] = { &request };

	(void)state;
	world.expected = -EDEADLK;
	assert_int_equal(rbx_submit(world.volume, list, 1), 0);
	wait_count(&world.tries_count, 1);
	assert_no_fault();
}

static void try_at_the_end_of_a_message(int status, void *user)
{
	(void)status;
	(void)user;
	try_all();
	try_server();
	RBX_FETCH_ADD(&world.tries_count, 1);
}

static void calls_that_wait_are_refused_when_a_message_has_ended(void **state)
{
	(void)state;
	world.expected = -EDEADLK;
	assert_int_equal(rbx_message_submit(world.guest.peer, "x", 1,
					    try_at_the_end_of_a_message, NULL),
			 0);
	wait_count(&world.tries_count, 1);
	assert_no_fault();
}

static void try_in_handler(struct rbx_server *server, uint64_t client,
			   const void *data, size_t length, void *user)
{
	(void)server;
	(void)client;
	(void)data;
	(void)length;
	(void)user;
	if (world.tries_count == 0) {
		try_all();
		try_server();
	}
	RBX_FETCH_ADD(&world.tries_count, 1);
}

static void calls_that_wait_are_refused_in_the_servers_handler(void **state)
{
	struct rbx_server_options options;
	struct rbx_server *server;
	struct rbx_peer *peer;

	(void)state;
	world.expected = -EDEADLK;
	tenant_server_options(&options);
	options.message = try_in_handler;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	assert_int_equal(rbx_peer_connect(world.guest.ctx, &peer,
					  rbx_server_address(server)),
			 0);
	assert_int_equal(rbx_message_send(peer, "x", 1), 0);
	assert_int_equal(world.tries_count, 1);
	assert_int_equal(rbx_peer_close(peer), 0);
	assert_int_equal(rbx_server_stop(server), 0);
	assert_no_fault();
}

static void try_in_event(struct rbx_volume *volume,
			 const struct rbx_event *event, void *user)
{
	(void)volume;
	(void)event;
	(void)user;
	if (world.tries_count == 0) {
		try_all();
		try_server();
	}
	RBX_FETCH_ADD(&world.tries_count, 1);
}

static void calls_that_wait_are_refused_in_event_callbacks(void **state)
{
	struct rbx_context *ctx = tenant_context("peer_timeout_ms=3000");
	struct rbx_server *server = tenant_server();
	struct rbx_volume_options options;
	struct rbx_volume *volume;

	(void)state;
	world.expected = -EDEADLK;
	rbx_volume_options_defaults(&options);
	options.event = try_in_event;
	assert_int_equal(rbx_volume_open(ctx, &volume,
					 rbx_server_address(server), PAGE,
					 &options),
			 0);
	assert_int_equal(rbx_server_stop(server), 0);
	wait_count(&world.tries_count, 1);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_close(ctx), 0);
	assert_no_fault();
}

/* ---- Fork -------------------------------------------------------------------*/

static void on_message(struct rbx_peer *peer, const void *data, size_t length,
		       void *user)
{
	(void)peer;
	(void)data;
	(void)length;
	(void)user;
}

static void try_device(void)
{
	struct rbx_context *ctx = world.guest.ctx;
	struct rbx_protection_domain *domain;
	struct rbx_endpoint_listener *listener;
	struct rbx_buffer_cost cost;
	struct rbx_region *region;
	struct rbx_queue *queue;

	TRY(rbx_region_register, ctx, page, PAGE, &region);
	TRY(rbx_protection_domain_create, ctx, &domain);
	TRY(rbx_queue_create, ctx, 1, &queue);
	TRY(rbx_endpoint_listen, ctx, "127.0.0.1:0", &listener);
	TRY(rbx_buffer_cost_measure, ctx, PAGE, 1, &cost);
	TRY(rbx_peer_on_message, world.guest.peer, on_message, NULL);
	TRY(rbx_queue_arm, world.queue);
	TRY(rbx_queue_destroy, world.queue);
}

/* They change nothing, or fill in zeros. */
static void try_what_returns_nothing(void)
{
	struct rbx_stats stats = { .size_bytes = 77 };
	struct rbx_volume_status status = { .slabs = 77 };

	rbx_stats_reset(world.guest.ctx);
	judge("rbx_stats_reset", -EINVAL);
	rbx_stats_get(world.guest.ctx, &stats);
	judge("rbx_stats_get", stats.size_bytes == 0 ? -EINVAL : 0);
	rbx_volume_status(world.volume, &status);
	judge("rbx_volume_status", status.slabs == 0 ? -EINVAL : 0);
	rbx_unplug(world.guest.ctx);
	judge("rbx_unplug", -EINVAL);
}

static void child(void)
{
	struct rbx_request request = {
		.op = RBX_WRITE,
		.length_bytes = PAGE,
		.buf = page,
	};
	struct rbx_request *list[] = { &request };
	char text[64];

	alarm(30);
	world.expected = -EINVAL;
	try_all();
	TRY(rbx_submit, world.volume, list, 1);
	TRY(rbx_remote_submit, world.remote, list, 1);
	TRY(rbx_volume_discard, world.volume, 0, PAGE);
	TRY(rbx_message_submit, world.guest.peer, "?", 1, NULL, NULL);
	TRY(rbx_poll, world.guest.ctx);
	TRY(rbx_describe, world.guest.ctx, text, sizeof(text));
	try_device();
	try_what_returns_nothing();
	if (world.fault[0])
		fprintf(stderr, "%s\n", world.fault);
	_exit(world.fault[0] || !strstr(rbx_last_error(), "fork()"));
}

static void context_is_refused_in_the_child_of_its_process(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0)
		child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_no_fault();
}

/* ---- Requests ----------------------------------------------------------------*/

static void request_is_taken_once(void **state)
{
	struct rbx_server *server = tenant_server();
	/* Nothing completes unless this thread polls. */
	struct rbx_context *ctx = tenant_context("pollers=0");
	struct rbx_request a = { .op = RBX_WRITE, .length_bytes = PAGE };
	struct rbx_request b = a, *done[2];
	struct rbx_request *twice[] = { &a, &b, &a }, *first[] = { &a };
	struct rbx_request *both[] = { &a, &b };
	struct rbx_volume *volume;

	(void)state;
	a.buf = b.buf = page;
	assert_int_equal(rbx_volume_open(ctx, &volume,
					 rbx_server_address(server), 1 << 20,
					 NULL),
			 0);
	assert_int_equal(rbx_submit(volume, twice, 3), -EBUSY);
	assert_non_null(strstr(rbx_last_error(), "outstanding"));
	/* None of the three was. */
	assert_int_equal(rbx_submit(volume, both, 2), 0);
	assert_int_equal(rbx_submit(volume, first, 1), -EBUSY);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(rbx_reap(ctx, &done[i], 1, -1), 1);
	assert_int_equal(a.status | b.status, 0);
	/* A submit that fails gives back what it looked at before. */
	b.length_bytes = 0;
	assert_int_equal(rbx_submit(volume, both, 2), -EINVAL);
	b.length_bytes = PAGE;
	assert_int_equal(rbx_submit(volume, both, 2), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(rbx_reap(ctx, &done[i], 1, -1), 1);
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_int_equal(rbx_close(ctx), 0);
	rbx_server_stop(server);
}

static void request_is_taken_once_without_a_volume(void **state)
{
	struct tenant tenant;
	struct rbx_request a = { .op = RBX_WRITE, .length_bytes = PAGE };
	struct rbx_request *twice[] = { &a, &a }, *first[] = { &a }, *done;

	(void)state;
	a.buf = page;
	tenant_open(&tenant, "pollers=0");
	assert_int_equal(rbx_remote_submit(tenant.remote, twice, 2), -EBUSY);
	assert_int_equal(rbx_remote_submit(tenant.remote, first, 1), 0);
	assert_int_equal(rbx_remote_submit(tenant.remote, first, 1), -EBUSY);
	assert_int_equal(rbx_reap(tenant.ctx, &done, 1, -1), 1);
	assert_int_equal(rbx_remote_submit(tenant.remote, first, 1), 0);
	assert_int_equal(rbx_reap(tenant.ctx, &done, 1, -1), 1);
	tenant_close(&tenant);
}

/* ---- Closing -----------------------------------------------------------------*/

static void assert_busy(int err, const char *word)
{
	assert_int_equal(err, -EBUSY);
	if (!strstr(rbx_last_error(), word))
		fail_msg("%s: nothing of %s", rbx_last_error(), word);
}

static void what_is_in_use_is_not_closed(void **state)
{
	struct rbx_region *region;
	struct rbx_volume *volume;
	struct tenant tenant;

	(void)state;
	tenant_open(&tenant, "");
	assert_int_equal(rbx_region_register(tenant.ctx, page, PAGE, &region),
			 0);
	assert_int_equal(rbx_volume_open(tenant.ctx, &volume,
					 rbx_server_address(tenant.server),
					 PAGE, NULL),
			 0);
	assert_busy(rbx_peer_close(tenant.peer), "rbx_return()");
	assert_busy(rbx_close(tenant.ctx), "volumes");
	assert_int_equal(rbx_volume_close(volume), 0);
	assert_busy(rbx_close(tenant.ctx), "peers");
	assert_int_equal(rbx_return(tenant.remote), 0);
	assert_int_equal(rbx_peer_close(tenant.peer), 0);
	assert_busy(rbx_close(tenant.ctx), "regions");
	rbx_region_release(region);
	assert_int_equal(rbx_close(tenant.ctx), 0);
	rbx_server_stop(tenant.server);
}

static void what_endpoints_use_is_not_closed(void **state)
{
	struct rbx_context *ctx = tenant_context("");
	struct rbx_protection_domain *domain;
	struct rbx_endpoint_listener *listener;
	struct rbx_server_options options;
	struct rbx_queue *queue;

	(void)state;
	tenant_server_options(&options); /* an address of the fabric under test */
	assert_int_equal(rbx_queue_create(ctx, 1, &queue), 0);
	assert_int_equal(rbx_endpoint_listen(ctx, options.listen, &listener), 0);
	assert_int_equal(rbx_protection_domain_create(ctx, &domain), 0);
	assert_busy(rbx_close(ctx), "rbx_queue_destroy()");
	assert_int_equal(rbx_queue_destroy(queue), 0);
	assert_busy(rbx_close(ctx), "rbx_endpoint_listener_close()");
	rbx_endpoint_listener_close(listener);
	assert_busy(rbx_close(ctx), "rbx_protection_domain_destroy()");
	assert_int_equal(rbx_protection_domain_destroy(domain), 0);
	assert_int_equal(rbx_close(ctx), 0);
}

static void closing_nothing_does_nothing(void **state)
{
	(void)state;
	assert_int_equal(rbx_close(NULL), 0);
	assert_int_equal(rbx_volume_close(NULL), 0);
	assert_int_equal(rbx_peer_close(NULL), 0);
	assert_int_equal(rbx_return(NULL), 0);
	assert_int_equal(rbx_server_stop(NULL), 0);
	rbx_region_release(NULL);
	rbx_verbs_link_close(NULL);
	assert_int_equal(rbx_endpoint_close(NULL), 0);
	assert_int_equal(rbx_queue_destroy(NULL), 0);
	assert_int_equal(rbx_protection_domain_destroy(NULL), 0);
	assert_int_equal(rbx_memory_window_close(NULL), 0);
	assert_int_equal(rbx_shared_receives_destroy(NULL), 0);
	rbx_endpoint_listener_close(NULL);
	rbx_endpoint_reject(NULL, NULL);
}

#define IN_WORLD(test) \
	cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(calls_that_wait_are_refused_in_completion_callbacks),
		IN_WORLD(calls_that_wait_are_refused_when_a_message_has_ended),
		IN_WORLD(calls_that_wait_are_refused_in_the_servers_handler),
		IN_WORLD(calls_that_wait_are_refused_in_event_callbacks),
		IN_WORLD(context_is_refused_in_the_child_of_its_process),
		cmocka_unit_test(request_is_taken_once),
		cmocka_unit_test(request_is_taken_once_without_a_volume),
		cmocka_unit_test(what_is_in_use_is_not_closed),
		cmocka_unit_test(what_endpoints_use_is_not_closed),
		cmocka_unit_test(closing_nothing_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
