/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reason.c - turns the reasons of refusals into errno values and sentences.
 */
#include "wire/reason.h"

int rbx_reason_errno(uint32_t reason)
{
	switch (reason) {
	case RBX_REASON_NONE:
		return 0;
#define RBX_REASON_CASE(name, err, sentence) \
	case RBX_REASON_##name:              \
		return -(err);
		RBX_REASONS(RBX_REASON_CASE) // NOLINT(bugprone-branch-clone)
#undef RBX_REASON_CASE
	}
	return -EPROTO;
}

const char *rbx_reason_sentence(uint32_t reason)
{
	switch (reason) {
	case RBX_REASON_NONE:
		return "no refusal";
#define RBX_REASON_CASE(name, err, sentence) \
	case RBX_REASON_##name:              \
		return sentence;
		RBX_REASONS(RBX_REASON_CASE)
#undef RBX_REASON_CASE
	}
	return "an unknown reason";
}
