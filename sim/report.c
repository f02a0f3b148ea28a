/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report.c - see report.h. */
#include "sim/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "core/port.h"

struct rbx_report_table *
rbx_report_table(struct rbx_report *report, const char *rows_are,
		 const struct rbx_report_column *columns, uint32_t columns_count,
		 const char *title, ...)
{
	struct rbx_report_table *table =
		&report->tables[report->tables_count];
	va_list args;

	RBX_ASSERT(report->tables_count < RBX_REPORT_TABLES_MAX);
	RBX_ASSERT(columns_count <= RBX_REPORT_COLUMNS_MAX);
	report->tables_count++;
	va_start(args, title);
	vsnprintf(table->title, sizeof(table->title), title, args);
	va_end(args);
	snprintf(table->rows_are, sizeof(table->rows_are), "%s", rows_are);
	memcpy(table->columns, columns, columns_count * sizeof(*columns));
	table->columns_count = columns_count;
	table->rows_count = 0;
	return table;
}

void rbx_report_row(struct rbx_report_table *table, const int64_t *values,
		    const char *name, ...)
{
	struct rbx_report_row *row = &table->rows[table->rows_count];
	va_list args;

	RBX_ASSERT(table->rows_count < RBX_REPORT_ROWS_MAX);
	table->rows_count++;
	va_start(args, name);
	vsnprintf(row->name, sizeof(row->name), name, args);
	va_end(args);
	memcpy(row->values, values, table->columns_count * sizeof(*values));
}

static void print_value(FILE *out, int64_t value, uint32_t decimals)
{
	uint64_t scale = 1, size = (uint64_t)(value < 0 ? -value : value);

	if (value == RBX_REPORT_NONE) {
		fprintf(out, " |");
		return;
	}
	for (uint32_t i = 0; i < decimals; i++)
		scale *= 10;
	fprintf(out, " %s%" PRIu64, value < 0 ? "-" : "", size / scale);
	if (decimals != 0)
		fprintf(out, ".%0*" PRIu64, (int)decimals, size % scale);
	fprintf(out, " |");
}

static void print_table(FILE *out, const struct rbx_report_table *table)
{
	fprintf(out, "\n%s:\n\n| %s |", table->title, table->rows_are);
	for (uint32_t i = 0; i < table->columns_count; i++)
		fprintf(out, " %s |", table->columns[i].name);
	fprintf(out, "\n|---|");
	for (uint32_t i = 0; i < table->columns_count; i++)
		fprintf(out, "---|");
	fprintf(out, "\n");
	for (uint32_t i = 0; i < table->rows_count; i++) {
		const struct rbx_report_row *row = &table->rows[i];

		fprintf(out, "| %s |", row->name);
		for (uint32_t j = 0; j < table->columns_count; j++)
			print_value(out, row->values[j],
				    table->columns[j].decimals);
		fprintf(out, "\n");
	}
}

void rbx_report_print(const struct rbx_report *report, FILE *out)
{
	for (uint32_t i = 0; i < report->tables_count; i++)
		print_table(out, &report->tables[i]);
	fprintf(out, "\n");
}
