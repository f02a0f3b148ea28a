/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* size.c - parses sizes as people write them, for options and commands alike. */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "include/rdmabox/rdmabox.h"
#include "lib/error.h"

/* Upper or lower case: nobody means thousandths of a byte. */
static int shift_of(const char *suffix, unsigned int *shift)
{
	static const char letters[] = "kmgt";

	*shift = 0;
	if (*suffix == '\0')
		return 0;
	for (unsigned int i = 0; letters[i] != '\0'; i++) {
		if ((*suffix | 0x20) != letters[i])
			continue;
		*shift = 10 * (i + 1);
		return suffix[1] == '\0' || strcasecmp(suffix + 1, "iB") == 0 ?
			       0 :
			       -EINVAL;
	}
	return -EINVAL;
}

int rbx_size_parse(const char *text, uint64_t *bytes)
{
	unsigned long long number;
	unsigned int shift;
	char *end;

	if (!text || !bytes)
		return rbx_error(-EINVAL, "a text and a pointer for the size must be given");
	errno = 0;
	number = strtoull(text, &end, 10);
	/* strtoull() would accept spaces and signs. */
	if (*text < '0' || *text > '9' || errno != 0 || shift_of(end, &shift) ||
	    number > UINT64_MAX >> shift)
		return rbx_error(-EINVAL, "\"%s\": not a size: a whole number, with or without K, M, G or T (KiB, MiB, GiB or TiB)",
				 text);
	*bytes = (uint64_t)number << shift;
	return 0;
}
