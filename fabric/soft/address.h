/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.h - addresses in words, and the sockets that go with them.
 */
#ifndef SOFT_ADDRESS_H
#define SOFT_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * "host:port" or "[v6]:port" to a list for freeaddrinfo(). For a listener an
 * empty host is every address. May block on name resolution.
 */
int soft_address_resolve(const char *text, bool listener,
			 struct addrinfo **list, char *error);
/* Into RBX_NAME_MAX bytes. */
void soft_address_name(const struct sockaddr *address, char *name);
bool soft_address_is_loopback(const struct sockaddr *address);
/* Whether it is an address of this host. */
bool soft_address_is_own(const struct sockaddr *address);
/*
 * The local socket that a same-host listener on this address has beside it;
 * any: of one on every address, with this port. Returns its length.
 */
socklen_t soft_address_local(const struct sockaddr *address, bool any,
			     struct sockaddr_un *local);
bool soft_address_is_any(const struct sockaddr *address);
/* Whether the process at the other end of a local socket is of our user. */
bool soft_socket_is_our_users(int fd);
/* Delay off, the silence of a vanished host bounded, loopback not paced. To be
 * called once it is connected. */
void soft_socket_tune(int fd);

#endif
