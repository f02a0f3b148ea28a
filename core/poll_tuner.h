/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_tuner.h - how long to look before it is cheaper to sleep.
 *
 * The paper's adaptive polling has a fixed number of retries, right for one
 * machine and one load. This finds the number: it watches how long the gaps
 * are in which polls find nothing, and sets RETRY so that gaps which are
 * cheaper to spend looking than sleeping are spent looking, and no others.
 *
 * It works in turns. For RBX_POLL_SAMPLES gaps it is patient: it looks for as
 * long as a sleep would cost (RBX_POLL_SLEEP_NS) and notes the length of each
 * gap, or that it was longer. Only a patient look tells the length of a gap;
 * one that ended in a sleep has the way through the scheduler in it. Then it
 * takes the patience that would have cost least over these gaps, and keeps it
 * for a while: for 32 gaps, and twice as many each time that the next turn
 * finds the same. A turn of long gaps ends early, and the next comes the later the
 * more it cost, so that patience at long gaps costs next to nothing. A patience
 * that is in vain several times in a row ends the while at once.
 *
 * It never looks longer than a sleep costs, so a look in vain at most doubles
 * what the sleep costs that follows it. And whether all this gains anything where
 * others want the processor is tried from time to time: poll_trial.h.
 *
 * The host counts polls and not time, so that an empty poll needs no clock. The
 * tuner learns what a poll takes from the time of many.
 *
 * A budget bounds the time that goes into polls which find nothing, in percent
 * of all time; what was not used is kept for RBX_POLL_BUDGET_NS.
 */
#ifndef RBX_POLL_TUNER_H
#define RBX_POLL_TUNER_H

#include "core/limits.h"
#include "core/poll_trial.h"
#include "core/port.h"

struct rbx_poll_tuner {
	uint64_t patience_ns; /* as decided */
	uint64_t poll_ns; /* what an empty poll takes */
	uint32_t retry_max; /* what both of them, and the budget, come to */

	bool idle; /* in a gap */
	bool gave_up; /* in this gap already */
	uint64_t idle_since_ns;
	uint32_t vain_count; /* gaps in a row that patience did not outlast */

	uint32_t sample_count; /* of this turn so far */
	uint32_t turn_looked_ns;
	int32_t turn_loss_ns; /* looks against the sleeps that they saved */
	uint64_t next_turn_ns; /* not before */
	uint32_t samples_ns[RBX_POLL_SAMPLES]; /* RBX_POLL_SLEEP_NS: longer */
	uint32_t gaps_left; /* before the next turn; 0: in it */
	uint32_t gaps_between; /* turns */

	struct rbx_poll_trial trial; /* whether to be patient at all */

	uint32_t cpu_percent; /* 100: no budget */
	uint64_t budget_ns; /* that may be spent now */
	uint64_t budget_at_ns; /* up to when it was filled */
};

/* cpu_percent: 1 to 100, of its time that a poller may spend in vain. */
void rbx_poll_tuner_init(struct rbx_poll_tuner *tuner, uint32_t cpu_percent);

/* The first empty poll of a row. */
void rbx_poll_tuner_idle(struct rbx_poll_tuner *tuner, uint64_t now_ns);

/* So many empty polls, and now it will arm and sleep. */
void rbx_poll_tuner_gave_up(struct rbx_poll_tuner *tuner, uint32_t empty_count,
			    uint64_t now_ns);

/* A poll found so many completions after so many empty ones. Returns RETRY from
 * now on. */
uint32_t rbx_poll_tuner_found(struct rbx_poll_tuner *tuner,
			      uint32_t completion_count, uint32_t empty_count,
			      uint64_t now_ns);

#endif
