/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* choose.h - chooses the device, port and gid of this host to open. */
#ifndef RBX_VERBS_CHOOSE_H
#define RBX_VERBS_CHOOSE_H

#include <infiniband/verbs.h>

#include "fabric/fabric.h"

struct rbx_verbs_choice {
	struct ibv_context **contexts; /* the caller's, freed by release() */
	struct ibv_context *verbs; /* one of them */
	uint8_t port;
	struct ibv_port_attr port_attr;
	struct ibv_gid_entry gid;
};

/* -ENODEV, -ENETDOWN (no active port), -EINVAL with a line in `error`. */
int rbx_verbs_choose(const struct rbx_device_options *options,
		     struct rbx_verbs_choice *choice, char *error);
void rbx_verbs_choose_release(struct rbx_verbs_choice *choice);

#endif
