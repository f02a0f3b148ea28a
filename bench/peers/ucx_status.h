/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Converts UCX's statuses to -errno, for both UCX peers. */
#ifndef UCX_STATUS_H
#define UCX_STATUS_H

#include <ucs/type/status.h>

/* Returns 0 or -errno; a status without an equivalent is -EIO. */
int error_from_ucs(ucs_status_t status);

#endif
