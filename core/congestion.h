/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion.h - the congestion policies that come with the core.
 *
 * The hook itself is public (include/rdmabox/congestion.h). It is the one header that the
 * core shares with its users. A fixed window needs no policy.
 */
#ifndef RBX_CONGESTION_H
#define RBX_CONGESTION_H

#include "core/limits.h"
#include "core/port.h"
#include "include/rdmabox/congestion.h"

extern const struct rbx_congestion_ops rbx_congestion_aimd;
extern const struct rbx_congestion_ops rbx_congestion_delay;
extern const struct rbx_congestion_ops rbx_congestion_auto;

#endif
