/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options_test.c - traffic class, service level, completion vectors, and memory
 * that no CPU is to touch: taken where the device has them, else refused with a reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/endpoints.h"

static void endpoints_of_a_class_and_level_connect(void **state)
{
	struct endpoints e;

	(void)state;
	sides_open(&e);
	endpoint_options.traffic_class = 0x20;
	if (e.a.limits.has_service_level) {
		endpoint_options.service_level = 2;
	} else {
		struct rbx_endpoint_options levelled = endpoint_options;
		struct rbx_endpoint *none;

		levelled.queue = e.a.queue;
		levelled.service_level = 2;
		assert_int_equal(rbx_endpoint_connect(
					 e.a.ctx,
					 rbx_endpoint_listener_address(e.listener),
					 &levelled, NULL, NULL, &none), -EINVAL);
	}
	sides_close(&e);
	endpoints_open(&e);
	receive_at(&e.b, 0, 64, 1);
	assert_int_equal(post_one(&e.a, (struct rbx_operation){
					  .kind = RBX_OPERATION_SEND }, 0, 64), 0);
	expect(&e.b, RBX_COMPLETION_RECEIVED, 1, 0);
	endpoints_close(&e);
	endpoint_options.traffic_class = endpoint_options.service_level = 0;
}

static void queues_on_each_vector_and_no_other(void **state)
{
	struct rbx_queue *queue;
	struct side side;
	uint32_t vector;

	(void)state;
	memset(&side, 0, sizeof(side));
	side_open(&side);
	assert_true(side.limits.completion_vectors >= 1);
	for (vector = 0; vector < side.limits.completion_vectors; vector++) {
		assert_int_equal(rbx_queue_create_on(side.ctx, 16, vector, &queue),
				 0);
		assert_int_equal(rbx_queue_destroy(queue), 0);
	}
	assert_int_equal(rbx_queue_create_on(side.ctx, 16, vector, &queue),
			 -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "completion vector"));
	assert_non_null(strstr(rbx_last_error(), "has 0 to "));
	side_close(&side);
}

/* A dmabuf of `bytes` of a memory file, or -1: this system makes none. */
static int dmabuf_open(size_t bytes)
{
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int file = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	int fd = -1;

	if (maker >= 0 && file >= 0 && ftruncate(file, (off_t)bytes) == 0 &&
	    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		fd = ioctl(maker, UDMABUF_CREATE, &(struct udmabuf_create){
				  .memfd = (uint32_t)file, .size = bytes });
	if (maker >= 0)
		close(maker);
	close(file);
	return fd;
}

static void dmabuf_registered_or_refused_with_a_reason(void **state)
{
	struct rbx_region *region;
	struct side side;
	int fd, err;

	(void)state;
	memset(&side, 0, sizeof(side));
	side_open(&side);
	fd = dmabuf_open(MEMORY_BYTES);
	/* Where there is none to be had, any other descriptor: it is refused. */
	err = rbx_region_export_dmabuf(side.ctx, NULL, fd < 0 ? side.memory_fd : fd,
				       0, MEMORY_BYTES, RBX_REGION_READ, &region);
	if (!side.limits.has_dmabuf) {
		assert_int_equal(err, -EOPNOTSUPP);
		assert_non_null(strstr(rbx_last_error(), "in software"));
	} else if (err) { /* Soft-RoCE, and drivers that cannot */
		assert_non_null(strstr(rbx_last_error(), "dmabuf"));
	} else {
		struct rbx_region_key key;

		assert_true(fd >= 0);
		rbx_region_key(region, &key);
		assert_int_equal(key.length_bytes, MEMORY_BYTES);
		rbx_region_release(region);
	}
	assert_int_equal(rbx_region_export_dmabuf(side.ctx, NULL, -1, 0,
						  MEMORY_BYTES, 0, &region),
			 -EINVAL);
	if (fd >= 0)
		close(fd);
	side_close(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints_of_a_class_and_level_connect),
		cmocka_unit_test(queues_on_each_vector_and_no_other),
		cmocka_unit_test(dmabuf_registered_or_refused_with_a_reason),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
