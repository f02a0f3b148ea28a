/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* local_peer.c - see local_peer.h. */
#include "tests/fabric/local_peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/soft/address.h"

#define PATIENCE_S 30
#define USE_BYTES 16u

static socklen_t local_name(const char *address, struct sockaddr_un *local)
{
	struct sockaddr_in bound = { .sin_family = AF_INET };

	bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bound.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	return soft_address_local((struct sockaddr *)&bound, false, local);
}

int local_name_take(const char *address)
{
	struct sockaddr_un local;
	socklen_t length = local_name(address, &local);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&local, length), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

int local_peer_reach(struct local_peer *peer, const char *address)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un local;
	socklen_t length = local_name(address, &local);

	*peer = (struct local_peer){ .sequence = SOFT_FIRST_SEQUENCE };
	peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	return connect(peer->fd, (struct sockaddr *)&local, length) ? -errno :
								       0;
}

void local_peer_greet(struct local_peer *peer, const void *private_data,
		      size_t private_bytes)
{
	struct soft_hello hello = {
		.version = SOFT_VERSION,
		.type = SOFT_HELLO,
		.private_bytes = (uint8_t)private_bytes,
		.send_depth_count = 8,
	};
	struct soft_wire_hello wire;

	if (private_bytes)
		memcpy(hello.private_data, private_data, private_bytes);
	send(peer->fd, &wire, soft_hello_encode(&hello, &wire), MSG_NOSIGNAL);
}

void local_peer_connect(struct local_peer *peer, const char *address,
			const void *private_data, size_t private_bytes)
{
	assert_int_equal(local_peer_reach(peer, address), 0);
	local_peer_greet(peer, private_data, private_bytes);
}

static void fds_keep(struct local_peer *peer, struct msghdr *message)
{
	struct cmsghdr *header;
	size_t count, i;

	for (header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		assert_int_equal(header->cmsg_type, SCM_RIGHTS);
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < count; i++) {
			assert_true(peer->fds_count < LOCAL_PEER_FDS_MAX);
			memcpy(&peer->fds[peer->fds_count++],
			       CMSG_DATA(header) + i * sizeof(int),
			       sizeof(int));
		}
	}
}

/* All of it. False: the connection ended before. */
static bool bytes_hear(struct local_peer *peer, void *bytes, size_t count)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(LOCAL_PEER_FDS_MAX * sizeof(int))];
	} control;
	struct iovec piece = { bytes, count };
	ssize_t got;

	while (piece.iov_len) {
		struct msghdr message = {
			.msg_iov = &piece,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};

		got = recvmsg(peer->fd, &message, MSG_CMSG_CLOEXEC);
		if (got <= 0) {
			assert_true(!got || errno == ECONNRESET);
			return false;
		}
		fds_keep(peer, &message);
		piece.iov_base = (uint8_t *)piece.iov_base + got;
		piece.iov_len -= (size_t)got;
	}
	return true;
}

uint8_t local_peer_answer(struct local_peer *peer)
{
	uint8_t bytes[SOFT_HELLO_MAX_BYTES];
	struct soft_hello hello;

	assert_true(bytes_hear(peer, bytes, SOFT_HELLO_MIN_BYTES));
	assert_true(bytes_hear(peer, bytes + SOFT_HELLO_MIN_BYTES,
			       soft_hello_length(bytes) -
				       SOFT_HELLO_MIN_BYTES));
	assert_null(soft_hello_decode(bytes, &hello));
	return hello.type;
}

void local_peer_leave(struct local_peer *peer)
{
	while (peer->fds_count)
		close(peer->fds[--peer->fds_count]);
	close(peer->fd);
}

bool local_peer_hear(struct local_peer *peer, struct soft_frame *frame,
		     void *payload, size_t max_bytes)
{
	uint8_t bytes[SOFT_FRAME_BYTES];
	size_t more;

	if (!bytes_hear(peer, bytes, sizeof(bytes)))
		return false;
	assert_null(soft_frame_decode(bytes, frame));
	more = frame->opcode == SOFT_MAP_ANSWER ?
		SOFT_MAP_BYTES : soft_frame_payload_bytes(frame);
	assert_true(more <= max_bytes);
	return bytes_hear(peer, payload, more);
}

