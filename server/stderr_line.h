/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stderr_line.h - writes a line to stderr, even if nobody reads it. */
#ifndef RBX_SERVER_STDERR_LINE_H
#define RBX_SERVER_STDERR_LINE_H

/* Never waits and raises no signal. A line that does not fit is dropped; the next line
 * that fits tells how many were dropped. Any thread. */
void rbx_stderr_line(const char *text);

#endif
