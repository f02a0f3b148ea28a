/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keep_pages.c - an example of kernel/api.h: a module that keeps pages in remote memory
 * (rdmabox_example.ko).
 *
 * When it is loaded it opens a volume and writes all of it in I/Os of SEGMENTS pages, as
 * many at a time as the volume takes. Then it reads everything back and compares. If
 * anything is wrong, loading fails.
 *
 *	insmod rdmabox_example.ko servers=10.9.0.1:7471,10.9.0.1:7472 replicas=2
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "kernel/api.h"

#define SEGMENTS 8u
#define IOS 32u

static char *servers;
module_param(servers, charp, 0444);
MODULE_PARM_DESC(servers, "host:port,host:port");
static uint size_mb = 8;
module_param(size_mb, uint, 0444);
MODULE_PARM_DESC(size_mb, "size of the volume in MiB");
static uint replicas = 1;
module_param(replicas, uint, 0444);
MODULE_PARM_DESC(replicas, "copies of each page");
static uint queue_pairs = 1;
module_param(queue_pairs, uint, 0444);
MODULE_PARM_DESC(queue_pairs, "queue pairs for each server");
static char *secret;
module_param(secret, charp, 0400);
MODULE_PARM_DESC(secret, "the servers' secret; without it the network is trusted");

struct batch {
	struct rbx_io io;
	struct scatterlist sg[SEGMENTS];
	u8 *pages[SEGMENTS];
	struct completion done;
};

static void io_done(struct rbx_io *io)
{
	complete(&container_of(io, struct batch, io)->done);
}

/* The expected word at an offset: it differs for each word of each page. */
static u64 word_at(u64 offset_bytes)
{
	return (offset_bytes + 1) * 0x9e3779b97f4a7c15ull;
}

static void fill(struct batch *batch, bool with_words)
{
	u32 i, j;

	for (i = 0; i < SEGMENTS; i++) {
		u64 *words = (u64 *)batch->pages[i];
		u64 at = batch->io.offset_bytes + i * PAGE_SIZE;

		for (j = 0; j < PAGE_SIZE / 8; j++)
			words[j] = with_words ? word_at(at + 8 * j) : 0;
	}
}

static u32 wrong_words(const struct batch *batch)
{
	u32 i, j, wrong = 0;

	for (i = 0; i < SEGMENTS; i++) {
		const u64 *words = (const u64 *)batch->pages[i];
		u64 at = batch->io.offset_bytes + i * PAGE_SIZE;

		for (j = 0; j < PAGE_SIZE / 8; j++)
			wrong += words[j] != word_at(at + 8 * j);
	}
	return wrong;
}

static int start(struct rbx_volume *volume, struct batch *batch,
		 enum rbx_io_op op, u64 offset_bytes)
{
	u32 i;

	sg_init_table(batch->sg, SEGMENTS);
	for (i = 0; i < SEGMENTS; i++)
		sg_set_buf(&batch->sg[i], batch->pages[i], PAGE_SIZE);
	batch->io = (struct rbx_io){
		.op = op,
		.offset_bytes = offset_bytes,
		.sg = batch->sg,
		.sg_count = SEGMENTS,
		.done = io_done,
	};
	reinit_completion(&batch->done);
	fill(batch, op == RBX_IO_WRITE);
	return rbx_volume_submit(volume, &batch->io, NULL);
}

/* Waits for an I/O. *wrong: counts words that are not what was written. */
static int finish(struct batch *batch, u32 *wrong)
{
	wait_for_completion(&batch->done);
	if (!batch->io.status && batch->io.op == RBX_IO_READ)
		*wrong += wrong_words(batch);
	return batch->io.status;
}

/* Goes over the volume with IOS I/Os outstanding. */
static int pass(struct rbx_volume *volume, struct batch *batches,
		enum rbx_io_op op, u32 *wrong)
{
	u64 count = rbx_volume_size_bytes(volume) / (SEGMENTS * PAGE_SIZE), i;
	int err = 0, status;

	for (i = 0; i < count + IOS; i++) {
		struct batch *batch = &batches[i % IOS];

		if (i >= IOS && i - IOS < count && batch->io.done) {
			status = finish(batch, wrong);
			batch->io.done = NULL;
			err = err ? err : status;
		}
		if (i >= count || err)
			continue;
		err = start(volume, batch, op, i * SEGMENTS * PAGE_SIZE);
		if (err)
			batch->io.done = NULL;
	}
	return err;
}

static void batches_free(struct batch *batches)
{
	u32 i, j;

	for (i = 0; batches && i < IOS; i++)
		for (j = 0; j < SEGMENTS; j++)
			free_page((unsigned long)batches[i].pages[j]);
	kvfree(batches);
}

static struct batch *batches_make(void)
{
	struct batch *batches = kvcalloc(IOS, sizeof(*batches), GFP_KERNEL);
	u32 i, j;

	for (i = 0; batches && i < IOS; i++) {
		init_completion(&batches[i].done);
		for (j = 0; j < SEGMENTS; j++) {
			batches[i].pages[j] = (u8 *)__get_free_page(GFP_KERNEL);
			if (!batches[i].pages[j]) {
				batches_free(batches);
				return NULL;
			}
		}
	}
	return batches;
}

static void tell(struct rbx_volume *volume, u32 wrong, int err)
{
	struct rbx_volume_status status;

	rbx_volume_status(volume, &status);
	pr_info("rdmabox_example: %llu bytes written and read, %u words wrong, status %d\n",
		rbx_volume_size_bytes(volume), wrong, err);
	pr_info("rdmabox_example: %llu work requests, %llu doorbells, %llu merged, %llu completions, %llu polls, %llu wakeups\n",
		status.work_requests, status.doorbells, status.merged_requests,
		status.completions, status.polls, status.wakeups);
}

static int __init example_init(void)
{
	struct rbx_volume_options options;
	struct batch *batches;
	struct rbx_volume *volume;
	u32 wrong = 0;
	int err;

	rbx_volume_options_defaults(&options);
	options.servers = servers;
	options.size_bytes = (u64)size_mb << 20;
	options.replicas = replicas;
	options.queue_pairs = queue_pairs;
	options.secret = secret;
	options.secret_bytes = secret ? strlen(secret) : 0;
	options.insecure = !secret;
	batches = batches_make();
	if (!batches)
		return -ENOMEM;
	err = rbx_volume_open(&options, &volume);
	if (err)
		goto out_free;
	err = pass(volume, batches, RBX_IO_WRITE, &wrong);
	if (!err)
		err = pass(volume, batches, RBX_IO_READ, &wrong);
	tell(volume, wrong, err);
	if (!err && wrong)
		err = -EIO;
	rbx_volume_close(volume);
out_free:
	batches_free(batches);
	return err;
}

static void __exit example_exit(void)
{
}

module_init(example_init);
module_exit(example_exit);

MODULE_DESCRIPTION("RDMAbox: an example of its kernel API");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_VERSION(RBX_KERNEL_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
