/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wrap.h - the functions that the simulation replaces or watches.
 *
 * The linker turns each call of read() in the simulated code into __wrap_read(), and
 * __real_read() into read(); sim/meson.build has the list. Calls within the C library, and
 * calls within one file, are not replaced.
 */
#ifndef RBX_SIM_HOST_WRAP_H
#define RBX_SIM_HOST_WRAP_H

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct epoll_event;
struct rbx_held;
struct rbx_keeper;
struct rbx_lender;
struct rbx_lender_config;
struct rbx_lender_loan;
struct rbx_named;
struct rbx_session;
struct rbx_staging;
struct rbx_upkeep;

/* threads.c */
int __wrap_pthread_mutex_init(pthread_mutex_t *posix,
			      const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *posix);
int __wrap_pthread_mutex_lock(pthread_mutex_t *posix);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *posix);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *posix);
int __wrap_pthread_cond_init(pthread_cond_t *posix,
			     const pthread_condattr_t *attributes);
int __wrap_pthread_cond_destroy(pthread_cond_t *posix);
int __wrap_pthread_cond_wait(pthread_cond_t *posix, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *posix, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *posix);
int __wrap_pthread_cond_broadcast(pthread_cond_t *posix);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*main)(void *), void *arg);
int __wrap_pthread_join(pthread_t thread, void **result);
pthread_t __wrap_pthread_self(void);

/* clock.c */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_usleep(useconds_t us);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_sched_yield(void);

/* files.c */
int __wrap_eventfd(unsigned int count, int flags);
int __wrap_eventfd_read(int fd, eventfd_t *count);
int __wrap_eventfd_write(int fd, eventfd_t count);
ssize_t __wrap_read(int fd, void *buf, size_t size);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size);
ssize_t __real_write(int fd, const void *buf, size_t size);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int set, int operation, int fd,
		     struct epoll_event *event);
int __wrap_close(int fd);
int __real_close(int fd);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *time,
			   struct itimerspec *former);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __real_memfd_create(const char *name, unsigned int flags);

/* memory.c */
void *__wrap_mmap(void *addr, size_t size, int protection, int flags, int fd,
		  off_t offset);
void *__wrap_mmap64(void *addr, size_t size, int protection, int flags, int fd,
		    off_t offset);
int __wrap_munmap(void *addr, size_t size);
int __real_munmap(void *addr, size_t size);
void *__real_mmap(void *addr, size_t size, int protection, int flags, int fd,
		  off_t offset);

/* staging.c */
void __wrap_rbx_staging_init(struct rbx_staging *staging, void *memory,
			     uint32_t lkey);
void __real_rbx_staging_init(struct rbx_staging *staging, void *memory,
			     uint32_t lkey);
int32_t __wrap_rbx_staging_take(struct rbx_staging *staging,
				uint32_t length_bytes);
int32_t __real_rbx_staging_take(struct rbx_staging *staging,
				uint32_t length_bytes);

int __wrap_madvise(void *addr, size_t size, int advice);
int __real_madvise(void *addr, size_t size, int advice);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t size);
int __real_fallocate64(int fd, int mode, off_t offset, off_t size);

/* ../visit.c */
void __wrap_rbx_upkeep_abandon(struct rbx_upkeep *upkeep);
void __real_rbx_upkeep_abandon(struct rbx_upkeep *upkeep);

/* ../rival.c */
int __wrap_rbx_named_grant(struct rbx_named *named, struct rbx_session *session);
int __real_rbx_named_grant(struct rbx_named *named, struct rbx_session *session);

/* ../comings.c */
int __wrap_rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former);
int __real_rbx_keeper_take(struct rbx_keeper *keeper, uint32_t server, uint64_t former);
int __wrap_rbx_keeper_again(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place);
int __real_rbx_keeper_again(struct rbx_keeper *keeper, uint32_t server, uint32_t failed_place);
void __wrap_rbx_keeper_lose(struct rbx_keeper *keeper);
void __real_rbx_keeper_lose(struct rbx_keeper *keeper);
void __wrap_rbx_held_resume(struct rbx_held *held);
void __real_rbx_held_resume(struct rbx_held *held);

/* loans.c */
struct rbx_lender *__wrap_rbx_lender_init(void *memory,
					  const struct rbx_lender_config *config);
struct rbx_lender *__real_rbx_lender_init(void *memory,
					  const struct rbx_lender_config *config);
uint32_t __wrap_rbx_lender_lend(struct rbx_lender *lender, uint64_t session_id,
				struct rbx_lender_loan *loan);
uint32_t __real_rbx_lender_lend(struct rbx_lender *lender, uint64_t session_id,
				struct rbx_lender_loan *loan);
uint32_t __wrap_rbx_lender_unmap(struct rbx_lender *lender, uint64_t session_id,
				 const struct rbx_lender_loan *loan);
uint32_t __real_rbx_lender_unmap(struct rbx_lender *lender, uint64_t session_id,
				 const struct rbx_lender_loan *loan);

bool __wrap_rbx_lender_prepared(struct rbx_lender *lender,
				struct rbx_lender_loan *loan);
bool __real_rbx_lender_prepared(struct rbx_lender *lender,
				struct rbx_lender_loan *loan);
void __wrap_rbx_lender_restore(struct rbx_lender *lender, uint64_t volume_id,
			       const struct rbx_lender_loan *loan);
void __real_rbx_lender_restore(struct rbx_lender *lender, uint64_t volume_id,
			       const struct rbx_lender_loan *loan);
void __wrap_rbx_lender_ended(struct rbx_lender *lender, uint64_t slab_id);
void __real_rbx_lender_ended(struct rbx_lender *lender, uint64_t slab_id);
uint32_t __wrap_rbx_lender_resumed(struct rbx_lender *lender,
				   uint64_t session_id, uint64_t now_ns,
				   uint64_t last_epoch);
uint32_t __real_rbx_lender_resumed(struct rbx_lender *lender,
				   uint64_t session_id, uint64_t now_ns,
				   uint64_t last_epoch);

/* machine.c */
ssize_t __wrap_getrandom(void *buf, size_t size, unsigned int flags);
pid_t __wrap_gettid(void);

#endif
