/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * borrower_lender_server.h - the server of borrower_lender_world.h: a lender that
 * answers its clients. It checks that a client has noticed before its session expires.
 */
#ifndef RBX_TESTS_BORROWER_LENDER_SERVER_H
#define RBX_TESTS_BORROWER_LENDER_SERVER_H

#include "tests/core/borrower_lender_world.h"

/* Answers the next message of a client, if there is one. */
void serve(struct client *c);
/* Begins to prepare a slab for a MAP, refuses it, or lets it wait. */
void serve_map(struct client *c, uint64_t request_id);
/* A slab that was asked for is ready; the client may be gone meanwhile. */
void serve_prepared(struct client *c);
void server_says_messages(struct client *c);
/* Throws out whom it has not heard of, ends and asks back what it wants. */
void server_acts(void);

#endif
