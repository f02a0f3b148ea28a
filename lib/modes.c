/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * modes.c - the texts of the options `mode` and `polling`, in the core's terms.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "lib/options.h"
#include "lib/poller.h"

const struct rbx_mode *rbx_mode_find(const char *name)
{
	static const struct rbx_mode modes[] = {
		{ "single", false, false },
		{ "doorbell", false, true },
		{ "merge", true, false },
		{ "hybrid", true, true },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	}
	return NULL;
}

/* "adaptive", "adaptive:120", "adaptive:120:16". */
static bool parse_adaptive(const char *text, uint32_t *retry_max,
			   uint32_t *batch_max)
{
	const char *numbers = text + strlen("adaptive");
	int end = 0;

	if (strcmp(text, "adaptive") == 0)
		return true;
	(void)sscanf(text, "adaptive:%9u%n:%9u%n", retry_max, &end, batch_max,
		     &end);
	/* What sscanf read must be all that is there, and not a sign. */
	return end > 0 && text[end] == '\0' &&
	       strspn(numbers, "0123456789:") == strlen(numbers);
}

int rbx_poller_parse(const char *text, uint32_t *retry_max,
		     uint32_t *batch_max)
{
	*retry_max = RBX_POLL_RETRY_DEFAULT;
	*batch_max = RBX_POLL_BATCH;
	if (strcmp(text, "busy") == 0) {
		*retry_max = RBX_POLL_RETRY_FOREVER;
		return 0;
	}
	if (strcmp(text, "event") == 0) {
		*retry_max = 0;
		return 0;
	}
	if (parse_adaptive(text, retry_max, batch_max) &&
	    *batch_max >= 1 && *batch_max <= RBX_POLL_BATCH)
		return 0;
	return rbx_error(-EINVAL,
			 "polling=%s: must be adaptive[:RETRY[:BATCH]] with a "
			 "BATCH of 1 to %u, busy or event",
			 text, RBX_POLL_BATCH);
}
