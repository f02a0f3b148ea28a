/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lines.c - rows as lines of text, for a pipe, a log, or a terminal without ncurses. */
#include "cli/top/top.h"

#define LINE_MAX_BYTES 512

static void print_table(FILE *out, const struct top_column *columns,
			uint32_t columns_count, const void *rows, uint32_t count,
			size_t row_bytes)
{
	char line[LINE_MAX_BYTES];
	uint32_t i;

	if (!count)
		return;
	top_line(columns, columns_count, NULL, line, sizeof(line));
	fprintf(out, "%s\n", line);
	for (i = 0; i < count; i++) {
		top_line(columns, columns_count,
			 (const char *)rows + i * row_bytes, line, sizeof(line));
		fprintf(out, "%s\n", line);
	}
}

void top_lines_print(FILE *out, const struct top_report *report)
{
	uint32_t i;

	print_table(out, top_server_columns, top_server_columns_count,
		    report->servers, report->servers_count,
		    sizeof(report->servers[0]));
	for (i = 0; i < report->servers_count; i++)
		if (report->servers[i].state == TOP_DOWN)
			fprintf(out, "  %s\n", report->servers[i].error);
	print_table(out, top_volume_columns, top_volume_columns_count,
		    report->volumes, report->volumes_count,
		    sizeof(report->volumes[0]));
}
