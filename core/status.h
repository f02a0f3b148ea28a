/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.h - the classes of the status of a work request: which side was at fault.
 *
 * A fabric returns 0 or -errno (fabric/fabric.h). Only the class of this decides what
 * follows:
 *
 *	LOCAL   this machine: its memory or its device. It says nothing about the
 *	        peer and costs no replica. It is unknown how much of a write has
 *	        arrived.
 *	PATH    the way to the peer, or the peer is gone.
 *	KEY     the peer has taken the key back. All that is sent with this key would
 *	        fail, so all of it ends together. (A key never fails for its bounds:
 *	        hosts look at these before they send.)
 *	REMOTE  the peer's device could not do it.
 *
 * The verbs of user space and those of the kernel number their work completions
 * alike, so that one table serves both.
 */
#ifndef RBX_STATUS_H
#define RBX_STATUS_H

#include "core/port.h"

enum rbx_status_class {
	RBX_STATUS_LOCAL,
	RBX_STATUS_PATH,
	RBX_STATUS_KEY,
	RBX_STATUS_REMOTE,
};

/* status: not 0. A status that no fabric documents counts as REMOTE. That is safe, because
 * then the peer is not trusted. */
static inline enum rbx_status_class rbx_status_class(int32_t status)
{
	switch (status) {
	case -EFAULT: /* the memory that a program or a block layer gave us */
	case -EINVAL:
	case -ENOMEM:
	case -EMSGSIZE:
	case -EIO: /* our own device failed */
		return RBX_STATUS_LOCAL;
	case -ECANCELED:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
		return RBX_STATUS_PATH;
	case -EACCES:
		return RBX_STATUS_KEY;
	default:
		return RBX_STATUS_REMOTE;
	}
}

/* A message has not reached the server, but may once the server is back. */
static inline bool rbx_status_is_away(int err)
{
	return err == -ENOTCONN || err == -ETIMEDOUT;
}

/* A connection needs memory or descriptors that this machine does not have now. */
static inline bool rbx_status_is_shortage(int err)
{
	return err == -ENOMEM || err == -ENOBUFS || err == -EMFILE ||
	       err == -ENFILE;
}

/* Whether a work request that failed may succeed on a new connection. */
static inline bool rbx_status_may_pass(int32_t status)
{
	return rbx_status_class(status) == RBX_STATUS_PATH ||
	       rbx_status_class(status) == RBX_STATUS_REMOTE || status == -EIO;
}

/*
 * The work completions of verbs by the names and numbers of their specification, which
 * <infiniband/verbs.h> and <rdma/ib_verbs.h> share: X(name, number, errno). A fabric asserts
 * that the enum which it includes has them.
 */
#define RBX_COMPLETION_STATUSES(X)                                             \
	X(SUCCESS, 0, 0)                                                       \
	X(LOC_LEN_ERR, 1, -EMSGSIZE)                                           \
	/* Soft-RoCE calls a wrong local key an operation error, which by the \
	 * specification is a work request of wrong form: we post none. */     \
	X(LOC_QP_OP_ERR, 2, -EFAULT)                                           \
	X(LOC_PROT_ERR, 4, -EFAULT)                                            \
	X(WR_FLUSH_ERR, 5, -ECANCELED)                                         \
	X(BAD_RESP_ERR, 7, -EREMOTEIO)                                         \
	X(LOC_ACCESS_ERR, 8, -EFAULT)                                          \
	/* The sender of a message longer than the receive gets this. */       \
	X(REM_INV_REQ_ERR, 9, -EREMOTEIO)                                      \
	X(REM_ACCESS_ERR, 10, -EACCES)                                         \
	X(REM_OP_ERR, 11, -EREMOTEIO)                                          \
	X(RETRY_EXC_ERR, 12, -ETIMEDOUT)                                       \
	X(RNR_RETRY_EXC_ERR, 13, -ENOBUFS)                                     \
	X(REM_INV_RD_REQ_ERR, 15, -EREMOTEIO)                                  \
	X(REM_ABORT_ERR, 16, -EHOSTUNREACH)                                    \
	X(RESP_TIMEOUT_ERR, 20, -ETIMEDOUT)

/* 0 or -errno for an ibv_wc_status or ib_wc_status. */
int32_t rbx_status_of_completion(uint32_t wc_status);

#endif
