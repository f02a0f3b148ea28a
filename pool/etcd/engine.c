/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine.c - etcd as a store (pool/store.h), by its JSON gateway: etcd 3.4 and later.
 *
 * Every write is a transaction, with or without a comparison. That of a lease's key, or of
 * any revision, may be done twice without harm; one that compares may not, for the second
 * one would find what the first one has done.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/etcd/http.h"

/* That are taken at once: there may be no end of them, and the caller has more to do. */
#define WATCH_LINES_MAX 1024

struct etcd {
	struct rbx_store store; /* first: what the caller has */
	struct etcd_http http;
	char watched[RBX_STORE_KEY_BYTES]; /* the prefix */
};

static struct etcd *etcd_of(struct rbx_store *store)
{
	return (struct etcd *)store;
}

static struct etcd_bytes body(const struct etcd *etcd)
{
	return (struct etcd_bytes){ etcd->http.request.body.bytes,
				    etcd->http.request.body.length };
}

static int out_of_memory(struct rbx_store *store)
{
	snprintf(store->error, sizeof(store->error), "out of memory");
	return -ENOMEM;
}

/* A request in JSON; NULL: no memory. All that goes in is base64 or a number. */
static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return length < 0 ? NULL : text;
}

/* Posts a request that was made by text_of(), and frees it. */
static int post(struct rbx_store *store, const char *path, char *json, bool may_repeat)
{
	int err;

	if (!json)
		return out_of_memory(store);
	err = etcd_http_post(&etcd_of(store)->http, path, json, may_repeat);
	free(json);
	return err;
}

static int answered(struct rbx_store *store, int err)
{
	return etcd_http_answered(&etcd_of(store)->http, err);
}

/* ---- Reading ---------------------------------------------------------------------------*/

struct counted {
	rbx_store_visit_fn *visit;
	void *user;
	uint32_t count;
};

static int counted_visit(void *user, const struct rbx_store_entry *entry)
{
	struct counted *counted = user;

	counted->count++;
	return counted->visit(counted->user, entry);
}

static int etcd_get(struct rbx_store *store, const char *key, rbx_store_visit_fn *visit,
		    void *user)
{
	struct counted counted = { visit, user, 0 };
	char *key64 = etcd_base64(key, strlen(key));
	uint64_t revision;
	int err;

	err = post(store, "/v3/kv/range", key64 ? text_of("{\"key\":\"%s\"}", key64) : NULL, true);
	free(key64);
	if (!err)
		err = answered(store, etcd_answer_range(body(etcd_of(store)), key, 1, counted_visit,
							&counted, &revision, store->error));
	if (err || counted.count)
		return err;
	snprintf(store->error, sizeof(store->error), "etcd: there is no key %s", key);
	return -ENOENT;
}

static int etcd_range(struct rbx_store *store, const char *prefix, uint32_t max,
		      rbx_store_visit_fn *visit, void *user, uint64_t *revision)
{
	char *key64 = etcd_base64(prefix, strlen(prefix)), *end64 = etcd_base64_end(prefix);
	char *json = NULL;
	int err;

	/* One more than may be there tells that there are more, and no more than that comes. */
	if (key64 && end64)
		json = text_of("{\"key\":\"%s\",\"range_end\":\"%s\",\"limit\":%u}", key64, end64,
			       max + 1);
	err = post(store, "/v3/kv/range", json, true);
	free(end64);
	free(key64);
	return err ? err :
		     answered(store, etcd_answer_range(body(etcd_of(store)), prefix, max, visit,
						       user, revision, store->error));
}

/* ---- Writing ---------------------------------------------------------------------------*/

/* Takes `action`, "request_put":{...}. */
static int txn(struct rbx_store *store, const char *key64, uint64_t if_revision, char *action,
	       uint64_t *revision)
{
	char compare[2 * RBX_STORE_KEY_BYTES] = "";
	bool succeeded = false;
	char *json;
	int err;

	if (if_revision != RBX_STORE_ANY)
		snprintf(compare, sizeof(compare),
			 "{\"key\":\"%s\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"%" PRIu64
			 "\"}",
			 key64, if_revision);
	json = action ? text_of("{\"compare\":[%s],\"success\":[{%s}]}", compare, action) : NULL;
	free(action);
	err = post(store, "/v3/kv/txn", json, if_revision == RBX_STORE_ANY);
	if (!err)
		err = answered(store, etcd_answer_txn(body(etcd_of(store)), &succeeded, revision,
						      store->error));
	if (err || succeeded)
		return err;
	snprintf(store->error, sizeof(store->error), "etcd: the key was changed meanwhile");
	return -EEXIST;
}

static int key_check(struct rbx_store *store, const char *key, size_t value_bytes)
{
	if (strlen(key) < RBX_STORE_KEY_BYTES && value_bytes <= RBX_STORE_VALUE_BYTES_MAX)
		return 0;
	snprintf(store->error, sizeof(store->error),
		 "a key has at most %u bytes, its value %u", RBX_STORE_KEY_BYTES - 1,
		 RBX_STORE_VALUE_BYTES_MAX);
	return -EINVAL;
}

static int etcd_put(struct rbx_store *store, const char *key, const char *value,
		    size_t value_bytes, uint64_t if_revision, uint64_t lease, uint64_t *revision)
{
	int err = key_check(store, key, value_bytes);
	char *key64, *value64, *action = NULL;

	if (err)
		return err;
	key64 = etcd_base64(key, strlen(key));
	value64 = etcd_base64(value, value_bytes);
	if (key64 && value64)
		action = text_of("\"request_put\":{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%" PRIu64
				 "\"}",
				 key64, value64, lease);
	err = txn(store, key64, if_revision, action, revision);
	free(value64);
	free(key64);
	return err;
}

