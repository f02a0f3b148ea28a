/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sized.c - public structs that may grow, see sized.h. */
#include "lib/sized.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/port.h"
#include "lib/error.h"

static size_t size_of(const void *sized)
{
	size_t size_bytes;

	memcpy(&size_bytes, sized, sizeof(size_bytes));
	return size_bytes;
}

void rbx_sized_fill(void *to, size_t to_bytes, const void *defaults,
		    size_t defaults_bytes)
{
	memset(to, 0, to_bytes);
	memcpy(to, defaults, RBX_MIN(to_bytes, defaults_bytes));
	if (to_bytes >= sizeof(to_bytes))
		memcpy(to, &to_bytes, sizeof(to_bytes));
}

static bool is_zero(const unsigned char *from, size_t begin, size_t end)
{
	while (begin < end && from[begin] == 0)
		begin++;
	return begin >= end;
}

int rbx_sized_take(const char *what, size_t first_bytes, void *to,
		   size_t to_bytes, const void *from)
{
	size_t from_bytes = size_of(from);

	if (from_bytes < first_bytes || from_bytes > RBX_SIZED_BYTES_MAX)
		return rbx_error(-EINVAL, "struct %s: its size_bytes is %zu, which no version has; fill in the defaults, or set it to the size, first",
				 what, from_bytes);
	if (!is_zero(from, to_bytes, from_bytes))
		return rbx_error(-EINVAL, "struct %s of %zu bytes: this version of the library knows %zu, and the rest is not zero",
				 what, from_bytes, to_bytes);
	memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
	       RBX_MIN(from_bytes, to_bytes) - sizeof(size_t));
	return 0;
}

void rbx_sized_give(void *to, size_t to_bytes, const void *from, size_t from_bytes)
{
	size_t size_bytes = RBX_MIN(to_bytes, from_bytes);

	memset(to, 0, to_bytes);
	if (size_bytes < sizeof(size_bytes))
		return;
	memcpy(to, from, size_bytes);
	memcpy(to, &size_bytes, sizeof(size_bytes));
}
