/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_local_test.c - what the soft device hands to peers on its host, and what
 * a hostile one can do with it: nothing that it could not do anyway.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

static void answer_no(struct local_peer *peer, uint32_t rkey)
{
	const struct soft_frame answer = { .opcode = SOFT_MAP_ANSWER,
					   .status = SOFT_REFUSED_OTHER,
					   .rkey = rkey };
	const uint8_t body[SOFT_MAP_BYTES] = { 0 };

	local_peer_send(peer, &answer, NULL);
	send(peer->fd, body, sizeof(body), MSG_NOSIGNAL);
}

/* WRITEs under a key that only the peer may know. */
static void write_post(struct test_pair *pair, struct rbx_qp *qp, uint32_t rkey,
		       uint32_t length_bytes)
{
	struct rbx_sge sge = { (uintptr_t)pair->target_memory, length_bytes,
			       pair->target_mr->lkey };
	struct rbx_wr wr = { .opcode = RBX_OP_WRITE, .rkey = rkey,
			     .sges = &sge, .sge_count = 1,
			     .flags = RBX_WR_SIGNALED };
	struct rbx_wr *bad;

	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
}

/* The thread of the device has read all that the peer sent before. */
static void expect_read_so_far(struct test_pair *pair, struct local_peer *peer)
{
	const struct soft_frame request = {
		.opcode = SOFT_WRITE,
		.sequence = peer->sequence++,
		.length_bytes = 1,
		.rkey = pair->target_mr->rkey,
		.remote_addr = (uintptr_t)pair->target_memory + TARGET_BYTES - 1,
	};
	volatile uint8_t *last = &pair->target[TARGET_BYTES - 1];
	uint64_t deadline_ms = test_now_ms() + 30000;

	*last = 0;
	local_peer_send(peer, &request, "\1");
	while (!*last && test_now_ms() < deadline_ms)
		usleep(1000);
	assert_int_equal(*last, 1);
}

/* It answers what it has heard, then what still waits behind a full socket: each such
 * answer would make room for another question, and those have a bound. */
static void answer_to_a_question_that_was_not_sent_cut_off(void **state)
{
	struct intruder intruder;
	struct soft_frame ask;
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	intruder_come(&intruder, &pair, NULL);
	write_post(&pair, intruder.qp, 0x10001, TARGET_BYTES / 2);
	assert_true(local_peer_hear(&intruder.peer, &ask, NULL, 0));
	assert_int_equal(ask.opcode, SOFT_MAP_ASK);
	assert_int_equal(ask.rkey, 0x10001);
	answer_no(&intruder.peer, 0x10001);
	expect_read_so_far(&pair, &intruder.peer);
	assert_null(intruder.qp->cut_off);
	write_post(&pair, intruder.qp, 0x10002, PAGE);
	answer_no(&intruder.peer, 0x10002);
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -EREMOTEIO);
	assert_string_equal(intruder.qp->cut_off,
			    "offers a mapping that was not asked for");
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -ECANCELED);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

/* Of which credit has to be asked. */
static void sharing_intruder_come(struct intruder *intruder, struct test_pair *pair)
{
	const struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.send_depth_count = 8,
		.shares_receives = true,
	};
	struct soft_wire_hello wire;

	assert_int_equal(local_peer_reach(&intruder->peer, pair->listener->address), 0);
	send(intruder->peer.fd, &wire, soft_hello_encode(&hello, &wire), MSG_NOSIGNAL);
	intruder_accept(intruder, pair, NULL);
}

static void message_post(struct test_pair *pair, struct rbx_qp *qp)
{
	struct rbx_wr wr = { .opcode = RBX_OP_SEND, .flags = RBX_WR_SIGNALED };
	struct rbx_wr *bad;

	assert_int_equal(pair->ops->post_send(qp, &wr, &bad), 0);
}

