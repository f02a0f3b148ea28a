/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pacing.c - the texts of the option `window`, translated for the core.
 *
 * A window smaller than one fragment would let only one work request through, so it is
 * refused. If the program has a policy of its own, that is used instead of the text. The
 * core clamps what a policy returns to the range that is given here.
 */
#include "lib/pacing.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/options.h"

#define SIZE_MAX_BYTES ((int64_t)1 << 39) /* credit counts to 2^40 */

static const struct rbx_congestion_ops *const policies[] = {
	&rbx_congestion_aimd,
	&rbx_congestion_delay,
	&rbx_congestion_auto,
};

int rbx_pacing_parse(const char *text, uint64_t *bytes_max,
		     const struct rbx_congestion_ops **ops)
{
	int64_t bytes;

	*bytes_max = 0;
	*ops = NULL;
	if (strcmp(text, "off") == 0)
		return 0;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (strcmp(text, policies[i]->name) == 0) {
			*ops = policies[i];
			return 0;
		}
	}
	if (rbx_number_parse(text, &bytes) && bytes >= RBX_PAGE_BYTES &&
	    bytes <= SIZE_MAX_BYTES) {
		*bytes_max = (uint64_t)bytes;
		return 0;
	}
	return rbx_error(-EINVAL,
			 "window=%s: must be off, aimd, delay, auto, or a size "
			 "of one fragment to 512G (suffixes K, M, G, T, or KiB and so on)",
			 text);
}

int rbx_pacing_check(const struct rbx_options *options)
{
	const struct rbx_congestion_ops *own = options->congestion, *ops;
	uint64_t bytes_max;
	int err;

	if (own && (!own->name || !own->init || !own->window))
		return rbx_error(-EINVAL,
				 "congestion: a policy needs a name, init() "
				 "and window()");
	err = rbx_pacing_parse(options->window, &bytes_max, &ops);
	if (err || own || bytes_max == 0 ||
	    bytes_max >= options->fragment_bytes)
		return err;
	return rbx_error(-EINVAL,
			 "window=%s: below one request, which is up to %u "
			 "bytes (fragment_bytes); give at least as much, or a "
			 "smaller fragment",
			 options->window, options->fragment_bytes);
}

void rbx_pacing_set(const struct rbx_options *options,
		    struct rbx_window *window)
{
	const struct rbx_congestion_ops *ops;
	uint64_t bytes_max = 0;

	rbx_pacing_parse(options->window, &bytes_max, &ops);
	if (options->congestion)
		ops = options->congestion;
	rbx_window_init(window, bytes_max, options->window_work_requests);
	if (ops)
		rbx_window_set_policy(window, ops, options->fragment_bytes,
				      RBX_WINDOW_BYTES_MAX);
}
