/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Converts UCX's statuses to -errno, for both UCX peers. */
#include "ucx_status.h"

#include <errno.h>

int error_from_ucs(ucs_status_t status)
{
	switch (status) {
	case UCS_OK:
		return 0;
	case UCS_ERR_NO_MEMORY:
		return -ENOMEM;
	case UCS_ERR_NO_DEVICE:
		return -ENODEV;
	case UCS_ERR_INVALID_PARAM:
		return -EINVAL;
	case UCS_ERR_UNREACHABLE:
		return -EHOSTUNREACH;
	case UCS_ERR_CONNECTION_RESET:
	case UCS_ERR_ENDPOINT_TIMEOUT:
		return -ECONNRESET;
	case UCS_ERR_CANCELED:
		return -ECANCELED;
	default:
		return -EIO;
	}
}
