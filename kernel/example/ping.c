/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ping.c - an example of kernel/api_endpoint.h: measures how long a message takes over a
 * connection. It is the counterpart of examples/ping.c (rdmabox_ping.ko).
 *
 *	insmod rdmabox_ping.ko listen=10.9.0.1:7480	and ping 10.9.0.1:7480
 *	ping --listen 10.9.0.1:7480	and insmod rdmabox_ping.ko connect=10.9.0.1:7480
 *
 * With `listen` it sends back what it receives, for one client after another, until it is
 * unloaded. With `connect` it sends messages and compares the answers; loading fails if
 * anything does. With both it sends to itself.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/api_endpoint.h"

#define BYTES 64u
#define WAIT_MS 30000u
#define LOOK_MS 200 /* how often it checks whether it is being unloaded */

static char *listen;
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "host:port, to answer there");
static char *connect;
module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "host:port, to ask there");
static char *device;
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device to listen on, if not by the address");
static uint pings = 1000;
module_param(pings, uint, 0444);
MODULE_PARM_DESC(pings, "how often is asked");
static bool paced;
module_param(paced, bool, 0444);
MODULE_PARM_DESC(paced, "share the window of the device with others");

struct side {
	struct rbx_protection_domain *domain;
	struct rbx_endpoint *endpoint;
	char *memory; /* first what is sent, then what is received */
	u64 dma;
	struct completion came; /* a message has come, or the connection has ended */
	int status; /* of the connection: 0 until it is over */
};

/* ---- Memory ---------------------------------------------------------------------*/

static struct ib_device *device_of(const struct side *side)
{
	return rbx_protection_domain_device(side->domain);
}

static void side_close(struct side *side)
{
	if (side->dma)
		ib_dma_unmap_single(device_of(side), side->dma, 2 * BYTES,
				    DMA_BIDIRECTIONAL);
	kfree(side->memory);
	rbx_protection_domain_destroy(side->domain);
	side->domain = NULL;
}

static int side_open(struct side *side, const char *address, const char *name)
{
	const struct rbx_protection_domain_options options = { .device = name };
	u64 dma;
	int err;

	*side = (struct side){ .domain = NULL };
	init_completion(&side->came);
	err = rbx_protection_domain_create(address, &options, &side->domain);
	if (err)
		return err;
	side->memory = kzalloc(2 * BYTES, GFP_KERNEL);
	if (!side->memory)
		goto out_close;
	dma = ib_dma_map_single(device_of(side), side->memory, 2 * BYTES,
				DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device_of(side), dma))
		goto out_close;
	side->dma = dma;
	return 0;

out_close:
	side_close(side);
	return -ENOMEM;
}

/* ---- Messages -------------------------------------------------------------------*/

static int receive(struct side *side, struct rbx_endpoint *endpoint)
{
	const struct rbx_segment segment = { side->dma + BYTES, BYTES };
	const struct rbx_receive one = { &segment, 1, side };

	ib_dma_sync_single_for_device(device_of(side), segment.address, BYTES,
				      DMA_FROM_DEVICE);
	return rbx_endpoint_receive(endpoint, &one, 1);
}

static int ping(struct side *side, struct rbx_endpoint *endpoint)
{
	const struct rbx_segment segment = { side->dma, BYTES };
	const struct rbx_operation one = {
		.kind = RBX_OPERATION_SEND,
		.flags = RBX_OPERATION_SILENT,
		.segments = &segment,
		.segments_count = 1,
		.user = side,
	};

	ib_dma_sync_single_for_device(device_of(side), segment.address, BYTES,
				      DMA_TO_DEVICE);
	return rbx_endpoint_post(endpoint, &one, 1);
}

/* False: not a message. The end of the connection completes the receive too. */
static bool is_message(struct side *side, const struct rbx_completion *completion)
{
	if (completion->status) {
		if (!side->status) /* later failures follow from the first */
			side->status = completion->status;
		complete(&side->came);
		return false;
	}
	if (completion->kind == RBX_COMPLETION_POSTED)
		return false;
	ib_dma_sync_single_for_cpu(device_of(side), side->dma + BYTES, BYTES,
				   DMA_FROM_DEVICE);
	return true;
}

/* ---- The side that answers ----------------------------------------------------*/

static struct side answering;
static struct rbx_endpoint_listener *listener;
static struct task_struct *answerer;

