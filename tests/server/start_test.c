/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * start_test.c - what a server refuses to start with: one line that names the
 * cause and the fix, and nothing half-made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/world.h"

static struct rbx_server_options good(void)
{
	struct rbx_server_options options;

	rbx_server_options_defaults(&options);
	strcpy(options.listen, "127.0.0.1:0");
	strcpy(options.fabric, "soft:tcp");
	options.memory_bytes = 16 << 20;
	options.slab_bytes = 1 << 20;
	return options;
}

/* The start fails with err and a text that has this in it. */
static void fails(const struct rbx_server_options *options, int err,
		  const char *text)
{
	struct rbx_server *server = NULL;

	assert_int_equal(rbx_server_start(&server, options), err);
	print_message("start: %s\n", rbx_last_error());
	assert_null(server);
	assert_non_null(strstr(rbx_last_error(), text));
}

static void start_with_defaults_serves(void **state)
{
	struct rbx_server_options options = good();
	struct rbx_server *server;

	(void)state;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	assert_non_null(strstr(rbx_server_address(server), "127.0.0.1:"));
	assert_null(strstr(rbx_server_address(server), ":0"));
	assert_non_null(strstr(rbx_server_describe(server), "soft"));
	assert_int_equal(rbx_server_drain(server, 0), 0);
	rbx_server_stop(server);
	rbx_server_stop(NULL);
}

static void line_keep(const char *line, void *user)
{
	snprintf(user, 256, "%s", line);
}

/* Not a byte of it goes to stderr then. */
static void lines_of_the_log_go_to_the_program(void **state)
{
	struct rbx_server_options options = good();
	int before = dup(STDERR_FILENO), pipe_fds[2];
	char line[256] = "", byte;
	struct rbx_server *server;

	(void)state;
	options.log = line_keep;
	options.user = line;
	assert_int_equal(rbx_server_start(&server, &options), 0);
	assert_string_equal(line, ""); /* there is as much memory as it lends */
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
	rbx_server_drain(server, 0);
	dup2(before, STDERR_FILENO);
	close(before);
	assert_string_equal(line, "draining: nothing more is lent");
	assert_int_equal(read(pipe_fds[0], &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	rbx_server_stop(server);
}

static void start_with_a_bad_size_fails(void **state)
{
	struct rbx_server_options options = good();

	(void)state;
	options.slab_bytes = 3 << 20;
	fails(&options, -EINVAL, "power of two");
	options.slab_bytes = 4096;
	fails(&options, -EINVAL, "power of two");
	options.slab_bytes = 2ull << 30;
	fails(&options, -EINVAL, "power of two");
	options = good();
	options.memory_bytes = options.slab_bytes - 1;
	fails(&options, -EINVAL, "less than one slab");
	options = good();
	options.slab_bytes = 64 << 10;
	options.memory_bytes = 1ull << 45;
	fails(&options, -ENOMEM, "in all");
	options.overcommit = 1;
	fails(&options, -EINVAL, "larger slabs");
	options = good();
	options.quota_bytes = 1;
	fails(&options, -EINVAL, "quota");
	options = good();
	options.volumes_max = 1025;
	fails(&options, -EINVAL, "1025 volumes of one owner: take 1 to 1024");
	options = good();
	options.lease_ms = 1;
	fails(&options, -EINVAL, "lease");
	options = good();
	options.clients_max = 16385;
	fails(&options, -EINVAL, "clients");
	options = good();
	options.size_bytes = offsetof(struct rbx_server_options, listen);
	fails(&options, -EINVAL, "size_bytes");
	options = good();
	memset(options.listen, 'x', sizeof(options.listen));
	fails(&options, -EINVAL, "not terminated");
	assert_int_equal(rbx_server_start(NULL, &options), -EINVAL);
}

static void start_beyond_loopback_wants_a_secret(void **state)
{
	struct rbx_server_options options = good();
	struct rbx_server *server;

	(void)state;
	strcpy(options.listen, "0.0.0.0:0");
	fails(&options, -EPERM, "secret");
	strcpy(options.listen, "192.0.2.7:0");
	fails(&options, -EPERM, "secret");
	strcpy(options.listen, "[::]:0");
	fails(&options, -EPERM, "secret");
	strcpy(options.listen, "localhost:0");
	assert_int_equal(rbx_server_start(&server, &options), 0);
	rbx_server_stop(server);
}

static void start_with_a_bad_address_fails(void **state)
{
	struct rbx_server_options options = good();
	struct rbx_server *server, *second = NULL;

	(void)state;
	strcpy(options.listen, "nonsense");
	fails(&options, -EINVAL, "host:port");
	strcpy(options.listen, "127.0.0.1:99999");
	fails(&options, -EINVAL, "host:port");
	options = good();
	assert_int_equal(rbx_server_start(&server, &options), 0);
	strcpy(options.listen, rbx_server_address(server));
	assert_int_equal(rbx_server_start(&second, &options), -EADDRINUSE);
	assert_null(second);
	rbx_server_stop(server);
}

static void start_with_a_bad_secret_file_fails(void **state)
{
	struct rbx_server_options options = good();

	(void)state;
	strcpy(options.secret_file, "/nonexistent/secret");
	fails(&options, -ENOENT, "/nonexistent/secret");
	strcpy(options.secret_file,
	       world_secret_file("0123456789abcdef", 0644));
	fails(&options, -EACCES, "chmod");
	strcpy(options.secret_file, world_secret_file("short", 0600));
	fails(&options, -EINVAL, "too short");
	unlink(options.secret_file);
}

static void start_with_a_bad_fabric_fails(void **state)
{
	struct rbx_server_options options = good();

	(void)state;
	strcpy(options.fabric, "carrier pigeon");
	fails(&options, -EINVAL, "soft:tcp");
	strcpy(options.fabric, "soft");
	strcpy(options.device, "mlx5_0");
	fails(&options, -EINVAL, "no devices to choose from");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(start_with_defaults_serves),
		cmocka_unit_test(lines_of_the_log_go_to_the_program),
		cmocka_unit_test(start_with_a_bad_size_fails),
		cmocka_unit_test(start_beyond_loopback_wants_a_secret),
		cmocka_unit_test(start_with_a_bad_address_fails),
		cmocka_unit_test(start_with_a_bad_secret_file_fails),
		cmocka_unit_test(start_with_a_bad_fabric_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
