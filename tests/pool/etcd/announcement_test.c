/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * announcement_test.c - a server announces itself: the entry is written, kept alive, written
 * anew when the lease was lost, changed, and taken back; and nobody waits for etcd.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/rdmabox/rdmabox.h"
#include "pool/etcd/answer.h"
#include "pool/members.h"
#include "tests/pool/etcd/fake_etcd.h"

static atomic_bool lease_is_lost, leases_are_none, put_fails, hangs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both below */
static char key[256], value[1024]; /* of the last put */

#define KEEP_MS 3400 /* somewhat longer than between two renewals of the lease */
#define KEEPS_PER_LOOK 9u

static _Atomic(time_t) leapt_ms;

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += leapt_ms / 1000;
	now->tv_nsec += leapt_ms % 1000 * 1000000;
	now->tv_sec += now->tv_nsec / 1000000000;
	now->tv_nsec %= 1000000000;
	return rc;
}

static void text_take(const char *body, const char *name, char *to, size_t to_bytes)
{
	const char *at = strstr(body, name);
	char base64[2048];

	assert_non_null(at);
	sscanf(at + strlen(name), "\":\"%2047[^\"]", base64);
	assert_int_equal(etcd_base64_read(base64, to, &to_bytes), 0);
}

static void script(struct fake_etcd *etcd, const struct fake_request *request)
{
	const char *put = strstr(request->body, "request_put");

	(void)etcd;
	if (hangs) {
		fake_hang(request);
	} else if (!strcmp(request->path, "/v3/lease/grant")) {
		fake_answer(request, "200 OK", "{\"ID\":\"77\",\"TTL\":\"10\"}");
	} else if (!strcmp(request->path, "/v3/lease/keepalive")) {
		fake_answer(request, "200 OK",
			    atomic_exchange(&lease_is_lost, false) ?
				    "{\"result\":{\"ID\":\"77\"}}" :
				    "{\"result\":{\"ID\":\"77\",\"TTL\":\"10\"}}");
	} else if (put && atomic_exchange(&put_fails, false)) {
		fake_answer(request, "503 Service Unavailable", "{\"error\":\"no leader\"}");
	} else if (put && leases_are_none) {
		fake_answer(request, "404 Not Found",
			    "{\"error\":\"requested lease not found\",\"code\":5}");
	} else if (put) {
		pthread_mutex_lock(&lock);
		text_take(put, "key", key, sizeof(key));
		text_take(put, "value", value, sizeof(value));
		pthread_mutex_unlock(&lock);
		fake_answer(request, "200 OK", "{\"header\":{\"revision\":\"8\"},\"succeeded\":true}");
	} else {
		fake_answer(request, "200 OK", "{\"header\":{\"revision\":\"8\"}}");
	}
}

static struct rbx_pool_member member;

static int start(void **state)
{
	(void)state;
	lease_is_lost = leases_are_none = put_fails = hangs = false;
	rbx_member_init(&member, "10.0.0.1:7471");
	strcpy(member.labels, "rack=7");
	member.incarnation = 0xabc;
	member.free_bytes = 4096;
	return 0;
}

static struct rbx_announcement *announce(const char *endpoint)
{
	struct rbx_announcement *announcement;
	char pool[128];

	snprintf(pool, sizeof(pool), "etcd://%s/p", endpoint);
	if (rbx_announcement_open(&announcement, pool, &member))
		fail_msg("%s", rbx_last_error());
	return announcement;
}

static void await_value(const char *what)
{
	bool is;

	do {
		usleep(10000);
		pthread_mutex_lock(&lock);
		is = strstr(value, what);
		pthread_mutex_unlock(&lock);
	} while (!is);
}

static void entry_is_written_changed_and_taken_back(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement = announce(fake_etcd_address(etcd));

	(void)state;
	await_value("\"free_bytes\":4096,\"draining\":false");
	assert_string_equal(key, "/rdmabox/p/servers/0000000000000abc");
	assert_non_null(strstr(value, "\"address\":\"10.0.0.1:7471\",\"labels\":\"rack=7\""));
	member.draining = 1;
	assert_int_equal(rbx_announcement_update(announcement, &member), 0);
	await_value("\"draining\":true");
	member.free_bytes = 0;
	assert_int_equal(rbx_announcement_update(announcement, &member), 0);
	await_value("\"free_bytes\":0");
	assert_int_equal(rbx_announcement_trouble(announcement, NULL, 0), 0);
	assert_int_equal(rbx_announcement_close(announcement), 0);
	assert_int_equal(fake_etcd_count(etcd, "/v3/lease/revoke"), 1);
	fake_etcd_stop(etcd);
}

static void lost_lease_is_taken_anew_with_the_entry(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement = announce(fake_etcd_address(etcd));

	(void)state;
	lease_is_lost = true;
	fake_etcd_await(etcd, "/v3/lease/grant", 2);
	fake_etcd_await(etcd, "/v3/kv/txn", 2);
	rbx_announcement_close(announcement);
	fake_etcd_stop(etcd);
}

