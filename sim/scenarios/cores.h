/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cores.h - a machine's cores, and the threads that share them.
 *
 * A thread runs in steps. A step does something and spends CPU time; the next one runs when
 * that time has passed, on the same core. So others act in between, as on a machine with many
 * cores, and a core is busy while its thread works or polls. A step may end in sleep; then
 * another thread wakes it.
 *
 * There are fewer cores than threads. Each thread has a count of the time it had; of those
 * that can run, the one with the least is next (as in Linux's CFS). A core goes on with its
 * thread for a timeslice, or until one wakes that had less by preempt_ns. Changing from one
 * thread to another costs context_switch_ns.
 *
 * An interrupt takes interrupt_ns of the core that its descriptor belongs to, and its thread
 * may run wake_ns later.
 */
#ifndef RBX_SIM_CORES_H
#define RBX_SIM_CORES_H

#include "sim/events.h"
#include "sim/nic/host.h"

#define RBX_SIM_CORES_MAX 256u
#define RBX_SIM_CORES_THREADS_MAX 512u /* of a machine */

enum rbx_sim_step {
	RBX_SIM_GO_ON,
	RBX_SIM_SLEEP, /* until it is woken, unless that happened while it ran */
};

struct rbx_sim_thread {
	enum rbx_sim_step (*step)(struct rbx_sim_thread *thread);
	uint64_t had_ns; /* CPU time, as corrected at wake-ups */
	uint64_t used_ns; /* the real CPU time */
	uint32_t number;
	uint8_t state;
	bool woken; /* while it ran */
	struct rbx_sim_event wakes; /* it may run */
};

/* One machine runs threads in a scenario; the others only have NICs. Starts anew, with all
 * counts at 0. */
void rbx_sim_cores_begin(const struct rbx_nic_params *params);

/* Adds a thread that sleeps. */
void rbx_sim_thread_add(struct rbx_sim_thread *thread);
/* The thread has something to do. May be called anywhere. */
void rbx_sim_thread_wake(struct rbx_sim_thread *thread);
void rbx_sim_thread_wake_at(struct rbx_sim_thread *thread, uint64_t at_ns);

/* The running thread has used so much. */
void rbx_sim_spend(uint64_t time_ns);
/* The time of its clock. */
uint64_t rbx_sim_thread_now(void);

/* Which thread the interrupts of an event descriptor wake; NULL: none. */
void rbx_sim_event_wakes(int fd, struct rbx_sim_thread *thread);
/* A thread that wants to sleep until it is raised has to check it first. */
bool rbx_sim_event_is_raised(int fd);

/* Runs until that time. */
void rbx_sim_run_until(uint64_t until_ns);

struct rbx_sim_cores_counters {
	uint64_t busy_ns; /* of all cores */
	uint64_t context_switches;
	uint64_t interrupts;
};

struct rbx_sim_cores_counters rbx_sim_cores_counters(void);

/* While a scenario is set up, fabric functions are called for this node; their cost is not
 * counted then. */
void rbx_sim_on_node(uint32_t node);

/* For rbx_nic_begin(). */
extern const struct rbx_nic_host rbx_sim_cores_host;

#endif
