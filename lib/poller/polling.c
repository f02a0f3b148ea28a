/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * polling.c - parses the texts of the polling policies, and changes the policy at run
 * time.
 *
 * Two options are independent, with one exception. `pollers` is the number of pollers,
 * each with a thread: a number for all peers together, one for each peer, one for each
 * queue pair, or 0 if the program polls. `polling` is what each thread does. Only
 * shared:M sets both: M threads that never sleep.
 *
 * So an open context can take any policy, and shared:M only if it has M pollers.
 */
#include "lib/poller/polling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/context.h"
#include "lib/poller/set.h"

#define EVENT_BATCH_MAX 16384u

#define BUSY_RULE                                            \
	{                                                    \
		.retry_max = RBX_POLL_RETRY_FOREVER,         \
		.batch_max = RBX_POLL_BATCH,                 \
		.event_max = RBX_POLL_EVENT_UNBOUNDED,       \
		.cpu_percent = 100,                          \
	}

/* The policies without a number. Those with a number start from one of these. */
static const struct {
	const char *name;
	struct rbx_poll_rule rule;
} named[] = {
	{ "busy", BUSY_RULE },
	{ "event", { 0, 1, 1, false, 100 } },
	{ "hybrid",
	  { 0, RBX_POLL_BATCH, RBX_POLL_EVENT_UNBOUNDED, false, 100 } },
	{ "adaptive", RBX_POLL_RULE_ADAPTIVE },
};

static bool parse_named(const char *text, struct rbx_poll_rule *rule)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (strcmp(named[i].name, text) == 0) {
			*rule = named[i].rule;
			return true;
		}
	}
	return false;
}

/*
 * Parses "NAME:7" or "NAME:7:8": one or two numbers, and nothing else. Returns how many;
 * 0 if the text has another form.
 */
static int parse_numbers(const char *text, const char *name, uint32_t *first,
			 uint32_t *second)
{
	size_t length = strlen(name);
	const char *numbers = text + length + 1;
	int end = 0, count;

	if (strncmp(text, name, length) != 0 || text[length] != ':' ||
	    strspn(numbers, "0123456789:") != strlen(numbers))
		return 0;
	count = sscanf(numbers, "%9u%n:%9u%n", first, &end, second, &end);
	return count > 0 && numbers[end] == '\0' ? count : 0;
}

static bool parse_adaptive(const char *text, struct rbx_poll_rule *rule)
{
	uint32_t retry_max, batch_max = RBX_POLL_BATCH;

	if (parse_numbers(text, "adaptive", &retry_max, &batch_max) == 0 ||
	    batch_max < 1 || batch_max > RBX_POLL_BATCH)
		return false;
	*rule = (struct rbx_poll_rule){ retry_max, batch_max,
					RBX_POLL_EVENT_UNBOUNDED, false, 100 };
	return true;
}

static bool parse_event_batch(const char *text, struct rbx_poll_rule *rule)
{
	uint32_t event_max, ignored;

	if (parse_numbers(text, "event-batch", &event_max, &ignored) != 1 ||
	    event_max < 1 || event_max > EVENT_BATCH_MAX)
		return false;
	*rule = (struct rbx_poll_rule){ 0, RBX_POLL_BATCH, event_max, false,
					100 };
	return true;
}

static bool parse_shared(const char *text, struct rbx_polling *polling)
{
	uint32_t ignored;

	if (parse_numbers(text, "shared", &polling->shared_count, &ignored) !=
		    1 ||
	    polling->shared_count < 1 ||
	    polling->shared_count > RBX_POLLERS_MAX)
		return false;
	polling->rule = (struct rbx_poll_rule)BUSY_RULE;
	return true;
}

int rbx_polling_parse(const char *text, struct rbx_polling *polling)
{
	polling->shared_count = 0;
	if (parse_named(text, &polling->rule) ||
	    parse_adaptive(text, &polling->rule) ||
	    parse_event_batch(text, &polling->rule) ||
	    parse_shared(text, polling))
		return 0;
	return rbx_error(-EINVAL,
			 "polling=%s: must be adaptive[:RETRY[:BATCH]] "
			 "with a BATCH of 1 to %u, busy, event, event-batch:N "
			 "with 1 to %u, hybrid or shared:M with 1 to %u",
			 text, RBX_POLL_BATCH, EVENT_BATCH_MAX,
			 RBX_POLLERS_MAX);
}

int rbx_polling_check(const struct rbx_options *options)
{
	struct rbx_polling polling;
	int err = rbx_polling_parse(options->polling, &polling);

	if (err || polling.shared_count == 0 || options->pollers == 1 ||
	    options->pollers == polling.shared_count)
		return err;
	return rbx_error(-EINVAL,
			 "polling=%s has %u pollers of its own; leave the "
			 "option pollers out",
			 options->polling, polling.shared_count);
}

struct rbx_polling rbx_polling_of(const struct rbx_options *options)
{
	struct rbx_polling polling = { 0 };

	(void)rbx_polling_parse(options->polling, &polling);
	polling.rule.cpu_percent = options->poll_cpu_percent;
	return polling;
}

/* Whether the pollers that exist can follow the policy. */
static int check_live(const struct rbx_context *ctx,
		      const struct rbx_polling *polling, const char *text)
{
	if (ctx->options.pollers == 0)
		return rbx_error(-EBUSY,
				 "polling=%s: the program polls this context "
				 "itself (pollers=0)",
				 text);
	if (polling->shared_count != 0 &&
	    (ctx->options.pollers > RBX_POLLERS_MAX ||
	     ctx->poller_count != polling->shared_count))
		return rbx_error(-EBUSY,
				 "polling=%s: the context has other pollers, "
				 "and cannot change them while it is open; "
				 "open it with polling=%s",
				 text, text);
	return 0;
}

int rbx_polling_set(struct rbx_context *ctx, const char *text)
{
	struct rbx_polling polling;
	int err;

	if (!text || strlen(text) >= sizeof(ctx->options.polling))
		return rbx_error(-EINVAL, "polling: a policy must be given, of at "
					  "most %zu characters",
				 sizeof(ctx->options.polling) - 1);
	err = rbx_guard_wait(ctx, "rbx_polling_set");
	if (err)
		return err;
	err = rbx_polling_parse(text, &polling);
	if (err)
		return err;
	pthread_mutex_lock(&ctx->peers_lock);
	err = check_live(ctx, &polling, text);
	if (!err) {
		pthread_mutex_lock(&ctx->view_lock);
		strcpy(ctx->options.polling, text);
		pthread_mutex_unlock(&ctx->view_lock);
		rbx_pollers_follow_locked(ctx);
	}
	pthread_mutex_unlock(&ctx->peers_lock);
	return err;
}
