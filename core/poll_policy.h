/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * poll_policy.h - poll again, arm, or sleep.
 *
 * The paper's adaptive polling (algorithm 3, section IV-B): go on polling
 * through RETRY empty polls, because the next pack of completions usually
 * follows closely, and only then pay for an interrupt. Added to it is the poll
 * between arming and sleeping that the original lacks: what completes after
 * the last poll and before the arm is announced to nobody.
 *
 * Busy and event polling are the two ends of the same policy: RETRY without
 * end, and none.
 */
#ifndef RBX_POLL_POLICY_H
#define RBX_POLL_POLICY_H

#include "core/limits.h"
#include "core/port.h"

#define RBX_POLL_RETRY_FOREVER UINT32_MAX
#define RBX_POLL_RETRY_DEFAULT 120u /* the paper's MAX_RETRY */

enum rbx_poll_step {
	RBX_POLL_AGAIN, /* poll */
	RBX_POLL_ARM, /* arm the completion queue, then poll */
	RBX_POLL_SLEEP, /* wait for the event, consume it, then poll */
};

struct rbx_poll_policy {
	uint32_t retry_max; /* empty polls before arming */
	uint32_t batch_max; /* completions of one poll, to RBX_POLL_BATCH */
	uint32_t empty_count; /* in a row */
	bool armed;
};

void rbx_poll_policy_init(struct rbx_poll_policy *policy, uint32_t retry_max,
			  uint32_t batch_max);

/* What to do after a poll that returned completion_count completions. */
enum rbx_poll_step rbx_poll_policy_next(struct rbx_poll_policy *policy,
					uint32_t completion_count);

#endif
