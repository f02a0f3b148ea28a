/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * talk.c - an example of kernel/api_peer.h: a module that exchanges messages with the
 * program of a server (rdmabox_talk.ko).
 *
 * When it is loaded it plays ball with examples/messages.c: it sends a message, and its
 * message handler answers each message, until there were `throws` of them. Then it
 * borrows memory, writes a page there by plain verbs on its own queue pair, reads it back
 * and compares. Loading fails if anything does. With keep=1 it stays connected until it
 * is unloaded. The queue pair then stays until the connection ends or the RDMA device is
 * removed; the removal waits for this.
 *
 *	messages serve 10.9.0.1:7471 secret-file &
 *	insmod rdmabox_talk.ko server=10.9.0.1:7471 secret=...
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "kernel/api_peer.h"

#define WAIT_MS 60000u

static char *server;
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "host:port");
static uint throws = 100;
module_param(throws, uint, 0444);
MODULE_PARM_DESC(throws, "how often the ball is thrown; 0: the server need not play");

static bool rude;
module_param(rude, bool, 0444);
MODULE_PARM_DESC(rude, "the message handler tries to wait, which is refused");

static bool keep;
module_param(keep, bool, 0444);
MODULE_PARM_DESC(keep, "the queue pair stays until it is told that it has ended");

static char *secret;
module_param(secret, charp, 0400);
MODULE_PARM_DESC(secret, "the server's secret; without it the network is trusted");

/* ---- Messages -------------------------------------------------------------------*/

/* A message: how often the ball was thrown. */
struct game {
	u64 thrown;
	int status; /* of the first throw that failed */
	struct completion over;
};

static void throw_done(int status, void *user)
{
	struct game *game = user;

	if (!status)
		return;
	game->status = status;
	complete(&game->over);
}

/* Calls that wait for the thread that runs the handler. */
static int try_to_wait(struct rbx_peer *peer)
{
	struct rbx_remote remote = { 0 };

	if (rbx_message_send(peer, "?", 1) != -EDEADLK ||
	    rbx_borrow(peer, &remote) != -EDEADLK ||
	    rbx_return(peer, &remote) != -EDEADLK)
		return -ENOTRECOVERABLE;
	return 0;
}

static void ball_comes(struct rbx_peer *peer, const void *data, size_t length,
		       void *user)
{
	struct game *game = user;
	u64 thrown;

	if (length != sizeof(thrown))
		return;
	memcpy(&thrown, data, sizeof(thrown));
	if (rude && try_to_wait(peer)) {
		throw_done(-ENOTRECOVERABLE, game);
		return;
	}
	if (thrown != game->thrown) {
		throw_done(-EPROTO, game); /* a message was lost, or came twice */
		return;
	}
	if (++game->thrown >= throws) {
		complete(&game->over);
		return;
	}
	if (rbx_message_submit(peer, &game->thrown, sizeof(game->thrown),
			       throw_done, game))
		throw_done(-EAGAIN, game);
}

static int play(struct rbx_peer *peer, struct game *game)
{
	int err = rbx_peer_on_message(peer, ball_comes, game);

	if (!err)
		err = rbx_message_send(peer, &game->thrown,
				       sizeof(game->thrown));
	if (err)
		return err;
	if (!wait_for_completion_timeout(&game->over,
					 msecs_to_jiffies(WAIT_MS)))
		return -ETIMEDOUT;
	return game->status;
}

/* ---- Plain verbs ----------------------------------------------------------------*/

struct step {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void step_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct step *step = container_of(wc->wr_cqe, struct step, cqe);

	step->status = wc->status;
	complete(&step->done);
}

static int move(struct ib_qp *qp, enum ib_wr_opcode opcode, u64 dma, u32 lkey,
		const struct rbx_remote *remote)
{
	struct step step = { .cqe.done = step_done };
	struct ib_sge sge = { .addr = dma, .length = PAGE_SIZE, .lkey = lkey };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &step.cqe,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = remote->address,
		.rkey = remote->rkey,
	};
	int err;

	init_completion(&step.done);
	err = ib_post_send(qp, &wr.wr, NULL);
	if (err)
		return err;
	wait_for_completion(&step.done);
	return step.status == IB_WC_SUCCESS ? 0 : -EIO;
}

static u32 word_at(u32 i)
{
	return i * 2654435761u + 1;
}

