/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pool_test.c - a pool of etcd: read and watched; and endpoints that hang, break off, lie,
 * or are away.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "include/rdmabox/rdmabox.h"
#include "tests/pool/etcd/fake_etcd.h"
#include "tests/pool/pool_watch.h"

#define A "/rdmabox/p/servers/00000000000000aa"
#define B "/rdmabox/p/servers/00000000000000bb"
#define C "/rdmabox/p/servers/00000000000000cc"
#define ENTRY(address) "{\"address\":\"" address "\",\"labels\":\"rack=7\",\"free_bytes\":4096}"

static _Atomic(const char *) range_json; /* what a read finds; NULL: it hangs */
static _Atomic(const char *) range_status;
static _Atomic(const char *) lines; /* what the next watch says first */
static atomic_uint_fast64_t watched_from; /* the revision that the last watch began at */

static void etcd_script(struct fake_etcd *etcd, const struct fake_request *request)
{
	(void)etcd;
	if (!strcmp(request->path, "/v3/kv/range")) {
		if (range_json)
			fake_answer(request, range_status, range_json);
		else
			fake_hang(request);
	} else if (!strcmp(request->path, "/v3/watch")) {
		const char *from = strstr(request->body, "\"start_revision\":\"");

		watched_from = from ? strtoull(from + 18, NULL, 10) : 0;
		fake_stream(request);
		fake_say(request, "%s", atomic_exchange(&lines, ""));
		fake_hang(request);
	}
}

static int start(void **state)
{
	(void)state;
	range_status = "200 OK";
	range_json = "{\"header\":{\"revision\":\"1\"}}";
	lines = "";
	return 0;
}

static int open_at(struct rbx_pool **pool, const char *endpoints)
{
	char text[256];

	snprintf(text, sizeof(text), "etcd://%s/p", endpoints);
	return rbx_pool_open(pool, text);
}

static struct rbx_pool *open_pool(const struct fake_etcd *etcd)
{
	struct rbx_pool *pool;
	int err = open_at(&pool, fake_etcd_address(etcd));

	if (err)
		fail_msg("%d: %s", err, rbx_last_error());
	return pool;
}

static void said(const char *what)
{
	if (!strstr(rbx_last_error(), what))
		fail_msg("\"%s\" does not say \"%s\"", rbx_last_error(), what);
}

/* ---- What goes well ---------------------------------------------------------------------*/

static void entries_are_read_and_changes_followed(void **state)
{
	char *range = fake_range(7, A "=" ENTRY("a:1"), B "=" ENTRY("b:1"), NULL);
	char *put = fake_event(8, C, ENTRY("c:1")), *gone = fake_event(9, A, NULL);
	char both[2000];
	struct rbx_pool_member members[4];
	struct fake_etcd *etcd;
	struct rbx_pool *pool;

	(void)state;
	snprintf(both, sizeof(both), "%s%s", put, gone);
	range_json = range;
	lines = both;
	etcd = fake_etcd_start(etcd_script);
	pool = open_pool(etcd);
	pool_becomes(pool, "c:1,b:1", "");
	assert_int_equal(watched_from, 8); /* nothing between is missed, and nothing comes twice */
	assert_int_equal(rbx_pool_members_get(pool, members, 4), 2);
	assert_string_equal(members[0].labels, "rack=7");
	assert_true(members[0].incarnation == 0xcc);
	assert_true(members[0].free_bytes == 4096);
	assert_true(members[0].memory_bytes == RBX_POOL_NOT_TOLD);
	rbx_pool_close(pool);
	fake_etcd_stop(etcd);
	free(range);
	free(put);
	free(gone);
}

/* The key of the former one goes only when its lease has run out. */
static void server_that_was_started_anew_is_there_once(void **state)
{
	char *range = fake_range(7, A "=" ENTRY("a:1"), NULL);
	char *put = fake_event(8, B, ENTRY("a:1"));
	struct rbx_pool_member member;
	struct fake_etcd *etcd;
	struct rbx_pool *pool;

	(void)state;
	range_json = range;
	lines = put;
	etcd = fake_etcd_start(etcd_script);
	pool = open_pool(etcd);
	do {
		pool_becomes(pool, "a:1", "");
		rbx_pool_members_get(pool, &member, 1);
	} while (member.incarnation != 0xbb);
	rbx_pool_close(pool);
	fake_etcd_stop(etcd);
	free(range);
	free(put);
}

