/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* servers_test.c - what is known of a server that is asked again and again. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/top/top.h"

#define WAIT_MS 20000 /* against hangs only */
#define MEMORY_BYTES (1u << 20)

static const struct cli_command command = { .name = "test" };
static struct rbx_context *ctx;
static struct top_watchers *watchers;
static struct top_server server; /* as it was seen last */
static char address[TOP_ADDRESS_MAX];

/* At the address of the one before, if there was one. */
static struct rbx_server *serve(void)
{
	struct rbx_server_options options;
	struct rbx_server *serving;

	rbx_server_options_defaults(&options);
	strcpy(options.listen, *address ? address : "127.0.0.1:0");
	strcpy(options.fabric, "soft:tcp");
	options.slab_bytes = 64 << 10;
	options.memory_bytes = MEMORY_BYTES;
	if (rbx_server_start(&serving, &options))
		fail_msg("%s", rbx_last_error());
	strcpy(address, rbx_server_address(serving));
	return serving;
}

static void watch(double interval_s)
{
	struct rbx_options options;

	rbx_options_defaults(&options);
	strcpy(options.fabric, "soft:tcp");
	options.peer_timeout_ms = WAIT_MS;
	if (rbx_open(&ctx, &options))
		fail_msg("%s", rbx_last_error());
	assert_int_equal(top_watchers_start(&watchers, &command, ctx, address, interval_s), 0);
}

static void watch_no_more(void)
{
	assert_true(top_watchers_stop(watchers));
	rbx_close(ctx);
}

static void look(void)
{
	static struct top_server servers[TOP_SERVERS_MAX];

	assert_int_equal(top_watchers_look(watchers, servers), 1);
	server = servers[0];
}

/* Looks until it is down, or is not and has answered. */
static void wait_until_down(bool is_down)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		look();
		if (server.tries && server.is_down == is_down)
			return;
		usleep(1000);
	}
	fail_msg("it is never %s", is_down ? "down" : "up");
}

static void server_that_has_answered_is_asked_nothing(void **state)
{
	struct rbx_server *serving = serve();

	(void)state;
	watch(3600);
	wait_until_down(false);
	assert_string_equal(server.address, address);
	assert_int_equal(server.tries, 1);
	assert_int_equal(server.asked_ns, 0);
	assert_int_equal(server.now.stats.memory_bytes, MEMORY_BYTES);
	watch_no_more();
	rbx_server_stop(serving);
}

/* It may be asked less often on a busy machine, never more. Two answers make a rate, also
 * of a server whose age in seconds is the same in both. */
static void server_is_asked_once_in_an_interval(void **state)
{
	struct rbx_server *serving = serve();
	uint64_t begin_ns = top_now_ns();

	(void)state;
	watch(0.1);
	do {
		look();
		assert_true(server.tries <= (top_now_ns() - begin_ns) / 100000000 + 1);
		assert_int_equal(server.before.at_ns != 0, server.tries >= 2);
		usleep(1000);
	} while (server.tries < 15 && top_now_ns() - begin_ns < WAIT_MS * 1000000ull);
	assert_true(server.tries >= 15);
	watch_no_more();
	rbx_server_stop(serving);
}

static void server_that_comes_back_is_up_again_without_rates(void **state)
{
	struct rbx_server *serving = serve();

	(void)state;
	watch(0.1);
	wait_until_down(false);
	rbx_server_stop(serving);
	wait_until_down(true);
	assert_non_null(strstr(server.error, address));
	serving = serve();
	wait_until_down(false);
	assert_string_equal(server.error, "");
	watch_no_more();
	rbx_server_stop(serving);
}

/* The threads that wait for it are left alone, and can be waited for later. */
static void end_does_not_wait_for_a_silent_server(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t at_bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0); /* nobody takes what comes */
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &at_bytes), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	watch(3600);
	do
		look();
	while (!server.asked_ns);
	assert_false(top_watchers_stop(watchers));
	close(fd);
	while (!top_watchers_stop(watchers))
		;
	rbx_close(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_that_has_answered_is_asked_nothing),
		cmocka_unit_test(server_is_asked_once_in_an_interval),
		cmocka_unit_test(server_that_comes_back_is_up_again_without_rates),
		cmocka_unit_test(end_does_not_wait_for_a_silent_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
