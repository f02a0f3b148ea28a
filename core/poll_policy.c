/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_policy.c - one step for all policies.
 *
 * Armed means that the next completion raises an event. If a poll finds something while
 * armed, that event causes one needless wake-up later. This is cheaper than any way to take
 * it back.
 */
#include "core/poll_policy.h"

void rbx_poll_policy_init(struct rbx_poll_policy *policy,
			  const struct rbx_poll_rule *rule)
{
	RBX_ASSERT(rule->batch_max >= 1 && rule->batch_max <= RBX_POLL_BATCH);
	RBX_ASSERT(rule->event_max >= 1);
	RBX_ASSERT(!rule->tunes || rule->retry_max != RBX_POLL_RETRY_FOREVER);
	rbx_port_fill(policy, 0, sizeof(*policy));
	policy->rule = *rule;
	policy->retry_max = rule->retry_max;
	if (rule->tunes)
		rbx_poll_tuner_init(&policy->tuner, rule->cpu_percent);
}

static enum rbx_poll_step arm(struct rbx_poll_policy *policy)
{
	policy->armed = true;
	policy->event_count = 0;
	return RBX_POLL_ARM;
}

void rbx_poll_policy_tune(struct rbx_poll_policy *policy,
			  uint32_t completion_count, uint64_t now_ns)
{
	policy->retry_max = rbx_poll_tuner_found(&policy->tuner, completion_count,
						 policy->empty_count, now_ns);
}

enum rbx_poll_step rbx_poll_policy_count_event(struct rbx_poll_policy *policy,
					       uint32_t completion_count)
{
	policy->event_count += completion_count;
	return policy->event_count < policy->rule.event_max ? RBX_POLL_AGAIN :
							      arm(policy);
}

enum rbx_poll_step rbx_poll_policy_found_nothing(struct rbx_poll_policy *policy,
						 uint64_t now_ns)
{
	if (policy->armed) {
		policy->armed = false;
		policy->empty_count = 0;
		return RBX_POLL_SLEEP;
	}
	if (policy->rule.tunes && policy->empty_count == 0)
		rbx_poll_tuner_idle(&policy->tuner, now_ns);
	if (policy->empty_count < policy->retry_max) {
		if (policy->retry_max != RBX_POLL_RETRY_FOREVER)
			policy->empty_count++;
		return RBX_POLL_AGAIN;
	}
	if (policy->rule.tunes)
		rbx_poll_tuner_gave_up(&policy->tuner, policy->empty_count,
				       now_ns);
	return arm(policy);
}