static void compacted_revision_is_read_anew(void **state)
{
	char *range = fake_range(7, A "=" ENTRY("a:1"), NULL);
	char *later = fake_range(900, B "=" ENTRY("b:1"), NULL);
	struct fake_etcd *etcd;
	struct rbx_pool *pool;

	(void)state;
	range_json = range;
	lines = "{\"result\":{\"header\":{\"revision\":\"900\"},\"canceled\":true,\"compact_revision\":\"800\"}}\n";
	etcd = fake_etcd_start(etcd_script);
	pool = open_pool(etcd);
	range_json = later;
	pool_becomes(pool, "b:1", "");
	rbx_pool_close(pool);
	fake_etcd_stop(etcd);
	free(range);
	free(later);
}

/* ---- Endpoints that fail ------------------------------------------------------------------*/

static void members_stay_while_etcd_is_away_and_it_is_found_again(void **state)
{
	char *range = fake_range(7, A "=" ENTRY("a:1"), NULL);
	char *later = fake_range(9, A "=" ENTRY("a:1"), B "=" ENTRY("b:1"), NULL);
	struct fake_etcd *etcd;
	struct rbx_pool *pool;
	char address[32];

	(void)state;
	range_json = range;
	etcd = fake_etcd_start(etcd_script);
	strcpy(address, fake_etcd_address(etcd));
	pool = open_pool(etcd);
	fake_etcd_stop(etcd);
	pool_becomes(pool, "a:1", "etcd at 127.0.0.1:");
	range_json = later;
	etcd = fake_etcd_start_at(address, etcd_script);
	pool_becomes(pool, "a:1,b:1", "");
	rbx_pool_close(pool);
	fake_etcd_stop(etcd);
	free(range);
	free(later);
}

static void hang_script(struct fake_etcd *etcd, const struct fake_request *request)
{
	(void)etcd;
	fake_hang(request);
}

static void other_endpoints_are_tried(void **state)
{
	char *range = fake_range(7, A "=" ENTRY("a:1"), NULL), endpoints[128];
	struct fake_etcd *silent = fake_etcd_start(hang_script), *etcd;
	struct rbx_pool *pool;

	(void)state;
	range_json = range;
	etcd = fake_etcd_start(etcd_script);
	snprintf(endpoints, sizeof(endpoints), "127.0.0.1:1,%s,%s", fake_etcd_address(silent),
		 fake_etcd_address(etcd));
	assert_int_equal(open_at(&pool, endpoints), 0);
	pool_becomes(pool, "a:1", "");
	assert_int_equal(fake_etcd_count(silent, "/v3/kv/range"), 1);
	rbx_pool_close(pool);
	fake_etcd_stop(etcd);
	fake_etcd_stop(silent);
	free(range);
}

static void endpoint_that_never_answers_is_given_up(void **state)
{
	struct fake_etcd *silent = fake_etcd_start(hang_script);
	struct rbx_pool *pool;

	(void)state;
	assert_int_equal(open_at(&pool, fake_etcd_address(silent)), -ETIMEDOUT);
	said("etcd at 127.0.0.1:");
	fake_etcd_stop(silent);
	assert_int_equal(open_at(&pool, "127.0.0.1:1"), -EHOSTUNREACH);
	said("127.0.0.1:1");
}

/* It hangs in the read that follows a lost watch. A close that waited for that answer would
 * see the next try come first. */
static void close_does_not_wait_for_an_endpoint_that_hangs(void **state)
{
	struct fake_etcd *etcd = fake_etcd_start(etcd_script);
	struct rbx_pool *pool = open_pool(etcd);
	char address[32];

	(void)state;
	strcpy(address, fake_etcd_address(etcd));
	range_json = NULL;
	fake_etcd_stop(etcd);
	etcd = fake_etcd_start_at(address, etcd_script);
	fake_etcd_await(etcd, "/v3/kv/range", 1);
	assert_int_equal(rbx_pool_close(pool), 0);
	assert_int_equal(fake_etcd_count(etcd, "/v3/kv/range"), 1);
	fake_etcd_stop(etcd);
}

