/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * source.h - whether two peers are one source, by their names.
 *
 * Whoever can reach a listener may open any number of connections, each with a port of its own.
 * So what is shared out among those that are not trusted is shared out by the address alone:
 * "1.2.3.4:567" and "1.2.3.4:568" are one source.
 */
#ifndef RBX_FABRIC_SOURCE_H
#define RBX_FABRIC_SOURCE_H

#include <stdbool.h>
#include <string.h>

static inline bool rbx_is_same_source(const char *one, const char *other)
{
	const char *colon = strrchr(one, ':');
	size_t length = colon ? (size_t)(colon - one) : strlen(one);

	return !strncmp(one, other, length) && (other[length] == ':' || !other[length]);
}

#endif
