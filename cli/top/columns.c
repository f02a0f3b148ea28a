/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * columns.c - the columns of a row, the order of rows, and numbers as short texts.
 *
 * A column is an entry of a table. Lines of text, the screen and sorting all use the
 * table.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"

/* ---- Numbers as texts ------------------------------------------------------*/

static void print_scaled(double number, double base, const char *const units[],
			 uint32_t units_count, char cell[TOP_CELL_MAX])
{
	uint32_t unit = 0;

	if (number < 0) {
		snprintf(cell, TOP_CELL_MAX, "-");
		return;
	}
	while (number >= base && unit + 1 < units_count) {
		number /= base;
		unit++;
	}
	snprintf(cell, TOP_CELL_MAX, "%.*f%s",
		 unit && number < 99.95 ? number < 9.995 ? 2 : 1 : 0, number,
		 units[unit]);
}

void top_print_bytes(double bytes, char cell[TOP_CELL_MAX])
{
	static const char *const units[] = { " B",   " KiB", " MiB",
					     " GiB", " TiB", " PiB" };

	print_scaled(bytes, 1024, units, 6, cell);
}

void top_print_rate(double bytes, char cell[TOP_CELL_MAX])
{
	static const char *const units[] = { " B", " kB", " MB", " GB", " TB" };

	print_scaled(bytes, 1000, units, 5, cell);
}

void top_print_count(double number, char cell[TOP_CELL_MAX])
{
	static const char *const units[] = { "", "k", "M", "G" };

	print_scaled(number, 1000, units, 4, cell);
}

void top_print_ns(double ns, char cell[TOP_CELL_MAX])
{
	static const char *const units[] = { " ns", " us", " ms", " s" };

	print_scaled(ns, 1000, units, 4, cell);
}

void top_print_age(double seconds, char cell[TOP_CELL_MAX])
{
	bool is_age = seconds >= 0 && seconds < 0x1p62;
	unsigned long s = is_age ? (unsigned long)seconds : 0, m = s / 60, h = m / 60;

	if (!is_age)
		snprintf(cell, TOP_CELL_MAX, "-");
	else if (h >= 24)
		snprintf(cell, TOP_CELL_MAX, "%lu d %lu h", h / 24, h % 24);
	else if (h)
		snprintf(cell, TOP_CELL_MAX, "%lu h %lu m", h, m % 60);
	else if (m)
		snprintf(cell, TOP_CELL_MAX, "%lu m %lu s", m, s % 60);
	else
		snprintf(cell, TOP_CELL_MAX, "%lu s", s);
}

/* ---- Servers ---------------------------------------------------------------*/

static void print_address(const void *row, char cell[TOP_CELL_MAX])
{
	snprintf(cell, TOP_CELL_MAX, "%s",
		 ((const struct top_server_row *)row)->address);
}

static void print_state(const void *row, char cell[TOP_CELL_MAX])
{
	snprintf(cell, TOP_CELL_MAX, "%s",
		 top_state_name(((const struct top_server_row *)row)->state));
}

