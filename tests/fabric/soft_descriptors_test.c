/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * soft_descriptors_test.c - a process that has no descriptor left, and one that is
 * handed some which it did not ask for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/soft/queue_pair.h"
#include "tests/fabric/intruder.h"

#define PAGE 4096u
#define FULL_FILES 128 /* that a process may have open, in a test of its limit */

/* All the descriptors that this process may have. */
struct full {
	struct rlimit before;
	int fillers[FULL_FILES];
	int count;
};

/* Leaves room for so many. */
static void files_fill(struct full *full, int room)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &full->before), 0);
	limit = (struct rlimit){ FULL_FILES, full->before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (full->count = 0; full->count < FULL_FILES; full->count++) {
		full->fillers[full->count] = dup(STDERR_FILENO);
		if (full->fillers[full->count] < 0)
			break;
	}
	while (room-- > 0)
		close(full->fillers[--full->count]);
}

static void files_free(struct full *full)
{
	while (full->count > 0)
		close(full->fillers[--full->count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full->before), 0);
}

static void fds_send(struct local_peer *peer, const void *bytes, size_t count,
		     int fds_count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(64 * sizeof(int))];
	} control = { .space = { 0 } };
	struct iovec piece = { (void *)bytes, count };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE((size_t)fds_count * sizeof(int)),
	};
	int i;

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN((size_t)fds_count * sizeof(int));
	for (i = 0; i < fds_count; i++)
		memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int),
		       &peer->fd, sizeof(int));
	sendmsg(peer->fd, &message, MSG_NOSIGNAL);
}

/* A thread that works for the queue pair at its end still holds it. */
static void files_wait(int count)
{
	uint64_t deadline_ms = test_now_ms() + 30000;

	while (open_files_count() != count && test_now_ms() < deadline_ms)
		usleep(1000);
	assert_int_equal(open_files_count(), count);
}

/* What comes along with an answer finds no number, or one and not two. It is no fault of
 * who answers, and what a mapping cannot do frames can. */
static void key_goes_by_frames_if_no_file_can_be_opened(void **state)
{
	struct test_pair pair;
	struct full full;
	int room, i;

	(void)state;
	for (room = 0; room <= 3; room++) {
		test_pair_open(&pair, NULL);
		files_fill(&full, room);
		for (i = 0; i < 20; i++)
			assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0,
						 PAGE), 0);
		assert_null(pair.client->cut_off);
		files_free(&full);
		test_pair_close(&pair);
	}
}

/* He is not kept waiting, nor the thread of the device busy. */
static void connection_without_a_descriptor_is_closed(void **state)
{
	struct local_peer peer;
	struct test_pair pair;
	struct pollfd end;
	struct full full;

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	files_fill(&full, 1); /* his own end */
	assert_int_equal(local_peer_reach(&peer, pair.listener->address), 0);
	end = (struct pollfd){ .fd = peer.fd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, 30000), 1);
	local_peer_leave(&peer);
	files_free(&full);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	test_pair_close(&pair);
}

/* How often the device tries to let somebody in. */
static atomic_uint accepts_count;
static atomic_int accepts_errno; /* what the kernel says to all of them; 0: nothing */

int accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
{
	atomic_fetch_add(&accepts_count, 1);
	errno = atomic_load(&accepts_errno);
	if (errno)
		return -1;
	return (int)syscall(SYS_accept4, fd, from, length, flags);
}

/* Bytes that are no hello: who is let in and says them is sent away at once. */
static void peer_babbles(int fd, const char *address)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)),
	};
	const uint8_t bytes[SOFT_HELLO_MIN_BYTES] = { 0 };

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
}

/* Below the number of the spare one, nothing is free: as if another thread had taken it.
 * The device tries again now and then, and does not turn around the listener. */
