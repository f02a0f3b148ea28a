/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exports.c - exports what rdmabox_block.ko needs of the core. The core's files are the
 * same everywhere, so they cannot do it themselves.
 */
#include <linux/module.h>

#include "core/histogram.h"
#include "core/write_behind.h"

EXPORT_SYMBOL_GPL(rbx_histogram_quantile);
EXPORT_SYMBOL_GPL(rbx_write_behind_admit);
EXPORT_SYMBOL_GPL(rbx_write_behind_begin);
EXPORT_SYMBOL_GPL(rbx_write_behind_cancel);
EXPORT_SYMBOL_GPL(rbx_write_behind_end);
EXPORT_SYMBOL_GPL(rbx_write_behind_find);
EXPORT_SYMBOL_GPL(rbx_write_behind_init);
EXPORT_SYMBOL_GPL(rbx_write_behind_is_only_here);
EXPORT_SYMBOL_GPL(rbx_write_behind_read_may_go);
EXPORT_SYMBOL_GPL(rbx_write_behind_send);
EXPORT_SYMBOL_GPL(rbx_write_behind_sent);
EXPORT_SYMBOL_GPL(rbx_write_behind_size);
