/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * balance.h - replicas move from servers that have little free memory to those that have much.
 *
 * A server that is added to a full pool is empty, and all first writes would go there. So a
 * replica moves from server a to server b if what b reports as free is at least two slabs more
 * than what a reports. Then a has at most as much free as b afterwards, and the sum of the squares
 * of what is free has fallen: it ends, however many servers there are, and nothing moves back.
 *
 * It is the last thing to do. One replica moves at a time, while all slabs are whole, nothing is
 * asked of a server and none leaves, and the volume has been so for RBX_BALANCE_MS. Its copy
 * yields to requests (copy_pace.h). Never does it bring two replicas into one failure domain.
 *
 * b is asked to lend first. The replica at a is LEAVING only when b has lent, and then goes the way
 * of any that leaves (slab_leaving.c); so nothing has happened if b refuses. If b dies on the way,
 * or another replica is lost, it stays. Other clients may move
 * something to b at the same moment. So what b has free after it has lent is looked at once more,
 * and the memory is given back if that is too little by then.
 */
#ifndef RBX_BALANCE_H
#define RBX_BALANCE_H

#include "core/upkeep_state.h"

/* At the end of a round: begins to move a replica, if one is to move. Returns when to look again;
 * UINT64_MAX: when something has happened. */
uint64_t rbx_balance_look(struct rbx_upkeep *upkeep);

/* Nothing is out any more for the replica that is to move. */
void rbx_balance_over(struct rbx_upkeep *upkeep, const struct rbx_borrowing *borrowing);

#endif
