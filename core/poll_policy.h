/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_policy.h - poll again, arm, or sleep: the six policies of the paper as data.
 *
 * A policy is a rule of four numbers, and one step function that all policies share:
 *
 *                  RETRY      BATCH  EVENT_MAX
 *   busy           for ever   32     -          never arms
 *   event          0          1      1          one completion for each event
 *   event-batch:N  0          32     N          up to N for each event
 *   hybrid         0          32     -          until a poll finds nothing
 *   adaptive:R:B   R          B      -          until R+1 polls find nothing
 *   adaptive       tuned      32     -          the same, see poll_tuner.h
 *   shared:M       for ever   32     -          busy; M pollers for all peers
 *
 * Adaptive is the paper's algorithm 3 (section IV-B): go on polling through RETRY empty
 * polls, because the next completions usually follow soon, and only then pay for an
 * interrupt.
 *
 * All policies also poll between arming and sleeping, which the original lacks: a completion
 * after the last poll and before the arm causes no event. This also makes EVENT_MAX safe,
 * which arms although more completions may be there: that poll finds the rest, counts as the
 * next event, and the queue is armed again. So the poller never sleeps while a completion is
 * there, whether or not the device's arm() reports completions that are there already.
 */
#ifndef RBX_POLL_POLICY_H
#define RBX_POLL_POLICY_H

#include "core/limits.h"
#include "core/poll_tuner.h"
#include "core/port.h"

#define RBX_POLL_RETRY_FOREVER UINT32_MAX
#define RBX_POLL_RETRY_PAPER 120u /* the paper's MAX_RETRY */
#define RBX_POLL_EVENT_UNBOUNDED UINT32_MAX

enum rbx_poll_step {
	RBX_POLL_AGAIN, /* poll */
	RBX_POLL_ARM, /* arm the completion queue, then poll */
	RBX_POLL_SLEEP, /* wait for the event, consume it, then poll */
};

struct rbx_poll_rule {
	uint32_t retry_max; /* empty polls before arming */
	uint32_t batch_max; /* completions of one poll, to RBX_POLL_BATCH */
	uint32_t event_max; /* completions between two arms */
	bool tunes; /* the tuner changes retry_max, beginning with this value */
	uint32_t cpu_percent; /* tuned: percent of its time that it may spend in empty polls */
};

/* Adaptive: polls only as long as that is cheaper than a sleep (poll_tuner.h). */
#define RBX_POLL_RULE_ADAPTIVE                               \
	{                                                    \
		.batch_max = RBX_POLL_BATCH,                 \
		.event_max = RBX_POLL_EVENT_UNBOUNDED,       \
		.tunes = true,                               \
		.cpu_percent = 100,                          \
	}

struct rbx_poll_policy {
	struct rbx_poll_rule rule;
	struct rbx_poll_tuner tuner;
	uint32_t retry_max; /* of the rule, or as tuned */
	uint32_t empty_count; /* in a row, since the last find or sleep */
	uint32_t event_count; /* completions since it was armed */
	bool armed;
};

void rbx_poll_policy_init(struct rbx_poll_policy *policy,
			  const struct rbx_poll_rule *rule);

/* How many completions the next poll may take. */
static inline uint32_t
rbx_poll_policy_ask(const struct rbx_poll_policy *policy)
{
	return RBX_MIN(policy->rule.batch_max,
		       policy->rule.event_max - policy->event_count);
}

/*
 * Whether the step after an empty poll needs the time: when an idle time begins, and when
 * patience ends. So other empty polls do not read the clock.
 */
static inline bool
rbx_poll_policy_wants_time(const struct rbx_poll_policy *policy)
{
	return policy->rule.tunes && !policy->armed &&
	       (policy->empty_count == 0 ||
		policy->empty_count >= policy->retry_max);
}

/* The steps of the next function. */
enum rbx_poll_step rbx_poll_policy_found_nothing(struct rbx_poll_policy *policy,
						 uint64_t now_ns);
void rbx_poll_policy_tune(struct rbx_poll_policy *policy,
			  uint32_t completion_count, uint64_t now_ns);
enum rbx_poll_step rbx_poll_policy_count_event(struct rbx_poll_policy *policy,
					       uint32_t completion_count);

/*
 * What to do after a poll that returned completion_count completions. now_ns: when it
 * returned; any number if it found nothing and no time is needed.
 */
static inline enum rbx_poll_step
rbx_poll_policy_next(struct rbx_poll_policy *policy, uint32_t completion_count,
		     uint64_t now_ns)
{
	if (completion_count == 0)
		return rbx_poll_policy_found_nothing(policy, now_ns);
	if (policy->rule.tunes)
		rbx_poll_policy_tune(policy, completion_count, now_ns);
	policy->empty_count = 0;
	policy->armed = false;
	if (policy->rule.event_max == RBX_POLL_EVENT_UNBOUNDED)
		return RBX_POLL_AGAIN;
	return rbx_poll_policy_count_event(policy, completion_count);
}

#endif
