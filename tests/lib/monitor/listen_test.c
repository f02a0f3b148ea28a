/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listen_test.c - which source of changes a listener gets, and what it is told if the system
 * refuses one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cmocka.h>

#include "include/rdmabox/rdmabox.h"
#include "tests/lib/monitor/kernel.h"
#include "tests/lib/monitor/stand_in.h"

static struct stand_in cache;

/* One source serves all listeners. */
static void auto_takes_userfaultfd(void **state)
{
	struct stand_in other;

	(void)state;
	stand_in_open(&cache, RBX_MEMORY_MONITOR_AUTO);
	stand_in_open(&other, RBX_MEMORY_MONITOR_USERFAULTFD);
	assert_int_equal(cache.listener.source, RBX_MEMORY_MONITOR_USERFAULTFD);
	assert_int_equal(other.listener.source, RBX_MEMORY_MONITOR_USERFAULTFD);
	assert_non_null(strstr(cache.listener.why, "userfaultfd"));
	stand_in_close(&cache);
	stand_in_close(&other);
}

/* With no source nothing can be watched; the program can tell all the same. */
static void none_watches_nothing(void **state)
{
	uint8_t *addr = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);

	(void)state;
	stand_in_open(&cache, RBX_MEMORY_MONITOR_NONE);
	assert_int_equal(cache.listener.source, RBX_MEMORY_MONITOR_NONE);
	assert_int_equal(rbx_memory_monitor_watch(&cache.listener, addr, PAGE), -EOPNOTSUPP);
	assert_true(rbx_memory_monitor_is_settled(&cache.listener));
	assert_int_equal(rbx_memory_changed(addr, PAGE), 0);
	assert_int_equal(stand_in_told(&cache), 1);
	stand_in_close(&cache);
	munmap(addr, PAGE);
	assert_int_equal(rbx_memory_changed(addr, PAGE), 0);
	assert_int_equal(stand_in_told(&cache), 1);
}

static void listeners_have_a_bound(void **state)
{
	static struct stand_in many[RBX_MEMORY_MONITOR_LISTENERS_MAX];

	(void)state;
	for (uint32_t i = 0; i < RBX_MEMORY_MONITOR_LISTENERS_MAX; i++)
		stand_in_open(&many[i], RBX_MEMORY_MONITOR_AUTO);
	cache.listener.changed = many[0].listener.changed;
	assert_int_equal(rbx_memory_monitor_listen(&cache.listener,
						   RBX_MEMORY_MONITOR_AUTO), -ENOSPC);
	for (uint32_t i = 0; i < RBX_MEMORY_MONITOR_LISTENERS_MAX; i++)
		stand_in_close(&many[i]);
}

static void modes_are_parsed(void **state)
{
	static const char *const names[] = { "auto", "userfaultfd", "none" };
	enum rbx_memory_monitor_mode mode;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(rbx_memory_monitor_mode_parse(names[i], &mode), 0);
		assert_int_equal(mode, i);
	}
	assert_int_equal(rbx_memory_monitor_mode_parse("uffd", &mode), -EINVAL);
	assert_string_equal(rbx_last_error(),
			    "memory_monitor=uffd: must be one of auto|userfaultfd|none");
}

/* As containers do it. */
static void forbid_userfaultfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(10);
}

/* Exit codes, as the child is not a test of its own. */
static int look_at_refused(void)
{
	char text[256];

	cache.listener.changed = NULL;
	forbid_userfaultfd();
	if (rbx_memory_monitor_try_userfaultfd(text, sizeof(text)) != -EPERM ||
	    !strstr(text, "allow userfaultfd"))
		return 1;
	stand_in_open(&cache, RBX_MEMORY_MONITOR_AUTO);
	if (cache.listener.source != RBX_MEMORY_MONITOR_NONE || !strstr(cache.listener.why, "seccomp"))
		return 2;
	stand_in_close(&cache);
	if (rbx_memory_monitor_listen(&cache.listener, RBX_MEMORY_MONITOR_USERFAULTFD) != -EPERM ||
	    !strstr(rbx_last_error(), "allow userfaultfd"))
		return 3;
	return 0;
}

static void refusal_is_told_with_its_fix(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(look_at_refused());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What a listener is told if there is no source. None may remain open. */
static void expect_refused(int err, const char *why)
{
	stand_in_open(&cache, RBX_MEMORY_MONITOR_AUTO);
	assert_int_equal(cache.listener.source, RBX_MEMORY_MONITOR_NONE);
	assert_non_null(strstr(cache.listener.why, why));
	stand_in_close(&cache);
	assert_int_equal(rbx_memory_monitor_listen(&cache.listener,
						   RBX_MEMORY_MONITOR_USERFAULTFD), err);
	assert_non_null(strstr(rbx_last_error(), why));
}

static void without_proc_there_is_no_source(void **state)
{
	(void)state;
	kernel.has_no_proc = true;
	expect_refused(-ENOENT, "/proc/thread-self/maps");
	kernel.has_no_proc = false;
}

/* A kernel that does not count changes would let look-ups hit while one is under way. */
static void kernel_that_does_not_count_is_refused(void **state)
{
	(void)state;
	kernel.counts_nothing = true;
	expect_refused(-ENOTSUP, "the change was not counted");
	kernel.counts_nothing = false;
}

static void let_open(rlim_t files)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = files;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void without_descriptors_there_is_no_source(void **state)
{
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	let_open(0);
	assert_int_equal(rbx_memory_monitor_try_userfaultfd((char[256]){ 0 }, 256), -EMFILE);
	let_open(before.rlim_cur);
}

/* An older kernel needs one for each watch. */
static void watching_takes_no_descriptor(void **state)
{
	uint8_t *addr = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	struct rlimit before;
	int err;

	kernel.has_no_query = *state != NULL;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	stand_in_open(&cache, RBX_MEMORY_MONITOR_USERFAULTFD);
	let_open(0);
	err = rbx_memory_monitor_watch(&cache.listener, addr, PAGE);
	let_open(before.rlim_cur);
	assert_int_equal(err, kernel_has_query() ? 0 : -EMFILE);
	assert_int_equal(kernel_watches(addr), !err);
	if (!err)
		rbx_memory_monitor_unwatch(&cache.listener, addr, PAGE);
	stand_in_close(&cache);
	munmap(addr, PAGE);
	kernel.has_no_query = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_takes_userfaultfd),
		cmocka_unit_test(none_watches_nothing),
		cmocka_unit_test(listeners_have_a_bound),
		cmocka_unit_test(modes_are_parsed),
		cmocka_unit_test(refusal_is_told_with_its_fix),
		cmocka_unit_test(without_proc_there_is_no_source),
		cmocka_unit_test(kernel_that_does_not_count_is_refused),
		cmocka_unit_test(without_descriptors_there_is_no_source),
		cmocka_unit_test(watching_takes_no_descriptor),
		cmocka_unit_test_prestate(watching_takes_no_descriptor, &kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
