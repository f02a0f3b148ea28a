/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * screen.c - rows on a terminal, by ncurses.
 *
 * The whole screen is drawn each time, and ncurses sends the differences. The arrow keys
 * scroll a list that is longer than the screen. A new size of the terminal comes as a
 * key.
 */
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/top/top.h"

#define LINE_MAX_BYTES 512

/* The room for whole columns. */
static size_t line_room(void)
{
	return COLS + 1 < LINE_MAX_BYTES ? (size_t)COLS + 1 : LINE_MAX_BYTES;
}

enum colour { PLAIN, GOOD, WARN, BAD, HEAD };

struct top_screen {
	SCREEN *terminal;
	int first; /* line of the list that is at the top */
	int lines; /* of the list, all of it */
	int room; /* lines of it that are shown */
};

static void colours_begin(void)
{
	if (!has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(GOOD, COLOR_GREEN, -1);
	init_pair(WARN, COLOR_YELLOW, -1);
	init_pair(BAD, COLOR_RED, -1);
	init_pair(HEAD, COLOR_CYAN, -1);
}

struct top_screen *top_screen_open(void)
{
	struct top_screen *screen;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return NULL;
	screen = calloc(1, sizeof(*screen));
	if (!screen)
		return NULL;
	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal) {
		free(screen);
		return NULL;
	}
	set_term(screen->terminal);
	colours_begin();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	set_escdelay(50);
	return screen;
}

void top_screen_close(struct top_screen *screen)
{
	endwin();
	delscreen(screen->terminal);
	free(screen);
}

/* Draws one line of the list, if it is in the part that is shown. */
static void list_line(struct top_screen *screen, const char *text, chtype look)
{
	int at = screen->lines++ - screen->first;

	if (at < 0 || at >= screen->room)
		return;
	attrset(look);
	mvaddnstr(2 + at, 0, text, COLS);
	attrset(A_NORMAL);
}

static chtype state_look(enum top_state state)
{
	switch (state) {
	case TOP_UP:
		return A_NORMAL;
	case TOP_DRAINING:
	case TOP_ASKED:
		return COLOR_PAIR(WARN);
	default:
		return COLOR_PAIR(BAD) | A_BOLD;
	}
}

static chtype volume_look(const struct top_volume_row *row)
{
	if (row->lost > 0)
		return COLOR_PAIR(BAD) | A_BOLD;
	return row->whole < 1 ? COLOR_PAIR(WARN) : A_NORMAL;
}

static void draw_servers(struct top_screen *screen,
			 const struct top_report *report)
{
	char line[LINE_MAX_BYTES];
	uint32_t i;

	if (!report->servers_count)
		return;
	top_line(top_server_columns, top_server_columns_count, NULL, line,
		 line_room());
	list_line(screen, line, COLOR_PAIR(HEAD) | A_BOLD);
	for (i = 0; i < report->servers_count; i++) {
		const struct top_server_row *row = &report->servers[i];

		if (row->state == TOP_DOWN)
			snprintf(line, sizeof(line), "%-21s %-8s %s",
				 row->address, top_state_name(row->state),
				 row->error);
		else
			top_line(top_server_columns, top_server_columns_count,
				 row, line, line_room());
		list_line(screen, line, state_look(row->state));
	}
	list_line(screen, "", A_NORMAL);
}

static void draw_volumes(struct top_screen *screen,
			 const struct top_report *report)
{
	char line[LINE_MAX_BYTES];
	uint32_t i;

	if (!report->volumes_count)
		return;
	top_line(top_volume_columns, top_volume_columns_count, NULL, line,
		 line_room());
	list_line(screen, line, COLOR_PAIR(HEAD) | A_BOLD);
	for (i = 0; i < report->volumes_count; i++) {
		top_line(top_volume_columns, top_volume_columns_count,
			 &report->volumes[i], line, line_room());
		list_line(screen, line, volume_look(&report->volumes[i]));
	}
}

static void draw_bar(const char *sort_key, bool reversed, double interval_s)
{
	char line[LINE_MAX_BYTES];

	snprintf(line, sizeof(line),
		 " q quit   s sort: %s%s   r reverse   up/down   every %g s",
		 sort_key, reversed ? ", reversed" : "", interval_s);
	attrset(A_REVERSE);
	mvhline(LINES - 1, 0, ' ', COLS);
	mvaddnstr(LINES - 1, 0, line, COLS);
	attrset(A_NORMAL);
}

void top_screen_draw(struct top_screen *screen, const struct top_report *report,
		     const char *sort_key, bool reversed, double interval_s)
{
	char line[LINE_MAX_BYTES], summary[LINE_MAX_BYTES - 32];

	erase();
	top_summary(report, summary, sizeof(summary));
	snprintf(line, sizeof(line), "rdmabox top: %s", summary);
	attrset(A_BOLD);
	mvaddnstr(0, 0, line, COLS);
	attrset(A_NORMAL);
	screen->room = LINES > 3 ? LINES - 3 : 0;
	screen->lines = 0;
	draw_servers(screen, report);
	draw_volumes(screen, report);
	draw_bar(sort_key, reversed, interval_s);
	refresh();
}

static enum top_key walk(struct top_screen *screen, int lines)
{
	int last = screen->lines - screen->room;

	screen->first += lines;
	if (screen->first > last)
		screen->first = last;
	if (screen->first < 0)
		screen->first = 0;
	return TOP_KEY_REDRAW;
}

enum top_key top_screen_key(struct top_screen *screen)
{
	timeout(0);
	switch (getch()) {
	case 'q':
	case 'Q':
		return TOP_KEY_QUIT;
	case 's':
		return TOP_KEY_SORT;
	case 'r':
		return TOP_KEY_REVERSE;
	case KEY_UP:
		return walk(screen, -1);
	case KEY_DOWN:
		return walk(screen, 1);
	case KEY_PPAGE:
		return walk(screen, -screen->room);
	case KEY_NPAGE:
		return walk(screen, screen->room);
	case KEY_RESIZE:
		return walk(screen, 0);
	case ERR:
		return TOP_KEY_NONE;
	default:
		return TOP_KEY_OTHER;
	}
}