/* ---- Answers that are none ------------------------------------------------------------------*/

static void refused_with(const char *status, const char *json, int err, const char *what)
{
	struct fake_etcd *etcd;
	struct rbx_pool *pool;
	int got;

	range_status = status;
	range_json = json;
	etcd = fake_etcd_start(etcd_script);
	got = open_at(&pool, fake_etcd_address(etcd));
	if (got != err)
		fail_msg("%s: %d, not %d: %s", json, got, err, rbx_last_error());
	said(what);
	fake_etcd_stop(etcd);
}

static void answers_that_are_none_are_refused(void **state)
{
	const char *no_json = "the answer to a read is no JSON of etcd";

	(void)state;
	refused_with("200 OK", "<html>", -EPROTO, no_json);
	refused_with("200 OK", "", -EPROTO, no_json);
	refused_with("200 OK", "[]", -EPROTO, no_json);
	refused_with("200 OK", "{}", -EPROTO, no_json);
	refused_with("200 OK", "{\"header\":{\"revision\":\"-1\"}}", -EPROTO, no_json);
	refused_with("200 OK", "{\"header\":{\"revision\":\"1\"},\"kvs\":7}", -EPROTO, no_json);
	refused_with("200 OK", "{\"header\":{\"revision\":\"1\"},\"kvs\":[7]}", -EPROTO, "a key in the answer is none");
	refused_with("200 OK", "{\"header\":{\"revision\":\"1\"},\"kvs\":[{\"key\":\"%%\"}]}", -EPROTO, "a key in the answer is none");
	refused_with("200 OK", "{\"header\":{\"revision\":\"1\"},\"kvs\":[{\"key\":\"L290aGVy\",\"mod_revision\":\"1\"}]}", -EPROTO,
		     "that was not asked for");
	refused_with("200 OK", "{\"header\":{\"revision\":\"1\"},\"more\":true}", -ENOSPC, "more than 1024");
	refused_with("400 Bad Request", "CommonName of client sending a request against gateway\n", -EPERM,
		     "no certificate of a client with a CommonName");
	refused_with("500 Internal Server Error", "oops", -EREMOTEIO, "HTTP status 500");
	refused_with("302 Found\r\nLocation: http://127.0.0.1:1/", "", -EPROTO, "HTTP status 302");
	refused_with("404 Not Found", "404 page not found", -EPROTO, "version 3.4");
	refused_with("503 Service Unavailable", "{\"error\":\"etcdserver: no leader\\u001b[m\",\"code\":14}",
		     -EREMOTEIO, "etcdserver: no leader?[m");
	refused_with("400 Bad Request", "{\"error\":\"etcdserver: user name is empty\",\"code\":3}", -EPERM,
		     "RDMABOX_ETCD_USER_FILE");
}

static void entry_that_lies_is_left_out_and_named(void **state)
{
	static const char *const broken[] = {
		"nonsense", "{}", "{\"address\":7}", "{\"address\":\"nowhere\"}",
		"{\"address\":\"a:1\",\"labels\":\"x\"}", "{\"address\":\"a:1\",\"free_bytes\":-1}",
		"{\"address\":\"a:1\",\"draining\":1}",
	};
	struct rbx_pool_member member;
	struct fake_etcd *etcd;
	struct rbx_pool *pool;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		char entry[256], *range;

		snprintf(entry, sizeof(entry), A "=%s", broken[i]);
		range = fake_range(7, entry, B "=" ENTRY("b:1"), "/rdmabox/p/servers/x=y", NULL);
		range_json = range;
		etcd = fake_etcd_start(etcd_script);
		pool = open_pool(etcd);
		pool_becomes(pool, "b:1", A);
		assert_int_equal(rbx_pool_members_get(pool, &member, 1), 1);
		rbx_pool_close(pool);
		fake_etcd_stop(etcd);
		free(range);
	}
}

