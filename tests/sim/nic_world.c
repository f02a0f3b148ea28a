/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nic_world.c - see nic_world.h. */
#include "tests/sim/nic_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/sites.h"
#include "sim/trace.h"

#define EVENTS_MAX 4096u
#define FIRST_FD 1000000

uint32_t nic_world_node;
void (*nic_world_idle)(void);
uint64_t nic_world_spent_ns;
bool nic_world_frozen;

static const struct rbx_nic_params round_params = {
	.name = "round",
	.cores = 1,
	.post_wqe_ns = 10,
	.doorbell_ns = 20,
	.write_combine_line_ns = 30,
	.poll_empty_ns = 5,
	.poll_completion_ns = 7,
	.arm_ns = 3,
	.interrupt_ns = 200,
	.wake_ns = 300,
	.context_switch_ns = 100,
	.timeslice_ns = 10000,
	.preempt_ns = 1000,
	.copy_mbps = 8000,
	.register_ns = 1000,
	.register_page_ns = 2,
	.deregister_ns = 400,
	.page_bytes = 4096,
	.pcie_mbps = 8000,
	.pcie_read_ns = 1000,
	.pcie_write_ns = 100,
	.pcie_payload_bytes = 256,
	.pcie_read_bytes = 512,
	.write_combine_bytes_max = 64,
	.wqe_header_bytes = 36,
	.wqe_sge_bytes = 16,
	.wqe_fetch_bytes = 256,
	.wqe_cache_lines = 4096,
	.wqe_cache_ways = 8,
	.qp_cache_entries = 64,
	.qp_cache_ways = 8,
	.qp_context_bytes = 100,
	.translation_cache_lines = 4096,
	.translation_cache_ways = 8,
	.translation_line_pages = 8,
	.fills_at_once = 1,
	.units = 1,
	.send_wqe_ns = 50,
	.send_packet_ns = 10,
	.send_unit_mbps = 1000000,
	.receive_packet_ns = 40,
	.receive_read_ns = 60,
	.receive_ack_ns = 15,
	.link_mbps = 8000,
	.link_ns = 500,
	.mtu_bytes = 1000,
	.ack_bytes = 20,
	.reads_outstanding_max = 4,
	.retry_timeout_ns = 1000000,
	.retry_count = 2,
	.rnr_timer_ns = 20000,
	.rnr_retry_count = 3,
	.moderation_count = 1,
	.qp_max = 1024,
	.sge_max = 32,
	.inline_bytes_max = 220,
	.message_bytes_max = 1 << 30,
	.send_wr_max = 1024,
	.recv_wr_max = 1024,
};

static struct rbx_nic_params params;
static bool raised[EVENTS_MAX];
static int next_fd;

static uint32_t node(void)
{
	return nic_world_node;
}

static uint64_t now(void)
{
	return rbx_sim_now();
}

static void nothing(struct rbx_sim_event *event)
{
	(void)event;
}

void nic_world_pass(uint64_t time_ns)
{
	struct rbx_sim_event then = { .run = nothing };

	rbx_sim_after(&then, time_ns);
	while (rbx_sim_is_queued(&then))
		rbx_sim_step();
}

static void spend(uint64_t time_ns)
{
	nic_world_spent_ns += time_ns;
	if (!nic_world_frozen)
		nic_world_pass(time_ns);
}

static int open_event(void)
{
	assert_true(next_fd < (int)EVENTS_MAX);
	raised[next_fd] = false;
	return FIRST_FD + next_fd++;
}

static void close_event(int fd)
{
	raised[fd - FIRST_FD] = false;
}

static void raise_event(int fd)
{
	raised[fd - FIRST_FD] = true;
}

static void lower_event(int fd)
{
	raised[fd - FIRST_FD] = false;
}

static bool wait_event(int fd, uint64_t until_ns)
{
	struct rbx_sim_event then = { .run = nothing };

	rbx_sim_at(&then, until_ns);
	while (!raised[fd - FIRST_FD] && rbx_sim_is_queued(&then)) {
		rbx_sim_step();
		if (nic_world_idle)
			nic_world_idle();
	}
	rbx_sim_cancel(&then);
	return raised[fd - FIRST_FD];
}

static const struct rbx_nic_host host = {
	.node = node,
	.now = now,
	.spend = spend,
	.open_event = open_event,
	.close_event = close_event,
	.raise_event = raise_event,
	.lower_event = lower_event,
	.wait_event = wait_event,
};

struct rbx_nic_params *nic_world_begin(const char *name)
{
	char path[512], error[RBX_NIC_ERROR_MAX];

	rbx_sim_events_reset();
	rbx_sim_sites_reset(1);
	rbx_sim_trace_reset();
	next_fd = 0;
	nic_world_idle = NULL;
	nic_world_spent_ns = 0;
	nic_world_frozen = false;
	params = round_params;
	if (name) {
		snprintf(path, sizeof(path), "%s/%s.conf", RBX_NIC_GENERATIONS,
			 name);
		if (rbx_nic_params_read(path, &params, error))
			fail_msg("%s", error);
	}
	rbx_nic_begin(&params, &host);
	return &params;
}
