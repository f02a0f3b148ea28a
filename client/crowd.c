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

	if (crowd->count == RBX_MEMBERS_MAX)
		return rbx_error(-EINVAL, "a named volume has at most %u servers",
				 RBX_MEMBERS_MAX);
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
	for (i = 0; i < RBX_MEMBERS_MAX; i++)
		rbx_memory_free(crowd->names[i]);
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

static bool is_away(int err)
{
	return err == -ECONNREFUSED || err == -EHOSTUNREACH || err == -ETIMEDOUT;
}

/* Leaves a server out that could not be reached: the last one takes its place. */
static void leave_out(struct rbx_crowd *crowd, struct rbx_at_once *opened, uint32_t index)
{
	uint32_t last = --crowd->count;

	if (!crowd->why_away[0])
		rbx_text_copy(crowd->why_away, sizeof(crowd->why_away),
			      opened->results[index].why);
	crowd->away_count++;
	rbx_memory_free(crowd->names[index]);
	crowd->names[index] = crowd->names[last];
	crowd->names[last] = NULL;
	crowd->sessions[index] = crowd->sessions[last];
	crowd->sessions[last] = NULL;
	opened->results[index] = opened->results[last];
}

static int sessions_take(struct rbx_crowd *crowd, struct rbx_at_once *opened, bool may_lack)
{
	uint32_t i = 0;
	int err = 0;

	/* Bounded: each pass takes one, or leaves one out. */
	while (i < crowd->count && !err) {
		if (may_lack && is_away(opened->results[i].err) && crowd->count > 1) {
			leave_out(crowd, opened, i);
			continue;
		}
		err = rbx_at_once_error(opened, i);
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