/* An etcd that is restored again and again, or lies, is not asked thousands of times a second. */
static void lease_that_is_lost_at_once_is_told_and_taken_anew_later(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement;
	char text[256];

	(void)state;
	leases_are_none = true;
	announcement = announce(fake_etcd_address(etcd));
	while (!rbx_announcement_trouble(announcement, text, sizeof(text)))
		usleep(10000);
	assert_non_null(strstr(text, "requested lease not found"));
	assert_true(fake_etcd_count(etcd, "/v3/lease/grant") >= 2); /* the second one at once */
	leases_are_none = false;
	while (rbx_announcement_trouble(announcement, text, sizeof(text)))
		usleep(10000);
	rbx_announcement_close(announcement);
	fake_etcd_stop(etcd);
}

/* And not only when it is found missing, within 30 s. */
static void entry_that_could_not_be_written_with_another_lease_is_written_soon(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement = announce(fake_etcd_address(etcd));

	(void)state;
	fake_etcd_await(etcd, "/v3/kv/txn", 1);
	put_fails = true;
	lease_is_lost = true;
	fake_etcd_await(etcd, "/v3/kv/txn", 3);
	assert_false(put_fails);
	/* Nobody has looked for it meanwhile. */
	assert_int_equal(fake_etcd_count(etcd, "/v3/kv/range"), 0);
	rbx_announcement_close(announcement);
	fake_etcd_stop(etcd);
}

/* Each time the lease is kept before the entry is written; the last times nothing has changed. */
static void entry_that_somebody_has_removed_is_written_again(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement = announce(fake_etcd_address(etcd));
	uint32_t keeps;

	(void)state;
	for (keeps = 1; keeps <= KEEPS_PER_LOOK; keeps++) {
		fake_etcd_await(etcd, "/v3/kv/txn", keeps);
		leapt_ms += KEEP_MS;
		if (keeps < KEEPS_PER_LOOK)
			member.draining = !member.draining;
		assert_int_equal(rbx_announcement_update(announcement, &member), 0);
	}
	fake_etcd_await(etcd, "/v3/kv/range", 1);
	leapt_ms += KEEP_MS;
	assert_int_equal(rbx_announcement_update(announcement, &member), 0);
	fake_etcd_await(etcd, "/v3/lease/keepalive", keeps);
	assert_int_equal(fake_etcd_count(etcd, "/v3/kv/txn"), keeps);
	rbx_announcement_close(announcement);
	fake_etcd_stop(etcd);
}

static void etcd_that_is_away_is_told_and_found_later(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement;
	char address[32], text[256];

	(void)state;
	strcpy(address, fake_etcd_address(etcd));
	fake_etcd_stop(etcd);
	announcement = announce(address);
	while (!rbx_announcement_trouble(announcement, text, sizeof(text)))
		usleep(10000);
	assert_non_null(strstr(text, "etcd at 127.0.0.1:"));
	etcd = fake_etcd_start_at(address, script);
	fake_etcd_await(etcd, "/v3/kv/txn", 1);
	while (rbx_announcement_trouble(announcement, text, sizeof(text)))
		usleep(10000);
	rbx_announcement_close(announcement);
	fake_etcd_stop(etcd);
}

/* The goodbye is given up, for the endpoint never answers it. */
static void close_does_not_wait_for_an_endpoint_that_hangs(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_announcement *announcement = announce(fake_etcd_address(etcd));

	(void)state;
	fake_etcd_await(etcd, "/v3/kv/txn", 1);
	hangs = true;
	fake_etcd_await(etcd, "/v3/lease/keepalive", 1);
	assert_int_equal(rbx_announcement_close(announcement), 0);
	assert_int_equal(fake_etcd_count(etcd, "/v3/lease/keepalive"), 1);
	fake_etcd_stop(etcd);
}

static void what_cannot_be_announced_is_refused(void **state)
{
	struct rbx_announcement *announcement;

	(void)state;
	assert_int_equal(rbx_announcement_open(&announcement, "a:1,b:1", &member), -EINVAL);
	assert_int_equal(rbx_announcement_open(&announcement, "file:/x", &member), -EINVAL);
	assert_int_equal(rbx_announcement_open(&announcement, "etcd://a:1", &member), -EINVAL);
	strcpy(member.labels, "rack");
	assert_int_equal(rbx_announcement_open(&announcement, "etcd://a:1/p", &member), -EINVAL);
	start(NULL);
	member.incarnation = 0;
	assert_int_equal(rbx_announcement_open(&announcement, "etcd://a:1/p", &member), -EINVAL);
	start(NULL);
	strcpy(member.address, "here");
	assert_int_equal(rbx_announcement_open(&announcement, "etcd://a:1/p", &member), -EINVAL);
	memset(member.address, 'a', sizeof(member.address));
	assert_int_equal(rbx_announcement_open(&announcement, "etcd://a:1/p", &member), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entry_is_written_changed_and_taken_back),
		TEST(lost_lease_is_taken_anew_with_the_entry),
		TEST(lease_that_is_lost_at_once_is_told_and_taken_anew_later),
		TEST(entry_that_could_not_be_written_with_another_lease_is_written_soon),
		TEST(entry_that_somebody_has_removed_is_written_again),
		TEST(etcd_that_is_away_is_told_and_found_later),
		TEST(close_does_not_wait_for_an_endpoint_that_hangs),
		TEST(what_cannot_be_announced_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
