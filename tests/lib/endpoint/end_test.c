/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * end_test.c - how connections end: by the one side, the other, a broken rule,
 * a key that has ended, a process that is killed. All that was posted is told of, and
 * memory that is not lent any more stays as it is.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/endpoints.h"

static struct rbx_operation write_to(const struct side *there, size_t offset,
				     uintptr_t user)
{
	return (struct rbx_operation){
		.kind = RBX_OPERATION_WRITE,
		.key = there->key.key,
		.address = there->key.address + offset,
		.user = (void *)user,
	};
}

/* What is posted from here on comes back as it was. */
static void assert_is_over(const struct side *side)
{
	struct rbx_completion completion;

	receive_at(side, 0, 64, 901);
	completion = next_of(side);
	assert_int_equal((uintptr_t)completion.user, 901);
	assert_int_equal(completion.status, -ECANCELED);
	assert_int_equal(completion.kind, RBX_COMPLETION_RECEIVED);
	assert_int_equal(post_one(side, (struct rbx_operation){
				 .kind = RBX_OPERATION_SEND, .user = (void *)902 }, 0, 8),
			 0);
	completion = next_of(side);
	assert_int_equal((uintptr_t)completion.user, 902);
	assert_int_equal(completion.status, -ECANCELED);
}

static void both_sides_hear_of_a_disconnect(void **state)
{
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	for (uintptr_t i = 1; i <= 3; i++) {
		receive_at(&e.a, 0, 64, i);
		receive_at(&e.b, 0, 64, i);
	}
	rbx_endpoint_disconnect(e.b.endpoint);
	for (uintptr_t i = 1; i <= 3; i++) {
		expect(&e.b, RBX_COMPLETION_RECEIVED, i, -ECANCELED);
		expect(&e.a, RBX_COMPLETION_RECEIVED, i, -ECANCELED);
	}
	assert_is_over(&e.a);
	assert_is_over(&e.b);
	endpoints_close(&e);
}

static void a_closed_endpoint_is_told_of_no_more(void **state)
{
	struct rbx_completion none;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	for (uintptr_t i = 1; i <= 3; i++) {
		receive_at(&e.a, 0, 64, i);
		receive_at(&e.b, 0, 64, i);
	}
	rbx_endpoint_close(e.b.endpoint);
	e.b.endpoint = NULL;
	assert_int_equal(rbx_queue_poll(e.b.queue, &none, 1, 20), 0);
	for (uintptr_t i = 1; i <= 3; i++)
		expect(&e.a, RBX_COMPLETION_RECEIVED, i, -ECANCELED);
	endpoints_close(&e);
}

static void assert_write_is_denied(size_t offset, uint32_t length_bytes,
				   uint32_t key_change, bool release)
{
	struct rbx_operation write;
	struct endpoints e;

	endpoints_open(&e);
	memset(e.a.memory, 0x77, 4096);
	write = write_to(&e.b, 0, 1);
	assert_int_equal(post_one(&e.a, write, 0, 8), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 1, 0);
	memset(e.b.memory, 0, 4096);
	if (release) {
		rbx_region_release(e.b.region);
		e.b.region = NULL;
	}
	write = write_to(&e.b, offset, 2);
	write.key += key_change;
	assert_int_equal(post_one(&e.a, write, 0, length_bytes), 0);
	write.user = (void *)3;
	assert_int_equal(post_one(&e.a, write_to(&e.b, 0, 3), 0, 8), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 2, -EACCES);
	expect(&e.a, RBX_COMPLETION_POSTED, 3, -ECANCELED);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(e.b.memory[i], 0);
	endpoints_close(&e);
}

static void write_by_a_wrong_key_is_denied(void **state)
{
	(void)state;
	assert_write_is_denied(0, 8, 1, false);
}

static void write_past_the_end_is_denied(void **state)
{
	(void)state;
	assert_write_is_denied(MEMORY_BYTES - 4, 8, 0, false);
	assert_write_is_denied(MEMORY_BYTES, 1, 0, false);
	assert_write_is_denied((size_t)0 - 4, 8, 0, false);
}

static void write_by_a_key_that_has_ended_is_denied(void **state)
{
	(void)state;
	assert_write_is_denied(0, 8, 0, true);
}

