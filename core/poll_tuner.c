/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_tuner.c - samples the lengths of gaps, and chooses the patience that fits them.
 *
 * A gap begins with the first poll that finds nothing and ends with the next one that finds
 * something. It may contain sleeps. Only the first one counts, since the others come from
 * needless wake-ups.
 */
#include "core/poll_tuner.h"

#define SLEEP_NS RBX_POLL_SLEEP_NS
#define GAPS_BETWEEN_MIN 32u
#define GAPS_BETWEEN_MAX 512u
#define VAIN_MAX 16u
/* A turn ends early if its polls have cost so much more than they saved. */
#define LOSS_MAX_NS (3 * (int32_t)SLEEP_NS)
/* The share of its time that a sleeping poller spends on turns: one part in so many. */
#define TURN_SHARE 32u

/* With a poll of this length RBX_POLL_SLEEP_NS equals the paper's 120 polls. */
#define POLL_NS_FIRST (SLEEP_NS / 120)
/* Fewer polls in a row say little about the time of one. */
#define POLLS_TO_MEASURE 8u

static void begin_samples(struct rbx_poll_tuner *tuner)
{
	tuner->sample_count = 0;
	tuner->gaps_left = 0;
	tuner->turn_loss_ns = 0;
	tuner->turn_looked_ns = 0;
}

void rbx_poll_tuner_init(struct rbx_poll_tuner *tuner, uint32_t cpu_percent)
{
	RBX_ASSERT(cpu_percent >= 1 && cpu_percent <= 100);
	rbx_port_fill(tuner, 0, sizeof(*tuner));
	tuner->patience_ns = SLEEP_NS;
	tuner->poll_ns = POLL_NS_FIRST;
	tuner->retry_max = SLEEP_NS / POLL_NS_FIRST;
	tuner->gaps_between = GAPS_BETWEEN_MIN;
	tuner->cpu_percent = cpu_percent;
	rbx_poll_trial_init(&tuner->trial);
	begin_samples(tuner);
}

/* What the samples would have cost with this patience. */
static uint64_t cost_ns(const struct rbx_poll_tuner *tuner,
			uint32_t patience_ns)
{
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < RBX_POLL_SAMPLES; i++) {
		uint32_t gap_ns = tuner->samples_ns[i];

		sum_ns += gap_ns < patience_ns ? gap_ns :
						 patience_ns + SLEEP_NS;
	}
	return sum_ns;
}

/* The cheapest of: no patience, and each sample with room for one twice as long. */
static uint32_t best_patience_ns(const struct rbx_poll_tuner *tuner)
{
	uint64_t least_ns = cost_ns(tuner, 0);
	uint32_t best_ns = 0;

	for (uint32_t i = 0; i < RBX_POLL_SAMPLES; i++) {
		uint32_t patience_ns =
			RBX_MIN(2 * tuner->samples_ns[i] + 1, SLEEP_NS);
		uint64_t sum_ns = cost_ns(tuner, patience_ns);

		if (sum_ns < least_ns) {
			least_ns = sum_ns;
			best_ns = patience_ns;
		}
	}
	return best_ns;
}

static void decide(struct rbx_poll_tuner *tuner, uint64_t now_ns)
{
	uint64_t before_ns = tuner->patience_ns;

	tuner->patience_ns = best_patience_ns(tuner);
	if ((before_ns == 0) == (tuner->patience_ns == 0))
		tuner->gaps_between =
			RBX_MIN(2 * tuner->gaps_between, GAPS_BETWEEN_MAX);
	else
		tuner->gaps_between = GAPS_BETWEEN_MIN;
	tuner->gaps_left = tuner->gaps_between;
	tuner->next_turn_ns = now_ns;
	if (tuner->patience_ns == 0)
		tuner->next_turn_ns += TURN_SHARE * tuner->turn_looked_ns;
	tuner->vain_count = 0;
}

/* A gap between turns. */
static void count_gap(struct rbx_poll_tuner *tuner, uint64_t now_ns)
{
	if (tuner->gaps_left > 1)
		tuner->gaps_left--;
	else if (now_ns >= tuner->next_turn_ns)
		begin_samples(tuner);
}

/* A gap whose length is known, up to SLEEP_NS. */
static void note_gap(struct rbx_poll_tuner *tuner, uint32_t gap_ns,
		     uint64_t now_ns)
{
	if (tuner->gaps_left != 0) {
		count_gap(tuner, now_ns);
		return;
	}
	tuner->samples_ns[tuner->sample_count++] = gap_ns;
	tuner->turn_looked_ns += gap_ns;
	tuner->turn_loss_ns += gap_ns < SLEEP_NS ?
				       (int32_t)gap_ns - (int32_t)SLEEP_NS :
				       (int32_t)SLEEP_NS;
	/* The rest of the turn would be like its beginning. */
	while (tuner->turn_loss_ns >= LOSS_MAX_NS &&
	       tuner->sample_count < RBX_POLL_SAMPLES)
		tuner->samples_ns[tuner->sample_count++] = SLEEP_NS;
	if (tuner->sample_count == RBX_POLL_SAMPLES)
		decide(tuner, now_ns);
}

