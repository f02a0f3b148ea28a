/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.c - parses addresses, formats them, and names the local socket beside a listener.
 *
 * A listener that can map memory also listens on a local socket in the abstract namespace,
 * which needs no file and disappears with its owner. Its name is made of the bound address
 * and port, so a client that has the TCP address finds it. Any process may take a name there.
 * So a client checks that the owner is of its own user, and uses TCP otherwise; and a
 * listener whose name is taken does not open.
 */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/host_port.h"
#include "device.h"
#include "fabric/loopback.h"

int soft_address_resolve(const char *text, bool listener,
			 struct addrinfo **list, char *error)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (listener ? AI_PASSIVE : 0) | AI_NUMERICSERV,
	};
	struct rbx_host_port at;
	int rc;

	if (rbx_host_port_parse(text, listener, &at)) {
		soft_explain(error, "'%.100s' is not an address: write host:port "
			     "or [v6]:port with a port of %s to %u", text,
			     listener ? "0" : "1", RBX_PORT_MAX);
		return -EINVAL;
	}
	rc = getaddrinfo(at.host[0] ? at.host : NULL, at.port, &hints, list);
	if (!rc)
		return 0;
	soft_explain(error, "cannot resolve '%.100s': %s", text,
		     gai_strerror(rc));
	return -EADDRNOTAVAIL;
}

static unsigned int address_port(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void soft_address_name(const struct sockaddr *address, char *name)
{
	char host[INET6_ADDRSTRLEN] = "?";
	bool v6 = address->sa_family == AF_INET6;
	const void *bytes = v6 ?
		(const void *)&((const struct sockaddr_in6 *)address)->sin6_addr :
		(const void *)&((const struct sockaddr_in *)address)->sin_addr;

	inet_ntop(address->sa_family, bytes, host, sizeof(host));
	snprintf(name, RBX_NAME_MAX, v6 ? "[%s]:%u" : "%s:%u", host,
		 address_port(address));
}

bool soft_address_is_any(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
	return v4->sin_addr.s_addr == htonl(INADDR_ANY);
}

bool soft_address_is_own(const struct sockaddr *address)
{
	socklen_t length = address->sa_family == AF_INET6 ?
		sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	struct sockaddr_storage copy = { 0 };
	bool own;
	int fd;

	if (rbx_sockaddr_is_loopback(address))
		return true;
	/* Only an address of this host can be bound. */
	memcpy(&copy, address, length);
	if (copy.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&copy)->sin6_port = 0;
	else
		((struct sockaddr_in *)&copy)->sin_port = 0;
	fd = socket(copy.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	own = !bind(fd, (struct sockaddr *)&copy, length);
	close(fd);
	return own;
}

socklen_t soft_address_local(const struct sockaddr *address, bool any,
			     struct sockaddr_un *local)
{
	char name[RBX_NAME_MAX];
	int length;

	soft_address_name(address, name);
	if (any)
		snprintf(name, sizeof(name), "*:%u", address_port(address));
	*local = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* A leading zero byte: the abstract namespace. */
	length = snprintf(local->sun_path + 1, sizeof(local->sun_path) - 1,
			  "rdmabox-soft %s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)length);
}

bool soft_socket_is_our_users(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       peer.uid == geteuid();
}

static bool stays_on_this_host(int fd)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t length = sizeof(peer);

	return !getpeername(fd, (struct sockaddr *)&peer, &length) &&
	       peer.ss_family != AF_UNIX &&
	       soft_address_is_own((struct sockaddr *)&peer);
}

void soft_socket_tune(int fd)
{
	static const char unpaced[] = "reno";
	int on = 1, seconds = SOFT_KEEPALIVE_S;
	int silence_ms = SOFT_SILENT_PEER_MS;
	int probes = SOFT_SILENT_PEER_MS / 1000 / SOFT_KEEPALIVE_S;

	/* These fail on a local socket, which needs none of them. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms,
		   sizeof(silence_ms));
	/*
	 * Loopback has no network that needs pacing, and the system's choice may pace it: BBR
	 * costs a third of the throughput of 128 KiB writes. Reno is the algorithm that any
	 * user may choose on any Linux.
	 */
	if (stays_on_this_host(fd))
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced,
			   sizeof(unpaced) - 1);
}
