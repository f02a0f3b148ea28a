/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.h - the one line that tells a user what failed, why, and how to mend
 * it.
 *
 * Each thread has one text, which rbx_last_error() shows. It is set where the
 * cause is known; the layers above only pass the errno on.
 */
#ifndef RBX_LIB_ERROR_H
#define RBX_LIB_ERROR_H

/* Sets the text of this thread and returns err: "return rbx_error(-EINVAL, ..." */
int rbx_error(int err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What a status of a completion (fabric.h) means; strerror() knows of files and
 * networks, and calls a server that was killed a host without a route. */
const char *rbx_status_text(int status);

#endif
