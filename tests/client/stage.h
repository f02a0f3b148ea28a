/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stage.h - actors who call what waits, on threads of which one runs at a time: until it
 * waits, or is done. So whoever directs decides about all that happens, and what happens
 * is the same each time.
 *
 * An actor that waits in a monitor goes on when it was woken, or its time has come; which
 * of several does first is the direction's choice.
 */
#ifndef RBX_TESTS_STAGE_H
#define RBX_TESTS_STAGE_H

#include "client/host.h"

#define STAGE_ACTORS_MAX 10u

/* Ends the program if it is not so, and says in which play. */
#define EXPECT(condition) \
	stage_expect((condition), #condition, __FILE__, __LINE__)
void stage_expect(bool is_so, const char *what, const char *file, int line);

/* last_first: of those who may go on the last one that began does. */
void stage_open(const char *title, bool last_first);
/* All actors are done. */
void stage_close(void);

/* Has an actor call act(user), and all go on until each is done or waits. */
void stage_act(void (*act)(void *user), void *user);
/* How many are not done. */
uint32_t stage_actors_count(void);
/* Time passes, and whose time has come goes on. */
void stage_pass_ns(uint64_t ns);

#endif
