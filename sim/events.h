/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events.h - virtual time, and the queue of events that happen in it.
 *
 * Everything in a simulation is done by an event: a fiber goes on, a message arrives, a link
 * is cut. Events run in the order of their time; events of the same time in the order in
 * which they were queued. Nothing else orders them, no address and no clock of the machine,
 * so a run can be repeated.
 *
 * An event is a part of the object that it is for, and is linked in while it is queued, so
 * the queue allocates nothing. An event runs once; it may queue itself again.
 *
 *	struct link {
 *		struct rbx_sim_event heals;
 *		bool is_cut;
 *	};
 *	static void heal(struct rbx_sim_event *event)
 *	{
 *		RBX_CONTAINER_OF(event, struct link, heals)->is_cut = false;
 *	}
 *	...
 *	link->heals.run = heal;
 *	rbx_sim_after(&link->heals, 1000000);
 *
 * There is one simulation in a process: time is global.
 */
#ifndef RBX_SIM_EVENTS_H
#define RBX_SIM_EVENTS_H

#include "core/port.h"

struct rbx_sim_event {
	void (*run)(struct rbx_sim_event *event);
	uint64_t at_ns; /* while it is queued */
	struct rbx_sim_event *next, *previous; /* neighbours in its slot */
	uint32_t place; /* in the queue, from 1; 0: not queued */
};

/* Virtual nanoseconds since the start of the run. */
uint64_t rbx_sim_now(void);

/* Queues an event, or moves it if it is queued. A time in the past means now. */
void rbx_sim_at(struct rbx_sim_event *event, uint64_t at_ns);
void rbx_sim_after(struct rbx_sim_event *event, uint64_t delay_ns);

static inline bool rbx_sim_is_queued(const struct rbx_sim_event *event)
{
	return event->place != 0;
}

/* Does nothing if the event is not queued. */
void rbx_sim_cancel(struct rbx_sim_event *event);

/* Runs the next event. False: there is none. */
bool rbx_sim_step(void);

/* How many have run. */
uint64_t rbx_sim_events_run(void);

/* Forgets all events and starts again at 0: for tests. */
void rbx_sim_events_reset(void);

#endif