static void huge_script(struct fake_etcd *etcd, const struct fake_request *request)
{
	static char chunk[65536];

	(void)etcd;
	memset(chunk, ' ', sizeof(chunk) - 1);
	fake_say(request, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	for (int i = 0; i < 64; i++)
		fake_say(request, "%s", chunk);
}

static void broken_off_script(struct fake_etcd *etcd, const struct fake_request *request)
{
	(void)etcd;
	fake_say(request, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"header\":");
}

static void no_http_script(struct fake_etcd *etcd, const struct fake_request *request)
{
	(void)etcd;
	fake_say(request, "220 smtp.example ready\r\n");
}

static void refused_script(fake_script *script, int err, const char *what)
{
	struct fake_etcd *etcd = fake_etcd_start(script);
	struct rbx_pool *pool;

	assert_int_equal(open_at(&pool, fake_etcd_address(etcd)), err);
	said(what);
	fake_etcd_stop(etcd);
}

static void answers_without_end_or_whole_are_refused(void **state)
{
	(void)state;
	refused_script(huge_script, -EFBIG, "an answer of more than 2097152 bytes");
	refused_script(broken_off_script, -EPROTO, "etcd at ");
	refused_script(no_http_script, -EPROTO, "etcd at ");
}

/* More come by the watch than a pool may have: what was there before stays. */
static void thousands_of_members_by_a_watch_are_refused(void **state)
{
	char *range = fake_range(7, A "=" ENTRY("a:1"), NULL), *all = NULL;
	size_t all_bytes = 0;
	FILE *out = open_memstream(&all, &all_bytes);
	struct fake_etcd *etcd;
	struct rbx_pool *pool;

	(void)state;
	for (unsigned int i = 0; i < RBX_POOL_MEMBERS_MAX; i++) {
		char key[64], value[64], *line;

		snprintf(key, sizeof(key), "/rdmabox/p/servers/%016x", i + 1000);
		snprintf(value, sizeof(value), "{\"address\":\"h%u:1\"}", i);
		line = fake_event(8 + i, key, value);
		fputs(line, out);
		free(line);
	}
	fclose(out);
	range_json = range;
	lines = all;
	etcd = fake_etcd_start(etcd_script);
	pool = open_pool(etcd);
	fake_etcd_await(etcd, "/v3/kv/range", 2);
	assert_true(rbx_pool_members_get(pool, NULL, 0) <= RBX_POOL_MEMBERS_MAX);
	pool_becomes(pool, "a:1", "");
	rbx_pool_close(pool);
	fake_etcd_stop(etcd);
	free(all);
	free(range);
}

static void text_that_is_no_pool_is_refused(void **state)
{
	struct rbx_pool *pool;

	(void)state;
	assert_int_equal(rbx_pool_open(&pool, "etcd://127.0.0.1:2379"), -EINVAL);
	said("/NAME is wanted");
	assert_int_equal(rbx_pool_open(&pool, "etcd://127.0.0.1:2379/"), -EINVAL);
	assert_int_equal(rbx_pool_open(&pool, "etcd://127.0.0.1:2379/a/b"), -EINVAL);
	assert_int_equal(rbx_pool_open(&pool, "etcd:///a"), -EINVAL);
	assert_int_equal(rbx_pool_open(&pool, "etcd://a:1,/b"), -EINVAL);
	assert_int_equal(rbx_pool_open(&pool, "etcd://me:word@a:1/b"), -EINVAL);
	said("RDMABOX_ETCD_USER_FILE");
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(entries_are_read_and_changes_followed),
		TEST(server_that_was_started_anew_is_there_once),
		TEST(compacted_revision_is_read_anew),
		TEST(members_stay_while_etcd_is_away_and_it_is_found_again),
		TEST(other_endpoints_are_tried),
		TEST(endpoint_that_never_answers_is_given_up),
		TEST(close_does_not_wait_for_an_endpoint_that_hangs),
		TEST(answers_that_are_none_are_refused),
		TEST(entry_that_lies_is_left_out_and_named),
		TEST(answers_without_end_or_whole_are_refused),
		TEST(thousands_of_members_by_a_watch_are_refused),
		TEST(text_that_is_no_pool_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
