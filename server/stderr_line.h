/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stderr_line.h - a line to stderr, whoever reads it or does not. */
#ifndef RBX_SERVER_STDERR_LINE_H
#define RBX_SERVER_STDERR_LINE_H

/* Never waits and raises no signal; a line that does not fit is lost, and the next
 * one that fits says how many were. Any thread. */
void rbx_stderr_line(const char *text);

#endif
