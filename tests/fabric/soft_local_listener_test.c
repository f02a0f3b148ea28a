/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_local_listener_test.c - the local socket of a listener: who gets in by it, whose
 * name it has, and what is left of it when the listener is closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "tests/fabric/local_peer.h"

#define PAGE 4096u

/* Who has the name of the local socket before it is there gets no peer of it. */
static void listener_whose_name_is_taken_does_not_open(void **state)
{
	char error[RBX_ERROR_TEXT_MAX] = "", address[RBX_NAME_MAX];
	struct rbx_listener *listener;
	struct test_pair pair;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->listen(pair.server_device, "127.0.0.1:0",
					  &listener, NULL), 0);
	memcpy(address, listener->address, sizeof(address));
	pair.ops->close_listener(listener);
	fd = local_name_take(address);
	assert_int_equal(pair.ops->listen(pair.server_device, address,
					  &listener, error), -EADDRINUSE);
	assert_non_null(strstr(error, "local socket"));
	close(fd);
	assert_int_equal(pair.ops->listen(pair.server_device, address,
					  &listener, error), 0);
	pair.ops->close_listener(listener);
	test_pair_close(&pair);
}

/* -errno. */
static int tcp_reach(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	err = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
	close(fd);
	return err;
}

/* The child has its sockets still; nobody gets in by them. */
static void closed_listener_refuses_while_a_child_lives(void **state)
{
	struct rbx_listener *listener;
	char address[RBX_NAME_MAX];
	struct local_peer peer;
	struct test_pair pair;
	pid_t child;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->listen(pair.server_device, "127.0.0.1:0",
					  &listener, NULL), 0);
	memcpy(address, listener->address, sizeof(address));
	child = fork();
	if (!child) {
		alarm(60); /* if the test fails */
		pause();
		_exit(0);
	}
	pair.ops->close_listener(listener);
	for (i = 0; i < 3; i++) {
		assert_int_equal(tcp_reach(address), -ECONNREFUSED);
		assert_int_equal(local_peer_reach(&peer, address), -ECONNREFUSED);
		local_peer_leave(&peer);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	test_pair_close(&pair);
}

/* The way to the local socket is open to each user; it is closed to others. */
static void process_of_another_user_is_sent_away(void **state)
{
	struct rbx_conn_request *request;
	struct local_peer peer;
	struct test_pair pair;
	int status;
	char byte;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip(); /* only root can be another user */
	test_pair_open(&pair, NULL);
	pid = fork();
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		if (local_peer_reach(&peer, pair.listener->address))
			_exit(3);
		local_peer_greet(&peer, NULL, 0);
		_exit(recv(peer.fd, &byte, 1, 0) > 0);
	}
	/* Nobody gets a request of it to accept. */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pair.ops->get_request(pair.listener, &request),
			 -EAGAIN);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(listener_whose_name_is_taken_does_not_open),
		cmocka_unit_test(closed_listener_refuses_while_a_child_lives),
		cmocka_unit_test(process_of_another_user_is_sent_away),
	};

	/* Only a device that maps has a local socket. */
	setenv("RBX_TEST_FABRIC", "soft", 1);
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