/* The two functions of a column of numbers: the field, and how to print it. */
#define NUMBER(of, field, print_number)                              \
	static double of##_##field(const void *row)                  \
	{                                                            \
		return ((const struct top_##of##_row *)row)->field;  \
	}                                                            \
	static void print_##of##_##field(const void *row,            \
					 char cell[TOP_CELL_MAX])    \
	{                                                            \
		print_number(of##_##field(row), cell);               \
	}

NUMBER(server, lent_bytes, top_print_bytes)
NUMBER(server, memory_bytes, top_print_bytes)
NUMBER(server, clients, top_print_count)
NUMBER(server, read_bytes, top_print_rate)
NUMBER(server, written_bytes, top_print_rate)
NUMBER(server, operations, top_print_count)
NUMBER(server, answer_ns, top_print_ns)
NUMBER(server, uptime_s, top_print_age)

#define COLUMN(key, title, width, of, field) \
	{ key, title, width, print_##of##_##field, of##_##field }

const struct top_column top_server_columns[] = {
	{ "name", "SERVER", -21, print_address, NULL },
	{ "", "STATE", -8, print_state, NULL },
	COLUMN("lent", "LENT", 8, server, lent_bytes),
	COLUMN("", "OF", 8, server, memory_bytes),
	COLUMN("clients", "CLIENTS", 7, server, clients),
	COLUMN("read", "READ/s", 8, server, read_bytes),
	COLUMN("write", "WRITE/s", 8, server, written_bytes),
	COLUMN("operations", "WR/s", 5, server, operations),
	COLUMN("answer", "ANSWER", 8, server, answer_ns),
	COLUMN("uptime", "UP", 10, server, uptime_s),
};
const uint32_t top_server_columns_count =
	sizeof(top_server_columns) / sizeof(top_server_columns[0]);

/* ---- Volumes ---------------------------------------------------------------*/

static void print_name(const void *row, char cell[TOP_CELL_MAX])
{
	snprintf(cell, TOP_CELL_MAX, "%s",
		 ((const struct top_volume_row *)row)->name);
}

static void print_device(const void *row, char cell[TOP_CELL_MAX])
{
	const struct top_volume_row *volume = row;

	snprintf(cell, TOP_CELL_MAX, "%s",
		 *volume->device ? volume->device : "-");
}

static void print_copies(const void *row, char cell[TOP_CELL_MAX])
{
	const struct top_volume_row *volume = row;
	int percent = (int)(volume->whole * 100);
	char rebuilt[TOP_CELL_MAX];

	top_print_rate(volume->rebuilt_bytes, rebuilt);
	if (volume->lost > 0)
		snprintf(cell, TOP_CELL_MAX, "%.0f LOST, %d %%", volume->lost,
			 percent);
	else if (volume->rebuilding > 0)
		snprintf(cell, TOP_CELL_MAX, "%d %%, +%.20s/s", percent,
			 rebuilt);
	else
		snprintf(cell, TOP_CELL_MAX, "%d %%", percent);
}

static void print_window(const void *row, char cell[TOP_CELL_MAX])
{
	const struct top_volume_row *volume = row;
	char window[TOP_CELL_MAX], flight[TOP_CELL_MAX];

	top_print_bytes(volume->window_bytes, window);
	top_print_bytes(volume->inflight_bytes, flight);
	snprintf(cell, TOP_CELL_MAX, "%.20s/%.20s", flight, window);
}

NUMBER(volume, size_bytes, top_print_bytes)
NUMBER(volume, servers_up, top_print_count)
NUMBER(volume, read_bytes, top_print_rate)
NUMBER(volume, written_bytes, top_print_rate)
NUMBER(volume, operations, top_print_count)
NUMBER(volume, read_p99_ns, top_print_ns)
NUMBER(volume, write_p99_ns, top_print_ns)
NUMBER(volume, polls, top_print_count)

const struct top_column top_volume_columns[] = {
	{ "name", "VOLUME", -12, print_name, NULL },
	{ "", "DEVICE", -9, print_device, NULL },
	COLUMN("lent", "SIZE", 8, volume, size_bytes),
	COLUMN("", "SERVERS", 7, volume, servers_up),
	COLUMN("read", "READ/s", 8, volume, read_bytes),
	COLUMN("write", "WRITE/s", 8, volume, written_bytes),
	COLUMN("operations", "IO/s", 5, volume, operations),
	COLUMN("answer", "R p99", 8, volume, read_p99_ns),
	COLUMN("", "W p99", 8, volume, write_p99_ns),
	{ "", "WINDOW", 17, print_window, NULL },
	COLUMN("", "POLLS/s", 7, volume, polls),
	{ "", "COPIES", 16, print_copies, NULL },
};
const uint32_t top_volume_columns_count =
	sizeof(top_volume_columns) / sizeof(top_volume_columns[0]);

/* ---- The order of rows -----------------------------------------------------*/

const char *top_sort_next(const char *key)
{
	bool found = false;
	uint32_t i;

	for (i = 0; i < 2 * top_server_columns_count; i++) {
		const char *here =
			top_server_columns[i % top_server_columns_count].key;

		if (found && *here)
			return here;
		found |= !strcmp(here, key);
	}
	return "name";
}

struct order {
	const struct top_column *column;
	bool reversed;
};

static int compare(const void *one, const void *two, void *user)
{
	const struct order *order = user;
	char a[TOP_CELL_MAX], b[TOP_CELL_MAX];
	double difference;
	int result;

	if (order->column->number) {
		difference = order->column->number(two) -
			     order->column->number(one);
		result = difference > 0 ? 1 : difference < 0 ? -1 : 0;
	} else {
		order->column->print(one, a);
		order->column->print(two, b);
		result = strcmp(a, b);
	}
	return order->reversed ? -result : result;
}

static void sort_rows(void *rows, size_t count, size_t row_bytes,
		      const struct top_column *columns, uint32_t columns_count,
		      const char *key, bool reversed)
{
	struct order order = { columns, reversed }; /* by the name, if no column has the key */
	uint32_t i;

	for (i = 0; i < columns_count; i++)
		if (!strcmp(columns[i].key, key))
			order.column = &columns[i];
	qsort_r(rows, count, row_bytes, compare, &order);
}

void top_sort(struct top_report *report, const char *key, bool reversed)
{
	sort_rows(report->servers, report->servers_count,
		  sizeof(report->servers[0]), top_server_columns,
		  top_server_columns_count, key, reversed);
	sort_rows(report->volumes, report->volumes_count,
		  sizeof(report->volumes[0]), top_volume_columns,
		  top_volume_columns_count, key, reversed);
}

/* ---- Lines -----------------------------------------------------------------*/

void top_line(const struct top_column *columns, uint32_t count, const void *row,
	      char *line, size_t line_bytes)
{
	char cell[TOP_CELL_MAX];
	size_t at = 0;
	uint32_t i;

	line[0] = '\0';
	for (i = 0; i < count; i++) {
		if (at + 1 + (size_t)abs(columns[i].width) >= line_bytes)
			break;
		if (row)
			columns[i].print(row, cell);
		else
			snprintf(cell, sizeof(cell), "%s", columns[i].title);
		at += (size_t)snprintf(line + at, line_bytes - at, "%s%*s",
				       i ? " " : "", columns[i].width, cell);
		if (at >= line_bytes) /* a cell was longer than its column */
			at = line_bytes - 1;
	}
	while (at && line[at - 1] == ' ')
		line[--at] = '\0';
}

void top_summary(const struct top_report *report, char *line, size_t line_bytes)
{
	double lent = 0, memory = 0, read = 0, written = 0;
	char cells[4][TOP_CELL_MAX];
	uint32_t up = 0, i;

	for (i = 0; i < report->servers_count; i++) {
		const struct top_server_row *row = &report->servers[i];

		up += row->state == TOP_UP || row->state == TOP_DRAINING;
		lent += row->lent_bytes > 0 ? row->lent_bytes : 0;
		memory += row->memory_bytes > 0 ? row->memory_bytes : 0;
		read += row->read_bytes > 0 ? row->read_bytes : 0;
		written += row->written_bytes > 0 ? row->written_bytes : 0;
	}
	top_print_bytes(lent, cells[0]);
	top_print_bytes(memory, cells[1]);
	top_print_rate(read, cells[2]);
	top_print_rate(written, cells[3]);
	snprintf(line, line_bytes,
		 "%u of %u servers up, %.20s of %.20s lent, read %.20s/s, write %.20s/s",
		 up, report->servers_count, cells[0], cells[1], cells[2],
		 cells[3]);
}
