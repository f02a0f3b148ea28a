/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * context_test.c - opening and closing: nothing is left behind, whatever was
 * opened and however far it came.
 */
#include "lib/context.h"
#include "tests/lib/tenant.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u

/* Entries of a folder of /proc. */
static int entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The same for a while: a thread that was joined is seen a moment longer, and
 * so is the server's end of a connection. */
static int settled(const char *path)
{
	int count = entries(path);

	for (int same = 0; same < 20; same++) {
		poll(NULL, 0, 5);
		if (entries(path) != count)
			same = 0;
		count = entries(path);
	}
	return count;
}

static void use(const char *address, const char *settings)
{
	struct tenant tenant;
	uint8_t page[PAGE] = { 1 };

	tenant_open_at(&tenant, address, settings);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, page, PAGE, 0), 0);
	tenant_close(&tenant);
}

static void assert_leaves_nothing(void (*step)(const char *address))
{
	struct rbx_server *server = tenant_server();
	const char *address = rbx_server_address(server);
	struct rbx_server_stats stats;
	int threads, fds;

	step(address); /* what libraries keep for themselves is there now */
	threads = settled("/proc/self/task");
	fds = settled("/proc/self/fd");
	step(address);
	assert_int_equal(settled("/proc/self/task"), threads);
	assert_int_equal(settled("/proc/self/fd"), fds);
	rbx_server_stats_get(server, &stats);
	assert_int_equal(stats.slabs_lent, 0);
	rbx_server_stop(server);
}

static void opened_and_closed(const char *address)
{
	use(address, "");
	use(address, "pollers=0");
	use(address, "pollers=3 queue_pairs=4 buffers=staging");
}

static void close_leaves_no_thread_and_no_descriptor(void **state)
{
	(void)state;
	assert_leaves_nothing(opened_and_closed);
}

static void opened_fifty_times(const char *address)
{
	for (int i = 0; i < 50; i++)
		use(address, i % 2 ? "" : "pollers=2 queue_pairs=2");
}

static void open_and_close_fifty_times_leaves_nothing(void **state)
{
	(void)state;
	assert_leaves_nothing(opened_fifty_times);
}

static void peers_opened(const char *address)
{
	struct rbx_context *ctx = tenant_context("");

	for (int i = 0; i < 20; i++) {
		struct rbx_remote *remote;
		struct rbx_peer *peer;

		assert_int_equal(rbx_peer_connect(ctx, &peer, address), 0);
		assert_int_equal(rbx_borrow(peer, &remote, PAGE), 0);
		rbx_return(remote);
		rbx_peer_close(peer);
	}
	rbx_close(ctx);
}

static void peers_of_one_context_leave_nothing(void **state)
{
	(void)state;
	assert_leaves_nothing(peers_opened);
}

static void volumes_opened(const char *address)
{
	struct rbx_context *ctx = tenant_context("");
	uint8_t page[PAGE] = { 0 };

	for (int i = 0; i < 10; i++) {
		struct rbx_volume *volume;

		assert_int_equal(rbx_volume_open(ctx, &volume, address,
						 2 * TENANT_SLAB_BYTES, NULL),
				 0);
		assert_int_equal(rbx_write(volume, page, PAGE, 0), 0);
		rbx_volume_close(volume);
	}
	rbx_close(ctx);
}

static void volumes_of_one_context_leave_nothing(void **state)
{
	(void)state;
	assert_leaves_nothing(volumes_opened);
}

