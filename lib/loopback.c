/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.c - see loopback.h. A name counts as loopback only if all its addresses are.
 */
#include "lib/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>

#include "core/host_port.h"
#include "fabric/loopback.h"
#include "lib/error.h"

int rbx_address_is_loopback(const char *address, bool *is_loopback)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found, *each;
	struct rbx_host_port at;
	int err;

	/* 0 is allowed, as a listener's port. The fabric refuses to connect to it. */
	if (rbx_host_port_parse(address, true, &at) || !at.host[0])
		return rbx_error(-EINVAL,
				 "\"%s\" is not an address; write host:port or "
				 "[v6]:port with a port of at most 65535",
				 address);
	err = getaddrinfo(at.host, NULL, &hints, &found);
	if (err)
		return rbx_error(-ENOENT, "cannot resolve %s: %s", at.host,
				 gai_strerror(err));
	*is_loopback = true;
	for (each = found; each; each = each->ai_next)
		if (!rbx_sockaddr_is_loopback(each->ai_addr))
			*is_loopback = false;
	freeaddrinfo(found);
	return 0;
}
