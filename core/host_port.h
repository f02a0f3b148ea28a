/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_port.h - parses "host:port" and "[v6]:port".
 *
 * All places that take an address use it, so that all refuse the same input. Resolvers do not
 * check ports: they accept 99999, or an empty port, and truncate it to another one. The
 * resolver still decides what the host means.
 */
#ifndef RBX_HOST_PORT_H
#define RBX_HOST_PORT_H

#include "core/port.h"

#define RBX_HOST_BYTES_MAX 256u /* a name of the domain name system has 253 */
#define RBX_PORT_MAX 65535u
#define RBX_PORT_DIGITS_MAX 5u

struct rbx_host_port {
	char host[RBX_HOST_BYTES_MAX]; /* without brackets */
	char port[RBX_PORT_DIGITS_MAX + 1]; /* digits, for resolvers */
	uint16_t number;
};

/* One to five digits without leading zeros, and nothing else. */
static inline bool rbx_port_parse(const char *text, struct rbx_host_port *to)
{
	uint32_t number = 0, i;

	for (i = 0; text[i]; i++) {
		if (i == RBX_PORT_DIGITS_MAX || text[i] < '0' || text[i] > '9' ||
		    (i && text[0] == '0'))
			return false;
		number = number * 10 + (uint32_t)(text[i] - '0');
	}
	if (!i || number > RBX_PORT_MAX)
		return false;
	rbx_port_copy(to->port, text, i + 1);
	to->number = (uint16_t)number;
	return true;
}

/* An address with colons must be in brackets, and only such an address may be. */
static inline bool rbx_host_parse(const char *text, size_t length,
				  struct rbx_host_port *to)
{
	bool brackets = length >= 2 && text[0] == '[' &&
			text[length - 1] == ']';
	bool colons = false;
	size_t i;

	if (brackets) {
		text++;
		length -= 2;
	}
	if (length >= RBX_HOST_BYTES_MAX)
		return false;
	for (i = 0; i < length; i++) {
		if (text[i] == '[' || text[i] == ']')
			return false;
		colons |= text[i] == ':';
	}
	rbx_port_copy(to->host, text, length);
	to->host[length] = '\0';
	return brackets == colons;
}

/*
 * A listener may have no host (all addresses of this machine) and port 0 (the system
 * chooses). A client may have neither. Returns 0 or -EINVAL.
 */
static inline int rbx_host_port_parse(const char *text, bool listener,
				      struct rbx_host_port *to)
{
	const char *colon = NULL, *at;

	for (at = text; *at; at++)
		if (*at == ':')
			colon = at;
	if (!colon || !rbx_port_parse(colon + 1, to) ||
	    !rbx_host_parse(text, (size_t)(colon - text), to) ||
	    (!listener && (!to->host[0] || !to->number)))
		return -EINVAL;
	return 0;
}

#endif
