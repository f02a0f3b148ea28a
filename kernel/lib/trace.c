/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace.c - defines the tracepoints of trace.h.
 */
#define CREATE_TRACE_POINTS
#include "kernel/lib/trace.h"
