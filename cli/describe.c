/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds one line of what rbx_describe() says about a context.
 */
#include <stdio.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/cli.h"

#define DESCRIPTION_BYTES_MAX 8192

void cli_describe(struct rbx_context *ctx, const char *key, char *value,
		  size_t value_bytes)
{
	char text[DESCRIPTION_BYTES_MAX];
	char *line, *rest = text;
	size_t len = strlen(key);

	snprintf(value, value_bytes, "unknown");
	rbx_describe(ctx, text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, key, len) && line[len] == '=')
			snprintf(value, value_bytes, "%s", line + len + 1);
}
