/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* descriptors.c - see descriptors.h. */
#include "sim/descriptors.h"

#include "sim/fiber.h"

struct descriptor {
	uint64_t count;
	struct rbx_sim_event raises; /* of a timer */
	struct rbx_sim_fiber *waiters[RBX_SIM_DESCRIPTOR_WAITERS_MAX]; /* in poll() */
	uint32_t waiters_count;
	int set; /* the set that it belongs to; 0: none */
	int members[RBX_SIM_DESCRIPTOR_MEMBERS_MAX]; /* of a set */
	uint32_t members_count;
	uint32_t node;
	bool is_open;
};

static struct descriptor table[RBX_SIM_DESCRIPTORS_MAX];
static uint32_t used, free_list[RBX_SIM_DESCRIPTORS_MAX], free_count;

static struct descriptor *descriptor_of(int fd)
{
	uint32_t index = (uint32_t)(fd - RBX_SIM_DESCRIPTOR_FIRST);

	RBX_ASSERT(index < used && table[index].is_open);
	return &table[index];
}

int rbx_sim_descriptor_open(void)
{
	uint32_t index;

	RBX_ASSERT(free_count != 0 || used < RBX_SIM_DESCRIPTORS_MAX);
	index = free_count ? free_list[--free_count] : used++;
	table[index] = (struct descriptor){ .node = rbx_sim_node(),
					    .is_open = true };
	return RBX_SIM_DESCRIPTOR_FIRST + (int)index;
}

void rbx_sim_descriptor_join(int set, int fd)
{
	struct descriptor *descriptor = descriptor_of(set);

	RBX_ASSERT(descriptor->members_count < RBX_SIM_DESCRIPTOR_MEMBERS_MAX);
	descriptor->members[descriptor->members_count++] = fd;
	descriptor_of(fd)->set = set;
}

/* A set is closed: it has no members any more. */
static void leave_members(struct descriptor *descriptor)
{
	for (uint32_t i = 0; i < descriptor->members_count; i++)
		descriptor_of(descriptor->members[i])->set = 0;
	descriptor->members_count = 0;
}

void rbx_sim_descriptor_close(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);

	RBX_ASSERT(descriptor->waiters_count == 0 && descriptor->set == 0);
	leave_members(descriptor);
	rbx_sim_cancel(&descriptor->raises);
	descriptor->is_open = false;
	free_list[free_count++] = (uint32_t)(fd - RBX_SIM_DESCRIPTOR_FIRST);
}

static void wake_waiters(const struct descriptor *descriptor)
{
	for (uint32_t i = 0; i < descriptor->waiters_count; i++)
		rbx_sim_wake(descriptor->waiters[i]);
}

void rbx_sim_descriptor_raise(int fd, uint64_t count)
{
	struct descriptor *descriptor = descriptor_of(fd);

	descriptor->count += count;
	wake_waiters(descriptor);
	if (descriptor->set != 0)
		wake_waiters(descriptor_of(descriptor->set));
}

static void raise_now(struct rbx_sim_event *event)
{
	struct descriptor *descriptor = RBX_CONTAINER_OF(event, struct descriptor, raises);

	rbx_sim_descriptor_raise(RBX_SIM_DESCRIPTOR_FIRST + (int)(descriptor - table), 1);
}

void rbx_sim_descriptor_raise_after(int fd, uint64_t delay_ns)
{
	struct rbx_sim_event *event = &descriptor_of(fd)->raises;

	event->run = raise_now;
	rbx_sim_after(event, delay_ns);
}

uint64_t rbx_sim_descriptor_take(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);
	uint64_t count = descriptor->count;

	descriptor->count = 0;
	return count;
}

bool rbx_sim_descriptor_is_raised(int fd)
{
	const struct descriptor *descriptor = descriptor_of(fd);

	for (uint32_t i = 0; i < descriptor->members_count; i++)
		if (descriptor_of(descriptor->members[i])->count != 0)
			return true;
	return descriptor->count != 0;
}

void rbx_sim_descriptor_wait_begin(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);

	RBX_ASSERT(descriptor->waiters_count < RBX_SIM_DESCRIPTOR_WAITERS_MAX);
	descriptor->waiters[descriptor->waiters_count++] = rbx_sim_self();
}

void rbx_sim_descriptor_wait_end(int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);
	uint32_t i = 0;

	while (descriptor->waiters[i] != rbx_sim_self())
		i++;
	descriptor->waiters[i] = descriptor->waiters[--descriptor->waiters_count];
}

void rbx_sim_descriptors_stop(uint32_t node)
{
	for (uint32_t i = 0; i < used; i++) {
		if (!table[i].is_open || table[i].node != node)
			continue;
		table[i].waiters_count = 0;
		if (table[i].set != 0)
			leave_members(descriptor_of(table[i].set));
		rbx_sim_descriptor_close(RBX_SIM_DESCRIPTOR_FIRST + (int)i);
	}
}
