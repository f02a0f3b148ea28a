/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * userfaultfd.c - the kernel tells of changes.
 *
 * A mapping is registered for write-protection faults, and nothing is ever protected. So no
 * page fault comes here, only the events that userfaultfd sends besides:
 *
 *	UNMAP	munmap(), mmap(MAP_FIXED) over it, shrinking mremap(), brk()
 *	REMAP	mremap() that moves
 *	REMOVE	madvise() with MADV_DONTNEED, MADV_FREE or MADV_REMOVE
 *
 * UFFD_USER_MODE_ONLY forbids faults of the kernel, which do not come either. With it,
 * userfaultfd needs no privilege since 5.11. Anonymous memory can be registered since 5.7,
 * shared memory since 5.19; what shmat() attaches cannot. EVENT_FORK is not asked for: it
 * needs privilege, and a mapping is not registered any more in a child.
 *
 * The order is what counts. The thread that makes the change waits until the event is read.
 * It may go on as soon as it is read, not when the listeners know. So the thread of the monitor
 * polls, then closes the gate, and only then reads (monitor.h).
 *
 * UNMAP and REMAP come when the change is done. REMOVE comes before: the kernel discards the
 * pages after the event was read, and says nothing when it has. A registration that is made
 * between would pin the pages that go. So the range is in doubt for a while (monitor.c).
 *
 * Memory that moves is watched at its new place, too, where nobody has asked for it. It is
 * given back when the event is read.
 *
 * Ends: close() lets go every thread that waits, and the kernel stops watching; but only if
 * nobody else has the descriptor. A child of _Fork() or of a bare clone() has it: no handler
 * of fork() runs in it. So each mapping is given back first. No more changes begin then of
 * which an event comes, and those that have begun are read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "lib/monitor/internal.h"
#include "lib/monitor/mappings.h"

/* Events that are read at once. */
#define BATCH 16u

/* How often the end looks whether changes are still under way. */
#define LAST_MS 1

/* How long the trial waits for its event. It comes at once, if at all. */
#define TRIAL_MS 10000

#define FEATURES \
	(UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE)

static struct {
	int fd;
	int stop_fd; /* an eventfd; readable: the thread ends */
	pthread_t thread;
} source = { .fd = -1, .stop_fd = -1 };

static void handle(const struct uffd_msg *message)
{
	switch (message->event) {
	case UFFD_EVENT_UNMAP:
		rbx_memory_monitor_tell(message->arg.remove.start, message->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		rbx_memory_monitor_tell(message->arg.remap.from,
					message->arg.remap.from + message->arg.remap.len);
		rbx_memory_monitor_moved(message->arg.remap.to,
					 message->arg.remap.to + message->arg.remap.len);
		break;
	case UFFD_EVENT_REMOVE:
		rbx_memory_monitor_tell_early(message->arg.remove.start, message->arg.remove.end);
		break;
	default:
		/* Nothing is protected, so there is no fault; no other event was asked for. */
		RBX_ASSERT(false);
	}
}

/* Reads what there is, up to a batch: the gate is not held for ever if changes go on. */
static void read_events(void)
{
	struct uffd_msg messages[BATCH];
	ssize_t bytes;

	rbx_memory_monitor_tell_begin();
	bytes = read(source.fd, messages, sizeof(messages));
	for (ssize_t at = 0; at + (ssize_t)sizeof(messages[0]) <= bytes;
	     at += (ssize_t)sizeof(messages[0]))
		handle(&messages[at / (ssize_t)sizeof(messages[0])]);
	rbx_memory_monitor_tell_end();
}

/*
 * The kernel counts the changes of watched memory that are under way. The count goes up with
 * the lock of the address space held, before anything is unmapped. It goes down when the
 * waiting thread runs again after its event was read. There is no call to ask for it. But
 * UFFDIO_WRITEPROTECT looks at it first, and fails with EAGAIN unless it is 0. For a range of no
 * bytes it then does nothing but to fail with EINVAL. It could fail with EFAULT for want of a
 * range, but a fault of the kernel takes three times as long as all the rest.
 */
static int changes_errno(void)
{
	static struct uffdio_writeprotect nothing;

	return ioctl(source.fd, UFFDIO_WRITEPROTECT, &nothing) ? errno : 0;
}

/* The kernel has nothing to watch any more. The events of changes that are under way must be
 * read: the threads that make them wait. */
static void read_the_last(void)
{
	struct pollfd event = { .fd = source.fd, .events = POLLIN };

	/* If the kernel does not say that there are any, none is waited for. */
	while (changes_errno() == EAGAIN)
		if (poll(&event, 1, LAST_MS) == 1)
			read_events();
}

static void *monitor_main(void *arg)
{
	struct pollfd fds[] = {
		{ .fd = source.fd, .events = POLLIN },
		{ .fd = source.stop_fd, .events = POLLIN },
	};

	(void)arg;
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue; /* a signal: of a debugger, as all others are blocked */
		if (fds[1].revents)
			break;
		if (fds[0].revents)
			read_events();
	}
	read_the_last();
	return NULL;
}

