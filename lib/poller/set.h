/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * set.h - the pollers of a context, and the queue pairs that each serves.
 *
 * _locked: the caller holds the context's peers_lock.
 */
#ifndef RBX_LIB_POLLER_SET_H
#define RBX_LIB_POLLER_SET_H

struct rbx_context;
struct rbx_peer;

/* Starts the pollers that the context begins with. close() ends all, also those that were
 * started later. */
int rbx_pollers_open(struct rbx_context *ctx);
void rbx_pollers_close(struct rbx_context *ctx);

/* Chooses a poller for each queue pair of a new peer; -ENOSPC if none has room. May start
 * pollers. */
int rbx_pollers_assign_locked(struct rbx_context *ctx, struct rbx_peer *peer);
void rbx_pollers_release_locked(struct rbx_peer *peer);

/* Makes all pollers follow the policy of the options. Not from a poller's thread. */
void rbx_pollers_follow_locked(struct rbx_context *ctx);

/* When it returns, no poller handles a completion that it had taken before the call. Not
 * from a poller's thread. */
void rbx_pollers_visit_all(struct rbx_context *ctx);

#endif
