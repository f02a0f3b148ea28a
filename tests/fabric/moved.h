/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* moved.h - how much payload a queue pair of the soft device has moved. */
#ifndef RBX_TESTS_MOVED_H
#define RBX_TESTS_MOVED_H

#include "fabric/soft/queue_pair.h"

static inline uint64_t moved_bytes_of(struct rbx_qp *base)
{
	struct soft_qp *qp = soft_qp_of(base);
	uint64_t bytes;

	soft_qp_lock(qp);
	bytes = qp->moved_bytes;
	soft_qp_unlock(qp);
	return bytes;
}

#endif