/* Writes the page, and reads it back. */
static int page_goes(struct ib_qp *qp, struct ib_pd *pd,
		     const struct rbx_remote *remote, u32 *page)
{
	struct ib_device *device = pd->device;
	u64 dma = ib_dma_map_single(device, page, PAGE_SIZE, DMA_BIDIRECTIONAL);
	u32 i;
	int err;

	if (ib_dma_mapping_error(device, dma))
		return -ENOMEM;
	ib_dma_sync_single_for_cpu(device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	for (i = 0; i < PAGE_SIZE / 4; i++)
		page[i] = word_at(i);
	ib_dma_sync_single_for_device(device, dma, PAGE_SIZE,
				      DMA_BIDIRECTIONAL);
	err = move(qp, IB_WR_RDMA_WRITE, dma, pd->local_dma_lkey, remote);
	ib_dma_sync_single_for_cpu(device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	memset(page, 0, PAGE_SIZE);
	ib_dma_sync_single_for_device(device, dma, PAGE_SIZE,
				      DMA_BIDIRECTIONAL);
	if (!err)
		err = move(qp, IB_WR_RDMA_READ, dma, pd->local_dma_lkey,
			   remote);
	ib_dma_unmap_single(device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	for (i = 0; !err && i < PAGE_SIZE / 4; i++)
		err = page[i] == word_at(i) ? 0 : -EBADMSG;
	return err;
}

/* The queue pair and its completion queue. */
static struct plain {
	struct ib_cq *cq;
	struct rbx_verbs_link *link; /* or NULL */
	struct completion used; /* the page was written and read, or this failed */
	struct work_struct close;
} plain;

static void plain_close(struct work_struct *work)
{
	wait_for_completion(&plain.used);
	if (!plain.link)
		return;
	rbx_verbs_link_close(plain.link);
	ib_free_cq(plain.cq);
	plain.link = NULL;
	pr_info("rdmabox_talk: the queue pair is closed\n");
}

/* It may be called while the queue pair is in use, and must not wait for that. */
static void plain_ended(void *user)
{
	schedule_work(&plain.close);
}

static int plain_open(struct rbx_peer *peer)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		/* One to use, and one more on either side for the drain. */
		.cap = {
			.max_send_wr = 2,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_pd *pd = rbx_peer_pd(peer);
	struct rbx_verbs_link *link;
	int err;

	if (!pd)
		return -ENODEV;
	plain.cq = ib_alloc_cq(pd->device, NULL, 3, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(plain.cq))
		return PTR_ERR(plain.cq);
	init.send_cq = plain.cq;
	init.recv_cq = plain.cq;
	err = rbx_verbs_link_open(peer, &init, plain_ended, NULL, &link);
	if (err)
		ib_free_cq(plain.cq);
	else
		plain.link = link;
	return err;
}

/* Once a queue pair is closed, ended() is not called any more. */
static void plain_end(void)
{
	schedule_work(&plain.close);
	flush_work(&plain.close);
	cancel_work_sync(&plain.close);
}

static int plain_verbs(struct rbx_peer *peer, const struct rbx_remote *remote,
		       u32 *page)
{
	int err;

	init_completion(&plain.used);
	INIT_WORK(&plain.close, plain_close);
	err = plain_open(peer);
	if (!err)
		err = page_goes(rbx_verbs_link_qp(plain.link),
				rbx_peer_pd(peer), remote, page);
	complete_all(&plain.used);
	if (err || !keep)
		plain_end();
	return err;
}

static int use_memory(struct rbx_peer *peer)
{
	u32 *page = (u32 *)__get_free_page(GFP_KERNEL);
	struct rbx_remote remote;
	int err, returned;

	if (!page)
		return -ENOMEM;
	err = rbx_borrow(peer, &remote);
	if (!err) {
		err = plain_verbs(peer, &remote, page);
		/* The queue pair may stay, as nothing more is posted on it. */
		returned = rbx_return(peer, &remote);
		err = err ? err : returned;
	}
	free_page((unsigned long)page);
	return err;
}

/* ---- Both -----------------------------------------------------------------------*/

static struct rbx_peer *kept;
static struct game game;

static int __init talk_init(void)
{
	const struct rbx_peer_options options = {
		.server = server,
		.peer_timeout_ms = 5000,
		.secret = secret,
		.secret_bytes = secret ? strlen(secret) : 0,
		.insecure = !secret,
	};
	struct rbx_peer *peer;
	int err;

	init_completion(&game.over);
	err = rbx_peer_connect(&options, &peer);
	if (err)
		return err;
	err = throws ? play(peer, &game) : 0;
	pr_info("rdmabox_talk: %llu throws, status %d\n", game.thrown, err);
	if (!err) {
		err = use_memory(peer);
		pr_info("rdmabox_talk: a page by plain verbs, status %d\n",
			err);
	}
	if (!err && keep)
		kept = peer;
	else
		rbx_peer_disconnect(peer);
	return err;
}

static void __exit talk_exit(void)
{
	if (!kept)
		return;
	plain_end();
	rbx_peer_disconnect(kept);
}

module_init(talk_init);
module_exit(talk_exit);

MODULE_DESCRIPTION("RDMAbox: an example of its kernel API for messages and verbs");
MODULE_AUTHOR("The RDMAbox authors");
MODULE_LICENSE("Dual BSD/GPL");
