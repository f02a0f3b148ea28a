/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UCX's statuses as -errno, once for both UCX peers. */
#ifndef UCX_STATUS_H
#define UCX_STATUS_H

#include <ucs/type/status.h>

/* 0 or -errno; what has no like is -EIO. */
int error_from_ucs(ucs_status_t status);

#endif
