/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory_file_fit_test.c - which memory files a server does not take; it says why, and leaves them
 * as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/memory_file.h"
#include "tests/server/memory_file_world.h"

#define VOLUME_AT ((off_t)RBX_STATE_VOLUMES_AT)

/* Changes bytes of a file that no server uses. */
static void overwrite(const char *path, off_t at, const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, at), length);
	close(fd);
}

/* ---- Tests -----------------------------------------------------------------------------*/

static void file_of_a_running_server_is_refused(void **state)
{
	struct rbx_server_options options;
	struct world world;

	(void)state;
	begin(&world);
	refused(&world.options, -EBUSY, "another server's that runs");
	options = world.options;
	strcpy(options.memory_file, "");
	assert_int_equal(rbx_server_reload(world.server, &options), -EINVAL);
	assert_non_null(strstr(rbx_last_error(), "--memory-file"));
	world_serves_on(&world);
	end(&world);
}

/* The file that a server had, and that is now a copy. */
static struct rbx_server_options copy_made(void)
{
	struct rbx_server_options options;
	struct world world;
	char command[700];

	begin(&world);
	options = world.options;
	world_stop(&world);
	snprintf(command, sizeof(command), "cp -a %s %s.old && mv %s.old %s", options.memory_file,
		 options.memory_file, options.memory_file, options.memory_file);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	return options;
}

static void copy_is_refused(void **state)
{
	struct rbx_server_options options = copy_made();

	(void)state;
	refused(&options, -ESTALE, "is a copy");
	assert_int_equal(unlink(options.memory_file), 0);
}

/* What a file that no server uses says of itself. */
static void head_of(const char *path, struct rbx_state_head *head)
{
	static uint8_t bytes[RBX_STATE_VOLUMES_AT];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_int_equal(rbx_state_head_get(bytes, head), 0);
	close(fd);
}

static void head_change(const char *path, const struct rbx_state_head *head)
{
	static uint8_t bytes[RBX_STATE_VOLUMES_AT];
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	rbx_state_head_put(bytes, head);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	close(fd);
}

/* A file system gives the inode of a file that was removed to the next one. No test can count on
 * that, so the copy is given the inode in its head. */
static void copy_with_the_inode_of_the_file_is_refused(void **state)
{
	struct rbx_server_options options = copy_made();
	struct rbx_state_head head;
	struct stat status;

	(void)state;
	assert_int_equal(stat(options.memory_file, &status), 0);
	head_of(options.memory_file, &head);
	head.file_id = status.st_ino;
	head_change(options.memory_file, &head);
	refused(&options, -ESTALE, "is a copy");
	assert_int_equal(unlink(options.memory_file), 0);
}

/* Gives the file another start of the machine, and says how it was stopped. */
static void start_of_machine(const char *path, const char *boot, uint32_t is_clean)
{
	struct rbx_state_head head;

	head_of(path, &head);
	assert_int_equal(head.is_clean, 1);
	memset(head.boot, 0, sizeof(head.boot));
	strcpy(head.boot, boot);
	head.is_clean = is_clean;
	head_change(path, &head);
}

static void file_that_was_in_use_when_the_machine_went_down_is_refused(void **state)
{
	struct rbx_server_options options;
	struct world world;

	(void)state;
	begin(&world);
	options = world.options;
	world_stop(&world);
	start_of_machine(options.memory_file, "another start", 0);
	refused(&options, -ESTALE, "was in use when its machine went down");
	refused(&options, -ESTALE, "was in use when its machine went down"); /* it stays so */
	assert_int_equal(unlink(options.memory_file), 0);
	world_options(&world);
	world.options = options;
	world_start(&world);
	world_stop(&world);
	start_of_machine(options.memory_file, "another start", 1);
	memset(&world, 0, sizeof(world));
	world.options = options;
	world_start(&world);
	end(&world);
}

/* In the place of that of the system. Like that one it tells of an error once. */
static int syncs_until_error; /* 0: there is none */

