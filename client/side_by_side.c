/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* side_by_side.c - see side_by_side.h. */
#include "client/side_by_side.h"

static void act_on_all(struct rbx_side_by_side *all)
{
	uint32_t index;

	while (!RBX_LOAD_RELAXED(&all->stop) &&
	       (index = RBX_FETCH_ADD(&all->next, 1)) < all->count)
		all->act(all->user, index);
}

static void count_add(struct rbx_side_by_side *all, uint32_t by)
{
	rbx_monitor_enter(&all->monitor);
	all->left_count += by;
	if (!all->left_count)
		rbx_monitor_wake(&all->monitor);
	rbx_monitor_leave(&all->monitor);
}

static void *side_main(void *argument)
{
	struct rbx_side_by_side *all = argument;

	rbx_thread_leave_reserves();
	act_on_all(all);
	count_add(all, (uint32_t)-1);
	return NULL;
}

/* Whether one more thread was started. */
static bool side_start(struct rbx_side_by_side *all)
{
	count_add(all, 1);
	if (!rbx_thread_start(&all->threads[all->thread_count], "servers",
			      side_main, all)) {
		all->thread_count++;
		return true;
	}
	count_add(all, (uint32_t)-1);
	return false;
}

void rbx_side_by_side_begin(struct rbx_side_by_side *all, uint32_t count,
			    void (*act)(void *user, uint32_t index), void *user)
{
	all->act = act;
	all->user = user;
	all->count = count;
	all->next = 0;
	all->stop = false;
	all->thread_count = 0;
	all->left_count = 0;
	rbx_monitor_init(&all->monitor);
	while (all->thread_count < RBX_MIN(count, RBX_CONNECTS_MAX) &&
	       side_start(all))
		;
	if (!all->thread_count)
		act_on_all(all);
}

void rbx_side_by_side_stop(struct rbx_side_by_side *all)
{
	RBX_STORE_RELAXED(&all->stop, true);
}

int rbx_side_by_side_wait(struct rbx_side_by_side *all)
{
	int err = 0;

	rbx_monitor_enter(&all->monitor);
	while (all->left_count && !err)
		if (rbx_monitor_wait_signal(&all->monitor) && all->left_count)
			err = -EINTR;
	rbx_monitor_leave(&all->monitor);
	if (err)
		rbx_side_by_side_stop(all);
	return err;
}

void rbx_side_by_side_end(struct rbx_side_by_side *all)
{
	while (all->thread_count)
		rbx_thread_join(&all->threads[--all->thread_count]);
	rbx_monitor_destroy(&all->monitor);
}
