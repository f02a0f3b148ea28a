/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address.c - converts "host:port" and "[v6]:port" to socket addresses and back. */
#include "fabric/verbs/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/host_port.h"
#include "fabric/verbs/explain.h"

int rbx_verbs_address_parse(const char *text, bool passive,
			    struct sockaddr_storage *address, char *error)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0),
	};
	struct addrinfo *found;
	struct rbx_host_port at;
	int code;

	if (!text || rbx_host_port_parse(text, passive, &at))
		return rbx_verbs_explain(error, -EINVAL,
			"'%s' is not an address; give HOST:PORT or [IPV6]:PORT "
			"with a port of %s to %u", text ? text : "",
			passive ? "0" : "1", RBX_PORT_MAX);
	code = getaddrinfo(at.host[0] ? at.host : NULL, at.port, &hints,
			   &found);
	if (code)
		return rbx_verbs_explain(error, -EINVAL,
			"address '%s' is not found: %s; give HOST:PORT with a "
			"known host and a numeric port", text,
			gai_strerror(code));
	memset(address, 0, sizeof(*address));
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

void rbx_verbs_address_format(const struct sockaddr *address,
			      char text[RBX_NAME_MAX])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	char host[INET6_ADDRSTRLEN];

	if (address->sa_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(text, RBX_NAME_MAX, "%s:%u", host,
			 ntohs(in->sin_port));
	} else if (address->sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(text, RBX_NAME_MAX, "[%s]:%u", host,
			 ntohs(in6->sin6_port));
	} else {
		snprintf(text, RBX_NAME_MAX, "unknown");
	}
}

socklen_t rbx_verbs_address_bytes(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					       sizeof(struct sockaddr_in6);
}
