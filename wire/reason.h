/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reason.h - why a server refuses, each with its errno and one sentence.
 *
 * Codes are part of the protocol: append, never renumber. Code 0 is no refusal.
 */
#ifndef RBX_WIRE_REASON_H
#define RBX_WIRE_REASON_H

#include "core/port.h"

/* name, errno of the client's call, sentence */
#define RBX_REASONS(X)                                                        \
	X(FULL, ENOSPC, "no memory left to lend; ask for less, or add servers") \
	X(QUOTA, EDQUOT,                                                      \
	  "the quota is reached, with all sessions of this credential; ask for less, or raise the quota") \
	X(WRONG_SECRET, EACCES,                                               \
	  "the secret is wrong; use the same secret file on both sides")      \
	X(SECRET_REQUIRED, EACCES,                                            \
	  "the server requires a secret; use its secret file")                \
	X(SECRET_UNKNOWN, EACCES,                                             \
	  "the server has no secret to prove itself; start it with the secret file, " \
	  "or use none here")                                                 \
	X(VERSION, EPROTONOSUPPORT,                                           \
	  "this protocol version is not supported; use the same release on both sides") \
	X(MALFORMED, EPROTO, "the message is malformed")                      \
	X(OUT_OF_TURN, EPROTO, "the message is not allowed now")              \
	X(DRAINING, ENOSPC,                                                   \
	  "the server is shutting down and lends no more; use another one")   \
	X(STALE_SESSION, ESTALE, "the session is not known (any more)")       \
	X(STALE_EPOCH, ESTALE, "the slab has been lent again since")          \
	X(NOT_YOURS, EPERM, "the slab is not lent to this client")            \
	X(TOO_MANY, EBUSY,                                                    \
	  "too many clients or queue pairs; try again later, or raise the server's limit") \
	X(REPLAYED, EPROTO, "the message was seen before")                    \
	X(TOO_SLOW, ETIMEDOUT, "the client took too long to prove itself")    \
	X(INTERNAL, EREMOTEIO, "the server failed, see its log")              \
	X(LATER, ETIMEDOUT, "its free memory cannot be lent yet")             \
	X(ALTERED, EPROTO, "a message was changed, repeated or lost on its way") \
	X(NO_VOLUME, ENOENT, "it has no volume of this name")                 \
	X(NAME_TAKEN, EEXIST, "there is a volume of this name; choose another one, or remove it") \
	X(TAKEN_OVER, ESTALE, "another client has opened the volume since")   \
	X(NOT_OWNER, EACCES,                                                  \
	  "the volume belongs to another credential; use that one")           \
	X(TOO_MANY_VOLUMES, ENOSPC, "the server keeps no more volumes; remove some") \
	X(VOLUMES_QUOTA, EDQUOT,                                              \
	  "this credential has as many named volumes there as it may have; remove some, or " \
	  "raise the server's limit (volumes)")

enum rbx_reason {
	RBX_REASON_NONE,
#define RBX_REASON_CODE(name, err, sentence) RBX_REASON_##name,
	RBX_REASONS(RBX_REASON_CODE)
#undef RBX_REASON_CODE
	RBX_REASONS_COUNT,
};

/* -errno of a code; 0 for RBX_REASON_NONE, -EPROTO for an unknown one. */
int rbx_reason_errno(uint32_t reason);

/* The sentence, without a full stop. Never NULL. */
const char *rbx_reason_sentence(uint32_t reason);

#endif
