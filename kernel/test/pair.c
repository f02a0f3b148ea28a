/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pair.c - makes pairs of connected endpoints, see pair.h. */
#include "kernel/test/pair.h"

#include <linux/slab.h>

/* ---- Completions ----------------------------------------------------------------*/

static void completed(const struct rbx_completion *completion)
{
	struct end *end = rbx_endpoint_user(completion->endpoint);

	if (end->hook)
		end->hook(end, completion);
	spin_lock(&end->lock);
	end->completions[end->told_count++ % PAIR_COMPLETIONS] = *completion;
	spin_unlock(&end->lock);
	wake_up(&end->told);
}

u32 end_told(struct end *end)
{
	u32 count;

	spin_lock(&end->lock);
	count = end->told_count - end->taken_count;
	spin_unlock(&end->lock);
	return count;
}

int next(struct end *end, struct rbx_completion *completion)
{
	if (!wait_event_timeout(end->told, end_told(end),
				msecs_to_jiffies(PAIR_WAIT_MS))) {
		pr_err("rdmabox_endpoint_test: nothing completes\n");
		return -ETIMEDOUT;
	}
	spin_lock(&end->lock);
	*completion = end->completions[end->taken_count++ % PAIR_COMPLETIONS];
	spin_unlock(&end->lock);
	return 0;
}

/* ---- Memory ---------------------------------------------------------------------*/

static struct ib_device *device_of(const struct end *end)
{
	return rbx_protection_domain_device(end->domain);
}

void fill(struct end *end, u32 offset, u32 length, u8 seed)
{
	u32 i;

	ib_dma_sync_single_for_cpu(device_of(end), end->dma, PAIR_MEMORY_BYTES,
				   DMA_BIDIRECTIONAL);
	for (i = 0; i < length; i++)
		end->memory[offset + i] = (u8)(seed + i);
	ib_dma_sync_single_for_device(device_of(end), end->dma,
				      PAIR_MEMORY_BYTES, DMA_BIDIRECTIONAL);
}

bool is_filled(struct end *end, u32 offset, u32 length, u8 seed)
{
	u32 i;

	ib_dma_sync_single_for_cpu(device_of(end), end->dma, PAIR_MEMORY_BYTES,
				   DMA_BIDIRECTIONAL);
	for (i = 0; i < length; i++)
		if (end->memory[offset + i] != (u8)(seed + i))
			return false;
	return true;
}

static int end_make(struct end *end, const char *address)
{
	int err;

	spin_lock_init(&end->lock);
	init_waitqueue_head(&end->told);
	err = rbx_protection_domain_create(address, NULL, &end->domain);
	if (err)
		return err;
	end->memory = kzalloc(PAIR_MEMORY_BYTES, GFP_KERNEL);
	if (!end->memory)
		return -ENOMEM;
	sg_init_one(&end->sg, end->memory, PAIR_MEMORY_BYTES);
	if (ib_dma_map_sg(device_of(end), &end->sg, 1, DMA_BIDIRECTIONAL) != 1)
		return -ENOMEM;
	end->dma = sg_dma_address(&end->sg);
	return 0;
}

static void end_free(struct end *end)
{
	rbx_endpoint_close(end->endpoint);
	if (end->dma)
		ib_dma_unmap_sg(device_of(end), &end->sg, 1, DMA_BIDIRECTIONAL);
	kfree(end->memory);
	if (rbx_protection_domain_destroy(end->domain))
		pr_err("rdmabox_endpoint_test: a domain stays in use\n");
}

/* ---- Connecting ----------------------------------------------------------------*/

static void answer(struct work_struct *work)
{
	struct pair *pair = container_of(work, struct pair, answer);
	struct rbx_endpoint_options options = pair->options;
	struct rbx_endpoint_request *request;
	const void *bytes;

	pair->accept_status = rbx_endpoint_next_request(
		pair->listener, (int)PAIR_WAIT_MS, &request);
	if (pair->accept_status)
		return;
	bytes = rbx_endpoint_request_data(request, &pair->heard_bytes);
	memcpy(pair->heard, bytes, pair->heard_bytes);
	if (pair->refuses) {
		rbx_endpoint_reject(request, &pair->far_says);
		return;
	}
	options.user = &pair->far;
	pair->accept_status = rbx_endpoint_accept(request, &options,
						  &pair->far_says,
						  &pair->far.endpoint);
}

int pair_connect(struct pair *pair)
{
	struct rbx_endpoint_options options = pair->options;
	struct rbx_endpoint_data answered = { pair->answered,
					      sizeof(pair->answered) };
	int err;

	options.user = &pair->near;
	queue_work(system_unbound_wq, &pair->answer);
	err = rbx_endpoint_connect(pair->near.domain, pair->address, &options,
				   &pair->near_says, &answered,
				   &pair->near.endpoint);
	pair->answered_bytes = answered.length_bytes;
	flush_work(&pair->answer);
	return err ? err : pair->accept_status;
}

int pair_make(struct pair *pair, const char *address)
{
	int err;

	memset(pair, 0, sizeof(*pair));
	INIT_WORK(&pair->answer, answer);
	pair->options = (struct rbx_endpoint_options){
		.completed = completed,
		.send_depth = PAIR_DEPTH,
		.receive_depth = PAIR_DEPTH,
		.segments = 4,
		.receive_segments = 4,
		.regions = 2,
		.region_pages = PAIR_MEMORY_BYTES / PAGE_SIZE + 1,
	};
	err = end_make(&pair->near, address);
	if (!err)
		err = end_make(&pair->far, address);
	if (!err)
		err = rbx_endpoint_listen(pair->far.domain, address, NULL, NULL,
					  &pair->listener);
	if (!err)
		pair->address = rbx_endpoint_listener_address(pair->listener);
	return err;
}

void pair_free(struct pair *pair)
{
	rbx_endpoint_listener_close(pair->listener);
	if (pair->near.domain)
		end_free(&pair->near);
	if (pair->far.domain)
		end_free(&pair->far);
}

/* ---- Posting --------------------------------------------------------------------*/

int post_receive(struct end *end, u32 offset, u32 length)
{
	const struct rbx_segment segment = { end->dma + offset, length };
	const struct rbx_receive one = { &segment, 1, &end->memory[offset] };

	return rbx_endpoint_receive(end->endpoint, &one, 1);
}

int post(struct end *end, const struct rbx_operation *operation, u32 offset,
	 u32 length)
{
	const struct rbx_segment segment = { end->dma + offset, length };
	struct rbx_operation one = *operation;

	one.segments = &segment;
	one.segments_count = length ? 1 : 0;
	one.user = &end->memory[offset];
	return rbx_endpoint_post(end->endpoint, &one, 1);
}

int post_and_wait(struct end *end, const struct rbx_operation *operation,
		  u32 offset, u32 length)
{
	struct rbx_completion completion;
	int err = post(end, operation, offset, length);

	if (!err)
		err = next(end, &completion);
	if (err)
		return err;
	CHECK(completion.kind == RBX_COMPLETION_POSTED);
	CHECK(completion.user == &end->memory[offset]);
	return completion.status;
}

int export(struct end *end, u32 rights, struct rbx_region **region,
	   struct rbx_region_key *key)
{
	struct rbx_operation begin = { .kind = RBX_OPERATION_EXPORT };
	int err = rbx_region_take(end->endpoint, &end->sg, 1, rights, region);

	if (err)
		return err;
	rbx_region_key(*region, key);
	begin.region = *region;
	return post_and_wait(end, &begin, 0, 0);
}
