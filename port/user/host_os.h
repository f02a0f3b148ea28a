/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_os.h - provides client/host.h with threads of the C library. */
#ifndef RBX_HOST_OS_H
#define RBX_HOST_OS_H

#include "port/posix_host.h"

#endif
