/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * congestion_auto.c - finds the knee of throughput against bytes in flight.
 *
 * Below the knee a device has too little to do. Above it, more in flight only makes it
 * slower, or makes it thrash. Where the knee is depends on the device, the peers, the size of
 * the requests and the threads. The delay does not show it: chains and merging make a
 * software device or a NIC faster while its queue grows. So this policy measures the
 * throughput itself, and climbs.
 *
 * Time is cut into epochs. One epoch in two or more is a trial with another window: up by an
 * octave or a half, down by a half, or by two octaves in a leap. A trial is compared with the
 * mean of the epochs before and after it, and says nothing if these two differ much. The
 * gains of each kind of trial are added up, an upward one minus UP_COST, a downward one plus
 * DOWN_WORTH, never below zero. The window moves when the sum is clearly more than noise. The
 * noise is how much two epochs of the same window differ; it is measured along the way. So a
 * large gain is taken after one trial, and a small one after several. If the window makes no
 * difference it shrinks slowly until it does: that is the knee.
 *
 * While nothing is found, trials become rare. When the throughput changes by itself (more
 * threads, another peer) they become frequent again. A gain beyond doubt is taken without the
 * epoch after it, and the same trial is repeated at once, so under a sudden load a window
 * grows by an octave an epoch. A machine that others use may become faster by itself, by a
 * factor of two or more. So a gain of a narrower window is checked in the epoch after, unless
 * it was far larger than that.
 *
 * A device that has collapsed reacts slowly: what is in flight takes a tenth of a second to
 * come back, and half an octave less hardly shows. The leap down is for this case. It is
 * tried at the start, after the load has changed, and after another leap that paid. If
 * nothing has collapsed it costs one epoch. There is a leap up, too: if an octave gains a few
 * percent and the device varies by more, single octaves take seconds to show a result. It is
 * repeated until it gains nothing.
 *
 * An epoch begins with what was posted after the window had changed. Time with nothing in
 * flight does not count, so pauses of the program are not taken for slowness. A window wider
 * than what is in flight makes no difference, and trials with it say nothing. So it is kept a
 * little above the bytes in flight, which follow from throughput and round trip (Little's
 * law). Upward trials need a window that is used.
 *
 * A failed work request does not count as congestion: on a reliable connection it is none.
 * The connection is made anew, and only one epoch is spoilt.
 */
#include "core/congestion.h"

/* The length of an epoch: long compared with the time slices of threads, and so many windows'
 * worth if the device is slow. For a device that has collapsed one window is enough. */
#define EPOCH_NS 16000000ull
#define EPOCH_WINDOWS 4u
#define EPOCH_NS_ENOUGH (3 * EPOCH_NS)

/* Where the climb begins: far above what is merged into one work request, because near to
 * that no small step makes a difference. Too wide a start costs a few epochs. */
#define START_BYTES (16u * RBX_MERGE_BYTES_MAX)

/* Thousandths of the throughput. */
#define UP_COST 5
#define DOWN_WORTH 10
#define GAIN_MAX 4000u

/* Also in thousandths, and three times the noise. */
#define CLEAR 25 /* a sum of gains to act on */
#define BEYOND_DOUBT_UP 120 /* one gain to act on, without a check */
#define BEYOND_DOUBT_DOWN 2000 /* more than a machine becomes faster by itself */
#define OTHER_LOAD 100 /* the load is another one */

/* At most so many epochs between two trials. */
#define REST_MAX 32u

enum phase {
	PHASE_STEADY, /* the window that is kept */
	PHASE_TRIAL, /* another window */
	PHASE_CHECK, /* the kept window, right after a trial */
};

/* The noise, in thousandths, before it was measured. */
#define NOISE_FIRST 40

/* The kinds of trials: the window in 256ths of the kept one, and the gain that is beyond doubt. */
static const struct {
	uint32_t factor;
	int32_t doubt;
} steps[] = {
	{ 64, BEYOND_DOUBT_DOWN },
	{ 1024, BEYOND_DOUBT_UP },
	{ 512, BEYOND_DOUBT_UP },
	{ 181, BEYOND_DOUBT_DOWN },
	{ 362, BEYOND_DOUBT_UP },
};
#define STEPS 5u
#define STEP_LEAP_DOWN 0u
#define STEP_LEAP_UP 1u

struct climb {
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t kept_bytes;
	uint64_t window_bytes; /* in this epoch */

	uint64_t changed_ns; /* when the window changed; 0: the epoch has begun */
	uint64_t begin_ns;
	uint64_t last_ns;
	uint64_t idle_ns;
	uint64_t bytes;
	uint64_t byte_times; /* bytes times round trips in 1024 ns */

