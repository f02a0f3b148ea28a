/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * one_sided.c - an example of kernel/api_endpoint.h: a module lends its memory to another
 * program, or writes to memory that it lends. It is the counterpart of
 * examples/one_sided.c (rdmabox_one_sided.ko).
 *
 *	insmod rdmabox_one_sided.ko listen=10.9.0.1:7480	lends to a program that connects
 *	insmod rdmabox_one_sided.ko connect=10.9.0.1:7480	borrows
 *
 * The lender exports a page and sends its key, both in one chain. The borrower writes to
 * the page; the immediate of the same WRITE reports this. Then the export ends, in a
 * chain with the message that says so. The next WRITE is denied, and the memory stays as
 * it was. A lender that is a program sends its key when it accepts instead. Loading fails
 * if anything goes wrong.
 */
#include <linux/kfifo.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "kernel/api_endpoint.h"

#define NUMBER 42u
#define WAIT_MS 30000u
#define TEXT_AT 1024u /* in the page: the text to write; a key is received at 0 */

static char *listen;
module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "host:port, to lend there");
static char *connect;
module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "host:port, to borrow there");

static struct rbx_protection_domain *domain;
static struct rbx_endpoint *endpoint;
static char *page;
static struct scatterlist sg; /* of the page, mapped */

/* One thread puts in, one takes out, so it needs no lock. */
static DEFINE_KFIFO(completions, struct rbx_completion, 64);
static DECLARE_WAIT_QUEUE_HEAD(told);

static void completed(const struct rbx_completion *completion)
{
	kfifo_put(&completions, *completion);
	wake_up(&told);
}

static int next(struct rbx_completion *completion)
{
	return wait_event_timeout(told, kfifo_get(&completions, completion),
				  msecs_to_jiffies(WAIT_MS)) ?
		       0 :
		       -ETIMEDOUT;
}

/* Takes the next completion that is not of our own operation. -EIO: the connection is
 * over. */
static int next_message(struct rbx_completion *completion)
{
	int err;

	do
		err = next(completion);
	while (!err && !completion->status &&
	       completion->kind == RBX_COMPLETION_POSTED);
	return err ? err : completion->status;
}

static void sync_for_cpu(void)
{
	ib_dma_sync_single_for_cpu(rbx_protection_domain_device(domain),
				   sg_dma_address(&sg), PAGE_SIZE,
				   DMA_BIDIRECTIONAL);
}

static void sync_for_device(void)
{
	ib_dma_sync_single_for_device(rbx_protection_domain_device(domain),
				      sg_dma_address(&sg), PAGE_SIZE,
				      DMA_BIDIRECTIONAL);
}

static int receive(u32 length_bytes)
{
	const struct rbx_segment segment = { sg_dma_address(&sg), length_bytes };
	const struct rbx_receive one = { &segment, 1, NULL };

	return rbx_endpoint_receive(endpoint, &one, 1);
}

/* ---- The lender --------------------------------------------------------------*/

/* The key works before the message with it is sent. */
static int tell_key(struct rbx_region *region)
{
	const struct rbx_segment key = { sg_dma_address(&sg),
					 sizeof(struct rbx_region_key) };
	const struct rbx_operation chain[] = {
		{ .kind = RBX_OPERATION_EXPORT,
		  .flags = RBX_OPERATION_SILENT,
		  .region = region },
		{ .kind = RBX_OPERATION_SEND,
		  .segments = &key,
		  .segments_count = 1 },
	};

	rbx_region_key(region, (struct rbx_region_key *)page);
	sync_for_device();
	return rbx_endpoint_post(endpoint, chain, ARRAY_SIZE(chain));
}

/* The key has ended before the message that says so is sent. */
static int end_key(struct rbx_region *region)
{
	const struct rbx_operation chain[] = {
		{ .kind = RBX_OPERATION_END_EXPORT, .region = region },
		{ .kind = RBX_OPERATION_SEND, .flags = RBX_OPERATION_SILENT },
	};

	return rbx_endpoint_post(endpoint, chain, ARRAY_SIZE(chain));
}

static int lend_page(void)
{
	struct rbx_completion completion;
	struct rbx_region *region;
	int err = rbx_region_take(endpoint, &sg, 1, RBX_REGION_WRITE, &region);

	if (!err)
		err = receive(0);
	if (!err)
		err = tell_key(region);
	if (!err)
		err = next_message(&completion);
	if (err)
		return err;
	sync_for_cpu();
	pr_info("rdmabox_one_sided: %u bytes came, and the number %u: %.32s\n",
		completion.length_bytes, completion.immediate, page);
	err = receive(0);
	if (!err)
		err = end_key(region);
	if (err)
		return err;
	while (!next_message(&completion))
		; /* until the other side has failed */
	sync_for_cpu();
	pr_info("rdmabox_one_sided: the export has ended, and still it says: %.32s\n",
		page);
	return rbx_region_release(region);
}

