/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.h - whether an address is of this machine only: 127.0.0.0/8, ::1, and the first
 * mapped into IPv6.
 *
 * Without a secret nothing else is served or reached. So there is one answer, for the
 * library that resolves a name and for the fabrics that connect to an address.
 */
#ifndef RBX_FABRIC_LOOPBACK_H
#define RBX_FABRIC_LOOPBACK_H

#include <netinet/in.h>
#include <stdbool.h>

static inline bool rbx_sockaddr_is_loopback(const struct sockaddr *address)
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	const struct in_addr *v4 = &((const struct sockaddr_in *)address)->sin_addr;

	if (address->sa_family == AF_INET)
		/* The analyzer does not see that getpeername() wrote it. */
		return ntohl(v4->s_addr) >> 24 == IN_LOOPBACKNET; // NOLINT
	return address->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(v6) ||
		(IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == IN_LOOPBACKNET));
}

#endif
