/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric_choice.h - which fabric a text means: auto, verbs, soft, soft:tcp.
 *
 * `auto` takes an RDMA NIC where there is one and the software device where
 * there is none, and says which and why. A fabric or a device that was named is
 * taken or refused, never replaced. A device that is named means verbs, but for
 * RBX_SOFT_REGISTERED.
 */
#ifndef RBX_LIB_FABRIC_CHOICE_H
#define RBX_LIB_FABRIC_CHOICE_H

#include "fabric/fabric.h"

/* The soft device without a key for all memory: what a program does with a NIC
 * can be tried, and tested, without one. */
#define RBX_SOFT_REGISTERED "registered"

struct rbx_fabric_choice {
	const struct rbx_fabric_ops *ops;
	struct rbx_device_options options; /* for ops->open() */
	char why[RBX_ERROR_TEXT_MAX]; /* "soft, because ..." */
};

/*
 * device: "mlx5_0", "mlx5_0:1", RBX_SOFT_REGISTERED; "" or NULL: any; borrowed
 * as long as the choice is used. gid_index: -1 any. address: where a server will
 * listen, "host:port"; NULL: not known yet. 0, -EINVAL, -ENODEV;
 * rbx_last_error().
 */
int rbx_fabric_choose(const char *fabric, const char *device, int gid_index,
		      const char *address, struct rbx_fabric_choice *choice);

#endif
