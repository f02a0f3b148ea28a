/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* slab_record.c - the pool of records, see slab_record.h. */
#include "core/slab_record.h"

#include "core/server_set.h"

void rbx_slab_records_init(struct rbx_slab_records *records)
{
	rbx_port_fill(records->free, 0xff, sizeof(records->free));
}

uint32_t rbx_slab_records_free(const struct rbx_slab_records *records)
{
	uint32_t i, count = 0;

	for (i = 0; i < RBX_SLAB_RECORD_WORDS; i++)
		count += rbx_server_set_count_word(
			RBX_LOAD_RELAXED(&records->free[i]));
	return count;
}

/*
 * A free record of this word, or NULL. Bounded: each pass means that another thread took or
 * put one.
 */
static struct rbx_slab_record *take_of(struct rbx_slab_records *records,
				       uint32_t word)
{
	uint64_t free = RBX_LOAD_RELAXED(&records->free[word]);

	/* Pairs with rbx_slab_records_put(): its former user is done with it. */
	while (free)
		if (RBX_COMPARE_EXCHANGE(&records->free[word], &free,
					 free & (free - 1)))
			return &records->all[word * 64 +
					     (uint32_t)__builtin_ctzll(free)];
	return NULL;
}

struct rbx_slab_record *rbx_slab_records_take(struct rbx_slab_records *records,
					      uint32_t kept_count)
{
	struct rbx_slab_record *record = NULL;
	uint32_t i;

	if (rbx_slab_records_free(records) <= kept_count)
		return NULL;
	for (i = 0; i < RBX_SLAB_RECORD_WORDS && !record; i++)
		record = take_of(records, i);
	if (record)
		rbx_port_fill(record, 0, sizeof(*record));
	return record;
}

void rbx_slab_records_put(struct rbx_slab_records *records,
			  struct rbx_slab_record *record)
{
	uint32_t number = (uint32_t)(record - records->all);

	/* Its bit is not set, so adding sets it. */
	(void)RBX_FETCH_ADD(&records->free[number / 64],
			    (uint64_t)1 << number % 64);
}
