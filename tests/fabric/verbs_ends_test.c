/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_ends_test.c - the ends of connections that an RDMA device and the
 * connection manager bring about: failures, disconnects, destruction, death.
 */
#include "verbs_pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Moves of queue pairs ---------------------------------------------------*/

#define WATCHED_QPS 256

static typeof(ibv_modify_qp) *modify; /* libibverbs' own */
static atomic_bool moves_are_slow;
static atomic_uint moves_under_way[WATCHED_QPS]; /* by the queue pair's number */
static atomic_uint moves_that_met;

/* What the fabric calls. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	atomic_uint *under_way = &moves_under_way[qp->qp_num % WATCHED_QPS];
	int err;

	moves_that_met += atomic_fetch_add(under_way, 1) > 0;
	if (moves_are_slow)
		usleep(50000);
	err = modify(qp, attr, attr_mask);
	atomic_fetch_sub(under_way, 1);
	return err;
}

/* ---- Events -------------------------------------------------------------------*/

static typeof(rdma_disconnect) *disconnect; /* librdmacm's own */
static _Atomic(struct rbx_device *) watched; /* or NULL */
static atomic_uint events_taken;

/* What the fabric calls when it has told of an end, before it may take that back. */
int rdma_disconnect(struct rdma_cm_id *id)
{
	struct rbx_device *device = watched;
	struct rbx_device_event event;

	events_taken += device && !ops->get_event(device, &event);
	return disconnect(id);
}

/* ---- Ends ---------------------------------------------------------------------*/

/* The failure, then all behind it, on the end that failed and on the other. */
static void wrong_key_fails_the_write_and_ends_both(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);

	pair_connect(pair);
	post_receive(pair, pair->qps[0], 10, 4096, 64);
	post_receive(pair, pair->qps[1], 11, 8192, 64);
	assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE, 0, 1, &sge,
				  pair->mr->rkey + 1, pair->memory), 0);
	expect_one(pair->cqs[0], pair->qps[0], 1, -EACCES);
	expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
	expect_one(pair->cqs[1], pair->qps[1], 11, -ECANCELED);
}

static void wrong_local_key_fails_and_ends_both(void **state)
{
	struct pair *pair = *state;
	struct rbx_sge sge = piece(pair, 0, 8);

	pair_connect(pair);
	post_receive(pair, pair->qps[1], 11, 8192, 64);
	sge.lkey += 1;
	assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE, 0, 1, &sge,
				  pair->mr->rkey, pair->memory), 0);
	expect_either(pair->cqs[0], pair->qps[0], 1, -EFAULT, -ECANCELED);
	expect_one(pair->cqs[1], pair->qps[1], 11, -ECANCELED);
}

static void disconnect_flushes_both_ends_and_what_comes_later(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	int i;

	pair_connect(pair);
	post_receive(pair, pair->qps[0], 10, 4096, 64);
	post_receive(pair, pair->qps[1], 11, 8192, 64);
	ops->disconnect(pair->qps[1]);
	expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
	expect_one(pair->cqs[1], pair->qps[1], 11, -ECANCELED);
	for (i = 0; i < 2; i++) {
		post_receive(pair, pair->qps[i], 20, 4096, 64);
		expect_one(pair->cqs[i], pair->qps[i], 20, -ECANCELED);
		assert_int_equal(post_one(pair->qps[i], RBX_OP_WRITE, 0, 21,
					  &sge, pair->mr->rkey, pair->memory),
				 0);
		expect_one(pair->cqs[i], pair->qps[i], 21, -ECANCELED);
	}
}

/*
 * The acceptor ends the connection while its peer's confirmation may still be
 * on the way, when the connection manager cannot tell the peer yet.
 */
static void disconnect_right_after_accept_reaches_the_peer(void **state)
{
	struct pair *pair = *state;
	int round;

	for (round = 0; round < 20; round++) {
		pair_connect(pair);
		ops->disconnect(pair->qps[1]);
		post_receive(pair, pair->qps[0], 10, 4096, 64);
		expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
		pair_disconnect(pair);
	}
}

static void destroy_right_after_accept_reaches_the_peer(void **state)
{
	struct pair *pair = *state;
	int round;

	for (round = 0; round < 20; round++) {
		pair_connect(pair);
		ops->destroy_qp(pair->qps[1]);
		pair->qps[1] = NULL;
		post_receive(pair, pair->qps[0], 10, 4096, 64);
		expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
		pair_disconnect(pair);
	}
}

static void *accept_and_destroy(void *argument)
{
	struct acceptor *acceptor = argument;

	acceptor_run(acceptor);
	if (!acceptor->err)
		ops->destroy_qp(acceptor->pair->qps[1]);
	acceptor->pair->qps[1] = NULL;
	return NULL;
}

/* The peer goes between the moves of our own queue pair to being ready. */
static void end_in_mid_connect_waits_for_the_moves(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init client = qp_init(pair->cqs[0]);
	struct rbx_qp_init server = qp_init(pair->cqs[1]);
	struct acceptor acceptor = { .pair = pair, .init = &server };
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = HANG_MS,
	};
	pthread_t thread;
	int round;

	moves_are_slow = true;
	for (round = 0; round < 5; round++) {
		assert_int_equal(pthread_create(&thread, NULL,
						accept_and_destroy, &acceptor),
				 0);
		assert_int_equal(ops->connect(pair->device, &client, &connect,
					      &pair->qps[0], error), 0);
		pthread_join(thread, NULL);
		assert_int_equal(acceptor.err, 0);
		post_receive(pair, pair->qps[0], 10, 4096, 64);
		expect_one(pair->cqs[0], pair->qps[0], 10, -ECANCELED);
		pair_disconnect(pair);
	}
	moves_are_slow = false;
	assert_int_equal(moves_that_met, 0);
}

