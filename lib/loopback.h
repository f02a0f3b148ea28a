/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.h - does an address stay on this machine?
 *
 * Only then may a client and a server do without a secret unasked.
 */
#ifndef RBX_LIB_LOOPBACK_H
#define RBX_LIB_LOOPBACK_H

#include <stdbool.h>

/* "host:port" or "[v6]:port". May ask the resolver, so it may block. 0, or
 * -EINVAL where it is no address, -ENOENT where the host is not known. */
int rbx_address_is_loopback(const char *address, bool *is_loopback);

#endif
