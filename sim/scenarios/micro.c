/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* micro.c - see micro.h. */
#include "sim/scenarios/micro.h"

#include <stdlib.h>

#include "core/limits.h"
#include "sim/scenarios/wires.h"

#define POLL_MAX 16
#define CHAIN_MAX 64u
#define WARM_UP_PERCENT 50u /* of the measured time, before it */

/* A chain that is under way. */
struct chain {
	uint64_t posted_ns;
};

struct asker_qp {
	struct rbx_qp *qp;
	uint32_t posted_count; /* chains */
	uint32_t completed_count;
	struct chain *chains; /* depth of them */
};

struct asker {
	struct rbx_sim_thread thread;
	const struct rbx_micro *load;
	struct rbx_cq *cq;
	struct rbx_mr *from;
	struct rbx_mr *to;
	struct asker_qp *qps;
	uint32_t next_qp;
	uint64_t done_count;
	uint64_t waited_ns;
};

static uint32_t chains_max(const struct rbx_micro *load)
{
	return load->depth_count / load->chain_count;
}

static void post(struct asker *asker, struct asker_qp *pair)
{
	const struct rbx_micro *load = asker->load;
	struct rbx_sge sge = {
		.addr = (uintptr_t)asker->from->addr,
		.length_bytes = load->bytes,
		.lkey = asker->from->lkey,
	};
	struct rbx_wr wrs[CHAIN_MAX], *bad;
	int err;

	for (uint32_t i = 0; i < load->chain_count; i++)
		wrs[i] = (struct rbx_wr){
			.next = &wrs[i + 1],
			.wr_id = pair->posted_count,
			.sges = &sge,
			.sge_count = 1,
			.opcode = load->opcode,
			.flags = load->is_inline ? RBX_WR_INLINE : 0,
			.rkey = asker->to->rkey,
			.remote_addr = (uintptr_t)asker->to->addr,
		};
	wrs[load->chain_count - 1].next = NULL;
	pair->chains[pair->posted_count++ % chains_max(load)].posted_ns =
		rbx_sim_thread_now();
	if (pair->posted_count % load->signal_count == 0)
		wrs[load->chain_count - 1].flags |= RBX_WR_SIGNALED;
	err = pair->qp->device->ops->post_send(pair->qp, wrs, &bad);
	RBX_ASSERT(!err);
}

static void take(struct asker *asker, const struct rbx_wc *wc)
{
	const struct rbx_micro *load = asker->load;
	struct asker_qp *pair = wc->qp->user;

	RBX_ASSERT(wc->status == 0);
	for (; pair->completed_count != wc->wr_id + 1; pair->completed_count++) {
		const struct chain *chain =
			&pair->chains[pair->completed_count % chains_max(load)];

		asker->done_count += load->chain_count;
		asker->waited_ns += load->chain_count *
				    (rbx_sim_thread_now() - chain->posted_ns);
	}
}

/* Posts if there is room, on one queue pair after the other; else polls. */
static enum rbx_sim_step step(struct rbx_sim_thread *thread)
{
	struct asker *asker = RBX_CONTAINER_OF(thread, struct asker, thread);
	const struct rbx_micro *load = asker->load;
	struct rbx_wc wcs[POLL_MAX];
	int count;

	for (uint32_t i = 0; i < load->qps_count; i++) {
		struct asker_qp *pair = &asker->qps[(asker->next_qp + i) %
						  load->qps_count];

		if (pair->posted_count - pair->completed_count <
		    chains_max(load)) {
			asker->next_qp += i + 1;
			post(asker, pair);
			return RBX_SIM_GO_ON;
		}
	}
	count = asker->cq->device->ops->poll(asker->cq, wcs, POLL_MAX);
	for (int i = 0; i < count; i++)
		take(asker, &wcs[i]);
	return RBX_SIM_GO_ON;
}

static void open_asker(struct asker *asker, const struct rbx_micro *load,
		       struct rbx_device *client, struct rbx_device *server,
		       struct rbx_cq *server_cq)
{
	uint32_t qps_count = load->qps_count;
	struct rbx_qp_init init = {
		.send_depth_count = load->depth_count,
		.max_sge = 1,
		.max_inline_bytes = load->is_inline ? load->bytes : 0,
	};

	asker->load = load;
	asker->thread.step = step;
	asker->cq = rbx_sim_wires_cq(client, qps_count * load->depth_count);
	asker->from = rbx_sim_wires_memory(client, load->bytes);
	asker->to = rbx_sim_wires_memory(server, load->bytes);
	asker->qps = rbx_sim_take(qps_count, sizeof(*asker->qps));
	for (uint32_t i = 0; i < qps_count; i++) {
		struct asker_qp *pair = &asker->qps[i];
		struct rbx_qp_init server_init = { .send_depth_count = 1 };
		struct rbx_qp *other;

		init.send_cq = init.recv_cq = asker->cq;
		init.user = pair;
		server_init.send_cq = server_init.recv_cq = server_cq;
		pair->chains = rbx_sim_take(chains_max(load),
					    sizeof(*pair->chains));
		rbx_sim_wires_connect(client, &init, &pair->qp, server,
				      &server_init, &other);
	}
	rbx_sim_thread_add(&asker->thread);
	rbx_sim_thread_wake(&asker->thread);
}

static void close_asker(struct asker *asker)
{
	for (uint32_t i = 0; i < asker->load->qps_count; i++)
		free(asker->qps[i].chains);
	free(asker->qps);
}

static void sum(const struct asker *askers, uint32_t count, uint64_t *done_count,
		uint64_t *waited_ns)
{
	*done_count = *waited_ns = 0;
	for (uint32_t i = 0; i < count; i++) {
		*done_count += askers[i].done_count;
		*waited_ns += askers[i].waited_ns;
	}
}

void rbx_micro_run(const struct rbx_setting *setting,
		   const struct rbx_micro *load,
		   struct rbx_micro_result *result)
{
	uint32_t count = load->machines_count * load->threads_count;
	struct asker *askers = rbx_sim_take(count, sizeof(*askers));
	struct rbx_nic_params params = *setting->params;
	uint64_t warm_ns = load->measured_ns * WARM_UP_PERCENT / 100;
	uint64_t done_before, waited_before, done_count, waited_ns;
	struct rbx_device *server;
	struct rbx_cq *server_cq;

	RBX_ASSERT(load->chain_count <= CHAIN_MAX &&
		   load->chain_count * load->signal_count <= load->depth_count);
	params.cores = count;
	rbx_sim_wires_begin(&params);
	server = rbx_sim_wires_device(0);
	server_cq = rbx_sim_wires_cq(server, 1);
	for (uint32_t machine = 0; machine < load->machines_count; machine++) {
		struct rbx_device *client = rbx_sim_wires_device(machine + 1);

		for (uint32_t i = 0; i < load->threads_count; i++)
			open_asker(&askers[machine * load->threads_count + i],
				   load, client, server, server_cq);
	}
	rbx_sim_run_until(warm_ns);
	sum(askers, count, &done_before, &waited_before);
	rbx_sim_run_until(warm_ns + load->measured_ns);
	sum(askers, count, &done_count, &waited_ns);
	done_count -= done_before;
	result->per_second = done_count * 1000000 / (load->measured_ns / 1000);
	result->bytes_per_second = result->per_second * load->bytes;
	result->latency_ns = (waited_ns - waited_before) /
			     RBX_MAX(done_count, 1u);
	rbx_sim_wires_end();
	for (uint32_t i = 0; i < count; i++)
		close_asker(&askers[i]);
	free(askers);
}
