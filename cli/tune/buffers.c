/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures what it costs to copy and to register a buffer: the curve of the paper's
 * figure 5b on this machine.
 */
#include <stdio.h>

#include "cli/tune/tune.h"

int tune_buffers(const struct tune_options *options, struct rbx_context *ctx,
		 struct tune_result *result)
{
	for (uint32_t i = 0; i < TUNE_POINTS && !cli_interrupted(); i++) {
		size_t bytes = (size_t)TUNE_BYTES_MIN << i;
		char text[32];

		tune_progress(options, "copy and register %s",
			      cli_size_print(bytes, text, sizeof(text)));
		if (rbx_buffer_cost_measure(ctx, bytes, options->rounds,
					    &result->costs[i])) {
			tune_progress_end();
			return cli_fail(&tune_command, "%s", rbx_last_error());
		}
	}
	tune_progress_end();
	result->break_even_bytes =
		rbx_buffer_cost_break_even(result->costs, TUNE_POINTS);
	return 0;
}
