/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scene.h - a session, its owner, the fabric and the server, of which each does one step
 * when it is told to. What must never happen is looked for all the time.
 */
#ifndef RBX_TESTS_SCENE_H
#define RBX_TESTS_SCENE_H

#include "client/session_state.h"

/* Written as a letter each, an order of them is a word. */
enum step {
	STEP_MAP = 'm', /* the owner borrows a slab, and waits */
	STEP_USER_MESSAGE = 'l', /* it sends messages, and waits for the last */
	STEP_RESUME = 'r',
	STEP_GIVE_UP = 'g',
	STEP_CLOSE = 'c',
	STEP_END = 'e', /* the fabric tells that the newest connection has ended */
	STEP_CONNECT = 'k', /* it lets the next one be made */
	STEP_ANSWER = 'a', /* the server answers one message */
	STEP_REASON = 'x', /* it says why it ends the connection */
};

/* is_late: the clock is looked at only when all steps are done. last_first: stage.h. */
void scene_play(const char *order, bool is_late, bool last_first);

/* The owner closes the session, and the server, which counts as lost after silence_ms, answers
 * nothing for so long: whether the connection still stands then. */
bool scene_close_waits(uint32_t silence_ms, uint32_t ms);

#endif
