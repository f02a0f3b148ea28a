/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * credential.h - the name of a credential, as HELLO carries it.
 *
 * A credential is a name and a secret. Names are 1 to 31 characters, of those that a log, a
 * file and a shell show as they are. The empty name is that of the secret without a name.
 */
#ifndef RBX_WIRE_CREDENTIAL_H
#define RBX_WIRE_CREDENTIAL_H

#include "core/port.h"

#define RBX_CREDENTIAL_BYTES 32u /* a name and zeros from its end on, at least one */

static inline bool rbx_credential_has(char character)
{
	return (character >= 'A' && character <= 'Z') || (character >= 'a' && character <= 'z') ||
	       (character >= '0' && character <= '9') || character == '.' || character == '_' ||
	       character == '-';
}

/* Whether these bytes are a name, or empty, and nothing behind it. */
static inline bool rbx_credential_makes_sense(const char name[RBX_CREDENTIAL_BYTES])
{
	size_t i = 0;

	while (i < RBX_CREDENTIAL_BYTES && rbx_credential_has(name[i]))
		i++;
	if (i == RBX_CREDENTIAL_BYTES)
		return false;
	for (; i < RBX_CREDENTIAL_BYTES; i++)
		if (name[i])
			return false;
	return true;
}

#endif
