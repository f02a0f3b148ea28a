/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server of both UCX peers: a listener, and a child for each client.
 *
 * The child is a process of its own, over memory shared with its parent, because UCX ends the
 * whole process when a client dies while its puts are under way. Clients come one after
 * another; the parent waits for a child's end before it accepts the next.
 */
#include "ucx_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ucx_socket.h"

/* Checks the child rarely: this process shares its core with it. */
static void wait_child(pid_t child)
{
	while (waitpid(child, NULL, WNOHANG) == 0) {
		if (peer_stop)
			kill(child, SIGTERM);
		usleep(50000);
	}
}

static int serve_clients(int listener, const struct peer_options *options, void *memory,
			 ucx_serve_client_fn serve_client)
{
	struct pollfd waiting = { .fd = listener, .events = POLLIN };
	pid_t child;
	int fd, err;

	while (!peer_stop) {
		/* The limit covers a signal that arrives just before the call. */
		if (poll(&waiting, 1, PEER_WAIT_LIMIT_MS) <= 0)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(listener);
			err = serve_client(fd, memory, options->memory_bytes);
			_exit(err ? 1 : 0);
		}
		close(fd);
		if (child > 0)
			wait_child(child);
	}
	return 0;
}

int ucx_serve(const struct peer_options *options, ucx_serve_client_fn serve_client)
{
	struct sockaddr_in bound;
	socklen_t bound_len = sizeof(bound);
	int listener, err = 0;
	void *memory;

	memory = mmap(NULL, options->memory_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	listener = socket_listen(options);
	if (listener < 0) {
		err = listener;
		goto out_unmap_memory;
	}
	/* Touched; otherwise the first client would pay for the page faults. */
	memset(memory, 1, options->memory_bytes);
	if (getsockname(listener, (struct sockaddr *)&bound, &bound_len)) {
		err = -errno;
		goto out_close_listener;
	}
	peer_print_ready(options->host, ntohs(bound.sin_port));
	err = serve_clients(listener, options, memory, serve_client);
out_close_listener:
	close(listener);
out_unmap_memory:
	munmap(memory, options->memory_bytes);
	return err;
}
