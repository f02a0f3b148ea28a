/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_trial.h - does it pay to look for completions before sleeping?
 *
 * The tuner weighs a look against a sleep as if its thread were alone. Where more
 * threads want to run than there are processors, who looks takes time from those
 * who would make the next completion, and a look that is cheaper than a sleep
 * still costs more than it brings. No clock that a thread has tells that. So it is
 * tried: the completions of a while with patience are compared with those of a
 * while without, and patience is kept only where it gains what it takes in CPU
 * time. Where many pollers try at once each sees how the others crowd it; where one
 * tries alone it sees no difference, and leaves the processor to who needs it.
 *
 * Time is cut into epochs. Most are spent as is best so far, and one in so many
 * the other way: the fewer the longer the answer has been the same. When the rate
 * changes by itself the load is another one, and the question is asked anew. A
 * trial that is clearly worse ends before its time. One trial says little where
 * gaps are random, so it goes by the mean of the last ones.
 *
 * A gap longer than LONG_NS is a pause of the program or of the machine and no
 * matter of patience: neither its time nor what was found at its end counts.
 */
#ifndef RBX_POLL_TRIAL_H
#define RBX_POLL_TRIAL_H

#include "core/port.h"

struct rbx_poll_trial {
	bool patient; /* in this epoch */
	bool trying; /* it is the other way */
	uint32_t rest; /* epochs from a trial to the next */
	uint32_t rest_left;
	uint64_t kept_rate; /* of the epochs that were none, smoothed; 0: none yet */
	uint32_t trials_count; /* since the load is what it is, to TRIALS */
	int32_t gain; /* of patience, thousandths: their mean */

	/* Of this epoch. */
	uint64_t found_ns; /* the last find; 0: none yet */
	uint64_t counted_ns;
	uint64_t completions_count;
	uint32_t finds_count;
};

/* Begins with patience; again where the load is known to be another one. */
void rbx_poll_trial_init(struct rbx_poll_trial *trial);

/* Until the next find it makes no difference. */
static inline void rbx_poll_trial_pause(struct rbx_poll_trial *trial)
{
	trial->found_ns = 0;
}

/* A poll found so many completions; `patient` may be another one then. */
void rbx_poll_trial_found(struct rbx_poll_trial *trial,
			  uint32_t completion_count, uint64_t now_ns);

#endif