	uint64_t rate; /* of the last epoch with the kept window, bytes/ms */
	uint64_t trial_rate;
	int32_t evidence[STEPS];
	int32_t noise; /* thousandths, smoothed */
	uint32_t step;
	uint32_t rest; /* epochs from trial to trial */
	uint32_t rest_left;
	uint8_t phase; /* enum phase */
	bool is_used; /* the window was filled in the last steady epoch */
	bool may_leap_down; /* the device may have collapsed */
	bool may_leap_up; /* the window may be far too small */
};
RBX_STATIC_ASSERT(sizeof(struct climb) <= RBX_CONGESTION_STATE_BYTES,
		  "the state fits");
RBX_STATIC_ASSERT(sizeof(steps) / sizeof(steps[0]) == STEPS, "one each");

static void auto_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	struct climb *climb = state;

	climb->low_bytes = low_bytes;
	climb->high_bytes = high_bytes;
	climb->kept_bytes = RBX_MIN(RBX_MAX(START_BYTES, low_bytes), high_bytes);
	climb->window_bytes = climb->kept_bytes;
	climb->may_leap_down = true;
	climb->may_leap_up = true;
	climb->noise = NOISE_FIRST;
}

/* Begins the next epoch, in a phase and with this window. */
static void begin(struct climb *climb, enum phase phase, uint64_t window_bytes,
		  uint64_t now_ns)
{
	if (climb->window_bytes != window_bytes)
		climb->changed_ns = now_ns;
	climb->phase = (uint8_t)phase;
	climb->window_bytes = window_bytes;
	climb->begin_ns = now_ns;
	climb->last_ns = now_ns;
	climb->idle_ns = 0;
	climb->bytes = 0;
	climb->byte_times = 0;
}

static bool is_up(uint32_t step)
{
	return steps[step].factor > 256;
}

static uint64_t trial_window(const struct climb *climb, uint32_t step)
{
	uint64_t bytes = climb->kept_bytes * steps[step].factor / 256;

	return RBX_MIN(RBX_MAX(bytes, climb->low_bytes), climb->high_bytes);
}

/* The next kind of trial that may give a result; if none, a steady epoch. */
static void begin_trial(struct climb *climb, uint64_t now_ns)
{
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t step = (climb->step + i) % STEPS;
		uint64_t bytes = trial_window(climb, step);

		if (bytes == climb->kept_bytes ||
		    (is_up(step) && !climb->is_used) ||
		    (step == STEP_LEAP_DOWN && !climb->may_leap_down) ||
		    (step == STEP_LEAP_UP && !climb->may_leap_up))
			continue;
		climb->step = step;
		begin(climb, PHASE_TRIAL, bytes, now_ns);
		return;
	}
	begin(climb, PHASE_STEADY, climb->kept_bytes, now_ns);
}

static void adopt(struct climb *climb)
{
	climb->kept_bytes = trial_window(climb, climb->step);
	rbx_port_fill(climb->evidence, 0, sizeof(climb->evidence));
	climb->rest = 0;
}

/* How much more `rate` is than `than`, in thousandths. */
static int32_t gain(uint64_t rate, uint64_t than)
{
	uint64_t thousandths = rate * 1000 / RBX_MAX(than, 1u);

	return (int32_t)RBX_MIN(thousandths, GAIN_MAX) - 1000;
}

/* Whether a value is above a limit by more than the noise. */
static bool is_above(const struct climb *climb, int32_t value, int32_t limit)
{
	return value > limit + 3 * climb->noise;
}

/* Whether the throughput with the kept window has changed. */
static bool has_changed(const struct climb *climb, uint64_t rate)
{
	return is_above(climb, gain(rate, climb->rate), OTHER_LOAD) ||
	       is_above(climb, gain(climb->rate, rate), OTHER_LOAD);
}

/* The load has changed: earlier results do not apply. */
static void start_over(struct climb *climb)
{
	climb->rest = 0;
	climb->rest_left = 0;
	climb->may_leap_down = true;
	climb->may_leap_up = true;
	climb->step = STEP_LEAP_DOWN;
}

static void learn_noise(struct climb *climb, int32_t difference)
{
	difference = difference < 0 ? -difference : difference;
	climb->noise += (RBX_MIN(difference, 200) - climb->noise) / 8;
}

