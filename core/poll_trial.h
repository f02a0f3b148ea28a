/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_trial.h - does it pay to poll for completions before sleeping?
 *
 * The tuner compares polling with a sleep as if its thread were alone. If more threads want
 * to run than there are processors, a poller takes time from the threads that would make the
 * next completion. Then polling that is cheaper than a sleep still costs more than it gains.
 * No clock of a thread shows that. So it is tried: the completions of a period with patience
 * are compared with those of a period without. Patience is kept only if it gains what it
 * takes in CPU time. If many pollers try at once, each sees how the others crowd it; if one
 * tries alone, it sees no difference and leaves the processor to others.
 *
 * Time is cut into periods, here called epochs. Most run the way that is best so far, and one
 * in so many the other way. The longer the answer has been the same, the fewer trials there
 * are. When the rate changes by itself, the load is another one, and trials begin anew. A
 * trial that is clearly worse ends early. One trial says little if gaps are random, so the
 * mean of the last ones decides.
 *
 * A gap longer than LONG_NS is a pause of the program or of the machine, and patience makes
 * no difference to it: neither its time nor what was found at its end counts.
 */
#ifndef RBX_POLL_TRIAL_H
#define RBX_POLL_TRIAL_H

#include "core/port.h"

struct rbx_poll_trial {
	bool patient; /* in this epoch */
	bool trying; /* this epoch is a trial of the other way */
	uint32_t rest; /* epochs from one trial to the next */
	uint32_t rest_left;
	uint64_t kept_rate; /* of the epochs that were no trials, smoothed; 0: none yet */
	uint32_t trials_count; /* since the load changed, at most TRIALS */
	int32_t gain; /* by patience, in thousandths: mean of the trials */

	/* Of this epoch. */
	uint64_t found_ns; /* the last find; 0: none yet */
	uint64_t counted_ns;
	uint64_t completions_count;
	uint32_t finds_count;
};

/* Begins with patience; called again if the load is known to have changed. */
void rbx_poll_trial_init(struct rbx_poll_trial *trial);

/* The time until the next find does not count. */
static inline void rbx_poll_trial_pause(struct rbx_poll_trial *trial)
{
	trial->found_ns = 0;
}

/* A poll found so many completions; `patient` may change. */
void rbx_poll_trial_found(struct rbx_poll_trial *trial,
			  uint32_t completion_count, uint64_t now_ns);

#endif
