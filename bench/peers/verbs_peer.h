/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two ends of a raw verbs connection share. */
#ifndef VERBS_PEER_H
#define VERBS_PEER_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "peer.h"

/* Private data of an accepted connection. Both ends are the same program. */
struct lent_memory {
	uint64_t address;
	uint64_t size_bytes;
	uint64_t rkey;
};

/*
 * Resolves the address in the options, for one end (RAI_PASSIVE: the server's); free it with
 * rdma_freeaddrinfo().
 */
int verbs_address(const struct peer_options *options, int flags, struct rdma_addrinfo **address);

/* Sets how many reads may be outstanding between the two ends: as many as the device can do. */
void verbs_limit_reads(const struct rdma_cm_id *id, struct rdma_conn_param *param);

#endif
