/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.c - the text of each thread's last error.
 *
 * A text that is cut at its bound ends in "...". It never holds a newline or another control
 * character. So it can be shown or logged as one line, whatever a fabric, a peer or a caller put
 * into it.
 */
#include "lib/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/host.h"
#include "fabric/fabric.h"
#include "include/rdmabox/rdmabox.h"

static _Thread_local char last_error[RBX_ERROR_TEXT_MAX];

/* What is no text would be a command to the terminal. */
static char shown(char c)
{
	if (c == '\n')
		return ' ';
	return (c >= 0 && c < ' ') || c == 0x7f ? '?' : c;
}

#undef rbx_error
int rbx_error(int err, const char *format, ...)
{
	/* The arguments may point into last_error itself, so the text is formatted
	 * elsewhere first. */
	char text[sizeof(last_error)];
	size_t i;
	va_list args;

	va_start(args, format);
	if ((size_t)vsnprintf(text, sizeof(text), format, args) >= sizeof(text))
		strcpy(text + sizeof(text) - sizeof("..."), "...");
	va_end(args);
	for (i = 0; text[i]; i++)
		last_error[i] = shown(text[i]);
	last_error[i] = '\0';
	return err;
}

const char *rbx_status_text(int status)
{
	switch (status) {
	case -EHOSTUNREACH:
		return "the server is gone";
	case -ETIMEDOUT:
		return "no answer came in time";
	case -EACCES:
		return "the server refused the access: the loan has ended";
	case -EREMOTEIO:
		return "the server failed";
	case -ENOBUFS:
		return "the server was not ready for too long";
	default:
		return strerror(-status);
	}
}

const char *rbx_last_error(void)
{
	return last_error;
}

/* ---- For client/ ---------------------------------------------------------------------------- */

RBX_STATIC_ASSERT(RBX_ERROR_BYTES == RBX_ERROR_TEXT_MAX, "room for the same text");

const char *rbx_error_text(void)
{
	return last_error;
}

int rbx_error_again(int err, const char *text)
{
	return rbx_error(err, "%s", text);
}
