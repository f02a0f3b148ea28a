/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.c - parses the addresses of servers. They are numbers, as the kernel does not
 * resolve names.
 */
#include "kernel/lib/address.h"

#include <linux/inet.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>

#include "core/host_port.h"

int rbx_address_parse(const char *text, struct sockaddr_storage *address)
{
	struct rbx_host_port at;

	if (rbx_host_port_parse(text, false, &at))
		return -EINVAL;
	return inet_pton_with_scope(&init_net, AF_UNSPEC, at.host, at.port,
				    address);
}

void rbx_address_name(struct rbx_address *address,
		      const struct sockaddr_storage *at)
{
	address->at = *at;
	snprintf(address->name, sizeof(address->name), "%pISpc", at);
}

bool rbx_address_is_loopback(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ipv4_is_loopback(
			((const struct sockaddr_in *)address)->sin_addr.s_addr);
	return ipv6_addr_loopback(
		&((const struct sockaddr_in6 *)address)->sin6_addr);
}
