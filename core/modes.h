/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * modes.h - the paper's four ways of batching (section III), by the names that users know.
 *
 * To merge is to make one work request of neighbours; to chain is to post many with one
 * doorbell. A host makes its table of them: RBX_MODES(X) with X(name, merge, chain).
 */
#ifndef RBX_MODES_H
#define RBX_MODES_H

#define RBX_MODES(X)              \
	X("single", false, false) \
	X("doorbell", false, true) \
	X("merge", true, false)   \
	X("hybrid", true, true)

#endif
