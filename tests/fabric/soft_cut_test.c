/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_cut_test.c - the soft device over sockets that are cut anywhere.
 *
 * A socket may take and give any number of bytes, and nothing where there was
 * room a moment ago. Here it does, at random: sendmsg() and recvmsg() are
 * replaced for the thread that works for both ends. Random chains of reads and
 * writes go through; each has to complete, in order, with the right bytes. Where
 * memory is mapped, each connection begins with frames and goes on with copies.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/random.h"
#include "endpoint.h"

#define CONNECTIONS 20
#define CHAINS 40
#define CHAIN_MAX 8u
#define LENGTH_MAX 40000u
#define PLACES 64u /* of the send queue; so many have memory of their own */
#define WRITES_AT (4u << 20) /* of the target; what is before is read */

/* Set in the thread whose sockets are cut. */
static _Thread_local struct rbx_random *cuts;

static size_t bytes_of(const struct msghdr *message)
{
	size_t bytes = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++)
		bytes += message->msg_iov[i].iov_len;
	return bytes;
}

/* The message with 1 to all of its bytes; pieces: memory for the list. */
static struct msghdr cut(const struct msghdr *message, struct iovec *pieces)
{
	uint32_t bytes = (uint32_t)bytes_of(message);
	size_t left = 1 + rbx_random_below(cuts, bytes);
	struct msghdr part = *message;

	if (rbx_random_below(cuts, 2))
		return part;
	part.msg_iov = pieces;
	for (part.msg_iovlen = 0; left != 0; part.msg_iovlen++) {
		struct iovec *piece = &pieces[part.msg_iovlen];

		*piece = message->msg_iov[part.msg_iovlen];
		if (piece->iov_len > left)
			piece->iov_len = left;
		left -= piece->iov_len;
	}
	return part;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct iovec pieces[UIO_MAXIOV];
	struct msghdr part;

	if (!cuts)
		return syscall(SYS_sendmsg, fd, message, flags);
	if (rbx_random_below(cuts, 8) == 0) {
		errno = EAGAIN;
		return -1;
	}
	part = cut(message, pieces);
	return syscall(SYS_sendmsg, fd, &part, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct iovec pieces[UIO_MAXIOV];
	struct msghdr part;
	ssize_t got;

	if (!cuts)
		return syscall(SYS_recvmsg, fd, message, flags);
	part = cut(message, pieces);
	got = syscall(SYS_recvmsg, fd, &part, flags);
	message->msg_controllen = part.msg_controllen;
	message->msg_flags = part.msg_flags;
	return got;
}

/* What goes on over one connection. */
struct load {
	struct test_pair pair;
	struct rbx_random random;
	uint8_t *expected_target; /* TARGET_BYTES, as the writes leave it */
	uint8_t *expected_local; /* LOCAL_BYTES, as the reads leave it */
	uint64_t posted_count, done_count; /* work requests */
};

/* Aims a work request, and carries it out on what is expected. Each place of
 * the queue has memory of its own, which nobody touches before it is free. */
static void aim(struct load *load, struct rbx_wr *wr, struct rbx_sge *sge)
{
	uint32_t place = load->posted_count % PLACES;
	uint32_t length_bytes = rbx_random_below(&load->random, LENGTH_MAX);
	uint64_t local = place * (uint64_t)LENGTH_MAX;
	uint64_t target =
		rbx_random_below(&load->random, WRITES_AT - LENGTH_MAX);

	if (rbx_random_below(&load->random, 3)) {
		*wr = test_wr(&load->pair, RBX_OP_READ, sge, local, target,
			      length_bytes);
		memcpy(load->expected_local + local,
		       load->expected_target + target, length_bytes);
	} else {
		target += WRITES_AT;
		*wr = test_wr(&load->pair, RBX_OP_WRITE, sge, local, target,
			      length_bytes);
		memcpy(load->expected_target + target,
		       load->expected_local + local, length_bytes);
	}
	wr->wr_id = load->posted_count++;
}

static void post_chain(struct load *load)
{
	uint32_t count = 1 + rbx_random_below(&load->random, CHAIN_MAX);
	struct rbx_sge sges[CHAIN_MAX];
	struct rbx_wr wrs[CHAIN_MAX];

	for (uint32_t i = 0; i < count; i++) {
		aim(load, &wrs[i], &sges[i]);
		wrs[i].flags = i + 1 == count ? RBX_WR_SIGNALED : 0;
		wrs[i].next = i + 1 == count ? NULL : &wrs[i + 1];
	}
	test_post(&load->pair, wrs);
}

static void take(struct load *load, const struct rbx_wc *wc)
{
	assert_int_equal(wc->status, 0);
	assert_true(wc->wr_id >= load->done_count &&
		    wc->wr_id < load->posted_count);
	load->done_count = wc->wr_id + 1;
}

static void wait_for_one(struct load *load)
{
	struct rbx_wc wc = test_wait(&load->pair, load->pair.client_cq);

	take(load, &wc);
}

/* One of: a chain is posted, the client works, the server works. Returns how
 * many chains were posted. */
static uint32_t step(struct load *load)
{
	const struct rbx_fabric_ops *ops = load->pair.ops;
	struct rbx_wc wc;

	switch (rbx_random_below(&load->random, 3)) {
	case 0:
		while (load->posted_count + CHAIN_MAX >
		       load->done_count + PLACES)
			wait_for_one(load);
		post_chain(load);
		return 1;
	case 1:
		if (ops->poll(load->pair.client_cq, &wc, 1))
			take(load, &wc);
		break;
	case 2:
		ops->poll(load->pair.server_cq, &wc, 1);
		break;
	}
	return 0;
}

static void connection(struct load *load, uint32_t seed)
{
	const struct test_options options = { .server_polls = true };
	uint32_t chains = 0;

	test_pair_open(&load->pair, &options);
	rbx_random_seed(&load->random, seed);
	load->posted_count = load->done_count = 0;
	test_fill(load->pair.target, TARGET_BYTES, seed);
	test_fill(load->pair.local, LOCAL_BYTES, seed + 1);
	memcpy(load->expected_target, load->pair.target, TARGET_BYTES);
	memcpy(load->expected_local, load->pair.local, LOCAL_BYTES);
	cuts = &load->random;
	while (chains < CHAINS)
		chains += step(load);
	while (load->done_count < load->posted_count)
		wait_for_one(load);
	cuts = NULL;
	assert_memory_equal(load->pair.target, load->expected_target,
			    TARGET_BYTES);
	assert_memory_equal(load->pair.local, load->expected_local,
			    LOCAL_BYTES);
	test_pair_close(&load->pair);
}

static void requests_over_sockets_cut_anywhere_all_complete(void **state)
{
	struct load load = {
		.expected_target = malloc(TARGET_BYTES),
		.expected_local = malloc(LOCAL_BYTES),
	};

	(void)state;
	for (uint32_t seed = 1; seed <= CONNECTIONS; seed++)
		connection(&load, seed);
	free(load.expected_target);
	free(load.expected_local);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			requests_over_sockets_cut_anywhere_all_complete),
	};

	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