static void refused(const char *address)
{
	struct rbx_volume *volume = NULL;
	struct rbx_context *ctx;
	struct rbx_options options;
	struct rbx_peer *peer = NULL;
	char missing[160];

	rbx_options_defaults(&options);
	rbx_options_set(&options, "fabric=soft:tcp");
	rbx_options_set(&options, "secret_file=/nonexistent/secret");
	assert_int_equal(rbx_open(&ctx, &options), -ENOENT);
	assert_non_null(strstr(rbx_last_error(), "/nonexistent/secret"));

	ctx = tenant_context("");
	assert_int_equal(rbx_peer_connect(ctx, &peer, "127.0.0.1:1"),
			 -EHOSTUNREACH);
	assert_non_null(strstr(rbx_last_error(), "127.0.0.1:1"));
	assert_int_equal(rbx_peer_connect(ctx, &peer, "nonsense"), -EINVAL);
	assert_int_equal(rbx_peer_connect(ctx, &peer, NULL), -EINVAL);
	assert_int_equal(rbx_peer_connect(NULL, &peer, address), -EINVAL);
	assert_null(peer);

	snprintf(missing, sizeof(missing), "%s,127.0.0.1:1", address);
	assert_int_equal(rbx_volume_open(ctx, &volume, missing, PAGE, NULL),
			 -EHOSTUNREACH);
	assert_int_equal(rbx_volume_open(ctx, &volume, address,
					 (TENANT_SLABS + 1) *
						 (uint64_t)TENANT_SLAB_BYTES,
					 NULL),
			 -ENOSPC);
	assert_null(volume);
	rbx_close(ctx);
}

static void what_was_refused_leaves_nothing(void **state)
{
	(void)state;
	assert_leaves_nothing(refused);
}

/* One poller for each queue pair: there are 64 pollers, and then no more. */
static void peers_beyond_the_pollers_are_refused(void **state)
{
	struct rbx_server *server = tenant_server();
	struct rbx_context *ctx =
		tenant_context("queue_pairs=16 pollers=queue_pair");
	struct rbx_peer *peers[5];
	int count = 0, err = 0;

	(void)state;
	while (count < 5 &&
	       !(err = rbx_peer_connect(ctx, &peers[count],
					rbx_server_address(server))))
		count++;
	assert_int_equal(count, 4);
	assert_int_equal(err, -ENOSPC);
	assert_non_null(strstr(rbx_last_error(), "64"));
	rbx_peer_close(peers[--count]);
	assert_int_equal(rbx_peer_connect(ctx, &peers[count++],
					  rbx_server_address(server)),
			 0);
	while (count > 0)
		rbx_peer_close(peers[--count]);
	rbx_close(ctx);
	rbx_server_stop(server);
}

/* A page there and back. */
static void use_memory(struct rbx_context *ctx, struct rbx_peer *peer,
		       uint32_t number)
{
	struct tenant tenant = { .ctx = ctx, .peer = peer };
	uint8_t written[PAGE], read[PAGE];

	if (rbx_borrow(peer, &tenant.remote, PAGE))
		fail_msg("%s", rbx_last_error());
	tenant_fill(written, PAGE, number);
	assert_int_equal(tenant_transfer(&tenant, RBX_WRITE, written, PAGE, 0), 0);
	assert_int_equal(tenant_transfer(&tenant, RBX_READ, read, PAGE, 0), 0);
	assert_memory_equal(read, written, PAGE);
	assert_int_equal(rbx_return(tenant.remote), 0);
}

#define MANY 300u

/* More than one completion queue and one bank of sessions have room for. */
static void many_peers_share_a_poller(const char *settings)
{
	struct rbx_server_options options;
	struct rbx_peer *peers[MANY];
	struct rbx_server *server;
	struct rbx_context *ctx;
	uint32_t i;

	tenant_server_options(&options);
	options.clients_max = MANY + 1;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	ctx = tenant_context(settings);
	for (i = 0; i < MANY; i++)
		if (rbx_peer_connect(ctx, &peers[i], rbx_server_address(server)))
			fail_msg("peer %u: %s", i, rbx_last_error());
	for (i = 0; i < MANY; i += 23)
		use_memory(ctx, peers[i], i);
	use_memory(ctx, peers[MANY - 1], MANY);
	/* Places are used again. */
	for (i = 60; i < 140; i++)
		assert_int_equal(rbx_peer_close(peers[i]), 0);
	for (i = 60; i < 140; i++)
		if (rbx_peer_connect(ctx, &peers[i], rbx_server_address(server)))
			fail_msg("peer %u again: %s", i, rbx_last_error());
	use_memory(ctx, peers[70], 70);
	for (i = 0; i < MANY; i++)
		assert_int_equal(rbx_peer_close(peers[i]), 0);
	assert_int_equal(rbx_close(ctx), 0);
	rbx_server_stop(server);
}

