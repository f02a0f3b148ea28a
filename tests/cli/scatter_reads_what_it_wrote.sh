#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# examples/scatter: records of a header here and data there come back.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 64M --slab 1M
timeout "$limit_s" "$build/examples/scatter" "$address" >"$scratch/out" 2>"$scratch/err" ||
	{ show; fault "scatter: exit code $?"; }
grep -qx 'record 5, 19 bytes: what is in record 5' "$scratch/out" || { show; fault "another record"; }
