/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric_choice.h - finds the fabric that a text means: auto, verbs, soft, soft:tcp.
 *
 * `auto` takes an RDMA NIC if there is one, and else the software device; it says which
 * and why. If the user names a fabric or a device, it is used or the call fails: it is
 * never replaced by another. A named device means verbs, except RBX_SOFT_REGISTERED.
 */
#ifndef RBX_LIB_FABRIC_CHOICE_H
#define RBX_LIB_FABRIC_CHOICE_H

#include "fabric/fabric.h"

/* The soft device without one key for all memory. With it a program that is meant for a
 * NIC can be tried and tested without one. */
#define RBX_SOFT_REGISTERED "registered"

struct rbx_fabric_choice {
	const struct rbx_fabric_ops *ops;
	struct rbx_device_options options; /* for ops->open() */
	char why[RBX_ERROR_TEXT_MAX]; /* "soft, because ..." */
};

/*
 * device: "mlx5_0", "mlx5_0:1" or RBX_SOFT_REGISTERED; "" or NULL: any. It is borrowed
 * while the choice is used. gid_index: -1 means any. address: where a server will listen,
 * "host:port"; NULL if not known yet. Returns 0, -EINVAL or -ENODEV; sets
 * rbx_last_error().
 */
int rbx_fabric_choose(const char *fabric, const char *device, int gid_index,
		      const char *address, struct rbx_fabric_choice *choice);

#endif