int fsync(int fd)
{
	if (syncs_until_error && !--syncs_until_error) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

static void is_refused_for_good(const struct rbx_server_options *options)
{
	refused(options, -ESTALE, "could not be written to its medium once");
	refused(options, -ESTALE, "could not be written to its medium once");
	assert_int_equal(unlink(options->memory_file), 0);
}

/* What clients wrote may be missing, though the next one to ask the system hears of no error. */
static void file_that_could_not_be_written_in_the_end_is_refused(void **state)
{
	int at; /* what clients wrote, or that it was written */

	(void)state;
	for (at = 1; at <= 2; at++) {
		struct rbx_server_options options;
		struct world world;

		begin(&world);
		options = world.options;
		syncs_until_error = at;
		assert_int_equal(rbx_server_stop(world.server), -EIO);
		assert_non_null(strstr(rbx_last_error(), "cannot be written to its medium"));
		world.server = NULL;
		world_stop(&world);
		assert_int_equal(syncs_until_error, 0);
		is_refused_for_good(&options);
	}
}

static void file_that_could_not_be_written_after_a_kill_is_refused(void **state)
{
	struct rbx_server_options options;
	struct rbx_state_head head;
	struct world world;

	(void)state;
	begin(&world);
	options = world.options;
	world_stop(&world);
	head_of(options.memory_file, &head);
	head.is_clean = 0; /* as a server leaves it that is killed */
	head_change(options.memory_file, &head);
	syncs_until_error = 1;
	refused(&options, -EIO, "cannot write memory file");
	is_refused_for_good(&options);
}

/* All that was written is there, so it is good when the medium is. */
static void file_that_was_clean_stays_so_if_a_start_fails(void **state)
{
	struct rbx_server_options options;
	struct world world;

	(void)state;
	begin(&world);
	options = world.options;
	world_stop(&world);
	syncs_until_error = 1;
	refused(&options, -EIO, "cannot write memory file");
	memset(&world, 0, sizeof(world));
	world.options = options;
	world_start(&world);
	end(&world);
}

/* In a folder that others may write to. */
static void file_that_others_may_have_is_refused(void **state)
{
	struct rbx_server_options options;
	char other[sizeof(options.memory_file) + 8];
	struct world world;

	(void)state;
	begin(&world);
	options = world.options;
	world_stop(&world);
	snprintf(other, sizeof(other), "%s.other", options.memory_file);
	assert_int_equal(link(options.memory_file, other), 0);
	refused(&options, -EACCES, "has another name as well");
	assert_int_equal(unlink(options.memory_file), 0);
	assert_int_equal(symlink(other, options.memory_file), 0);
	refused(&options, -ELOOP, "is a symbolic link");
	assert_int_equal(chmod(other, 0600), 0);
	assert_int_equal(rename(other, options.memory_file), 0);
	if (!geteuid()) { /* only root can give a file away */
		assert_int_equal(chown(options.memory_file, 65534, 65534), 0);
		refused(&options, -EACCES, "chown 0");
		assert_int_equal(chown(options.memory_file, 0, 0), 0);
	}
	world.options = options;
	world_start(&world);
	end(&world);
}

static void file_that_is_no_good_is_refused_and_left(void **state)
{
	uint8_t junk[4096];
	struct rbx_server_options options;
	struct stat before, after;
	struct rbx_session *session;
	struct rbx_loan loan;
	struct world world;
	struct rbx_qp *qp;

	(void)state;
	memset(junk, 0xee, sizeof(junk));
	begin(&world);
	session = named_make(&world, &qp, &loan);
	leave(&world, session, qp);
	options = world.options;
	world_stop(&world);
	assert_int_equal(chmod(options.memory_file, 0640), 0);
	refused(&options, -EACCES, "chmod 600");
	assert_int_equal(chmod(options.memory_file, 0600), 0);
	overwrite(options.memory_file, VOLUME_AT, junk, sizeof(junk));
	assert_int_equal(stat(options.memory_file, &before), 0);
	refused(&options, -EBADMSG, "is damaged; it is left as it is");
	overwrite(options.memory_file, 0, junk, 8);
	refused(&options, -EBADMSG, "is none of rdmabox serve, or is damaged");
	assert_int_equal(stat(options.memory_file, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(truncate(options.memory_file, 100), 0);
	refused(&options, -EBADMSG, "is none of rdmabox serve");
	assert_int_equal(truncate(options.memory_file, 0), 0);
	refused(&options, -EBADMSG, "is none of rdmabox serve");
	assert_int_equal(unlink(options.memory_file), 0);
	assert_int_equal(mkdir(options.memory_file, 0700), 0);
	refused(&options, -EISDIR, "cannot open memory file");
	assert_int_equal(rmdir(options.memory_file), 0);
	strcpy(options.memory_file, "/nowhere/at/all");
	refused(&options, -ENOENT, "cannot make memory file /nowhere/at/all");
}

static void file_that_was_cut_short_is_refused(void **state)
{
	struct rbx_server_options options;
	struct stat status;
	struct world world;

	(void)state;
	begin(&world);
	options = world.options;
	world_stop(&world);
	assert_int_equal(stat(options.memory_file, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(truncate(options.memory_file, status.st_size - 1), 0);
	refused(&options, -EBADMSG, "was cut short");
	assert_int_equal(unlink(options.memory_file), 0);
}

/* The address is in use: nothing is left that would be taken for a memory file. */
static void start_that_fails_leaves_no_file(void **state)
{
	struct rbx_server_options options;
	struct stat status;
	struct world world;
	char path[300];

	(void)state;
	begin(&world);
	options = world.options;
	strcpy(options.listen, rbx_server_address(world.server));
	strcat(options.memory_file, "-2");
	refused(&options, -EADDRINUSE, "");
	assert_int_equal(stat(options.memory_file, &status), -1);
	snprintf(path, sizeof(path), "%s.rdmabox-new", options.memory_file);
	assert_int_equal(stat(path, &status), -1);
	/* One that was cut short is begun anew. */
	overwrite(world.options.memory_file, 0, "", 0);
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	overwrite(path, 0, "half of it", 10);
	end(&world);
	memset(&world, 0, sizeof(world));
	world.options = options;
	strcpy(world.options.listen, "127.0.0.1:0");
	world_start(&world);
	world_serves_on(&world);
	assert_int_equal(stat(path, &status), -1);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_of_a_running_server_is_refused),
		cmocka_unit_test(copy_is_refused),
		cmocka_unit_test(copy_with_the_inode_of_the_file_is_refused),
		cmocka_unit_test(file_that_was_in_use_when_the_machine_went_down_is_refused),
		cmocka_unit_test(file_that_could_not_be_written_in_the_end_is_refused),
		cmocka_unit_test(file_that_could_not_be_written_after_a_kill_is_refused),
		cmocka_unit_test(file_that_was_clean_stays_so_if_a_start_fails),
		cmocka_unit_test(file_that_others_may_have_is_refused),
		cmocka_unit_test(file_that_is_no_good_is_refused_and_left),
		cmocka_unit_test(file_that_was_cut_short_is_refused),
		cmocka_unit_test(start_that_fails_leaves_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
