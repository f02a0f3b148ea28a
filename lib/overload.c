/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * overload.c - the text of the option `overload`: from how many work requests in flight
 * the soft device slows down, and by how much for each of them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "lib/options.h"

int rbx_overload_parse(const char *text, uint32_t *work_requests,
		       uint32_t *cost_ns)
{
	int end = 0;

	*work_requests = 0;
	*cost_ns = 0;
	if (strcmp(text, "off") == 0)
		return 0;
	(void)sscanf(text, "%5u:%4u%n", work_requests, cost_ns, &end);
	/* sscanf() must have read all of the text, and no sign. */
	if (end > 0 && text[end] == '\0' && *cost_ns > 0 &&
	    strspn(text, "0123456789:") == strlen(text))
		return 0;
	return rbx_error(-EINVAL,
			 "overload=%s: must be off, or WORK_REQUESTS:NS such "
			 "as 64:20, with at most 99999 and 1 to 9999",
			 text);
}
