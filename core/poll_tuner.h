/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_tuner.h - finds how long to poll before a sleep is cheaper.
 *
 * The paper's adaptive polling has a fixed number of retries, right for one machine and one
 * load. The tuner finds this number. It measures how long the gaps are in which polls find
 * nothing. It sets RETRY so that a gap is spent polling if that is cheaper than a sleep, and
 * only then.
 *
 * It works in turns. For RBX_POLL_SAMPLES gaps it is patient: it polls as long as a sleep
 * would cost (RBX_POLL_SLEEP_NS) and notes the length of each gap, or that it was longer.
 * Only a patient poll tells the length of a gap: a gap that ended in a sleep includes the
 * time of the scheduler. Then it takes the patience that would have cost least over these
 * gaps. It keeps that for 32 gaps, and for twice as many each time that the next turn finds
 * the same. A turn of long gaps ends early, and the next one comes later the more it cost, so
 * that patience at long gaps costs almost nothing. If patience is in vain several times in a
 * row, a new turn begins at once.
 *
 * It never polls longer than a sleep costs, so a vain poll at most doubles the cost of the
 * sleep that follows it. Trials decide from time to time whether all this gains anything
 * while other threads want the processor: poll_trial.h.
 *
 * The host counts polls and not time, so an empty poll needs no clock. The tuner learns the
 * time of a poll from that of many.
 *
 * A budget bounds the time for polls that find nothing, in percent of all time. What was not
 * used is kept for RBX_POLL_BUDGET_NS.
 */
#ifndef RBX_POLL_TUNER_H
#define RBX_POLL_TUNER_H

#include "core/limits.h"
#include "core/poll_trial.h"
#include "core/port.h"

struct rbx_poll_tuner {
	uint64_t patience_ns; /* as decided */
	uint64_t poll_ns; /* time of an empty poll */
	uint32_t retry_max; /* what both of these, and the budget, result in */

	bool idle; /* in a gap */
	bool gave_up; /* already gave up in this gap */
	uint64_t idle_since_ns;
	uint32_t vain_count; /* gaps in a row that lasted longer than patience */

	uint32_t sample_count; /* of this turn so far */
	uint32_t turn_looked_ns;
	int32_t turn_loss_ns; /* polls compared with the sleeps that they saved */
	uint64_t next_turn_ns; /* the next turn begins no earlier */
	uint32_t samples_ns[RBX_POLL_SAMPLES]; /* RBX_POLL_SLEEP_NS: it was longer */
	uint32_t gaps_left; /* until the next turn; 0: a turn is under way */
	uint32_t gaps_between; /* between two turns */

	struct rbx_poll_trial trial; /* whether to be patient at all */

	uint32_t cpu_percent; /* 100: no budget */
	uint64_t budget_ns; /* that may still be spent */
	uint64_t budget_at_ns; /* the time up to which it was filled */
};

/* cpu_percent: 1 to 100, of its time that a poller may spend in vain polls. */
void rbx_poll_tuner_init(struct rbx_poll_tuner *tuner, uint32_t cpu_percent);

/* The first empty poll in a row. */
void rbx_poll_tuner_idle(struct rbx_poll_tuner *tuner, uint64_t now_ns);

/* After so many empty polls it will now arm and sleep. */
void rbx_poll_tuner_gave_up(struct rbx_poll_tuner *tuner, uint32_t empty_count,
			    uint64_t now_ns);

/* A poll found so many completions after so many empty ones. Returns RETRY from now on. */
uint32_t rbx_poll_tuner_found(struct rbx_poll_tuner *tuner,
			      uint32_t completion_count, uint32_t empty_count,
			      uint64_t now_ns);

#endif
