/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * address.h - the addresses of servers as texts.
 */
#ifndef RBX_KERNEL_ADDRESS_H
#define RBX_KERNEL_ADDRESS_H

#include <linux/socket.h>
#include <linux/types.h>

/* An address as "%pISpc" writes it: "[address%scope]:port" has most. */
#define RBX_ADDRESS_TEXT_BYTES 80u

/* "10.0.0.1:7471" or "[fe80::1%eth0]:7471". 0 or -EINVAL. */
int rbx_address_parse(const char *text, struct sockaddr_storage *address);

/* Only such a server is talked to without a secret. */
bool rbx_address_is_loopback(const struct sockaddr_storage *address);

#endif
