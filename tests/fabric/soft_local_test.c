/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_local_test.c - what the soft device hands to peers on its host, and what
 * a hostile one can do with it: nothing that it could not do anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "endpoint.h"
#include "fabric/soft/device.h"
#include "tests/fabric/intruder.h"

#define PAGE 4096u

static void connection_brings_no_descriptor(void **state)
{
	struct intruder intruder;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	assert_int_equal(local_peer_ask(&intruder.peer,
					pair.target_mr->rkey ^ 0x10000), 0);
	assert_int_equal(local_peer_ask(&intruder.peer, 0), 0);
	assert_int_equal(intruder.peer.fds_count, 0);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

static void key_of_another_domain_brings_no_descriptor(void **state)
{
	struct rbx_domain *domain;
	struct intruder intruder;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->create_domain(pair.server_device, &domain,
						 NULL), 0);
	intruder_come(&intruder, &pair, domain);
	assert_int_equal(local_peer_ask(&intruder.peer, pair.target_mr->rkey),
			 0);
	intruder_go(&intruder, &pair);
	pair.ops->destroy_domain(domain);
	test_pair_close(&pair);
}

/* Its own domain's keys are all that a peer is shown. */
static void table_shows_no_other_domains_keys(void **state)
{
	struct rbx_mr_init init = {
		.length_bytes = TARGET_BYTES,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ | RBX_REMOTE_WRITE,
	};
	const soft_key_word *words;
	struct intruder intruder;
	struct test_pair pair;
	struct rbx_mr *mr;
	uint32_t i, shown = 0;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->create_domain(pair.server_device,
						 &init.domain, NULL), 0);
	init.addr = pair.target_memory;
	init.memory_fd = pair.target_fd;
	assert_int_equal(pair.ops->register_memory(pair.server_device, &init, 1,
						   &mr, NULL), 0);
	intruder_come(&intruder, &pair, init.domain);
	assert_int_equal(local_peer_ask(&intruder.peer, mr->rkey),
			 SOFT_MAP_FDS);
	words = soft_key_words_map(intruder.peer.fds[1]);
	assert_non_null(words);
	for (i = 0; i < SOFT_KEY_COUNT; i++)
		shown += atomic_load(&words[i]) != 0;
	assert_int_equal(shown, 1);
	soft_key_words_unmap(words);
	intruder_go(&intruder, &pair);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	pair.ops->destroy_domain(init.domain);
	test_pair_close(&pair);
}

static void table_cannot_be_written(void **state)
{
	struct intruder intruder;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	assert_int_equal(local_peer_ask(&intruder.peer, pair.target_mr->rkey),
			 SOFT_MAP_FDS);
	expect_file_is_read_only(intruder.peer.fds[1], SOFT_KEY_WORDS_BYTES);
	/* The owner still can: the key ends. */
	pair.ops->deregister_memory(pair.server_device, &pair.target_mr, 1);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

static void memory_file_keeps_its_size_and_can_be_emptied(void **state)
{
	struct intruder intruder;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	assert_int_equal(local_peer_ask(&intruder.peer, pair.target_mr->rkey),
			 SOFT_MAP_FDS);
	expect_file_keeps_its_size(intruder.peer.fds[0], TARGET_BYTES);
	/* It may empty what it may write. Nobody is hurt by that. */
	pair.target[TARGET_BYTES - 1] = 0x44;
	assert_int_equal(fallocate(intruder.peer.fds[0], FALLOC_FL_PUNCH_HOLE |
				   FALLOC_FL_KEEP_SIZE, 0, TARGET_BYTES), 0);
	assert_int_equal(pair.target[TARGET_BYTES - 1], 0);
	/* And so may its owner, while the intruder has it mapped. */
	assert_int_equal(fallocate(pair.target_fd, FALLOC_FL_PUNCH_HOLE |
				   FALLOC_FL_KEEP_SIZE, 0, TARGET_BYTES), 0);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

/* What is shown is not what is believed, whoever wrote it there. */
static void key_that_is_only_shown_is_refused(void **state)
{
	static const uint8_t opcodes[] = { SOFT_READ, SOFT_WRITE };
	soft_key_word *words;
	struct intruder intruder;
	struct test_pair pair;
	uint32_t rkey;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		test_pair_open(&pair, NULL);
		rkey = pair.target_mr->rkey;
		intruder_come(&intruder, &pair, NULL);
		assert_int_equal(local_peer_use(&intruder.peer, opcodes[i],
						rkey,
						(uintptr_t)pair.target_memory),
				 SOFT_OK);
		pair.ops->deregister_memory(pair.server_device,
					    &pair.target_mr, 1);
		words = soft_device_of(pair.server_device)->keys.own.shown.words;
		atomic_store(&words[rkey % SOFT_KEY_COUNT], rkey);
		memset(pair.target, 0, PAGE);
		assert_int_equal(local_peer_ask(&intruder.peer, rkey), 0);
		assert_int_equal(local_peer_use(&intruder.peer, opcodes[i],
						rkey,
						(uintptr_t)pair.target_memory),
				 SOFT_REFUSED_ACCESS);
		assert_int_equal(pair.target[0], 0);
		intruder_go(&intruder, &pair);
		test_pair_close(&pair);
	}
}

/* Registers all of the target once more, with fewer rights. */
static struct rbx_mr *less_rights(struct test_pair *pair, uint32_t rights,
				  int fd)
{
	struct rbx_mr_init init = {
		.addr = pair->target_memory,
		.length_bytes = TARGET_BYTES,
		.rights = rights,
		.memory_fd = fd,
	};
	struct rbx_mr *mr;

	assert_int_equal(pair->ops->register_memory(pair->server_device, &init,
						    1, &mr, NULL), 0);
	return mr;
}

static void file_that_allows_more_than_the_key_is_kept(void **state)
{
	static const uint32_t rights[] = { RBX_REMOTE_READ,
					   RBX_REMOTE_WRITE | RBX_LOCAL_WRITE,
					   RBX_LOCAL_WRITE };
	struct intruder intruder;
	struct test_pair pair;
	struct rbx_mr *mr;
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	for (i = 0; i < sizeof(rights) / sizeof(*rights); i++) {
		mr = less_rights(&pair, rights[i], pair.target_fd);
		assert_int_equal(local_peer_ask(&intruder.peer, mr->rkey), 0);
		pair.ops->deregister_memory(pair.server_device, &mr, 1);
	}
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

static void file_that_nobody_can_write_is_shown(void **state)
{
	struct intruder intruder;
	struct test_pair pair;
	struct rbx_mr *mr;
	uint8_t *memory;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, TARGET_BYTES), 0);
	memory = mmap(NULL, TARGET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	mr = less_rights(&pair, RBX_REMOTE_READ, fd);
	intruder_come(&intruder, &pair, NULL);
	assert_int_equal(local_peer_ask(&intruder.peer, mr->rkey),
			 SOFT_MAP_FDS);
	expect_file_is_read_only(intruder.peer.fds[0], TARGET_BYTES);
	memory[0] = 1; /* its owner has a mapping from before */
	intruder_go(&intruder, &pair);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	munmap(memory, TARGET_BYTES);
	close(fd);
	test_pair_close(&pair);
}

/* Through the fabric: it is read by memcpy, and writing is refused. */
static void memory_to_read_is_not_written(void **state)
{
	struct test_pair pair;
	struct rbx_mr *mr;
	struct rbx_sge sge;
	struct rbx_wr wr;
	uint8_t *memory;
	int fd, i;

	(void)state;
	test_pair_open(&pair, NULL);
	fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, TARGET_BYTES), 0);
	memory = mmap(NULL, TARGET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	munmap(pair.target_memory, TARGET_BYTES);
	pair.target_memory = memory;
	mr = less_rights(&pair, RBX_REMOTE_READ, fd);
	for (i = 0; i < 6; i++) {
		wr = test_wr(&pair, i < 5 ? RBX_OP_READ : RBX_OP_WRITE, &sge, 0,
			     0, PAGE);
		wr.rkey = mr->rkey;
		test_post(&pair, &wr);
		assert_int_equal(test_wait(&pair, pair.client_cq).status,
				 i < 5 ? 0 : -EACCES);
	}
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
	close(fd);
}