static void end_trial(struct climb *climb, uint64_t rate, uint64_t now_ns)
{
	if (is_above(climb, gain(rate, climb->rate),
		     steps[climb->step].doubt)) {
		climb->may_leap_down = !is_up(climb->step);
		adopt(climb);
		climb->rate = rate;
		climb->is_used = true;
		begin_trial(climb, now_ns);
		return;
	}
	climb->trial_rate = rate;
	begin(climb, PHASE_CHECK, climb->kept_bytes, now_ns);
}

/* The epoch after a trial has ended: was the trial better than both? */
static void end_check(struct climb *climb, uint64_t rate, uint64_t now_ns)
{
	int32_t *evidence = &climb->evidence[climb->step];

	if (has_changed(climb, rate)) {
		learn_noise(climb, gain(rate, climb->rate));
		start_over(climb);
		climb->rate = rate;
		begin(climb, PHASE_STEADY, climb->kept_bytes, now_ns);
		return;
	}
	*evidence += gain(climb->trial_rate, (climb->rate + rate) / 2);
	*evidence += is_up(climb->step) ? -UP_COST : DOWN_WORTH;
	*evidence = RBX_MAX(*evidence, 0);
	learn_noise(climb, gain(rate, climb->rate));
	climb->rate = rate;
	if (climb->step == STEP_LEAP_DOWN)
		climb->may_leap_down = false;
	if (is_above(climb, *evidence, CLEAR))
		adopt(climb);
	else if (*evidence == 0 && climb->step == STEP_LEAP_UP)
		climb->may_leap_up = false;
	else if (*evidence == 0)
		climb->rest = RBX_MIN(climb->rest + climb->rest / 4 + 1, REST_MAX);
	climb->step = (climb->step + 1) % STEPS;
	climb->rest_left = climb->rest;
	begin(climb, PHASE_STEADY, climb->kept_bytes, now_ns);
}

static void end_steady(struct climb *climb, uint64_t rate, uint64_t now_ns)
{
	if (has_changed(climb, rate))
		start_over(climb);
	climb->rate = rate;
	if (climb->rest_left == 0) {
		begin_trial(climb, now_ns);
		return;
	}
	climb->rest_left--;
	begin(climb, PHASE_STEADY, climb->kept_bytes, now_ns);
}

/* Keeps the window near to what is in flight. */
static void follow_load(struct climb *climb, uint64_t busy_ns)
{
	uint64_t in_flight_bytes = climb->byte_times / (busy_ns / 1024);

	climb->is_used = in_flight_bytes >= climb->kept_bytes / 2;
	climb->kept_bytes = RBX_MIN(climb->kept_bytes,
				    in_flight_bytes + in_flight_bytes / 4 +
					    climb->low_bytes);
}

static void end_epoch(struct climb *climb, uint64_t busy_ns, uint64_t now_ns)
{
	uint64_t rate = climb->bytes * 1000 / (busy_ns / 1000);

	if (climb->phase != PHASE_TRIAL)
		follow_load(climb, busy_ns);
	if (climb->phase == PHASE_TRIAL)
		end_trial(climb, rate, now_ns);
	else if (climb->phase == PHASE_CHECK)
		end_check(climb, rate, now_ns);
	else
		end_steady(climb, rate, now_ns);
}

static bool is_enough(const struct climb *climb, uint64_t busy_ns)
{
	uint64_t windows = busy_ns < EPOCH_NS_ENOUGH ? EPOCH_WINDOWS : 1;

	return busy_ns >= EPOCH_NS &&
	       climb->bytes >= windows * climb->window_bytes;
}

static void auto_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			     uint64_t bytes)
{
	struct climb *climb = state;
	uint64_t gap_ns, busy_ns;

	if (climb->changed_ns != 0 || climb->begin_ns == 0) {
		if (now_ns - rtt_ns < climb->changed_ns)
			return;
		climb->changed_ns = 0;
		begin(climb, climb->phase, climb->window_bytes, now_ns);
		return;
	}
	gap_ns = now_ns - climb->last_ns;
	climb->idle_ns += gap_ns > rtt_ns ? gap_ns - rtt_ns : 0;
	climb->last_ns = now_ns;
	climb->bytes += bytes;
	climb->byte_times += bytes * rtt_ns / 1024;
	busy_ns = now_ns - climb->begin_ns - climb->idle_ns;
	if (is_enough(climb, busy_ns))
		end_epoch(climb, busy_ns, now_ns);
}

static uint64_t auto_window(const void *state)
{
	const struct climb *climb = state;

	return climb->window_bytes;
}

const struct rbx_congestion_ops rbx_congestion_auto = {
	.name = "auto",
	.init = auto_init,
	.on_complete = auto_on_complete,
	.window = auto_window,
};