/* Its error is all: its owner knows no queue pair that an event could be of. */
static void refused_attempt_is_told_of_by_no_event(void **state)
{
	struct pair *pair = *state;
	struct rbx_qp_init client = qp_init(pair->cqs[0]);
	struct acceptor acceptor = { .pair = pair, .refuse = true };
	struct rbx_connect_init connect = {
		.address = pair->listener->address,
		.timeout_ms = HANG_MS,
	};
	pthread_t thread;

	client.tells_end = true;
	watched = pair->device;
	assert_int_equal(pthread_create(&thread, NULL, acceptor_run, &acceptor), 0);
	assert_int_equal(ops->connect(pair->device, &client, &connect,
				      &pair->qps[0], error), -EBUSY);
	pthread_join(thread, NULL);
	watched = NULL;
	assert_int_equal(events_taken, 0);
}

static void destroy_drops_the_completions(void **state)
{
	struct pair *pair = *state;
	const struct rbx_sge sge = piece(pair, 0, 8);
	struct rbx_wc wc;
	int round;
	int i;

	for (round = 0; round < 20; round++) {
		pair_connect(pair);
		for (i = 0; i < DEPTH; i++)
			post_receive(pair, pair->qps[0], 77, 4096, 64);
		assert_int_equal(post_one(pair->qps[0], RBX_OP_WRITE,
					  RBX_WR_SIGNALED, 78, &sge,
					  pair->mr->rkey, pair->memory), 0);
		ops->disconnect(pair->qps[0]);
		pair_disconnect(pair);
		assert_int_equal(ops->poll(pair->cqs[0], &wc, 1), 0);
	}
}

/* Writes through one queue pair until told to stop, and polls its queue. */
struct writer {
	struct pair *pair;
	atomic_bool stop;
	int failed_count;
};

static void *writer_run(void *argument)
{
	struct writer *writer = argument;
	struct pair *pair = writer->pair;
	const struct rbx_sge sge = piece(pair, 0, 64);
	bool pending = false;
	struct rbx_wc wc;

	while (pending || !atomic_load(&writer->stop)) {
		if (!pending)
			writer->failed_count += !!post_one(
				pair->qps[0], RBX_OP_WRITE, RBX_WR_SIGNALED, 1,
				&sge, pair->mr->rkey, pair->memory + 4096);
		pending = true;
		while (ops->poll(pair->cqs[0], &wc, 1)) {
			/* others on this queue may be flushed, not ours */
			if (wc.qp != pair->qps[0])
				continue;
			pending = false;
			writer->failed_count += !!wc.status;
		}
	}
	return NULL;
}

static void connects_and_destroys_leave_others_on_the_cq_alone(void **state)
{
	struct pair *pair = *state;
	struct writer writer = { .pair = pair };
	struct pair others;
	pthread_t thread;
	int round;
	int i;

	pair_connect(pair);
	assert_int_equal(pthread_create(&thread, NULL, writer_run, &writer), 0);
	others = *pair;
	for (round = 0; round < 20; round++) {
		pair_connect(&others);
		for (i = 0; i < DEPTH; i++)
			post_receive(pair, others.qps[0], 77, 8192, 64);
		ops->disconnect(others.qps[round % 2]);
		pair_disconnect(&others);
	}
	atomic_store(&writer.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(writer.failed_count, 0);
}

/*
 * The child connects and dies without a word. It may not share the parent's
 * device, so it is a process of its own: this program with another argument.
 */
static void killed_peer_flushes_the_receive(void **state)
{
	struct pair *pair = *state;
	struct acceptor acceptor = { .pair = pair };
	struct rbx_qp_init server = qp_init(pair->cqs[1]);
	pid_t child = fork();

	if (child == 0) {
		execl("/proc/self/exe", "peer", pair->listener->address, NULL);
		_exit(1);
	}
	acceptor.init = &server;
	acceptor_run(&acceptor);
	assert_int_equal(acceptor.err, 0);
	post_receive(pair, pair->qps[1], 5, 0, 64);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	expect_one(pair->cqs[1], pair->qps[1], 5, -ECANCELED);
}

/* The life of the peer that is killed. */
static int peer_main(const char *address)
{
	struct rbx_device_options options = { .gid_index = -1 };
	struct rbx_connect_init connect = {
		.address = address,
		.timeout_ms = HANG_MS,
	};
	struct rbx_qp_init init;
	struct rbx_device *device;
	struct rbx_cq *cq;
	struct rbx_qp *qp;

	if (ops->open(&options, &device, error) ||
	    ops->create_cq(device, 4 * DEPTH, &cq, error))
		return 1;
	init = qp_init(cq);
	if (ops->connect(device, &init, &connect, &qp, error))
		return 1;
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		with_pair(wrong_key_fails_the_write_and_ends_both),
		with_pair(wrong_local_key_fails_and_ends_both),
		with_pair(disconnect_flushes_both_ends_and_what_comes_later),
		with_pair(disconnect_right_after_accept_reaches_the_peer),
		with_pair(destroy_right_after_accept_reaches_the_peer),
		with_pair(end_in_mid_connect_waits_for_the_moves),
		with_pair(refused_attempt_is_told_of_by_no_event),
		with_pair(destroy_drops_the_completions),
		with_pair(connects_and_destroys_leave_others_on_the_cq_alone),
		with_pair(killed_peer_flushes_the_receive),
	};

	modify = (typeof(modify))dlsym(RTLD_NEXT, "ibv_modify_qp");
	disconnect = (typeof(disconnect))dlsym(RTLD_NEXT, "rdma_disconnect");
	if (argc == 2)
		return peer_main(argv[1]);
	return verbs_test_run(tests, sizeof(tests) / sizeof(tests[0]));
}
