/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.c - see crowd.h.
 */
#include "client/crowd.h"

#include "client/at_once.h"
#include "client/session.h"

int rbx_crowd_make(struct rbx_crowd **crowd)
{
	*crowd = rbx_memory_make(sizeof(**crowd));
	return *crowd ? 0 : rbx_error(-ENOMEM, "out of memory");
}

int rbx_crowd_add(struct rbx_crowd *crowd, const char *name, size_t length)
{
	char *copy;

	if (crowd->count == RBX_SERVERS_MAX)
		return rbx_error(-EINVAL, "there are more than %u servers", RBX_SERVERS_MAX);
	copy = rbx_memory_make(length + 1);
	if (!copy)
		return rbx_error(-ENOMEM, "out of memory");
	rbx_port_copy(copy, name, length);
	crowd->names[crowd->count++] = copy;
	return 0;
}

/* If it is lost its one call fails, and shows it. */
static void lost(void *user, const char *reason)
{
	(void)user;
	(void)reason;
}

static void evict(void *user, const struct rbx_eviction *eviction)
{
	(void)user;
	(void)eviction;
}

static void close_one(void *user, uint32_t index)
{
	struct rbx_crowd *crowd = user;

	if (crowd->sessions[index])
		rbx_session_close(crowd->sessions[index]);
}

void rbx_crowd_close(struct rbx_crowd *crowd)
{
	struct rbx_side_by_side all;
	uint32_t i;

	rbx_side_by_side_begin(&all, crowd->count, close_one, crowd);
	rbx_side_by_side_end(&all);
	for (i = 0; i < RBX_SERVERS_MAX; i++)
		rbx_memory_free(crowd->names[i]);
	for (i = 0; i < crowd->away_count; i++) {
		rbx_memory_free(crowd->away[i].name);
		rbx_memory_free(crowd->away[i].why);
	}
	rbx_memory_free(crowd);
}

/* One server under two names would be asked twice. */
static int twice_check(const struct rbx_crowd *crowd, uint32_t index)
{
	uint64_t incarnation = rbx_session_incarnation(crowd->sessions[index]);
	uint32_t i;

	for (i = 0; i < index; i++)
		if (crowd->sessions[i] &&
		    rbx_session_incarnation(crowd->sessions[i]) == incarnation)
			return rbx_error(-EINVAL, "server %s is named twice: %s is the same one",
					 crowd->names[index], crowd->names[i]);
	return 0;
}

bool rbx_crowd_is_away(int err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ETIMEDOUT ||
	       err == -ENOTCONN;
}

static char *text_keep(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *kept = rbx_memory_make(bytes);

	if (kept)
		rbx_port_copy(kept, text, bytes);
	return kept;
}

void rbx_crowd_leave_out(struct rbx_crowd *crowd, uint32_t index, const char *why)
{
	uint32_t last = --crowd->count;

	crowd->away[crowd->away_count].name = crowd->names[index];
	crowd->away[crowd->away_count++].why = text_keep(why);
	if (crowd->sessions[index])
		rbx_session_close(crowd->sessions[index]);
	crowd->names[index] = crowd->names[last];
	crowd->names[last] = NULL;
	crowd->sessions[index] = crowd->sessions[last];
	crowd->sessions[last] = NULL;
	crowd->has[index] = crowd->has[last];
	crowd->has_removed[index] = crowd->has_removed[last];
}

static int sessions_take(struct rbx_crowd *crowd, struct rbx_at_once *opened, bool may_lack)
{
	uint32_t i = 0;
	int err = 0;

	/* Bounded: each pass takes one, or leaves one out. */
	while (i < crowd->count && !err) {
		if (may_lack && crowd->count > 1 && rbx_crowd_is_away(opened->results[i].err)) {
			rbx_crowd_leave_out(crowd, i, opened->results[i].why);
			opened->results[i] = opened->results[crowd->count];
			continue;
		}
		err = rbx_at_once_error(opened, i);
		/* It has no room: not the same as a volume that somebody has open. */
		if (err == -EBUSY)
			err = rbx_error_again(-EUSERS, opened->results[i].why);
		if (!err && crowd->sessions[i]) /* NULL: the error of another one follows */
			err = twice_check(crowd, i);
		i++;
	}
	return err;
}