/* The key of a region of one domain is nothing over an endpoint of another. */
static void keys_of_another_domain_are_denied(void **state)
{
	struct rbx_protection_domain *own, *other;
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_region *region[2];
	struct rbx_operation write;
	struct rbx_region_key key;
	struct endpoints e;
	struct meeting meeting = {
		.endpoints = &e,
		.a_options = endpoint_options,
		.b_options = &options,
	};

	(void)state;
	sides_open(&e);
	assert_int_equal(rbx_protection_domain_create(e.b.ctx, &own), 0);
	assert_int_equal(rbx_protection_domain_create(e.b.ctx, &other), 0);
	assert_int_equal(rbx_region_export(e.a.ctx, own, e.a.of_device, 4096, 0,
					   &region[0]),
			 -EINVAL);
	assert_int_equal(rbx_region_export(e.b.ctx, own, e.b.of_device, 4096,
					   RBX_REGION_WRITE, &region[0]),
			 0);
	assert_int_equal(rbx_region_export(e.b.ctx, other, e.b.of_device, 4096,
					   RBX_REGION_WRITE, &region[1]),
			 0);
	options.domain = own;
	if (meet(&meeting))
		fail_msg("%s", rbx_last_error());
	e.a.memory[0] = 1;
	rbx_region_key(region[0], &key);
	write = write_to(&e.b, 0, 1);
	write.key = key.key;
	write.address = key.address;
	assert_int_equal(post_one(&e.a, write, 0, 1), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 1, 0);
	assert_int_equal(e.b.memory[0], 1);
	rbx_region_key(region[1], &key);
	write.key = key.key;
	write.address = key.address + 1;
	assert_int_equal(post_one(&e.a, write, 0, 1), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 1, -EACCES);
	assert_int_equal(e.b.memory[1], 0);
	/* Whoever is in a domain keeps it. */
	assert_int_equal(rbx_protection_domain_destroy(own), -EBUSY);
	rbx_region_release(region[0]);
	rbx_region_release(region[1]);
	assert_int_equal(rbx_protection_domain_destroy(own), -EBUSY);
	rbx_endpoint_close(e.b.endpoint);
	e.b.endpoint = NULL;
	assert_int_equal(rbx_protection_domain_destroy(own), 0);
	assert_int_equal(rbx_protection_domain_destroy(other), 0);
	sides_close(&e);
}

static void rights_that_were_not_given_are_denied(void **state)
{
	struct rbx_region *region;
	struct rbx_region_key key;
	struct rbx_operation write;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	memset(e.a.memory, 1, 64);
	assert_int_equal(rbx_region_export(e.b.ctx, NULL, e.b.of_device, 4096, 1u << 9,
					   &region),
			 -EINVAL);
	assert_int_equal(rbx_region_export(e.b.ctx, NULL, e.b.of_device, 4096,
					   RBX_REGION_READ, &region),
			 0);
	rbx_region_key(region, &key);
	write = write_to(&e.b, 0, 1);
	write.key = key.key;
	write.address = key.address;
	write.kind = RBX_OPERATION_READ;
	assert_int_equal(post_one(&e.a, write, 4096, 64), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 1, 0);
	write.kind = RBX_OPERATION_WRITE;
	assert_int_equal(post_one(&e.a, write, 0, 64), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 1, -EACCES);
	assert_int_equal(e.b.memory[0], 0);
	rbx_region_release(region);
	endpoints_close(&e);
}

static void message_longer_than_the_receive_ends_it(void **state)
{
	struct rbx_completion completion;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	memset(e.a.memory, 1, 4096);
	receive_at(&e.b, 0, 64, 1);
	assert_int_equal(post_one(&e.a, (struct rbx_operation){
				 .kind = RBX_OPERATION_SEND, .user = (void *)2 }, 0, 65),
			 0);
	expect(&e.b, RBX_COMPLETION_RECEIVED, 1, -EMSGSIZE);
	completion = next_of(&e.a);
	assert_int_equal((uintptr_t)completion.user, 2);
	assert_int_equal(completion.status, -EREMOTEIO);
	assert_int_equal(e.b.memory[64], 0);
	endpoints_close(&e);
}