static int etcd_remove(struct rbx_store *store, const char *key, uint64_t if_revision)
{
	int err = key_check(store, key, 0);
	uint64_t revision;
	char *key64;

	if (err)
		return err;
	key64 = etcd_base64(key, strlen(key));
	err = txn(store, key64, if_revision,
		  key64 ? text_of("\"request_delete_range\":{\"key\":\"%s\"}", key64) : NULL,
		  &revision);
	free(key64);
	if (err || etcd_answer_removed(body(etcd_of(store))))
		return err;
	snprintf(store->error, sizeof(store->error), "etcd: there is no key %s", key);
	return -ENOENT;
}

/* ---- Leases ----------------------------------------------------------------------------*/

static int etcd_lease_grant(struct rbx_store *store, uint32_t seconds, uint64_t *lease)
{
	/* One that was granted and not told runs out by itself. */
	int err = post(store, "/v3/lease/grant", text_of("{\"TTL\":\"%u\"}", seconds), true);

	return err ? err :
		     answered(store, etcd_answer_lease(body(etcd_of(store)), lease, store->error));
}

static int etcd_lease_keep(struct rbx_store *store, uint64_t lease)
{
	int err = post(store, "/v3/lease/keepalive", text_of("{\"ID\":\"%" PRIu64 "\"}", lease),
		       true);

	return err ? err : answered(store, etcd_answer_kept(body(etcd_of(store)), store->error));
}

static int etcd_lease_end(struct rbx_store *store, uint64_t lease)
{
	return post(store, "/v3/lease/revoke", text_of("{\"ID\":\"%" PRIu64 "\"}", lease), true);
}

/* ---- Watch -----------------------------------------------------------------------------*/

static int etcd_watch(struct rbx_store *store, const char *prefix, uint64_t from_revision)
{
	struct etcd *etcd = etcd_of(store);
	char *key64 = etcd_base64(prefix, strlen(prefix)), *end64 = etcd_base64_end(prefix);
	char *json = NULL;

	snprintf(etcd->watched, sizeof(etcd->watched), "%s", prefix);
	if (key64 && end64)
		json = text_of("{\"create_request\":{\"key\":\"%s\",\"range_end\":\"%s\",\"start_revision\":\"%" PRIu64
			       "\"}}",
			       key64, end64, from_revision);
	free(end64);
	free(key64);
	return json ? etcd_http_stream(&etcd->http, "/v3/watch", json) : out_of_memory(store);
}

static void etcd_watch_end(struct rbx_store *store)
{
	etcd_http_stream_end(&etcd_of(store)->http);
}

static int etcd_watch_next(struct rbx_store *store, uint32_t timeout_ms,
			   rbx_store_visit_fn *visit, void *user)
{
	struct etcd *etcd = etcd_of(store);
	struct etcd_bytes line;
	uint32_t taken_count = 0;
	int err = etcd_http_stream_line(&etcd->http, timeout_ms, &line);

	/* Those that have come already are taken with it. */
	while (!err) {
		err = answered(store, etcd_answer_watch(line, etcd->watched, visit, user,
							store->error));
		if (err)
			break;
		etcd_http_stream_took(&etcd->http, line);
		if (++taken_count == WATCH_LINES_MAX)
			return 0;
		err = etcd_http_stream_line(&etcd->http, 0, &line);
	}
	if (err == -EAGAIN)
		return 0;
	etcd_watch_end(store);
	return err;
}

/* ---- Open and close ----------------------------------------------------------------------*/

static void etcd_close(struct rbx_store *store)
{
	etcd_http_close(&etcd_of(store)->http);
	free(store);
}

static int etcd_open(const struct rbx_store_place *place, struct rbx_store **store_out,
		     char *error)
{
	struct etcd *etcd;
	int err;

	if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
		snprintf(error, RBX_STORE_ERROR_BYTES, "libcurl cannot be used");
		return -ENOMEM;
	}
	etcd = calloc(1, sizeof(*etcd));
	if (!etcd) {
		snprintf(error, RBX_STORE_ERROR_BYTES, "out of memory");
		return -ENOMEM;
	}
	etcd->store.ops = &rbx_store_etcd_1;
	err = etcd_settings_read(&etcd->http.settings, place->endpoints, place->is_encrypted,
				 error);
	if (!err)
		err = etcd_http_open(&etcd->http, place, etcd->store.error);
	if (err) {
		if (*etcd->store.error)
			memcpy(error, etcd->store.error, RBX_STORE_ERROR_BYTES);
		etcd_close(&etcd->store);
		return err;
	}
	*store_out = &etcd->store;
	return 0;
}

__attribute__((visibility("default"))) const struct rbx_store_ops rbx_store_etcd_1 = {
	.open = etcd_open,
	.close = etcd_close,
	.get = etcd_get,
	.range = etcd_range,
	.put = etcd_put,
	.remove = etcd_remove,
	.lease_grant = etcd_lease_grant,
	.lease_keep = etcd_lease_keep,
	.lease_end = etcd_lease_end,
	.watch = etcd_watch,
	.watch_next = etcd_watch_next,
	.watch_end = etcd_watch_end,
};