/* As after a queue was made that nobody has armed: it would not tell of what it has. */
static void poller_that_was_woken_has_yet_to_look(void **state)
{
	struct rbx_context *ctx = tenant_context("pollers=0");
	struct rbx_poller *poller = ctx->pollers[0];
	uint64_t polls_count = 0;

	(void)state;
	for (int i = 0; i < 2; i++) /* the second hears of the first queue */
		assert_int_equal(rbx_poll(ctx), 0);
	for (int i = 0; i < 2; i++) /* it has polled; it sleeps */
		assert_true(rbx_poller_has_looked(poller, &polls_count));
	rbx_poller_wake(poller);
	assert_false(rbx_poller_has_looked(poller, &polls_count));
	assert_int_equal(rbx_poll(ctx), 0);
	for (int i = 0; i < 2; i++)
		assert_true(rbx_poller_has_looked(poller, &polls_count));
	assert_int_equal(rbx_close(ctx), 0);
}

static void hundreds_of_peers_share_a_poller(void **state)
{
	(void)state;
	many_peers_share_a_poller("");
}

static void hundreds_of_peers_are_polled_by_the_program(void **state)
{
	(void)state;
	many_peers_share_a_poller("pollers=0");
}

static void auto_takes_a_fabric_and_says_why(void **state)
{
	struct rbx_options options;
	struct rbx_context *ctx;
	char text[2048];

	(void)state;
	rbx_options_defaults(&options);
	assert_int_equal(rbx_open(&ctx, &options), 0);
	rbx_describe(ctx, text, sizeof(text));
	assert_non_null(strstr(text, "fabric=auto\n"));
	assert_non_null(strstr(text, "using="));
	assert_null(strstr(text, "no RDMA device (no RDMA device"));
	rbx_close(ctx);
	assert_int_equal(rbx_open(&ctx, NULL), 0);
	rbx_close(ctx);
}

/* A device that is named means verbs, but for the one that soft has. */
static void auto_takes_the_fabric_that_has_the_device(void **state)
{
	struct rbx_options options;
	struct rbx_context *ctx;
	char text[2048];

	(void)state;
	rbx_options_defaults(&options);
	strcpy(options.device, "registered");
	if (rbx_open(&ctx, &options))
		fail_msg("%s", rbx_last_error());
	rbx_describe(ctx, text, sizeof(text));
	assert_non_null(strstr(text, "\ntaken=soft"));
	rbx_close(ctx);
	strcpy(options.device, "none");
	assert_int_equal(rbx_open(&ctx, &options), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_leaves_no_thread_and_no_descriptor),
		cmocka_unit_test(open_and_close_fifty_times_leaves_nothing),
		cmocka_unit_test(peers_of_one_context_leave_nothing),
		cmocka_unit_test(volumes_of_one_context_leave_nothing),
		cmocka_unit_test(what_was_refused_leaves_nothing),
		cmocka_unit_test(peers_beyond_the_pollers_are_refused),
		cmocka_unit_test(poller_that_was_woken_has_yet_to_look),
		cmocka_unit_test(hundreds_of_peers_share_a_poller),
		cmocka_unit_test(hundreds_of_peers_are_polled_by_the_program),
		cmocka_unit_test(auto_takes_a_fabric_and_says_why),
		cmocka_unit_test(auto_takes_the_fabric_that_has_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