/*
 * The time of one of a row of empty polls. A shorter time is taken at once, a longer one
 * gradually: the thread may have been off the CPU.
 */
static void measure_poll(struct rbx_poll_tuner *tuner, uint32_t empty_count,
			 uint64_t row_ns)
{
	uint64_t poll_ns;

	if (empty_count < POLLS_TO_MEASURE)
		return;
	poll_ns = RBX_MAX(row_ns / empty_count, (uint64_t)1);
	tuner->poll_ns = RBX_MIN(poll_ns, tuner->poll_ns +
						  tuner->poll_ns / 8 + 1);
}

/* Adds the time that has passed to the budget. */
static void fill_budget(struct rbx_poll_tuner *tuner, uint64_t now_ns)
{
	uint64_t most_ns = RBX_POLL_BUDGET_NS / 100 * tuner->cpu_percent;
	uint64_t passed_ns = RBX_MIN(now_ns - tuner->budget_at_ns,
				     (uint64_t)RBX_POLL_BUDGET_NS);

	tuner->budget_ns += passed_ns / 100 * tuner->cpu_percent;
	tuner->budget_ns = RBX_MIN(tuner->budget_ns, most_ns);
	tuner->budget_at_ns = now_ns;
}

static void pay(struct rbx_poll_tuner *tuner, uint64_t spent_ns)
{
	tuner->budget_ns -= RBX_MIN(spent_ns, tuner->budget_ns);
}

/* All or nothing: what is not enough is saved for the next gap. */
static uint64_t affordable_ns(const struct rbx_poll_tuner *tuner)
{
	uint64_t patience_ns = tuner->gaps_left ? tuner->patience_ns :
						  SLEEP_NS;

	if (!tuner->trial.patient)
		return 0;
	if (tuner->cpu_percent == 100 || tuner->budget_ns >= patience_ns)
		return patience_ns;
	return 0;
}

void rbx_poll_tuner_idle(struct rbx_poll_tuner *tuner, uint64_t now_ns)
{
	if (tuner->idle)
		return; /* the gap goes on: a needless wake-up */
	tuner->idle = true;
	tuner->gave_up = false;
	tuner->idle_since_ns = now_ns;
}

void rbx_poll_tuner_gave_up(struct rbx_poll_tuner *tuner, uint32_t empty_count,
			    uint64_t now_ns)
{
	uint64_t looked_ns = now_ns - tuner->idle_since_ns;

	RBX_ASSERT(tuner->idle);
	if (tuner->gave_up)
		return;
	tuner->gave_up = true;
	if (!tuner->trial.patient)
		return;
	measure_poll(tuner, empty_count, looked_ns);
	pay(tuner, looked_ns);
	/* A poll that was cut short says nothing: polls are faster than was assumed, or the
	 * budget did not allow it. */
	if (tuner->gaps_left != 0 || looked_ns >= SLEEP_NS / 2)
		note_gap(tuner, SLEEP_NS, now_ns);
	if (tuner->gaps_left != 0 && empty_count != 0 &&
	    ++tuner->vain_count == VAIN_MAX)
		begin_samples(tuner);
}

/* If it would sleep anyway, there is nothing to try. */
static void try_patience(struct rbx_poll_tuner *tuner,
			 uint32_t completion_count, uint64_t now_ns)
{
	bool was_patient = tuner->trial.patient;

	if (tuner->patience_ns == 0) {
		rbx_poll_trial_pause(&tuner->trial);
		return;
	}
	rbx_poll_trial_found(&tuner->trial, completion_count, now_ns);
	if (!was_patient && tuner->trial.patient)
		begin_samples(tuner);
}

uint32_t rbx_poll_tuner_found(struct rbx_poll_tuner *tuner,
			      uint32_t completion_count, uint32_t empty_count,
			      uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - tuner->idle_since_ns;
	bool was_patient = tuner->trial.patient;

	try_patience(tuner, completion_count, now_ns);
	if (!tuner->idle && was_patient == tuner->trial.patient)
		return tuner->retry_max;
	if (tuner->idle && !tuner->gave_up && was_patient) {
		measure_poll(tuner, empty_count, gap_ns);
		pay(tuner, gap_ns);
		tuner->vain_count = 0;
		note_gap(tuner, (uint32_t)RBX_MIN(gap_ns, (uint64_t)SLEEP_NS),
			 now_ns);
	}
	tuner->idle = false;
	if (tuner->cpu_percent != 100)
		fill_budget(tuner, now_ns);
	tuner->retry_max = (uint32_t)(affordable_ns(tuner) / tuner->poll_ns);
	return tuner->retry_max;
}
