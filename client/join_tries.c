/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* join_tries.c - see join_tries.h. */
#include "client/join_tries.h"

#define RETRY_FIRST_MS 2000u
#define RETRY_MAX_MS 60000u
#define RETRY_FAILED_MS 4000u
#define NS_PER_MS 1000000ull

struct rbx_join_try *rbx_join_try_find(struct rbx_join_tries *tries, const char *address)
{
	uint32_t i;

	for (i = 0; i < tries->count; i++)
		if (!strcmp(tries->all[i].address, address))
			return &tries->all[i];
	return NULL;
}

struct rbx_join_try *rbx_join_try_of(struct rbx_join_tries *tries, const char *address,
				     uint64_t incarnation)
{
	struct rbx_join_try *one = rbx_join_try_find(tries, address);

	if (!one && tries->count == RBX_SERVERS_MAX)
		return NULL;
	if (!one) {
		one = &tries->all[tries->count++];
		*one = (struct rbx_join_try){ .incarnation = incarnation };
		rbx_text_copy(one->address, sizeof(one->address), address);
	} else if (one->incarnation != incarnation) {
		one->incarnation = incarnation;
		one->next_ns = 0;
		one->wait_ms = 0;
	}
	return one;
}

bool rbx_join_try_is_due(const struct rbx_join_try *one)
{
	return rbx_now_ns() >= one->next_ns;
}

bool rbx_join_tried(struct rbx_join_try *one, const struct rbx_volume_control *control, int err)
{
	bool is_first = err && !one->wait_ms;

	if (!err) {
		one->wait_ms = 0;
		one->next_ns = 0;
		return false;
	}
	one->wait_ms = is_first ? RETRY_FIRST_MS : RBX_MIN(2 * one->wait_ms, RETRY_MAX_MS);
	/* Requests fail for as long as it is away. */
	if (control->named && rbx_joining_failed_at(control, one->address) >= 0)
		one->wait_ms = RBX_MIN(one->wait_ms, RETRY_FAILED_MS);
	/* Its slabs, or a second address, or it was none before: it will not change soon. */
	if (err == -EINVAL || err == -ENOENT)
		one->wait_ms = RETRY_MAX_MS;
	one->next_ns = rbx_now_ns() + one->wait_ms * NS_PER_MS;
	return is_first;
}
