/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.h - tells whether an address is on this machine.
 *
 * A client and a server may do without a secret only on loopback, unless the user says
 * so.
 */
#ifndef RBX_LIB_LOOPBACK_H
#define RBX_LIB_LOOPBACK_H

#include <stdbool.h>

/* address: "host:port" or "[v6]:port". It may ask the resolver, so it may block. 0;
 * -EINVAL: not an address; -ENOENT: the host is not known. */
int rbx_address_is_loopback(const char *address, bool *is_loopback);

#endif
