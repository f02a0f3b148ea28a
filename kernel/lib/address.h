/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.h - the addresses of servers as texts.
 */
#ifndef RBX_KERNEL_ADDRESS_H
#define RBX_KERNEL_ADDRESS_H

#include "client/host.h"

/* "10.0.0.1:7471" or "[fe80::1%eth0]:7471". 0 or -EINVAL. */
int rbx_address_parse(const char *text, struct sockaddr_storage *address);

/* With its text. */
void rbx_address_name(struct rbx_address *address,
		      const struct sockaddr_storage *at);

/* Only such a server is talked to without a secret. */
bool rbx_address_is_loopback(const struct sockaddr_storage *address);

#endif
