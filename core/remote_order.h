/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * remote_order.h - sorts fragments by their remote addresses.
 *
 * Merging compares a fragment with the next one. Sorted in remote order, a batch that was
 * submitted in any order merges as well as one that was submitted from front to back. This
 * goes beyond the paper, whose queues stay in the order of arrival.
 */
#ifndef RBX_REMOTE_ORDER_H
#define RBX_REMOTE_ORDER_H

#include "core/request.h"

/*
 * Takes fragments off the front of a list, all of it or RBX_OVERTAKE_MAX. Returns them sorted
 * by key and remote address; equal ones keep their order. If no fragment begins at the end of
 * another one they may be returned as they came: there is nothing to merge. The list has at
 * least one.
 */
struct rbx_fragment *rbx_remote_order_take(struct rbx_fragment **list);

#endif
