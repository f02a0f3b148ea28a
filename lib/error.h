/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.h - the one line that tells a user what failed, why, and how to mend it.
 *
 * Each thread has one such text, and rbx_last_error() returns it. It is set where the
 * cause is known; the layers above only return the errno.
 */
#ifndef RBX_LIB_ERROR_H
#define RBX_LIB_ERROR_H

/* Sets the text of this thread and returns err. Use: return rbx_error(-EINVAL, "..."). */
int rbx_error(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__ /* sees one file at a time, and would think of 0 as well */
#define rbx_error(err, ...) (rbx_error(err, __VA_ARGS__), -1)
#endif

/* What a completion's status (fabric.h) means. strerror() speaks of files and networks:
 * it would call a killed server "No route to host". */
const char *rbx_status_text(int status);

#endif