static int lend(const struct rbx_endpoint_options *options)
{
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;
	int err = rbx_endpoint_listen(domain, listen, NULL, NULL, &listener);

	if (err)
		return err;
	pr_info("rdmabox_one_sided: listening on %s\n",
		rbx_endpoint_listener_address(listener));
	err = rbx_endpoint_next_request(listener, (int)WAIT_MS, &request);
	if (!err)
		err = rbx_endpoint_accept(request, options, NULL, &endpoint);
	rbx_endpoint_listener_close(listener);
	if (err)
		return err;
	err = lend_page();
	rbx_endpoint_close(endpoint);
	return err;
}

/* ---- The borrower ------------------------------------------------------------*/

static int write_text(const struct rbx_region_key *to, const char *text)
{
	const struct rbx_segment segment = { sg_dma_address(&sg) + TEXT_AT,
					     (u32)strlen(text) + 1 };
	const struct rbx_operation write = {
		.kind = RBX_OPERATION_WRITE,
		.flags = RBX_OPERATION_IMMEDIATE,
		.immediate = NUMBER,
		.segments = &segment,
		.segments_count = 1,
		.key = to->key,
		.address = to->address,
	};

	strscpy(page + TEXT_AT, text, PAGE_SIZE - TEXT_AT);
	sync_for_device();
	return rbx_endpoint_post(endpoint, &write, 1);
}

/* The failure ends the connection, and so the receives too. */
static int write_is_denied(const struct rbx_region_key *to)
{
	struct rbx_completion completion;
	int err = write_text(to, "too late");

	do {
		if (!err)
			err = next(&completion);
		if (err)
			return err;
	} while (completion.kind != RBX_COMPLETION_POSTED);
	/* The connection may end before the denial arrives. */
	return completion.status == -EACCES || completion.status == -ECANCELED ?
		       0 :
		       -EBADMSG;
}

static int borrow_page(struct rbx_region_key *key)
{
	struct rbx_completion completion;
	int err = receive(sizeof(*key)), i;

	if (!err && !key->length_bytes) { /* it comes in a message */
		err = next_message(&completion);
		if (err)
			return err;
		sync_for_cpu();
		memcpy(key, page, sizeof(*key));
		err = receive(0);
	}
	if (!err)
		err = write_text(key, "hello");
	/* The completion of the write, and the message that the export has ended, in
	 * either order. */
	for (i = 0; i < 2 && !err; i++)
		err = next(&completion) ?: completion.status;
	if (!err)
		err = write_is_denied(key);
	if (!err)
		pr_info("rdmabox_one_sided: written; and denied when the export had ended\n");
	return err;
}

static int borrow(const struct rbx_endpoint_options *options)
{
	struct rbx_region_key key = { 0 };
	struct rbx_endpoint_data answer = { &key, sizeof(key) };
	int err = rbx_endpoint_connect(domain, connect, options, NULL, &answer,
				       &endpoint);

	if (err)
		return err;
	err = borrow_page(&key);
	rbx_endpoint_close(endpoint);
	return err;
}

/* ---- Both -----------------------------------------------------------------------*/

static int with_page(const struct rbx_endpoint_options *options)
{
	struct ib_device *device = rbx_protection_domain_device(domain);
	int err = -ENOMEM;

	page = (char *)get_zeroed_page(GFP_KERNEL);
	if (!page)
		return err;
	sg_init_one(&sg, page, PAGE_SIZE);
	if (ib_dma_map_sg(device, &sg, 1, DMA_BIDIRECTIONAL) == 1) {
		err = listen ? lend(options) : borrow(options);
		ib_dma_unmap_sg(device, &sg, 1, DMA_BIDIRECTIONAL);
	}
	free_page((unsigned long)page);
	return err;
}

static int __init one_sided_init(void)
{
	const struct rbx_endpoint_options options = {
		.completed = completed,
		.regions = 1,
	};
	int err;

	if (!listen == !connect)
		return -EINVAL;
	err = rbx_protection_domain_create(listen ?: connect, NULL, &domain);
	if (err)
		return err;
	err = with_page(&options);
	rbx_protection_domain_destroy(domain);
	pr_info("rdmabox_one_sided: status %d\n", err);
	return err;
}

static void __exit one_sided_exit(void)
{
}

module_init(one_sided_init);
module_exit(one_sided_exit);

MODULE_DESCRIPTION("RDMAbox: an example of its kernel API for memory that others reach");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
