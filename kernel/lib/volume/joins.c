/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * joins.c - servers that were lost and serve again join a volume that is open.
 *
 * A thread goes through the addresses of the volume: those that it was opened with, and those
 * that were added. It tries to add each server that the volume does not use, later and later
 * (client/join_tries.h). No I/O waits for any of this. A named volume takes those that are OUT or
 * have FAILED. One with one replica takes none.
 *
 * A server of a volume without a name has forgotten all that it had: it is one more that lends.
 */
#include <linux/slab.h>

#include "client/keeper.h"
#include "kernel/lib/address.h"
#include "kernel/lib/volume/volume.h"

static void result_tell(const char *name, bool is_first, int err)
{
	if (!err)
		pr_notice("rdmabox: server %s is there again\n", name);
	else if (is_first && err != -EAGAIN && err != -ECANCELED)
		pr_notice("rdmabox: server %s is away, and is tried again later (%d)\n", name,
			  err);
}

static void one_try(struct rbx_volume *volume, struct rbx_join_try *one)
{
	bool is_first;
	int err;

	if (rbx_joining_is_used(&volume->control, one->address) || !rbx_join_try_is_due(one))
		return;
	err = rbx_volume_server_add(volume, one->address, true);
	is_first = rbx_join_tried(one, &volume->control, err);
	result_tell(one->address, is_first, err);
}

/* The next one of those that there are. False: there is none, or another thread adds a server. That
 * may take as long as the peer timeout, and who waits for a mutex so long counts as hung. */
static bool next_try(struct rbx_volume *volume, u32 index)
{
	struct rbx_volume_joins *joins = &volume->joins;
	bool is_there;

	if (!mutex_trylock(&volume->add_lock))
		return false;
	is_there = index < joins->tries.count &&
		   (!volume->control.named || rbx_joining_may_return(&volume->control));
	if (is_there)
		one_try(volume, &joins->tries.all[index]);
	mutex_unlock(&volume->add_lock);
	return is_there;
}

/* False: it is to end. */
static bool turn_wait(struct rbx_volume_joins *joins)
{
	u64 until_ns = rbx_now_ns() + RBX_JOIN_LOOK_MS * (u64)NSEC_PER_MSEC;
	bool goes_on;

	rbx_monitor_enter(&joins->monitor);
	while (!joins->stop && rbx_now_ns() < until_ns)
		rbx_monitor_wait_until(&joins->monitor, until_ns);
	goes_on = !joins->stop;
	rbx_monitor_leave(&joins->monitor);
	return goes_on;
}

static void *joins_run(void *volume_pointer)
{
	struct rbx_volume *volume = volume_pointer;
	struct rbx_volume_joins *joins = &volume->joins;
	u32 i;

	rbx_thread_leave_reserves();
	while (turn_wait(joins))
		for (i = 0; !READ_ONCE(joins->stop) && next_try(volume, i); i++)
			;
	return NULL;
}

/* ---- By the owner of the volume -------------------------------------------------------*/

/* If there are too many, those that are left are not tried again. */
void rbx_volume_joins_note(struct rbx_volume *volume, const struct sockaddr_storage *at)
{
	struct rbx_address address;

	lockdep_assert_held(&volume->add_lock);
	rbx_address_name(&address, at);
	rbx_monitor_enter(&volume->joins.monitor);
	(void)rbx_join_try_of(&volume->joins.tries, address.name, 0);
	rbx_monitor_leave(&volume->joins.monitor);
}

int rbx_volume_joins_address(struct rbx_volume *volume, u32 index,
			     char address[RBX_SERVER_ADDRESS_BYTES])
{
	struct rbx_volume_joins *joins = &volume->joins;
	int err = -ENOENT;

	rbx_monitor_enter(&joins->monitor);
	if (index < joins->tries.count) {
		strscpy(address, joins->tries.all[index].address, RBX_SERVER_ADDRESS_BYTES);
		err = 0;
	}
	rbx_monitor_leave(&joins->monitor);
	return err;
}

int rbx_volume_joins_make(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;

	rbx_monitor_init(&joins->monitor);
	joins->tries.all = kvcalloc(RBX_SERVERS_MAX, sizeof(*joins->tries.all), GFP_KERNEL);
	return joins->tries.all ? 0 : -ENOMEM;
}

int rbx_volume_joins_start(struct rbx_volume *volume)
{
	struct rbx_volume_control *control = &volume->control;
	struct rbx_volume_joins *joins = &volume->joins;
	int err;

	if (control->named && !control->keeper)
		return 0;
	err = rbx_thread_start(&joins->thread, "joins", joins_run, volume);
	joins->is_running = !err;
	return err;
}

void rbx_volume_joins_stop(struct rbx_volume *volume)
{
	struct rbx_volume_joins *joins = &volume->joins;

	if (!joins->is_running)
		return;
	if (volume->control.keeper) /* it may wait for that */
		rbx_keeper_take_no_more(volume->control.keeper);
	rbx_monitor_enter(&joins->monitor);
	WRITE_ONCE(joins->stop, true);
	rbx_monitor_wake(&joins->monitor);
	rbx_monitor_leave(&joins->monitor);
	rbx_client_stop(&volume->client); /* a server that is busy is not tried again */
	rbx_thread_join(&joins->thread);
}

void rbx_volume_joins_free(struct rbx_volume *volume)
{
	kvfree(volume->joins.tries.all);
}
