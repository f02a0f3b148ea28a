/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fiber.h - the threads of a simulation, for code that blocks.
 *
 * A fiber is a stack and a position in the code. One runs at a time, until it waits. Going on
 * is an event like any other, so virtual time alone decides which fiber runs next. What a
 * fiber does between two waits takes no virtual time.
 *
 * Each fiber belongs to a node, a simulated machine, and so do the fibers that it starts. A
 * node can stop: then its fibers never go on.
 *
 * Events that are not fibers (a completion arrives, a link heals) run on the main stack and
 * must not wait; rbx_sim_self() is NULL there.
 *
 * A fiber may be preempted at an atomic or a lock if the site `preempt` is on. Then others
 * run in between, as they might on a machine with many CPUs.
 */
#ifndef RBX_SIM_FIBER_H
#define RBX_SIM_FIBER_H

#include "core/port.h"
#include "sim/events.h"

/* A poller, a control and an upkeep thread for each of 64 peers, on 64 nodes. */
#define RBX_SIM_FIBERS_MAX 16384u
/* Most fibers use a page of it; the rest is never touched. */
#define RBX_SIM_STACK_BYTES (256u << 10)
/* Node 0 is the world: the load, the checks. Memory servers and clients follow. */
#define RBX_SIM_NODES_MAX 256u

struct rbx_sim_fiber;

/* Fibers that wait for the same thing, in order. Zeroed: none. */
struct rbx_sim_waiters {
	struct rbx_sim_fiber *first;
	struct rbx_sim_fiber *last;
};

/* Starts a fiber on a node. What main() returns is for rbx_sim_join(). */
struct rbx_sim_fiber *rbx_sim_spawn(uint32_t node, void *(*main)(void *arg),
				    void *arg);
/* Waits for its end and forgets it. */
void *rbx_sim_join(struct rbx_sim_fiber *fiber);

/* The fiber that runs; NULL: an event does. */
struct rbx_sim_fiber *rbx_sim_self(void);
/* The node of the fiber that runs; 0 in an event. */
uint32_t rbx_sim_node(void);

#define RBX_SIM_FOREVER UINT64_MAX

/* Waits until it is woken; false: until_ns came first. */
bool rbx_sim_wait(struct rbx_sim_waiters *waiters, uint64_t until_ns);
void rbx_sim_wake_one(struct rbx_sim_waiters *waiters);
void rbx_sim_wake_all(struct rbx_sim_waiters *waiters);
/* The same without a list: for one fiber whose pointer is known. */
bool rbx_sim_pause(uint64_t until_ns);
void rbx_sim_wake(struct rbx_sim_fiber *fiber);

void rbx_sim_sleep(uint64_t delay_ns);

/* Ends all fibers of a node at their present point. Not from one of them. */
void rbx_sim_node_stop(uint32_t node);
/* Its fibers go on no earlier than this. */
void rbx_sim_node_stall(uint32_t node, uint64_t until_ns);
/* Its clock runs faster by so many millionths, or slower if negative. */
#define RBX_SIM_SKEW_MAX 10000
void rbx_sim_node_skew(uint32_t node, int32_t of_a_million);
/* The present time of a node's clock. */
uint64_t rbx_sim_node_clock(uint32_t node);
/* The virtual time at which that clock will show clock_ns. */
uint64_t rbx_sim_node_time(uint32_t node, uint64_t clock_ns);

/* Before a run. */
void rbx_sim_fibers_init(uint64_t seed);

#endif
