/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_policy.h - poll again, arm, or sleep: the paper's six policies as data.
 *
 * A policy is a rule of four numbers and one step function that all share:
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
 * Adaptive is the paper's algorithm 3 (section IV-B): go on polling through
 * RETRY empty polls, because the next pack of completions usually follows
 * closely, and only then pay for an interrupt.
 *
 * To all of them is added the poll between arming and sleeping that the
 * original lacks: what completes after the last poll and before the arm is
 * announced to nobody. It also makes EVENT_MAX safe, which arms although more
 * may be there: what was left is found by that poll, counts as the next event,
 * and the queue is armed anew. So nobody sleeps on a completion, whether or not
 * the device's arm() announces what lies there already.
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
	bool tunes; /* retry_max is where the tuner begins */
	uint32_t cpu_percent; /* tuned: of its time that it may poll in vain */
};

/* Adaptive: as long as a sleep is not worth while, and no longer (poll_tuner.h). */
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
	uint32_t retry_max; /* the rule's, or as tuned */
	uint32_t empty_count; /* in a row, since a find or a sleep */
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
 * Whether the step after an empty poll looks at the time: where an idle time
 * begins, and where patience ends. So an empty poll costs no look at the clock.
 */
static inline bool
rbx_poll_policy_wants_time(const struct rbx_poll_policy *policy)
{
	return policy->rule.tunes && !policy->armed &&
	       (policy->empty_count == 0 ||
		policy->empty_count >= policy->retry_max);
}

/*
 * What to do after a poll that returned completion_count completions. now_ns is
 * when it returned; any number where it found nothing and no time is wanted.
 */
enum rbx_poll_step rbx_poll_policy_next(struct rbx_poll_policy *policy,
					uint32_t completion_count,
					uint64_t now_ns);

#endif
