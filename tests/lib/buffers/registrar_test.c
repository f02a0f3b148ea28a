/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * registrar_test.c - registrations of single requests: each ends exactly once,
 * by another thread than the one that polls, and none in vain stands in the way
 * of a new one. The device is a fake that counts.
 */
#include "lib/buffers/registrar.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/port.h"

#define THREADS 4
#define ROUNDS 3000
#define HELD 64

static struct {
	uint32_t alive_count; /* atomic */
	uint32_t alive_max; /* refused beyond it */
	uint32_t batches_count; /* atomic */
	uint32_t room_count; /* atomic: told by made_room() */
	uint32_t hold; /* atomic: deregistration waits */
	pthread_t forbidden; /* must not deregister */
} fake;

static int fake_register(struct rbx_device *device,
			 const struct rbx_mr_init *inits, size_t count,
			 struct rbx_mr **mrs, char *error)
{
	(void)error;
	assert_int_equal(count, 1);
	if (RBX_FETCH_ADD(&fake.alive_count, 1) >= fake.alive_max) {
		RBX_FETCH_ADD(&fake.alive_count, (uint32_t)-1);
		return -ENOMEM;
	}
	*mrs = calloc(1, sizeof(**mrs));
	**mrs = (struct rbx_mr){ .device = device, .addr = inits->addr };
	return 0;
}

static void fake_deregister(struct rbx_device *device, struct rbx_mr **mrs,
			    size_t count)
{
	(void)device;
	assert_false(fake.forbidden &&
		     pthread_equal(pthread_self(), fake.forbidden));
	while (RBX_LOAD_ACQUIRE(&fake.hold))
		usleep(100);
	RBX_FETCH_ADD(&fake.batches_count, 1);
	for (size_t i = 0; i < count; i++)
		free(mrs[i]);
	RBX_FETCH_ADD(&fake.alive_count, -(uint32_t)count);
}

static const struct rbx_fabric_ops fake_ops = {
	.name = "fake",
	.register_memory = fake_register,
	.deregister_memory = fake_deregister,
};

static struct rbx_device device = { .ops = &fake_ops };
static struct rbx_registrar *registrar;

static void made_room(void *user, uint32_t count)
{
	assert_ptr_equal(user, &fake);
	RBX_FETCH_ADD(&fake.room_count, count);
}

static int set_up(void **state)
{
	(void)state;
	fake.alive_max = UINT32_MAX;
	fake.room_count = 0;
	fake.batches_count = 0;
	fake.forbidden = 0;
	return rbx_registrar_open(&registrar, &device, made_room, &fake);
}

static int tear_down(void **state)
{
	(void)state;
	rbx_registrar_close(registrar);
	assert_int_equal(fake.alive_count, 0);
	return 0;
}

static int take(struct rbx_mr **mr)
{
	static char memory[4096];
	char error[RBX_ERROR_TEXT_MAX];

	return rbx_registrar_register(registrar, memory, sizeof(memory), 0, mr,
				      error);
}

static void wait_until_alive(uint32_t count)
{
	for (int i = 0; i < 300000; i++) {
		if (RBX_LOAD_ACQUIRE(&fake.alive_count) == count)
			return;
		usleep(100);
	}
	fail_msg("%u are alive, not %u", fake.alive_count, count);
}

static void retired_registration_ends_by_another_thread(void **state)
{
	struct rbx_mr *mr;

	(void)state;
	fake.forbidden = pthread_self();
	assert_int_equal(take(&mr), 0);
	assert_int_equal(fake.alive_count, 1);
	rbx_registrar_retire(registrar, mr);
	wait_until_alive(0);
}