/* The program's signals go to the program's threads. */
static int start_thread(pthread_t *thread, void *(*main_of)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(thread, NULL, main_of, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int explain(int err, const char *what, char *text, size_t size_bytes)
{
	const char *fix = "";

	if (err == -ENOSYS)
		fix = "; the kernel was built without CONFIG_USERFAULTFD, or a seccomp filter answers so";
	else if (err == -EPERM)
		fix = "; a seccomp filter, as containers have it, forbids it: allow userfaultfd, or before 5.11 sysctl vm.unprivileged_userfaultfd=1";
	else if (err == -EINVAL)
		fix = "; the kernel is too old (5.11 is needed), or has no write protection by userfaultfd";
	snprintf(text, size_bytes, "%s: %s%s", what, strerror(-err), fix);
	return err;
}

static int open_descriptors(char *text, size_t size_bytes)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	int err;

	source.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (source.fd < 0)
		return explain(-errno, "userfaultfd()", text, size_bytes);
	if (ioctl(source.fd, UFFDIO_API, &api))
		return explain(-errno, "UFFDIO_API", text, size_bytes);
	source.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (source.stop_fd < 0)
		return explain(-errno, "eventfd()", text, size_bytes);
	err = rbx_mappings_open();
	return err ? explain(err, "/proc/thread-self/maps", text, size_bytes) : 0;
}

static void close_descriptors(void)
{
	if (source.stop_fd >= 0)
		close(source.stop_fd);
	if (source.fd >= 0)
		close(source.fd);
	source.fd = -1;
	source.stop_fd = -1;
	rbx_mappings_close();
}

/* A page that another thread unmaps, as that thread has to wait. */
struct trial {
	pthread_mutex_t start; /* held until it may unmap */
	pthread_t thread;
	char *page;
	size_t bytes;
	bool was_told;
	bool was_counted;
};

static void *unmap_page(void *arg)
{
	struct trial *trial = arg;

	pthread_mutex_lock(&trial->start);
	munmap(trial->page, trial->bytes);
	pthread_mutex_unlock(&trial->start);
	return NULL;
}

/* The gate is closed meanwhile, so that the event stays unread. */
static void watch_the_unmap(struct trial *trial)
{
	struct pollfd event = { .fd = source.fd, .events = POLLIN };

	rbx_memory_monitor_tell_begin();
	pthread_mutex_unlock(&trial->start);
	trial->was_told = poll(&event, 1, TRIAL_MS) == 1;
	trial->was_counted = rbx_userfaultfd_is_changing();
	rbx_memory_monitor_tell_end();
	pthread_join(trial->thread, NULL);
	trial->was_counted = trial->was_counted && !rbx_userfaultfd_is_changing();
}

/* The thread is made before the gate is closed: nothing may be allocated then. */
static int run_trial(struct trial *trial)
{
	int err = rbx_userfaultfd_register((uintptr_t)trial->page,
					   (uintptr_t)trial->page + trial->bytes);

	if (err)
		return err;
	trial->page[0] = 1; /* no fault comes of it, or this thread would wait here */
	pthread_mutex_lock(&trial->start);
	err = start_thread(&trial->thread, unmap_page, trial);
	if (err)
		pthread_mutex_unlock(&trial->start);
	else
		watch_the_unmap(trial);
	return err;
}

/* A watched page is unmapped: an event must come, the kernel must count the change while the
 * event is unread, and must not when all is over. */
static int try_event(char *text, size_t size_bytes)
{
	struct trial trial = {
		.start = PTHREAD_MUTEX_INITIALIZER,
		.bytes = (size_t)sysconf(_SC_PAGESIZE),
	};
	int err;

	trial.page = mmap(NULL, trial.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	if (trial.page == MAP_FAILED)
		return explain(-errno, "mmap() of a page", text, size_bytes);
	err = run_trial(&trial);
	if (err) {
		munmap(trial.page, trial.bytes);
		return explain(err, "the trial of userfaultfd", text, size_bytes);
	}
	if (trial.was_told && trial.was_counted)
		return 0;
	snprintf(text, size_bytes, "userfaultfd: %s when a watched page was unmapped; this kernel cannot be used",
		 trial.was_told ? "the change was not counted" : "no event came");
	return -ENOTSUP;
}

int rbx_userfaultfd_open(char *text, size_t size_bytes)
{
	int err = open_descriptors(text, size_bytes);

	if (err)
		goto out_close;
	err = start_thread(&source.thread, monitor_main, NULL);
	if (err) {
		explain(err, "pthread_create()", text, size_bytes);
		goto out_close;
	}
	err = try_event(text, size_bytes);
	if (err)
		rbx_userfaultfd_close();
	return err;

out_close:
	close_descriptors();
	return err;
}

/* One mapping at a time: a range with a mapping that cannot be watched is refused. What moves
 * meanwhile is given back at its event. */
static void unregister_all(void)
{
	struct rbx_mappings_walk walk;
	struct rbx_mapping mapping;

	if (rbx_mappings_begin(&walk))
		return; /* no descriptor is left, and close() has to do */
	for (uintptr_t at = 0; !rbx_mappings_next(&walk, at, &mapping); at = mapping.end)
		(void)rbx_userfaultfd_unregister(mapping.start, mapping.end);
	rbx_mappings_end(&walk);
}

void rbx_userfaultfd_close(void)
{
	uint64_t one = 1;

	unregister_all();
	if (write(source.stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(source.thread, NULL);
	close_descriptors();
}

void rbx_userfaultfd_forget(void)
{
	close_descriptors();
}

int rbx_userfaultfd_register(uintptr_t start, uintptr_t end)
{
	struct uffdio_register range = {
		.range = { .start = start, .len = end - start },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	if (!ioctl(source.fd, UFFDIO_REGISTER, &range))
		return 0;
	return errno == EINVAL ? -EOPNOTSUPP : -errno;
}

int rbx_userfaultfd_unregister(uintptr_t start, uintptr_t end)
{
	struct uffdio_range range = { .start = start, .len = end - start };

	return ioctl(source.fd, UFFDIO_UNREGISTER, &range) ? -errno : 0;
}

bool rbx_userfaultfd_is_changing(void)
{
	return changes_errno() != EINVAL;
}
