/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.c - the addresses of servers: numbers, for the kernel asks nobody for names.
 */
#include "kernel/lib/address.h"

#include <linux/inet.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

int rbx_address_parse(char *text, struct sockaddr_storage *address)
{
	char *port = strrchr(text, ':');

	if (!port)
		return -EINVAL;
	*port++ = '\0';
	if (*text == '[') {
		text++;
		if (!*text || text[strlen(text) - 1] != ']')
			return -EINVAL;
		text[strlen(text) - 1] = '\0';
	}
	return inet_pton_with_scope(&init_net, AF_UNSPEC, text, port, address);
}

bool rbx_address_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ipv4_is_loopback(
			((const struct sockaddr_in *)address)->sin_addr.s_addr);
	return ipv6_addr_loopback(
		&((const struct sockaddr_in6 *)address)->sin6_addr);
}