/* Who maps the file finds there what others reach by the key. */
static void window_of_a_region_that_is_mapped_is_where_it_is(void **state)
{
	const uint64_t offset = 20 * PAGE;
	struct rbx_device_window_init of_part;
	struct rbx_device_window *window;
	struct test_pair pair;
	struct rbx_mr_init init;
	struct rbx_sge sge;
	struct rbx_mr *mr;
	struct rbx_wr wr;

	(void)state;
	test_pair_open(&pair, NULL);
	init = (struct rbx_mr_init){
		.addr = pair.target_memory + 16 * PAGE,
		.length_bytes = 16 * PAGE,
		.rights = RBX_LOCAL_WRITE | RBX_REMOTE_READ |
			  RBX_REMOTE_WRITE | RBX_WINDOWS,
		.memory_fd = pair.target_fd,
		.memory_fd_offset = 16 * PAGE,
	};
	assert_int_equal(pair.ops->register_memory(pair.server_device, &init, 1,
						   &mr, NULL), 0);
	of_part = (struct rbx_device_window_init){
		.mr = mr,
		.addr = pair.target_memory + offset,
		.length_bytes = PAGE,
		.rights = RBX_REMOTE_READ | RBX_REMOTE_WRITE, /* as the file */
	};
	assert_int_equal(pair.ops->create_window(pair.server, &of_part, &window,
						 NULL), 0);
	for (uint32_t i = 0; i < 200; i++) {
		test_fill(pair.local, 64, i);
		wr = test_wr(&pair, RBX_OP_WRITE, &sge, 0, offset, 64);
		wr.rkey = window->rkey;
		test_post(&pair, &wr);
		assert_int_equal(test_wait(&pair, pair.client_cq).status, 0);
		assert_memory_equal(pair.target + offset, pair.local, 64);
	}
	pair.ops->destroy_window(window);
	pair.ops->deregister_memory(pair.server_device, &mr, 1);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_brings_no_descriptor),
		cmocka_unit_test(
			window_of_a_region_that_is_mapped_is_where_it_is),
		cmocka_unit_test(key_of_another_domain_brings_no_descriptor),
		cmocka_unit_test(table_shows_no_other_domains_keys),
		cmocka_unit_test(table_cannot_be_written),
		cmocka_unit_test(memory_file_keeps_its_size_and_can_be_emptied),
		cmocka_unit_test(key_that_is_only_shown_is_refused),
		cmocka_unit_test(file_that_allows_more_than_the_key_is_kept),
		cmocka_unit_test(file_that_nobody_can_write_is_shown),
		cmocka_unit_test(memory_to_read_is_not_written),
	};

	/* Only a device that maps has a local socket. */
	setenv("RBX_TEST_FABRIC", "soft", 1);
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