static void answer_completed(const struct rbx_completion *completion)
{
	struct side *side = rbx_endpoint_user(completion->endpoint);

	if (!is_message(side, completion))
		return;
	memcpy(side->memory, side->memory + BYTES, BYTES);
	if (receive(side, completion->endpoint) ||
	    ping(side, completion->endpoint))
		rbx_endpoint_disconnect(completion->endpoint);
}

static void answer_one(struct rbx_endpoint_request *request)
{
	const struct rbx_endpoint_options options = {
		.completed = answer_completed,
		.user = &answering,
		.paced = paced,
	};
	int err;

	answering.status = 0;
	reinit_completion(&answering.came);
	err = rbx_endpoint_accept(request, &options, NULL, &answering.endpoint);
	if (err) {
		pr_notice("rdmabox_ping: cannot accept (%d)\n", err);
		return;
	}
	err = receive(&answering, answering.endpoint);
	while (!err && !kthread_should_stop() &&
	       !wait_for_completion_timeout(&answering.came,
					    msecs_to_jiffies(LOOK_MS)))
		;
	rbx_endpoint_close(answering.endpoint);
}

static void answer_close(void)
{
	rbx_endpoint_listener_close(listener);
	if (answering.domain)
		side_close(&answering);
}

/* Runs until it is unloaded. The removal of a device waits for the domain. */
static int answer_main(void *unused)
{
	struct rbx_endpoint_request *request;
	int err = 0;

	while (!kthread_should_stop() && err != -ENODEV) {
		err = rbx_endpoint_next_request(listener, LOOK_MS, &request);
		if (!err)
			answer_one(request);
	}
	answer_close();
	while (!kthread_should_stop())
		schedule_timeout_idle(msecs_to_jiffies(LOOK_MS));
	return 0;
}

static int answer_begin(void)
{
	int err = side_open(&answering, listen, device);

	if (!err)
		err = rbx_endpoint_listen(answering.domain, listen, NULL, NULL,
					  &listener);
	if (!err) {
		pr_info("rdmabox_ping: listening on %s\n",
			rbx_endpoint_listener_address(listener));
		answerer = kthread_run(answer_main, NULL, "rdmabox_ping");
		err = PTR_ERR_OR_ZERO(answerer);
	}
	if (err)
		answer_close();
	return err;
}

/* ---- The side that asks -------------------------------------------------------*/

static void ask_completed(const struct rbx_completion *completion)
{
	struct side *side = rbx_endpoint_user(completion->endpoint);

	if (is_message(side, completion))
		complete(&side->came);
}

static int ask_once(struct side *side, uint number)
{
	int err;

	snprintf(side->memory, BYTES, "ping %u", number);
	err = ping(side, side->endpoint);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&side->came, msecs_to_jiffies(WAIT_MS)))
		return -ETIMEDOUT;
	if (side->status)
		return side->status;
	if (strcmp(side->memory, side->memory + BYTES))
		return -EBADMSG;
	return receive(side, side->endpoint);
}

static int ask_all(struct side *side)
{
	u64 begin_ns = ktime_get_ns();
	int err = receive(side, side->endpoint);
	uint i;

	for (i = 0; i < pings && !err; i++)
		err = ask_once(side, i);
	pr_info("rdmabox_ping: %u pings to %s, %llu ns there and back, status %d\n",
		i, rbx_endpoint_name(side->endpoint),
		div_u64(ktime_get_ns() - begin_ns, max(i, 1u)), err);
	return err;
}

static int ask(void)
{
	struct rbx_endpoint_options options = {
		.completed = ask_completed,
		.paced = paced,
	};
	struct side side;
	int err = side_open(&side, connect, NULL);

	if (err)
		return err;
	options.user = &side;
	err = rbx_endpoint_connect(side.domain, connect, &options, NULL, NULL,
				   &side.endpoint);
	if (!err) {
		err = ask_all(&side);
		rbx_endpoint_close(side.endpoint);
	}
	side_close(&side);
	return err;
}

/* ---- Both -----------------------------------------------------------------------*/

static int __init ping_init(void)
{
	int err = 0;

	if (!listen && !connect)
		return -EINVAL;
	if (listen)
		err = answer_begin();
	if (!err && connect) {
		err = ask();
		if (err && listen)
			kthread_stop(answerer);
	}
	return err;
}

static void __exit ping_exit(void)
{
	if (listen)
		kthread_stop(answerer);
}

module_init(ping_init);
module_exit(ping_exit);

MODULE_DESCRIPTION("RDMAbox: an example of its kernel API for connections");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