/* As many as it may, while as much as can be of ours waits before the answers. */
static void questions_behind_all_of_ours_answered(void **state)
{
	struct intruder intruder;
	struct test_pair pair;
	struct soft_frame frame;
	uint32_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	sharing_intruder_come(&intruder, &pair);
	write_post(&pair, intruder.qp, 0x10001, TARGET_BYTES / 2);
	assert_true(local_peer_hear(&intruder.peer, &frame, NULL, 0));
	answer_no(&intruder.peer, 0x10001);
	expect_read_so_far(&pair, &intruder.peer);
	for (i = 0; i < SOFT_MAPS_ASKED_MAX; i++)
		write_post(&pair, intruder.qp, 0x10002 + i, PAGE);
	message_post(&pair, intruder.qp); /* asks for credit when output is next gathered */
	expect_read_so_far(&pair, &intruder.peer);
	for (i = 0; i < SOFT_MAPS_ASKED_MAX; i++) {
		frame = (struct soft_frame){ .opcode = SOFT_MAP_ASK, .rkey = 0x10002 + i };
		local_peer_send(&intruder.peer, &frame, NULL);
	}
	expect_read_so_far(&pair, &intruder.peer);
	assert_null(intruder.qp->cut_off);
	local_peer_send(&intruder.peer, &frame, NULL); /* one more than it may */
	assert_int_equal(test_wait(&pair, pair.server_cq).status, -EREMOTEIO);
	assert_string_equal(intruder.qp->cut_off, "asks for more mappings than it may");
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
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

/* Who has the name of the local socket before it is there gets no peer of it. */
static void listener_whose_name_is_taken_does_not_open(void **state)
{
	char error[RBX_ERROR_TEXT_MAX] = "", address[RBX_NAME_MAX];
	struct rbx_listener *listener;
	struct test_pair pair;
	int fd;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->listen(pair.server_device, "127.0.0.1:0",
					  &listener, NULL), 0);
	memcpy(address, listener->address, sizeof(address));
	pair.ops->close_listener(listener);
	fd = local_name_take(address);
	assert_int_equal(pair.ops->listen(pair.server_device, address,
					  &listener, error), -EADDRINUSE);
	assert_non_null(strstr(error, "local socket"));
	close(fd);
	assert_int_equal(pair.ops->listen(pair.server_device, address,
					  &listener, error), 0);
	pair.ops->close_listener(listener);
	test_pair_close(&pair);
}

/* -errno. */
static int tcp_reach(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	rc = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
	close(fd);
	return rc;
}

/* The child has its sockets still; nobody gets in by them. */
static void closed_listener_refuses_while_a_child_lives(void **state)
{
	struct rbx_listener *listener;
	char address[RBX_NAME_MAX];
	struct local_peer peer;
	struct test_pair pair;
	pid_t child;
	int i;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(pair.ops->listen(pair.server_device, "127.0.0.1:0",
					  &listener, NULL), 0);
	memcpy(address, listener->address, sizeof(address));
	child = fork();
	if (!child) {
		alarm(60); /* if the test fails */
		pause();
		_exit(0);
	}
	pair.ops->close_listener(listener);
	for (i = 0; i < 3; i++) {
		assert_int_equal(tcp_reach(address), -ECONNREFUSED);
		assert_int_equal(local_peer_reach(&peer, address), -ECONNREFUSED);
		local_peer_leave(&peer);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	test_pair_close(&pair);
}

/* The way to the local socket is open to each user; it is closed to others. */
static void process_of_another_user_is_sent_away(void **state)
{
	struct rbx_conn_request *request;
	struct local_peer peer;
	struct test_pair pair;
	int status;
	char byte;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip(); /* only root can be another user */
	test_pair_open(&pair, NULL);
	pid = fork();
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		if (local_peer_reach(&peer, pair.listener->address))
			_exit(3);
		local_peer_greet(&peer, NULL, 0);
		_exit(recv(peer.fd, &byte, 1, 0) > 0);
	}
	/* Nobody gets a request of it to accept. */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pair.ops->get_request(pair.listener, &request),
			 -EAGAIN);
	test_pair_close(&pair);
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
		cmocka_unit_test(answer_to_a_question_that_was_not_sent_cut_off),
		cmocka_unit_test(questions_behind_all_of_ours_answered),
		cmocka_unit_test(file_that_allows_more_than_the_key_is_kept),
		cmocka_unit_test(file_that_nobody_can_write_is_shown),
		cmocka_unit_test(memory_to_read_is_not_written),
		cmocka_unit_test(listener_whose_name_is_taken_does_not_open),
		cmocka_unit_test(closed_listener_refuses_while_a_child_lives),
		cmocka_unit_test(process_of_another_user_is_sent_away),
	};

	/* Only a device that maps has a local socket. */
	setenv("RBX_TEST_FABRIC", "soft", 1);
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
