/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_beside.c - requests of RDMAbox and plain verbs on the same memory.
 *
 *	cc verbs_beside.c -o verbs-beside \
 *		$(pkg-config --cflags --libs rdmabox libibverbs)
 *	./verbs-beside 10.9.0.1:7471 [SECRET-FILE]
 *
 * It borrows two halves of remote memory. The first is written by a request of
 * RDMAbox and read by a plain RDMA READ; the second is written by a plain RDMA
 * WRITE and read by a request. Each is compared with what was written.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/verbs.h>

#define HALF 65536u

/* Our memory that the NIC may use: sent and received data. */
static unsigned char sent[HALF], came[HALF];

/* What plain verbs need. */
struct plain {
	struct ibv_cq *cq;
	struct ibv_mr *sent, *came;
	struct rbx_verbs_link *link;
};

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "verbs-beside: %s: %s\n", what, why);
	return -1;
}

static int compare(const char *what)
{
	if (memcmp(sent, came, HALF))
		return complain(what, "not what was written");
	printf("%s: %u bytes as written\n", what, HALF);
	return 0;
}

/* ---- RDMAbox: a request, with a wait ------------------------------------------ */

static int request(struct rbx_context *ctx, struct rbx_remote *remote,
		   enum rbx_op op, void *buf, uint64_t offset)
{
	struct rbx_request request = {
		.op = (uint8_t)op, .length_bytes = HALF, .offset = offset,
		.buf = buf,
	};
	struct rbx_request *list[] = { &request }, *done;

	if (rbx_remote_submit(remote, list, 1))
		return complain("cannot submit", rbx_last_error());
	rbx_reap(ctx, &done, 1, -1);
	return request.status ? complain("a request failed",
					 strerror(-request.status)) : 0;
}

/* ---- Plain verbs: a work request, with a wait ---------------------------------- */

static int plain_open(struct plain *plain, struct rbx_peer *peer)
{
	struct rbx_verbs verbs = { .size_bytes = sizeof(verbs) };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};

	if (rbx_peer_verbs(peer, &verbs))
		return complain("no plain verbs", rbx_last_error());
	plain->cq = ibv_create_cq(verbs.context, 1, NULL, NULL, 0);
	plain->sent = ibv_reg_mr(verbs.pd, sent, HALF, 0);
	plain->came = ibv_reg_mr(verbs.pd, came, HALF, IBV_ACCESS_LOCAL_WRITE);
	if (!plain->cq || !plain->sent || !plain->came)
		return complain("the device", "no completion queue or memory");
	init.send_cq = init.recv_cq = plain->cq;
	if (rbx_verbs_link_open(peer, &init, &plain->link))
		return complain("no queue pair", rbx_last_error());
	return 0;
}

/* The queue pair first, because it uses the completion queue. */
static void plain_close(struct plain *plain)
{
	if (plain->link)
		rbx_verbs_link_close(plain->link);
	if (plain->cq)
		ibv_destroy_cq(plain->cq);
	if (plain->sent)
		ibv_dereg_mr(plain->sent);
	if (plain->came)
		ibv_dereg_mr(plain->came);
}

static int plain_move(struct plain *plain, enum ibv_wr_opcode opcode,
		      const struct ibv_mr *mr, const struct rbx_remote_key *key,
		      uint64_t offset)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr, .length = HALF, .lkey = mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = key->address + offset,
		.wr.rdma.rkey = key->rkey,
	};
	struct ibv_wc wc;
	int err = ibv_post_send(rbx_verbs_link_qp(plain->link), &wr, &bad);

	if (err)
		return complain("cannot post", strerror(err));
	while (ibv_poll_cq(plain->cq, 1, &wc) == 0)
		;
	return wc.status ? complain("a work request failed",
				    ibv_wc_status_str(wc.status)) : 0;
}

/* ---- Both -----------------------------------------------------------------------*/

static int both(struct rbx_context *ctx, struct rbx_remote *remote,
		struct plain *plain)
{
	struct rbx_remote_key key;
	size_t i;

	rbx_remote_key(remote, &key);
	for (i = 0; i < HALF; i++)
		sent[i] = (unsigned char)(i * 7 + i / 251);
	if (request(ctx, remote, RBX_WRITE, sent, 0) ||
	    plain_move(plain, IBV_WR_RDMA_READ, plain->came, &key, 0) ||
	    compare("written by RDMAbox, read by plain verbs"))
		return -1;
	for (i = 0; i < HALF; i++)
		sent[i] ^= 0xff;
	if (plain_move(plain, IBV_WR_RDMA_WRITE, plain->sent, &key, HALF) ||
	    request(ctx, remote, RBX_READ, came, HALF))
		return -1;
	return compare("written by plain verbs, read by RDMAbox");
}

static int use(struct rbx_context *ctx, struct rbx_peer *peer)
{
	struct plain plain = { 0 };
	struct rbx_remote *remote;
	int err;

	if (rbx_borrow(peer, &remote, 2 * HALF))
		return complain("cannot borrow", rbx_last_error());
	err = plain_open(&plain, peer);
	if (!err)
		err = both(ctx, remote, &plain);
	plain_close(&plain);
	rbx_return(remote);
	return err;
}

int main(int argc, char **argv)
{
	struct rbx_options options;
	struct rbx_context *ctx;
	struct rbx_peer *peer;
	int err;

	if (argc < 2 || argc > 3) {
		fputs("usage: verbs-beside HOST:PORT [SECRET-FILE]\n", stderr);
		return 2;
	}
	rbx_options_defaults(&options);
	if (argc == 3)
		snprintf(options.secret_file, sizeof(options.secret_file), "%s",
			 argv[2]);
	if (rbx_open(&ctx, &options)) {
		complain("cannot open a device", rbx_last_error());
		return 2;
	}
	err = rbx_peer_connect(ctx, &peer, argv[1]);
	if (err) {
		complain("cannot connect", rbx_last_error());
	} else {
		err = use(ctx, peer);
		rbx_peer_close(peer);
	}
	rbx_close(ctx);
	return err ? 2 : 0;
}
