/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* no_screen.c - replaces screen.c if there is no ncurses: top prints lines then. */
#include "cli/top/top.h"

struct top_screen *top_screen_open(void)
{
	return NULL;
}

/* Never called. */
void top_screen_draw(struct top_screen *screen, const struct top_report *report,
		     const char *sort_key, bool reversed, double interval_s)
{
	(void)screen, (void)report, (void)sort_key, (void)reversed;
	(void)interval_s;
}

enum top_key top_screen_key(struct top_screen *screen)
{
	(void)screen;
	return TOP_KEY_QUIT;
}

void top_screen_close(struct top_screen *screen)
{
	(void)screen;
}
