/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.h - parses and prints the addresses of servers.
 */
#ifndef RBX_KERNEL_ADDRESS_H
#define RBX_KERNEL_ADDRESS_H

#include "client/host.h"

/* "10.0.0.1:7471" or "[fe80::1%eth0]:7471". 0 or -EINVAL. */
int rbx_address_parse(const char *text, struct sockaddr_storage *address);

/* Copies an address and makes its text. */
void rbx_address_name(struct rbx_address *address,
		      const struct sockaddr_storage *at);

/* Whether it is a loopback address; only then may the secret be missing. */
bool rbx_address_is_loopback(const struct sockaddr_storage *address);

#endif