static void retiring_does_not_wait_for_the_device(void **state)
{
	struct rbx_mr *mrs[HELD];

	(void)state;
	fake.forbidden = pthread_self();
	for (int i = 0; i < HELD; i++)
		assert_int_equal(take(&mrs[i]), 0);
	RBX_STORE_RELEASE(&fake.hold, 1);
	for (int i = 0; i < HELD; i++) /* hangs if it does */
		rbx_registrar_retire(registrar, mrs[i]);
	assert_int_equal(fake.alive_count, HELD);
	RBX_STORE_RELEASE(&fake.hold, 0);
	wait_until_alive(0);
	/* The first may go alone; what came meanwhile goes together. */
	assert_true(fake.batches_count <= 1 + HELD / 32 + 1);
}

static void more_than_the_bound_is_refused_until_one_is_retired(void **state)
{
	struct rbx_mr **mrs = calloc(RBX_REGISTRATIONS_MAX, sizeof(*mrs));
	struct rbx_mr *more;

	(void)state;
	for (uint32_t i = 0; i < RBX_REGISTRATIONS_MAX; i++)
		assert_int_equal(take(&mrs[i]), 0);
	assert_int_equal(take(&more), -EAGAIN);
	rbx_registrar_retire(registrar, mrs[7]);
	assert_int_equal(take(&mrs[7]), 0);
	for (uint32_t i = 0; i < RBX_REGISTRATIONS_MAX; i++)
		rbx_registrar_retire(registrar, mrs[i]);
	wait_until_alive(0);
	free(mrs);
}

/* The device has room for one, which is retired and still in the hands of the
 * thread that deregisters: that must not be the reason of a failure. */
static void what_is_retired_makes_no_registration_fail(void **state)
{
	struct rbx_mr *mr;

	(void)state;
	fake.alive_max = 1;
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(take(&mr), 0);
		rbx_registrar_retire(registrar, mr);
	}
	assert_int_equal(take(&mr), 0);
	assert_int_equal(take(&mr), -ENOMEM);
	wait_until_alive(1);
	rbx_registrar_retire(registrar, mr);
}

/* Who helps takes away what the thread has just been woken for. */
static void thread_outlives_a_batch_that_another_took(void **state)
{
	struct rbx_mr *mr;

	(void)state;
	fake.alive_max = 1;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(take(&mr), 0);
		rbx_registrar_retire(registrar, mr);
		usleep(200); /* it gathers now */
		assert_int_equal(take(&mr), 0);
		usleep(3000); /* and finds that there is nothing */
		rbx_registrar_retire(registrar, mr);
		wait_until_alive(0);
	}
}

static void close_deregisters_what_is_left(void **state)
{
	struct rbx_mr *mrs[HELD];

	(void)state;
	for (int i = 0; i < HELD; i++)
		assert_int_equal(take(&mrs[i]), 0);
	for (int i = 0; i < HELD; i++)
		rbx_registrar_retire(registrar, mrs[i]);
	/* tear_down() finds none alive. */
}

static void *churn(void *arg)
{
	struct rbx_mr *mrs[HELD] = { 0 };

	(void)arg;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct rbx_mr **mr = &mrs[i % HELD];

		if (*mr)
			rbx_registrar_retire(registrar, *mr);
		*mr = NULL;
		if (take(mr))
			*mr = NULL;
	}
	for (uint32_t i = 0; i < HELD; i++)
		if (mrs[i])
			rbx_registrar_retire(registrar, mrs[i]);
	return NULL;
}

static void threads_share_a_device_that_runs_out(void **state)
{
	pthread_t threads[THREADS];
	uint32_t room_before;

	(void)state;
	fake.alive_max = THREADS * HELD / 2;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, churn, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	wait_until_alive(0);
	room_before = RBX_LOAD_ACQUIRE(&fake.room_count);
	assert_true(room_before > ROUNDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(retired_registration_ends_by_another_thread),
		TEST(retiring_does_not_wait_for_the_device),
		TEST(more_than_the_bound_is_refused_until_one_is_retired),
		TEST(what_is_retired_makes_no_registration_fail),
		TEST(thread_outlives_a_batch_that_another_took),
		TEST(close_deregisters_what_is_left),
		TEST(threads_share_a_device_that_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