void local_peer_send(struct local_peer *peer, const struct soft_frame *frame,
		     const void *payload)
{
	struct soft_wire_frame wire;

	soft_frame_encode(frame, &wire);
	send(peer->fd, &wire, sizeof(wire), MSG_NOSIGNAL);
	if (payload)
		send(peer->fd, payload, frame->length_bytes, MSG_NOSIGNAL);
}

int local_peer_ask(struct local_peer *peer, uint32_t rkey)
{
	const struct soft_frame ask = { .opcode = SOFT_MAP_ASK, .rkey = rkey };
	int before = peer->fds_count;
	uint8_t body[SOFT_MAP_BYTES];
	struct soft_frame answer;
	struct soft_map map;

	local_peer_send(peer, &ask, NULL);
	do {
		assert_true(local_peer_hear(peer, &answer, body, sizeof(body)));
	} while (answer.opcode == SOFT_ACK); /* of credit alone */
	assert_int_equal(answer.opcode, SOFT_MAP_ANSWER);
	assert_int_equal(answer.rkey, rkey);
	assert_null(soft_map_decode(body, &map));
	if (answer.status != SOFT_OK)
		assert_int_equal(map.length_bytes, 0);
	assert_int_equal(peer->fds_count - before,
			 answer.status == SOFT_OK ? SOFT_MAP_FDS : 0);
	return peer->fds_count - before;
}

uint8_t local_peer_use(struct local_peer *peer, uint8_t opcode, uint32_t rkey,
		       uint64_t addr)
{
	const struct soft_frame request = {
		.opcode = opcode,
		.flags = SOFT_ACK_WANTED,
		.sequence = peer->sequence++,
		.length_bytes = USE_BYTES,
		.rkey = rkey,
		.remote_addr = addr,
	};
	uint8_t bytes[USE_BYTES];
	struct soft_frame answer;

	memset(bytes, 0x5a, sizeof(bytes));
	local_peer_send(peer, &request, opcode == SOFT_WRITE ? bytes : NULL);
	do {
		assert_true(local_peer_hear(peer, &answer, bytes,
					    sizeof(bytes)));
	} while (answer.opcode == SOFT_ACK &&
		 answer.sequence != request.sequence);
	return answer.opcode == SOFT_ERROR ? answer.status : SOFT_OK;
}

/* The file opened anew, by its name. */
static int file_reopen(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

static void expect_no_write(int fd, size_t length_bytes)
{
	const uint32_t word = 0x12345678;
	void *pages;

	assert_int_equal(pwrite(fd, &word, sizeof(word), 0), -1);
	assert_ptr_equal(mmap(NULL, length_bytes, PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_not_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE |
				       FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	pages = mmap(NULL, length_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return; /* opened for writing alone */
	assert_int_not_equal(mprotect(pages, length_bytes,
				      PROT_READ | PROT_WRITE), 0);
	assert_int_not_equal(madvise(pages, length_bytes, MADV_REMOVE), 0);
	munmap(pages, length_bytes);
}

static void expect_no_resize(int fd, size_t length_bytes)
{
	assert_int_not_equal(ftruncate(fd, 0), 0);
	assert_int_not_equal(ftruncate(fd, (off_t)length_bytes - 4096), 0);
	assert_int_not_equal(ftruncate(fd, (off_t)length_bytes + 4096), 0);
	assert_int_not_equal(fallocate(fd, 0, (off_t)length_bytes, 4096), 0);
	/* The last of these would keep its owner from emptying it. */
	assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
}

static void try_all_ways(int fd, size_t length_bytes,
			 void (*expect)(int fd, size_t length_bytes))
{
	static const int flags[] = { O_RDONLY, O_RDWR, O_WRONLY };
	size_t i;
	int again;

	fchmod(fd, 0777);
	expect(fd, length_bytes);
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		again = file_reopen(fd, flags[i]);
		if (again < 0)
			continue;
		expect(again, length_bytes);
		close(again);
	}
	again = file_reopen(fd, O_RDWR | O_TRUNC);
	if (again >= 0)
		close(again);
	assert_int_equal(lseek(fd, 0, SEEK_END), length_bytes);
}

void expect_file_is_read_only(int fd, size_t length_bytes)
{
	try_all_ways(fd, length_bytes, expect_no_write);
	try_all_ways(fd, length_bytes, expect_no_resize);
}

void expect_file_keeps_its_size(int fd, size_t length_bytes)
{
	try_all_ways(fd, length_bytes, expect_no_resize);
}

int open_files_count(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}
