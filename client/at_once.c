/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* at_once.c - see at_once.h. */
#include "client/at_once.h"

static void act_on_one(void *user, uint32_t index)
{
	struct rbx_at_once *all = user;
	struct rbx_at_once_result *result = &all->results[index];

	result->err = all->act(all->user, index);
	if (!result->err)
		return;
	rbx_text_copy(result->why, sizeof(result->why), rbx_error_text());
	if (all->needs_all)
		rbx_side_by_side_stop(&all->side_by_side);
}

int rbx_at_once_do(struct rbx_at_once *all, uint32_t count, bool needs_all,
		   int (*act)(void *user, uint32_t index), void *user)
{
	int err;

	*all = (struct rbx_at_once){
		.act = act,
		.user = user,
		.needs_all = needs_all,
		.results = rbx_memory_make(RBX_MAX(count, 1u) * sizeof(*all->results)),
	};
	if (!all->results)
		return rbx_error(-ENOMEM, "out of memory");
	rbx_side_by_side_begin(&all->side_by_side, count, act_on_one, all);
	err = rbx_side_by_side_wait(&all->side_by_side);
	rbx_side_by_side_end(&all->side_by_side);
	return err;
}

int rbx_at_once_error(const struct rbx_at_once *all, uint32_t index)
{
	const struct rbx_at_once_result *result = &all->results[index];

	return result->err ? rbx_error_again(result->err, result->why) : 0;
}

void rbx_at_once_free(struct rbx_at_once *all)
{
	rbx_memory_free(all->results);
	all->results = NULL;
}

int rbx_at_once(uint32_t count, int (*act)(void *user, uint32_t index), void *user)
{
	struct rbx_at_once all;
	uint32_t i;
	int err = rbx_at_once_do(&all, count, true, act, user);

	for (i = 0; i < count && !err; i++)
		err = rbx_at_once_error(&all, i);
	rbx_at_once_free(&all);
	return err;
}
