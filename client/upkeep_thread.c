/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * upkeep_thread.c - the thread that makes the rounds of a volume's upkeep
 * (core/upkeep.h).
 *
 * As all threads here, it begins no I/O to get memory. It leaves the last memory to threads
 * that repair connections: its own work can be tried again.
 */
#include "client/keeper.h"
#include "client/volume.h"

static void sleep_until_wanted(struct rbx_volume_control *control,
			       uint64_t until_ns)
{
	while (!control->upkeep_wanted && !control->upkeep_stop) {
		if (until_ns == UINT64_MAX) {
			rbx_monitor_wait(&control->monitor);
			continue;
		}
		if (rbx_now_ns() >= until_ns)
			return;
		rbx_monitor_wait_until(&control->monitor, until_ns);
	}
}

/* What another thread waits for. */
static void call_make(struct rbx_volume_control *control)
{
	rbx_monitor_enter(&control->monitor);
	if (!control->upkeep_call) {
		rbx_monitor_leave(&control->monitor);
		return;
	}
	rbx_monitor_leave(&control->monitor);
	control->upkeep_call(control, control->upkeep_call_user);
	rbx_monitor_enter(&control->monitor);
	control->upkeep_call = NULL;
	rbx_monitor_wake(&control->monitor);
	rbx_monitor_leave(&control->monitor);
}

/* Returns when the next one is to be made. The upkeep may have words noted (intents.h). */
static uint64_t round_make(struct rbx_volume_control *control)
{
	uint64_t keeper_ns, intents_ns, upkeep_ns;

	if (!control->keeper)
		return rbx_upkeep_round(&control->upkeep, rbx_now_ns());
	keeper_ns = rbx_keeper_round(control->keeper, rbx_now_ns());
	upkeep_ns = rbx_upkeep_round(&control->upkeep, rbx_now_ns());
	intents_ns = rbx_keeper_intents_round(control->keeper, rbx_now_ns());
	/* The round may have made whole what lacked replicas, or need another record. */
	if (rbx_keeper_is_behind(control->keeper))
		return 0;
	return RBX_MIN(RBX_MIN(keeper_ns, intents_ns), upkeep_ns);
}

static void *upkeep_main(void *argument)
{
	struct rbx_volume_control *control = argument;

	rbx_thread_leave_reserves();
	rbx_monitor_enter(&control->monitor);
	while (!control->upkeep_stop) {
		uint64_t until_ns;

		control->upkeep_wanted = false;
		rbx_monitor_leave(&control->monitor);
		call_make(control);
		until_ns = round_make(control);
		rbx_monitor_enter(&control->monitor);
		sleep_until_wanted(control, until_ns);
	}
	rbx_monitor_leave(&control->monitor);
	return NULL;
}

void rbx_volume_upkeep_wake(struct rbx_volume_control *control)
{
	rbx_monitor_enter(&control->monitor);
	control->upkeep_wanted = true;
	rbx_monitor_wake(&control->monitor);
	rbx_monitor_leave(&control->monitor);
}

void rbx_volume_upkeep_call(struct rbx_volume_control *control,
			    void (*act)(struct rbx_volume_control *control, void *user),
			    void *user)
{
	rbx_monitor_enter(&control->monitor);
	control->upkeep_call_user = user;
	control->upkeep_call = act;
	control->upkeep_wanted = true;
	rbx_monitor_wake(&control->monitor);
	while (control->upkeep_call)
		rbx_monitor_wait(&control->monitor);
	rbx_monitor_leave(&control->monitor);
}

int rbx_volume_upkeep_start(struct rbx_volume_control *control)
{
	int err = rbx_thread_start(&control->upkeep_thread, "volume",
				   upkeep_main, control);

	return err ? rbx_error(err, "cannot start the volume's thread") : 0;
}

void rbx_volume_upkeep_stop(struct rbx_volume_control *control)
{
	rbx_monitor_enter(&control->monitor);
	control->upkeep_stop = true;
	rbx_monitor_wake(&control->monitor);
	rbx_monitor_leave(&control->monitor);
	rbx_thread_join(&control->upkeep_thread);
}
