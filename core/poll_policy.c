/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_policy.c - the paper's algorithm 3 as one step.
 *
 * Armed means that an event is due for the next completion. A poll that finds
 * something while armed leaves an event behind, which costs one needless
 * wake-up later; that is cheaper than any way to take it back.
 */
#include "core/poll_policy.h"

void rbx_poll_policy_init(struct rbx_poll_policy *policy, uint32_t retry_max,
			  uint32_t batch_max)
{
	RBX_ASSERT(batch_max >= 1 && batch_max <= RBX_POLL_BATCH);
	policy->retry_max = retry_max;
	policy->batch_max = batch_max;
	policy->empty_count = 0;
	policy->armed = false;
}

enum rbx_poll_step rbx_poll_policy_next(struct rbx_poll_policy *policy,
					uint32_t completion_count)
{
	if (completion_count != 0) {
		policy->empty_count = 0;
		policy->armed = false;
		return RBX_POLL_AGAIN;
	}
	if (policy->armed) {
		policy->armed = false;
		policy->empty_count = 0;
		return RBX_POLL_SLEEP;
	}
	if (policy->empty_count < policy->retry_max) {
		if (policy->retry_max != RBX_POLL_RETRY_FOREVER)
			policy->empty_count++;
		return RBX_POLL_AGAIN;
	}
	policy->armed = true;
	return RBX_POLL_ARM;
}
