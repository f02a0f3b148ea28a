/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named.h - how long a named volume is, before a job opens it.
 */
#ifndef RDMABOX_FIO_NAMED_H
#define RDMABOX_FIO_NAMED_H

#include <stdint.h>

#include <rdmabox/rdmabox.h>

/**
 * named_bytes_ask() - asks the servers for the length of a named volume.
 *
 * Returns 0 or -errno, having told the user.
 */
int named_bytes_ask(const struct rbx_options *options, const char *servers, const char *name,
		    uint64_t *bytes);

#endif