/* Silent ones, too: the first with its own status, those after it as flushed. */
static void chain_that_fails_in_the_middle_tells_of_all_behind_it(void **state)
{
	struct rbx_operation operations[6];
	struct rbx_segment segment;
	struct endpoints e;

	(void)state;
	endpoints_open(&e);
	e.a.memory[0] = 1;
	segment = segment_of(&e.a, 0, 1);
	for (uintptr_t i = 0; i < 6; i++) {
		operations[i] = write_to(&e.b, i, i + 1);
		operations[i].flags = RBX_OPERATION_SILENT;
		operations[i].segments = &segment;
		operations[i].segments_count = 1;
	}
	operations[3].key++;
	assert_int_equal(rbx_endpoint_post(e.a.endpoint, operations, 6), 0);
	expect(&e.a, RBX_COMPLETION_POSTED, 4, -EACCES);
	expect(&e.a, RBX_COMPLETION_POSTED, 5, -ECANCELED);
	expect(&e.a, RBX_COMPLETION_POSTED, 6, -ECANCELED);
	assert_int_equal(e.b.memory[2], 1);
	assert_int_equal(e.b.memory[3] | e.b.memory[4] | e.b.memory[5], 0);
	endpoints_close(&e);
}

/* ---- A process that is killed -------------------------------------------------------*/

/* Listens, says where, accepts, and waits to be killed. */
static void serve(int address_fd)
{
	struct endpoints e;
	struct rbx_endpoint_request *request;
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_endpoint_data data = { &e.b.key, sizeof(e.b.key) };
	const char *address;

	memset(&e, 0, sizeof(e));
	side_open(&e.b);
	options.queue = e.b.queue;
	if (rbx_endpoint_listen(e.b.ctx, listen_address(), &e.listener))
		_exit(1);
	address = rbx_endpoint_listener_address(e.listener);
	if (write(address_fd, address, strlen(address) + 1) < 0 ||
	    rbx_endpoint_next_request(e.listener, 20000, &request) ||
	    rbx_endpoint_accept(request, &options, &data, &e.b.endpoint))
		_exit(1);
	for (;;)
		pause();
}

static void a_killed_process_is_noticed(void **state)
{
	struct rbx_endpoint_options options = endpoint_options;
	struct rbx_endpoint_data data;
	struct side there = { 0 }, a = { 0 };
	struct rbx_completion completion;
	uint8_t answer[256];
	char address[128] = "";
	int fds[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		serve(fds[1]);
	assert_true(read(fds[0], address, sizeof(address)) > 0);
	side_open(&a);
	options.queue = a.queue;
	data = (struct rbx_endpoint_data){ answer, sizeof(answer) };
	if (rbx_endpoint_connect(a.ctx, address, &options, NULL, &data, &a.endpoint))
		fail_msg("%s", rbx_last_error());
	assert_true(data.length_bytes >= sizeof(there.key));
	memcpy(&there.key, answer, sizeof(there.key));
	assert_int_equal(post_one(&a, write_to(&there, 0, 1), 0, 64), 0);
	expect(&a, RBX_COMPLETION_POSTED, 1, 0);
	receive_at(&a, 0, 64, 2);
	kill(child, SIGKILL);
	for (int i = 0; i < 32; i++)
		(void)post_one(&a, write_to(&there, 0, 3), 0, 512 * 1024);
	do {
		completion = next_of(&a);
	} while ((uintptr_t)completion.user != 2);
	assert_true(completion.status < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	side_close(&a);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_hear_of_a_disconnect),
		cmocka_unit_test(a_closed_endpoint_is_told_of_no_more),
		cmocka_unit_test(write_by_a_wrong_key_is_denied),
		cmocka_unit_test(write_past_the_end_is_denied),
		cmocka_unit_test(write_by_a_key_that_has_ended_is_denied),
		cmocka_unit_test(keys_of_another_domain_are_denied),
		cmocka_unit_test(rights_that_were_not_given_are_denied),
		cmocka_unit_test(message_longer_than_the_receive_ends_it),
		cmocka_unit_test(chain_that_fails_in_the_middle_tells_of_all_behind_it),
		cmocka_unit_test(a_killed_process_is_noticed),
	};

	return endpoints_run(tests, sizeof(tests) / sizeof(tests[0]));
}
