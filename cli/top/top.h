/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * top.h - what the parts of `rdmabox top` share: samples of servers and of this machine's
 * volumes, and the rows that are made from them.
 *
 *	options.c    its options
 *	top.c        the loop
 *	servers.c    a thread for each server asks it
 *	volumes.c    volumes of the kernel module, from their files
 *	rates.c      makes a row from two samples
 *	columns.c    the columns of a row, and the order of rows
 *	lines.c      rows as lines of text
 *	json.c       rows as JSON
 *	screen.c     rows on a terminal, by ncurses; no_screen.c without that library
 */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "cli/cli.h"

#define TOP_SERVERS_MAX 64
#define TOP_VOLUMES_MAX 64
#define TOP_ADDRESS_MAX 128
#define TOP_NAME_MAX 64
#define TOP_ERROR_MAX 256
#define TOP_CELL_MAX 160

/* A number that is not known. */
#define TOP_UNKNOWN (-1.0)

struct top_options {
	char servers[4096]; /* divided by commas */
	double interval_s;
	uint32_t once, as_json, reversed;
	char sort_key[16];
	struct rbx_options library;
};

extern struct top_options top_options;
extern const struct cli_command top_command;

int cli_top(int argc, char **argv);

/* ---- Samples ---------------------------------------------------------------*/

enum top_state {
	TOP_ASKED, /* it has neither answered nor failed yet */
	TOP_UP,
	TOP_DRAINING, /* up, and lends nothing more */
	TOP_SILENT, /* was up, and has not answered for a while */
	TOP_DOWN, /* cannot be reached, or refuses */
};

struct top_sample {
	uint64_t at_ns; /* 0: there is none */
	uint64_t took_ns; /* from question to answer */
	struct rbx_server_stats stats;
};

struct top_server {
	char address[TOP_ADDRESS_MAX];
	bool is_down; /* the last request failed */
	char error[TOP_ERROR_MAX]; /* why */
	uint64_t asked_ns; /* when the request without an answer was sent; 0: none */
	uint32_t tries; /* requests that have ended */
	struct top_sample now, before; /* the last two answers since the server was started */
};

/* The files of a volume and of its device that are read. */
#define TOP_VOLUME_FILES(X)                                                   \
	X(size) X(servers_up) X(slabs) X(slabs_whole) X(slabs_blank)          \
	X(slabs_rebuilding) X(slabs_lost) X(rebuilt_bytes) X(window_bytes)    \
	X(inflight_bytes) X(polls) X(empty_polls)
#define TOP_DEVICE_FILES(X)                                                   \
	X(read_requests) X(read_bytes) X(read_latency_p50_ns)                 \
	X(read_latency_p99_ns) X(write_requests) X(write_bytes)               \
	X(write_latency_p50_ns) X(write_latency_p99_ns)

struct top_volume {
	char name[TOP_NAME_MAX];
	char device[TOP_NAME_MAX]; /* "": it is not attached */
	uint64_t at_ns;
#define TOP_FIELD(name) uint64_t name;
	TOP_VOLUME_FILES(TOP_FIELD)
	TOP_DEVICE_FILES(TOP_FIELD)
#undef TOP_FIELD
};

struct top_volumes {
	uint32_t count;
	struct top_volume list[TOP_VOLUMES_MAX];
};

/* ---- Rows: rates are per second; TOP_UNKNOWN if not known ----------------------*/

struct top_server_row {
	char address[TOP_ADDRESS_MAX];
	enum top_state state;
	char error[TOP_ERROR_MAX]; /* if the server is down */
	double memory_bytes, lent_bytes, clients;
	double read_bytes, written_bytes, operations;
	double answer_ns; /* from question to answer, seen from here */
	double uptime_s;
};

struct top_volume_row {
	char name[TOP_NAME_MAX];
	char device[TOP_NAME_MAX];
	double size_bytes, servers_up;
	double read_bytes, written_bytes, operations;
	double read_p99_ns, write_p99_ns; /* since it was attached */
	double window_bytes, inflight_bytes;
	double polls, empty_polls;
	double whole; /* share of its slabs that have all replicas, 0 to 1 */
	double rebuilding, lost; /* slabs */
	double rebuilt_bytes; /* per second */
};

