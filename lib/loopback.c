/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.c - see loopback.h. A name counts as loopback only if all that it
 * stands for is.
 */
#include "lib/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "fabric/fabric.h"
#include "lib/error.h"

static bool sockaddr_is_loopback(const struct sockaddr *addr)
{
	const struct sockaddr_in6 *v6 = (const void *)addr;
	const struct sockaddr_in *v4 = (const void *)addr;

	if (addr->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return addr->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* The host of "host:port" or "[v6]:port". */
static int host_of(const char *address, char host[RBX_NAME_MAX])
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;

	if (length && address[0] == '[' && address[length - 1] == ']') {
		address++;
		length -= 2;
	}
	if (!length || length >= RBX_NAME_MAX || !colon[1])
		return -EINVAL;
	memcpy(host, address, length);
	host[length] = '\0';
	return 0;
}

int rbx_address_is_loopback(const char *address, bool *is_loopback)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found, *each;
	char host[RBX_NAME_MAX];
	int err;

	if (host_of(address, host))
		return rbx_error(-EINVAL,
				 "\"%s\" is no address; write host:port or "
				 "[v6]:port",
				 address);
	err = getaddrinfo(host, NULL, &hints, &found);
	if (err)
		return rbx_error(-ENOENT, "cannot resolve %s: %s", host,
				 gai_strerror(err));
	*is_loopback = true;
	for (each = found; each; each = each->ai_next)
		if (!sockaddr_is_loopback(each->ai_addr))
			*is_loopback = false;
	freeaddrinfo(found);
	return 0;
}
