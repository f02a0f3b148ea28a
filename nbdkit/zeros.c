// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes ranges read as zeros, by a discard or by writing.
 *
 * A slab that an on_demand volume discards reads as zeros, at no cost. But a discard
 * leaves parts of slabs as they are, so zeros are written there. For this the size of a
 * slab must be known for certain. The library tells the number of slabs of a volume. The
 * size of a slab is a power of two, and no two powers of two need the same number of
 * slabs for a volume, unless that number is one. So the number gives the size.
 *
 * The source of all writes is one page of zeros: segments of a write may overlap.
 */
#include <errno.h>

#include "zeros.h"

#define ZERO_BYTES 65536u

static const char zero[ZERO_BYTES];

uint64_t zeros_slab_bytes(struct rbx_volume *volume)
{
	struct rbx_volume_status status;
	uint64_t size = rbx_volume_size(volume), slab;

	rbx_volume_status(volume, &status);
	if (status.slabs < 2)
		return 0;
	for (slab = 1; slab < size; slab *= 2)
		if ((size + slab - 1) / slab == status.slabs)
			return slab;
	return 0;
}

/* The whole slabs of a range: from *begin to *end, if it has any. */
static bool find_slabs(uint64_t slab_bytes, uint64_t offset, uint64_t length,
		       uint64_t *begin, uint64_t *end)
{
	if (!slab_bytes)
		return false;
	*begin = (offset + slab_bytes - 1) / slab_bytes * slab_bytes;
	*end = (offset + length) / slab_bytes * slab_bytes;
	return *begin < *end;
}

bool zeros_are_fast(uint64_t slab_bytes, uint64_t offset, uint64_t length)
{
	uint64_t begin, end;

	return find_slabs(slab_bytes, offset, length, &begin, &end) && begin == offset &&
	       end == offset + length;
}

static int write_zeros(struct rbx_volume *volume, uint64_t offset, uint64_t length)
{
	struct iovec iov[RBX_SEGMENTS_MAX];
	int err = 0, count;

	while (length && !err) {
		uint64_t bytes = 0;

		for (count = 0; count < RBX_SEGMENTS_MAX && bytes < length; count++) {
			iov[count].iov_base = (void *)zero;
			iov[count].iov_len = length - bytes < ZERO_BYTES ? length - bytes :
									   ZERO_BYTES;
			bytes += iov[count].iov_len;
		}
		err = rbx_writev(volume, iov, count, offset);
		offset += bytes;
		length -= bytes;
	}
	return err;
}

int zeros_make(struct rbx_volume *volume, uint64_t slab_bytes, uint64_t offset,
	       uint64_t length)
{
	uint64_t begin, end;
	int err;

	if (!find_slabs(slab_bytes, offset, length, &begin, &end))
		return write_zeros(volume, offset, length);
	err = write_zeros(volume, offset, begin - offset);
	if (!err)
		err = write_zeros(volume, end, offset + length - end);
	if (!err)
		err = rbx_volume_discard(volume, begin, end - begin);
	return err;
}
