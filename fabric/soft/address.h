/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.h - addresses as text, and the sockets that belong to them.
 */
#ifndef SOFT_ADDRESS_H
#define SOFT_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * Resolves "host:port" or "[v6]:port" to a list for freeaddrinfo(). For a listener an empty
 * host means every address. May block on name resolution.
 */
int soft_address_resolve(const char *text, bool listener,
			 struct addrinfo **list, char *error);
/* Writes RBX_NAME_MAX bytes at most. */
void soft_address_name(const struct sockaddr *address, char *name);
/* Whether it is an address of this host. */
bool soft_address_is_own(const struct sockaddr *address);
/*
 * The address of the local socket beside a same-host listener on this address; any: beside a
 * listener on every address, with this port. Returns its length.
 */
socklen_t soft_address_local(const struct sockaddr *address, bool any,
			     struct sockaddr_un *local);
bool soft_address_is_any(const struct sockaddr *address);
/* Whether the process at the other end of a local socket runs as our user. */
bool soft_socket_is_our_users(int fd);
/* Switches delay off, bounds the silence of a vanished host, and does not pace loopback.
 * Called once the socket is connected. */
void soft_socket_tune(int fd);

#endif