struct top_report {
	uint32_t servers_count, volumes_count;
	struct top_server_row servers[TOP_SERVERS_MAX];
	struct top_volume_row volumes[TOP_VOLUMES_MAX];
};

/* ---- servers.c ---------------------------------------------------------------*/

struct top_watchers;

/* Starts to ask each address of the list, divided by commas, every interval. 0, or an
 * exit code after an error message. */
int top_watchers_start(struct top_watchers **watchers,
		       const struct cli_command *command,
		       struct rbx_context *ctx, const char *addresses,
		       double interval_s);
/* Copies the latest samples; returns how many there are. */
uint32_t top_watchers_look(struct top_watchers *watchers,
			   struct top_server servers[TOP_SERVERS_MAX]);
/* False: some threads still wait for their server, so the context cannot be closed. */
bool top_watchers_stop(struct top_watchers *watchers);

/* ---- volumes.c ---------------------------------------------------------------*/

/* Reads those below @sys ("/sys"); there are none without the module. */
void top_volumes_read(const char *sys, struct top_volumes *volumes);

/* ---- rates.c -----------------------------------------------------------------*/

uint64_t top_now_ns(void);
void top_server_row_make(const struct top_server *server, uint64_t now_ns,
			 struct top_server_row *row);
/* @before: the sample before, of the same volume; or NULL. */
void top_volume_row_make(const struct top_volume *now,
			 const struct top_volume *before,
			 struct top_volume_row *row);
const char *top_state_name(enum top_state state);

/* ---- columns.c ---------------------------------------------------------------*/

struct top_column {
	const char *key; /* the word for sorting; "": not sorted by */
	const char *title;
	int width; /* negative: to the left */
	void (*print)(const void *row, char cell[TOP_CELL_MAX]);
	double (*number)(const void *row); /* NULL: sorted as text */
};

extern const struct top_column top_server_columns[];
extern const uint32_t top_server_columns_count;
extern const struct top_column top_volume_columns[];
extern const uint32_t top_volume_columns_count;

/* For cli_set_word: all keys. */
#define TOP_SORT_KEYS "name|lent|clients|read|write|operations|answer|uptime"
/* The key after this one; after the last comes the first. */
const char *top_sort_next(const char *key);
/* Numbers descend, texts ascend; the opposite if reversed. */
void top_sort(struct top_report *report, const char *key, bool reversed);
/* Makes a line of a table, without a newline, with the columns that fit. row NULL: makes
 * their titles. */
void top_line(const struct top_column *columns, uint32_t count, const void *row,
	      char *line, size_t line_bytes);

/* These make the text of a cell. */
void top_print_bytes(double bytes, char cell[TOP_CELL_MAX]);
void top_print_rate(double bytes, char cell[TOP_CELL_MAX]);
void top_print_count(double number, char cell[TOP_CELL_MAX]);
void top_print_ns(double ns, char cell[TOP_CELL_MAX]);
void top_print_age(double seconds, char cell[TOP_CELL_MAX]);
/* All servers in one line. */
void top_summary(const struct top_report *report, char *line, size_t line_bytes);

/* ---- lines.c, json.c -----------------------------------------------------------*/

void top_lines_print(FILE *out, const struct top_report *report);
void top_json_print(FILE *out, const struct top_report *report);

/* ---- screen.c, no_screen.c -------------------------------------------------------*/

struct top_screen;

enum top_key {
	TOP_KEY_NONE,
	TOP_KEY_QUIT,
	TOP_KEY_SORT,
	TOP_KEY_REVERSE,
	TOP_KEY_REDRAW, /* another size, or another part of the list */
	TOP_KEY_OTHER, /* one that means nothing */
};

/* NULL: there is no terminal that could show it. */
struct top_screen *top_screen_open(void);
void top_screen_draw(struct top_screen *screen, const struct top_report *report,
		     const char *sort_key, bool reversed, double interval_s);
/* The next key that was pressed. Never waits. */
enum top_key top_screen_key(struct top_screen *screen);
/* Restores the terminal. */
void top_screen_close(struct top_screen *screen);

#endif
