/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * modes.h - the four ways of batching of the paper (section III), by the names that users
 * see.
 *
 * Merging makes one work request from neighbours; chaining posts many with one doorbell. A
 * host makes its table of modes with RBX_MODES(X), where X is X(name, merge, chain).
 */
#ifndef RBX_MODES_H
#define RBX_MODES_H

#define RBX_MODES(X)              \
	X("single", false, false) \
	X("doorbell", false, true) \
	X("merge", true, false)   \
	X("hybrid", true, true)

#endif
