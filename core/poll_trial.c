/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* poll_trial.c - see poll_trial.h. */
#include "core/poll_trial.h"

/* The length of an epoch: enough completions to compare, and long compared with wake-ups. */
#define EPOCH_NS 2000000u
#define EPOCH_FINDS 64u
#define LONG_NS 200000u

/* If a trial is clearly worse, that shows after so many finds. */
#define ABANDON_FINDS 16u
#define ABANDON_GAIN (-400)

/* Epochs between trials, and over how many trials the mean goes. */
#define REST_MIN 4u
#define REST_MAX 256u
#define TRIALS 4u

/* In thousandths of the rate: what patience has to gain to be worth its CPU time; a change
 * that means another load; and the most that one trial counts. */
#define PAYS 60
#define OTHER_LOAD 800
#define GAIN_MAX 1000

void rbx_poll_trial_init(struct rbx_poll_trial *trial)
{
	rbx_port_fill(trial, 0, sizeof(*trial));
	trial->patient = true;
	trial->rest = REST_MIN;
}

static void begin(struct rbx_poll_trial *trial, bool patient, bool trying)
{
	trial->patient = patient;
	trial->trying = trying;
	trial->counted_ns = 0;
	trial->completions_count = 0;
	trial->finds_count = 0;
}

/* Completions a second. */
static uint64_t rate_of(const struct rbx_poll_trial *trial)
{
	return trial->completions_count * 1000000000u /
	       RBX_MAX(trial->counted_ns, (uint64_t)1);
}

/* How much more `rate` is than `than`, in thousandths. */
static int32_t gain_of(uint64_t rate, uint64_t than)
{
	uint64_t thousandths = rate * 1000 / RBX_MAX(than, (uint64_t)1);

	return (int32_t)RBX_MIN(thousandths, (uint64_t)(1000 + GAIN_MAX)) -
	       1000;
}

static void end_kept(struct rbx_poll_trial *trial, uint64_t rate)
{
	if (trial->kept_rate == 0) {
		trial->kept_rate = rate;
	} else if (gain_of(rate, trial->kept_rate) > OTHER_LOAD ||
		   gain_of(trial->kept_rate, rate) > OTHER_LOAD) {
		trial->kept_rate = rate;
		trial->rest = REST_MIN;
		trial->rest_left = 0;
		trial->trials_count = 0;
	} else {
		trial->kept_rate = (3 * trial->kept_rate + rate) / 4;
		if (trial->rest_left != 0)
			trial->rest_left--;
	}
	if (trial->rest_left == 0)
		begin(trial, !trial->patient, true);
	else
		begin(trial, trial->patient, false);
}

static void end_trial(struct rbx_poll_trial *trial, uint64_t rate)
{
	bool kept = !trial->patient, keep;
	int32_t gain = kept ? gain_of(trial->kept_rate, rate) :
			      gain_of(rate, trial->kept_rate);

	if (trial->trials_count < TRIALS)
		trial->trials_count++;
	trial->gain += (gain - trial->gain) / (int32_t)trial->trials_count;
	keep = trial->gain > PAYS;
	trial->rest = keep == kept ? RBX_MIN(4 * trial->rest, REST_MAX) :
				     REST_MIN;
	trial->rest_left = trial->rest;
	if (keep != kept)
		trial->kept_rate = rate;
	begin(trial, keep, false);
}

static bool is_hopeless(const struct rbx_poll_trial *trial)
{
	return trial->trying && trial->finds_count >= ABANDON_FINDS &&
	       gain_of(rate_of(trial), trial->kept_rate) < ABANDON_GAIN;
}

static bool is_over(const struct rbx_poll_trial *trial)
{
	return trial->finds_count >= EPOCH_FINDS &&
	       trial->counted_ns >= EPOCH_NS;
}

void rbx_poll_trial_found(struct rbx_poll_trial *trial,
			  uint32_t completion_count, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - trial->found_ns;
	bool is_first = trial->found_ns == 0;

	trial->found_ns = now_ns;
	if (is_first || gap_ns > LONG_NS)
		return;
	trial->counted_ns += gap_ns;
	trial->completions_count += completion_count;
	trial->finds_count++;
	if (!is_over(trial) && !is_hopeless(trial))
		return;
	if (trial->trying)
		end_trial(trial, rate_of(trial));
	else
		end_kept(trial, rate_of(trial));
}
