/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs_failed_device_test.c - when a poll fills in what a device that has failed does
 * not flush. The device is played: these calls stand in place of its libraries'.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/verbs/verbs.h"

static int move_result; /* of the move to error */

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp, (void)attr, (void)mask;
	return move_result;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	return -1;
}

static struct world {
	struct rbx_verbs_device device;
	struct rbx_verbs_conn conn;
	struct ibv_qp ibv;
	struct rbx_verbs_cq cq;
	struct rbx_verbs_qp qp;
} world;

/* One work request is posted. */
static void world_open(int result)
{
	world = (struct world){ .conn.device = &world.device,
				.cq.cq.device = &world.device.device,
				.qp.ibv = &world.ibv,
				.qp.conn = &world.conn,
				.qp.qp.send_cq = &world.cq.cq };
	move_result = result;
	pthread_mutex_init(&world.device.lock, NULL);
	pthread_mutex_init(&world.conn.lock, NULL);
	assert_int_equal(rbx_device_events_open(&world.device.events,
						&world.device.device), 0);
	assert_int_equal(rbx_verbs_wr_ring_init(&world.qp.sends, 4), 0);
	rbx_verbs_conn_attach(&world.conn, &world.qp, false);
	rbx_verbs_wr_ring_post(&world.qp.sends, 1);
}

static void world_close(void)
{
	free(world.qp.sends.wr_ids);
	rbx_device_events_close(&world.device.events);
}

static int filled_in(void)
{
	struct rbx_wc wcs[4];

	return rbx_verbs_failed_flush(&world.cq, wcs, 4);
}

/* A poll between the first sign of the failure and the move. */
static void queue_pair_not_moved_yet_may_carry_out_all(void **state)
{
	(void)state;
	world_open(0);
	atomic_store(&world.device.has_failed, true);
	usleep(200000);
	assert_int_equal(filled_in(), 0);
	world_close();
}

static void refused_move_is_filled_in_at_once(void **state)
{
	(void)state;
	world_open(5);
	rbx_verbs_device_fail(&world.device);
	assert_int_equal(filled_in(), 1);
	assert_int_equal(filled_in(), 0);
	world_close();
}

static void moved_queue_pair_is_filled_in_after_a_grace(void **state)
{
	int polls = 0;

	(void)state;
	world_open(0);
	rbx_verbs_device_fail(&world.device);
	while (!filled_in()) {
		polls++;
		usleep(1000);
	}
	assert_true(polls > 0);
	world_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_pair_not_moved_yet_may_carry_out_all),
		cmocka_unit_test(refused_move_is_filled_in_at_once),
		cmocka_unit_test(moved_queue_pair_is_filled_in_after_a_grace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