struct connecting {
	struct rbx_crowd *crowd;
	struct rbx_sessions *sessions;
};

static int connect_one(void *user, uint32_t index)
{
	const struct rbx_session_events events = { .lost = lost, .evict = evict };
	const struct connecting *connecting = user;
	struct rbx_crowd *crowd = connecting->crowd;

	return rbx_session_open_name(connecting->sessions, crowd->names[index], &events,
				     &crowd->sessions[index]);
}

int rbx_crowd_connect(struct rbx_crowd *crowd, struct rbx_sessions *sessions, bool may_lack)
{
	struct connecting connecting = { crowd, sessions };
	struct rbx_at_once opened;
	int err = rbx_at_once_do(&opened, crowd->count, !may_lack, connect_one, &connecting);

	if (!err)
		err = sessions_take(crowd, &opened, may_lack);
	rbx_at_once_free(&opened);
	return err;
}

/* ---- Which of them count ------------------------------------------------------------------*/

void rbx_crowd_keep_members(struct rbx_crowd *crowd, const struct rbx_wire_record *record)
{
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		crowd->has[i] &= rbx_record_has_member(
			record, rbx_session_incarnation(crowd->sessions[i]));
}

void rbx_crowd_leave_drained(struct rbx_crowd *crowd, const struct rbx_wire_record *record)
{
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		if (rbx_session_drains(crowd->sessions[i]))
			crowd->has[i] &= !rbx_record_is_gone(
				record, rbx_session_incarnation(crowd->sessions[i]));
}

uint32_t rbx_crowd_lacks(const struct rbx_crowd *crowd, const struct rbx_wire_record *record,
			 bool *is_half)
{
	uint32_t i, missing = rbx_record_in_count(record);

	*is_half = false;
	for (i = 0; i < crowd->count; i++) {
		if (!rbx_record_is_in(record, rbx_session_incarnation(crowd->sessions[i])))
			continue;
		missing -= crowd->has[i];
		*is_half |= !crowd->has[i] && !crowd->has_removed[i];
	}
	return missing;
}

static bool is_there(const struct rbx_crowd *crowd, uint64_t incarnation)
{
	uint32_t i;

	for (i = 0; i < crowd->count; i++)
		if (crowd->has[i] && rbx_session_incarnation(crowd->sessions[i]) == incarnation)
			return true;
	return false;
}

void rbx_crowd_missing_print(const struct rbx_crowd *crowd, const struct rbx_wire_record *record,
			     char *text, size_t text_bytes)
{
	size_t length = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < record->members_count; i++) {
		if (record->member_flags[i] & RBX_WIRE_MEMBER_OUT ||
		    is_there(crowd, record->incarnations[i]))
			continue;
		if (text_bytes - length < sizeof(", 0123456789abcdef, ...")) {
			snprintf(text + length, text_bytes - length, ", ...");
			return;
		}
		length += (size_t)snprintf(text + length, text_bytes - length, "%s%016llx",
					   length ? ", " : "",
					   (unsigned long long)record->incarnations[i]);
	}
}

uint32_t rbx_crowd_absent(const struct rbx_crowd *crowd, const struct rbx_wire_record *record)
{
	uint32_t i, removed_count = 0, count = crowd->away_count;
	/* That were not heard of: each of them may be one that is away, or that began anew. */
	uint32_t out_count = record->members_count - rbx_record_in_count(record);

	if (crowd->may_change)
		return UINT32_MAX;
	for (i = 0; i < crowd->count; i++) {
		uint64_t incarnation = rbx_session_incarnation(crowd->sessions[i]);

		if (!rbx_record_has_member(record, incarnation))
			count++;
		else if (!rbx_record_is_in(record, incarnation))
			out_count--;
		else if (crowd->has_removed[i])
			removed_count++;
	}
	return removed_count + (count > out_count ? count - out_count : 0);
}