static void connection_waits_if_the_spare_file_is_taken(void **state)
{
	struct rlimit before, none = { STDERR_FILENO + 1, 0 };
	struct test_pair pair;
	struct pollfd end = { .events = POLLIN };

	(void)state;
	test_pair_open(&pair, NULL);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	end.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(end.fd >= 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	peer_babbles(end.fd, pair.listener->address);
	while (atomic_load(&accepts_count) == 0)
		usleep(1000);
	atomic_store(&accepts_count, 0);
	while (atomic_load(&accepts_count) < 4)
		usleep(1000);
	assert_int_equal(poll(&end, 1, 200), 0);
	assert_true(atomic_load(&accepts_count) < 400);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(poll(&end, 1, 30000), 1);
	close(end.fd);
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	test_pair_close(&pair);
}

/* The connection stays where it is, as if nothing had been tried. */
static void connection_waits_if_the_kernel_has_no_memory(void **state)
{
	static const int errors[] = { ENOMEM, ENOBUFS };
	struct test_pair pair;
	struct pollfd end = { .events = POLLIN };
	size_t i;

	(void)state;
	test_pair_open(&pair, NULL);
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		end.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(end.fd >= 0);
		atomic_store(&accepts_errno, errors[i]);
		atomic_store(&accepts_count, 0);
		peer_babbles(end.fd, pair.listener->address);
		while (atomic_load(&accepts_count) < 4)
			usleep(1000);
		assert_int_equal(poll(&end, 1, 200), 0);
		assert_true(atomic_load(&accepts_count) < 400);
		atomic_store(&accepts_errno, 0);
		assert_int_equal(poll(&end, 1, 30000), 1);
		close(end.fd);
	}
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	test_pair_close(&pair);
}

/* A peer that pushes descriptors into us: our table of files does not fill. */
static void descriptors_nobody_asked_for_are_closed(void **state)
{
	const struct soft_frame ask = { .opcode = SOFT_MAP_ASK };
	struct soft_wire_frame wire;
	struct intruder intruder;
	struct soft_frame answer;
	uint8_t body[SOFT_MAP_BYTES];
	struct test_pair pair;
	int before, i;

	(void)state;
	test_pair_open(&pair, NULL);
	/* The threads of both devices run, and have opened what they need. */
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	before = open_files_count();
	soft_frame_encode(&ask, &wire);
	for (i = 1; i <= 64; i += 9) {
		intruder_come(&intruder, &pair, NULL);
		fds_send(&intruder.peer, &wire, sizeof(wire), i);
		fds_send(&intruder.peer, &wire, sizeof(wire), i);
		if (i > SOFT_MAP_FDS_MAX)
			while (local_peer_hear(&intruder.peer, &answer, body,
					       sizeof(body)))
				assert_int_equal(answer.opcode,
						 SOFT_MAP_ANSWER);
		/* Ours: the two ends of the connection; a few may be kept. */
		assert_true(open_files_count() <=
			    before + 2 + (int)SOFT_MAP_FDS_MAX + 1);
		intruder_go(&intruder, &pair);
		files_wait(before);
	}
	assert_int_equal(test_do(&pair, RBX_OP_WRITE, 0, 0, PAGE), 0);
	test_pair_close(&pair);
}

/* One is one too many for who has asked for none. */
static void descriptor_nobody_asked_for_cuts_off(void **state)
{
	const struct soft_frame ask = { .opcode = SOFT_MAP_ASK };
	struct soft_wire_frame wire;
	struct intruder intruder;
	struct soft_frame answer;
	uint8_t body[SOFT_MAP_BYTES];
	struct test_pair pair;

	(void)state;
	test_pair_open(&pair, NULL);
	soft_frame_encode(&ask, &wire);
	intruder_come(&intruder, &pair, NULL);
	fds_send(&intruder.peer, &wire, sizeof(wire), 1);
	while (local_peer_hear(&intruder.peer, &answer, body, sizeof(body)))
		assert_int_equal(answer.opcode, SOFT_MAP_ANSWER);
	/* No completion says so here, so it is looked at as the fabric does. */
	pthread_mutex_lock(&soft_qp_of(intruder.qp)->lock);
	assert_non_null(intruder.qp->cut_off);
	pthread_mutex_unlock(&soft_qp_of(intruder.qp)->lock);
	intruder_go(&intruder, &pair);
	test_pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_goes_by_frames_if_no_file_can_be_opened),
		cmocka_unit_test(connection_without_a_descriptor_is_closed),
		cmocka_unit_test(connection_waits_if_the_spare_file_is_taken),
		cmocka_unit_test(connection_waits_if_the_kernel_has_no_memory),
		cmocka_unit_test(descriptors_nobody_asked_for_are_closed),
		cmocka_unit_test(descriptor_nobody_asked_for_cuts_off),
	};

	/* Only a device that maps has a local socket. */
	setenv("RBX_TEST_FABRIC", "soft", 1);
	return test_run(tests, sizeof(tests) / sizeof(*tests));
}
