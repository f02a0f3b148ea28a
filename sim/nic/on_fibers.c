/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * on_fibers.c - the model NIC under the simulator's own host: the library and the
 * server, whose threads are fibers.
 *
 * The fiber of a caller sleeps for the cost of a call. There is no limit of cores here: each
 * fiber has its own.
 */
#include "sim/nic/on_fibers.h"

#include "sim/descriptors.h"
#include "sim/fabric.h"
#include "sim/fail.h"
#include "sim/fiber.h"
#include "sim/hands.h"
#include "sim/nic/device.h"

static const struct rbx_nic_params *params;

/* A fiber that waits for an event; the structure is on its stack. */
static struct waiter {
	int fd;
	uint32_t node;
	struct rbx_sim_fiber *fiber;
	struct waiter *next;
} *waiters;

void rbx_sim_nic_choose(const struct rbx_nic_params *chosen)
{
	params = chosen;
}

static void spend(uint64_t time_ns)
{
	if (rbx_sim_self() && time_ns != 0)
		rbx_sim_sleep(time_ns);
}

static void raise_event(int fd)
{
	rbx_sim_descriptor_raise(fd, 1);
	for (struct waiter *waiter = waiters; waiter; waiter = waiter->next) {
		if (waiter->fd == fd)
			rbx_sim_wake(waiter->fiber);
	}
}

static void lower_event(int fd)
{
	(void)rbx_sim_descriptor_take(fd);
}

static void unlink_waiter(struct waiter *waiter)
{
	struct waiter **at = &waiters;

	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
}

static bool wait_event(int fd, uint64_t until_ns)
{
	struct waiter waiter = { fd, rbx_sim_node(), rbx_sim_self(), waiters };

	waiters = &waiter;
	while (!rbx_sim_descriptor_is_raised(fd) && rbx_sim_now() < until_ns)
		rbx_sim_pause(until_ns);
	unlink_waiter(&waiter);
	return rbx_sim_descriptor_is_raised(fd);
}

static const struct rbx_nic_host host = {
	.node = rbx_sim_node,
	.now = rbx_sim_now,
	.spend = spend,
	.open_event = rbx_sim_descriptor_open,
	.close_event = rbx_sim_descriptor_close,
	.raise_event = raise_event,
	.lower_event = lower_event,
	.wait_event = wait_event,
};

static struct rbx_fabric_ops ops;

static int open_device(const struct rbx_device_options *options,
		       struct rbx_device **device, char *error)
{
	int err = rbx_nic_open(options, device, error);

	if (!err)
		(*device)->ops = &ops;
	return err;
}

static int register_memory(struct rbx_device *device,
			   const struct rbx_mr_init *inits, size_t count,
			   struct rbx_mr **mrs, char *error)
{
	uint32_t node = rbx_nic_device_of(device)->node;
	int err = rbx_fabric_nic.register_memory(device, inits, count, mrs,
						 error);

	for (size_t i = 0; !err && i < count; i++)
		rbx_sim_hands_give(node, mrs[i], inits[i].domain,
				   inits[i].rights);
	return err;
}

static void deregister_memory(struct rbx_device *device, struct rbx_mr **mrs,
			      size_t count)
{
	for (size_t i = 0; i < count; i++)
		rbx_sim_hands_take(mrs[i]);
	rbx_fabric_nic.deregister_memory(device, mrs, count);
}

static void begin(uint64_t seed)
{
	(void)seed;
	ops = rbx_fabric_nic;
	ops.open = open_device;
	ops.register_memory = register_memory;
	ops.deregister_memory = deregister_memory;
	waiters = NULL;
	rbx_nic_begin(params, &host);
}

static void node_stop(uint32_t node)
{
	struct waiter **at = &waiters;

	while (*at) {
		if ((*at)->node == node)
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
	rbx_nic_node_stop(node);
	rbx_sim_hands_stop(node);
}

const struct rbx_sim_fabric rbx_sim_fabric_nic = {
	.ops = &ops,
	.begin = begin,
	.node_stop = node_stop,
	.node_cut = rbx_nic_node_cut,
};
