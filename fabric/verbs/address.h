/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address.h - converts "host:port" and "[v6]:port" to socket addresses and back. */
#ifndef RBX_VERBS_ADDRESS_H
#define RBX_VERBS_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "fabric/fabric.h"

/*
 * `passive`: an address to listen on; an empty host means all addresses of this machine.
 * -EINVAL with a line in `error` if it is not an address, or not found.
 */
int rbx_verbs_address_parse(const char *text, bool passive,
			    struct sockaddr_storage *address, char *error);

void rbx_verbs_address_format(const struct sockaddr *address,
			      char text[RBX_NAME_MAX]);

socklen_t rbx_verbs_address_bytes(const struct sockaddr_storage *address);

#endif
