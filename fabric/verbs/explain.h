/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* explain.h - makes the one line that tells a person what failed, why, and how to fix it. */
#ifndef RBX_VERBS_EXPLAIN_H
#define RBX_VERBS_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes the line into `error` (RBX_ERROR_TEXT_MAX bytes, or NULL) and returns `code`, so
 * that failing and explaining is one statement.
 */
int rbx_verbs_explain(char *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* sees one file at a time, and would think of 0 as well */
#define rbx_verbs_explain(error, code, ...) \
	(rbx_verbs_explain(error, code, __VA_ARGS__), -1)
#endif

/* "2 MiB", "64 KiB", "100 bytes", "unlimited" for UINT64_MAX. */
#define RBX_VERBS_SIZE_TEXT_MAX 32
const char *rbx_verbs_format_size(uint64_t size_bytes,
				  char text[RBX_VERBS_SIZE_TEXT_MAX]);

/* The line for a registration of `length_bytes` that failed with `code` (-errno). */
int rbx_verbs_explain_pin(char *error, int code, uint64_t length_bytes,
			  uint64_t memlock_limit_bytes);

#endif
