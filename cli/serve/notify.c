/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * notify.c - tells systemd that the server serves, or is about to end (sd_notify(3)). Until
 * then systemd starts no unit that waits for this one, and sends no SIGHUP.
 *
 * The protocol is a datagram to the socket that NOTIFY_SOCKET names.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/serve/serve.h"

void serve_notify(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t bytes;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	bytes = strlen(path);
	if (bytes >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, bytes);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		     (const struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes));
	close(fd);
}
