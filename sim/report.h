/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report.h - the results of a scenario that measures: tables of numbers.
 *
 * A scenario adds a table, then its rows, with a value for each column:
 *
 *	static const struct rbx_report_column columns[] = {
 *		{ "requests/s", 0 }, { "completion us", 1 },
 *	};
 *	table = rbx_report_table(report, "threads", columns, 2,
 *				 "%u queue pairs", qps_count);
 *	rbx_report_row(table, (int64_t[]){ 214000, 93 }, "%u", threads);
 *
 * Values are whole numbers; in a column with decimals they are tenths or hundredths: 93 above
 * is 9.3. So no float decides a digit. Nothing is allocated, and the report is in memory that
 * two processes share.
 */
#ifndef RBX_SIM_REPORT_H
#define RBX_SIM_REPORT_H

#include <stdint.h>
#include <stdio.h>

#define RBX_REPORT_TABLES_MAX 16u
#define RBX_REPORT_COLUMNS_MAX 8u
#define RBX_REPORT_ROWS_MAX 16u
#define RBX_REPORT_TEXT_BYTES 96u

/* Instead of a value: there is none. */
#define RBX_REPORT_NONE INT64_MIN

struct rbx_report_column {
	char name[40];
	uint32_t decimals;
};

struct rbx_report_row {
	char name[RBX_REPORT_TEXT_BYTES];
	int64_t values[RBX_REPORT_COLUMNS_MAX];
};

struct rbx_report_table {
	char title[RBX_REPORT_TEXT_BYTES];
	char rows_are[RBX_REPORT_TEXT_BYTES]; /* the heading of the column with the names of rows */
	uint32_t columns_count, rows_count;
	struct rbx_report_column columns[RBX_REPORT_COLUMNS_MAX];
	struct rbx_report_row rows[RBX_REPORT_ROWS_MAX];
};

struct rbx_report {
	char nic[64];
	uint32_t tables_count;
	struct rbx_report_table tables[RBX_REPORT_TABLES_MAX];
};

struct rbx_report_table *
rbx_report_table(struct rbx_report *report, const char *rows_are,
		 const struct rbx_report_column *columns, uint32_t columns_count,
		 const char *title, ...) __attribute__((format(printf, 5, 6)));

/* values: one for each column. */
void rbx_report_row(struct rbx_report_table *table, const int64_t *values,
		    const char *name, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints it as Markdown. */
void rbx_report_print(const struct rbx_report *report, FILE *out);

#endif
