/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exports.c - what of the core rdmabox_block.ko uses, too; a core that is the same
 * everywhere cannot say so itself.
 */
#include <linux/module.h>

#include "core/histogram.h"

EXPORT_SYMBOL_GPL(rbx_histogram_quantile);
