/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* answer.c - reads the answers of etcd's JSON gateway, see answer.h. */
#include "pool/etcd/answer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lie(char *error, const char *what)
{
	snprintf(error, RBX_STORE_ERROR_BYTES, "etcd: %s", what);
	return -EPROTO;
}

static json_t *object_of(struct etcd_bytes json)
{
	json_t *object = json_loadb(json.bytes, json.length, JSON_REJECT_DUPLICATES, NULL);

	if (json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

/* A text of digits, or a number. A field that is 0 is left out by etcd. */
static bool number_of(const json_t *value, uint64_t *number)
{
	const char *text = json_string_value(value);
	char *end;

	*number = 0;
	if (!value)
		return true;
	if (json_is_integer(value)) {
		*number = (uint64_t)json_integer_value(value);
		return json_integer_value(value) >= 0;
	}
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !*end && !errno && *number <= INT64_MAX;
}

/* The revision of the header; every answer has one. */
static bool header_revision(const json_t *answer, uint64_t *revision)
{
	return number_of(json_object_get(json_object_get(answer, "header"), "revision"),
			 revision) &&
	       *revision;
}

/* ---- Keys and values ---------------------------------------------------------------*/

struct etcd_kv {
	char key[RBX_STORE_KEY_BYTES + 4]; /* base64 decodes to whole triples */
	char value[RBX_STORE_VALUE_BYTES_MAX + 4];
	struct rbx_store_entry entry;
};

/* What is wrong, or NULL. */
static const char *kv_read(const json_t *json, const char *prefix, struct etcd_kv *kv)
{
	const char *key = json_string_value(json_object_get(json, "key"));
	const json_t *value = json_object_get(json, "value"); /* none: it is empty */
	size_t key_bytes = sizeof(kv->key), value_bytes = sizeof(kv->value);

	if (!key || etcd_base64_read(key, kv->key, &key_bytes) ||
	    key_bytes >= RBX_STORE_KEY_BYTES || strlen(kv->key) != key_bytes)
		return "a key in the answer is none";
	if (strncmp(kv->key, prefix, strlen(prefix)) != 0)
		return "the answer has a key that was not asked for";
	if ((value && !json_is_string(value)) ||
	    etcd_base64_read(value ? json_string_value(value) : "", kv->value, &value_bytes))
		return "a value in the answer is none, or too long";
	kv->entry = (struct rbx_store_entry){
		.key = kv->key,
		.value = kv->value,
		.value_bytes = value_bytes,
	};
	if (!number_of(json_object_get(json, "mod_revision"), &kv->entry.revision) ||
	    !kv->entry.revision)
		return "a key in the answer has no revision";
	return NULL;
}

static int kvs_visit(const json_t *kvs, const char *prefix, rbx_store_visit_fn *visit,
		     void *user, char *error)
{
	const json_t *json;
	size_t i;
	int err = 0;

	json_array_foreach(kvs, i, json) {
		struct etcd_kv kv;
		const char *wrong = kv_read(json, prefix, &kv);

		err = wrong ? lie(error, wrong) : visit(user, &kv.entry);
		if (err)
			break;
	}
	return err;
}

int etcd_answer_range(struct etcd_bytes json, const char *prefix, uint32_t max,
		      rbx_store_visit_fn *visit, void *user, uint64_t *revision,
		      char *error)
{
	json_t *answer = object_of(json), *kvs = json_object_get(answer, "kvs");
	int err;

	if (!answer || !header_revision(answer, revision) || (kvs && !json_is_array(kvs))) {
		err = lie(error, "the answer to a read is no JSON of etcd");
	} else if (json_array_size(kvs) > max || json_is_true(json_object_get(answer, "more"))) {
		snprintf(error, RBX_STORE_ERROR_BYTES, "etcd: there are more than %u keys", max);
		err = -ENOSPC;
	} else {
		err = kvs_visit(kvs, prefix, visit, user, error);
	}
	json_decref(answer);
	return err;
}

/* ---- Transactions and leases ---------------------------------------------------------*/

int etcd_answer_txn(struct etcd_bytes json, bool *succeeded, uint64_t *revision,
		    char *error)
{
	json_t *answer = object_of(json);
	int err = 0;

	*succeeded = json_is_true(json_object_get(answer, "succeeded"));
	if (!answer || !header_revision(answer, revision))
		err = lie(error, "the answer to a write is no JSON of etcd");
	json_decref(answer);
	return err;
}

uint64_t etcd_answer_removed(struct etcd_bytes json)
{
	json_t *answer = object_of(json);
	json_t *first = json_array_get(json_object_get(answer, "responses"), 0);
	uint64_t count = 0;

	(void)number_of(json_object_get(json_object_get(first, "response_delete_range"),
					"deleted"),
			&count);
	json_decref(answer);
	return count;
}

int etcd_answer_lease(struct etcd_bytes json, uint64_t *lease, char *error)
{
	json_t *answer = object_of(json);
	int err = 0;

	if (!number_of(json_object_get(answer, "ID"), lease) || !*lease)
		err = lie(error, "the answer has no lease");
	json_decref(answer);
	return err;
}

int etcd_answer_kept(struct etcd_bytes json, char *error)
{
	json_t *answer = object_of(json), *result = json_object_get(answer, "result");
	uint64_t seconds, lease;
	int err = 0;

	if (!json_is_object(result) || !number_of(json_object_get(result, "ID"), &lease) ||
	    !lease || !number_of(json_object_get(result, "TTL"), &seconds))
		err = lie(error, "the answer about a lease is no JSON of etcd");
	else if (!seconds)
		err = -ENOENT;
	json_decref(answer);
	return err;
}

int etcd_answer_token(struct etcd_bytes json, char *token, char *error)
{
	json_t *answer = object_of(json);
	const char *text = json_string_value(json_object_get(answer, "token"));
	int err = 0;

	/* It goes into a header of HTTP. */
	if (!text || !*text || strlen(text) >= ETCD_TOKEN_BYTES || strpbrk(text, "\r\n"))
		err = lie(error, "the answer to the password has no token");
	else
		strcpy(token, text);
	json_decref(answer);
	return err;
}

/* ---- Watch ---------------------------------------------------------------------------*/

/* The type of a PUT is left out, for it is 0. */
static int event_visit(const json_t *event, const char *prefix, rbx_store_visit_fn *visit,
		       void *user, char *error)
{
	const char *type = json_string_value(json_object_get(event, "type"));
	const char *wrong;
	struct etcd_kv kv;

	wrong = kv_read(json_object_get(event, "kv"), prefix, &kv);
	if (wrong)
		return lie(error, wrong);
	if (type && !strcmp(type, "DELETE"))
		kv.entry.value = NULL;
	else if (type && strcmp(type, "PUT") != 0)
		return lie(error, "an event of a watch is none");
	return visit(user, &kv.entry);
}

static int result_visit(const json_t *result, const char *prefix, rbx_store_visit_fn *visit,
			void *user, char *error)
{
	const json_t *events = json_object_get(result, "events"), *event;
	uint64_t compact_revision;
	size_t i;
	int err = 0;

	if (!json_is_object(result) || (events && !json_is_array(events)) ||
	    !number_of(json_object_get(result, "compact_revision"), &compact_revision))
		return lie(error, "the answer to a watch is no JSON of etcd");
	if (compact_revision)
		return -ESTALE;
	if (json_is_true(json_object_get(result, "canceled")))
		return lie(error, "the watch was ended");
	json_array_foreach(events, i, event) {
		err = event_visit(event, prefix, visit, user, error);
		if (err)
			break;
	}
	return err;
}

int etcd_answer_watch(struct etcd_bytes json, const char *prefix,
		      rbx_store_visit_fn *visit, void *user, char *error)
{
	json_t *answer = object_of(json);
	int err;

	if (json_object_get(answer, "error"))
		err = lie(error, "the watch was ended with an error");
	else
		err = result_visit(json_object_get(answer, "result"), prefix, visit, user, error);
	json_decref(answer);
	return err;
}

/* ---- Failures ------------------------------------------------------------------------*/

#define SHOWN_BYTES_MAX 160

int etcd_answer_failure(struct etcd_bytes json, char *text)
{
	json_t *answer = object_of(json);
	const json_t *code = json_object_get(answer, "code");
	const char *said = json_string_value(json_object_get(answer, "error"));
	int is = json_is_integer(code) ? (int)json_integer_value(code) : -1;
	size_t i;

	for (i = 0; said && said[i] && i < SHOWN_BYTES_MAX; i++)
		text[i] = said[i] >= ' ' && said[i] < 0x7f ? said[i] : '?';
	text[i] = '\0';
	json_decref(answer);
	return is;
}
