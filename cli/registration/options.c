/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox registration, and what they may be. Lists are separated by commas.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/commands.h"
#include "cli/registration/registration.h"

#define COST_US_MAX 1e6 /* a second */
#define POLICY_NAMES "lru, mre, gdsf, s3fifo, sieve, auto"

struct registration_options registration_options = {
	.budgets = { { 0, 1 }, { 0, 3 }, { 0, 10 }, { 0, 30 }, { 0, 60 } },
	.budgets_count = 5,
	/* The paper's, section 5. */
	.cost = { .register_page_ns = 770, .register_call_ns = 7420, .deregister_page_ns = 220,
		  .deregister_call_ns = 1100 },
};

/* Calls @take for each word of a list. Returns its first error, or -EINVAL: there are too many. */
static int each_word(const char *list, int (*take)(const char *word, uint32_t i),
		     uint32_t count_max, uint32_t *count)
{
	char word[64];
	uint32_t i;
	int err = 0;

	for (i = 0; !err; i++) {
		size_t bytes = strcspn(list, ",");

		if (i == count_max || bytes >= sizeof(word))
			return -EINVAL;
		memcpy(word, list, bytes);
		word[bytes] = '\0';
		err = take(word, i);
		*count = i + 1;
		if (!list[bytes])
			break;
		list += bytes + 1;
	}
	return err;
}

static int take_policy(const char *word, uint32_t i)
{
	registration_options.policies[i] = rbx_region_policy_find(word);
	for (uint32_t j = 0; j < i; j++)
		if (registration_options.policies[j] == registration_options.policies[i])
			return -EINVAL;
	return registration_options.policies[i] ? 0 : -EINVAL;
}

static void take_all_policies(void)
{
	for (uint32_t i = 0; i < RBX_REGION_POLICIES; i++)
		registration_options.policies[i] = rbx_region_policies[i];
	registration_options.policies[RBX_REGION_POLICIES] = &rbx_region_auto;
	registration_options.policies_count = REGISTRATION_POLICIES;
}

static int set_policies(const struct cli_option *option, const char *text, char *reason,
			size_t reason_bytes)
{
	(void)option;
	if (!strcmp(text, "all"))
		return take_all_policies(), 0;
	if (!each_word(text, take_policy, REGISTRATION_POLICIES,
		       &registration_options.policies_count))
		return 0;
	snprintf(reason, reason_bytes,
		 "give all, or some of " POLICY_NAMES ", each once, separated by "
		 "commas");
	return -EINVAL;
}

static int take_budget(const char *word, uint32_t i)
{
	struct registration_budget *budget = &registration_options.budgets[i];
	char *end;

	*budget = (struct registration_budget){ 0 };
	if (word[0] && word[strlen(word) - 1] == '%') {
		budget->percent = strtod(word, &end);
		return end != word && !strcmp(end, "%") && *word >= '0' && *word <= '9' &&
				       budget->percent > 0 && budget->percent <= 100 ?
			       0 : -EINVAL;
	}
	if (rbx_size_parse(word, &budget->bytes) || budget->bytes < REGISTRATION_PAGE_BYTES ||
	    budget->bytes > 1ull << 50)
		return -EINVAL;
	return 0;
}

static int set_budgets(const struct cli_option *option, const char *text, char *reason,
		       size_t reason_bytes)
{
	(void)option;
	if (!each_word(text, take_budget, REGISTRATION_LIST_MAX,
		       &registration_options.budgets_count))
		return 0;
	snprintf(reason, reason_bytes,
		 "give at most %u sizes of 4 KiB to 1 PiB, such as 64M, or parts of "
		 "what the trace touches, above 0%% to 100%%, such as 10%%",
		 REGISTRATION_LIST_MAX);
	return -EINVAL;
}

static int take_regions(const char *word, uint32_t i)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || errno || !number || number > RBX_REGIONS_MAX)
		return -EINVAL;
	registration_options.regions[i] = (uint32_t)number;
	return 0;
}

static int set_regions(const struct cli_option *option, const char *text, char *reason,
		       size_t reason_bytes)
{
	(void)option;
	if (!each_word(text, take_regions, REGISTRATION_LIST_MAX,
		       &registration_options.regions_count))
		return 0;
	snprintf(reason, reason_bytes,
		 "give at most %u whole numbers from 1 to %u, separated by commas",
		 REGISTRATION_LIST_MAX, RBX_REGIONS_MAX);
	return -EINVAL;
}

static uint32_t *cost_fields(uint32_t i)
{
	uint32_t *fields[] = { &registration_options.cost.register_page_ns,
			       &registration_options.cost.register_call_ns,
			       &registration_options.cost.deregister_page_ns,
			       &registration_options.cost.deregister_call_ns };

	return fields[i];
}

static int take_cost(const char *word, uint32_t i)
{
	char *end;
	double us = strtod(word, &end);

	if (*word < '0' || *word > '9' || *end || !isfinite(us) || us > COST_US_MAX)
		return -EINVAL;
	*cost_fields(i) = (uint32_t)lround(us * 1000);
	return 0;
}

static int set_cost(const struct cli_option *option, const char *text, char *reason,
		    size_t reason_bytes)
{
	uint32_t count = 0, sum = 0;

	(void)option;
	if (!each_word(text, take_cost, 4, &count) && count == 4) {
		for (uint32_t i = 0; i < 4; i++)
			sum |= *cost_fields(i);
		if (sum)
			return 0;
	}
	snprintf(
		reason, reason_bytes,
		"give four numbers of microseconds from 0 to 1000000, not all 0: "
		"registering costs the 1st for each page and the 2nd for each region, deregistering the "
		"3rd and the 4th; such as 0.77,7.42,0.22,1.1");
	return -EINVAL;
}

static const struct cli_option options[] = {
	{ "trace", "FILE", "which memory was used", cli_set_text, registration_options.trace,
	  .max = sizeof(registration_options.trace), .argument = CLI_ARGUMENT_FILE,
	  .is_required = true,
	  .details =
		  "See TRACES. A file that is packed by zstd(1) or gzip(1) is unpacked on the way." },
	{ "policy", "all|NAME,...", "policies to try: " POLICY_NAMES, set_policies, .field = NULL,
	  .preset = "all", .details = "See POLICIES." },
	{ "bytes", "SIZE,...",
	  "budgets of pinned memory: sizes, or parts of what the trace touches", set_budgets,
	  .field = NULL, .preset = "1%,3%,10%,30%,60%" },
	{ "regions", "N,...", "budgets of regions", set_regions, .field = NULL,
	  .preset = "as many as there are pages",
	  .details = "Each is tried with each of --bytes." },
	{ "cost", "A,B,C,D",
	  "microseconds: registering p pages takes A * p + B, deregistering C * p + D", set_cost,
	  .field = NULL, .preset = "0.77,7.42,0.22,1.1",
	  .details =
		  "The default is what the paper has of InfiniBand in 2003. `rdmabox tune` measures "
		  "what this device takes." },
	{ "json", "FILE|-", "write JSON; - prints it instead of the table", cli_set_text,
	  registration_options.json, .max = sizeof(registration_options.json), .group = "Output",
	  .argument = CLI_ARGUMENT_FILE },
};

static void prepare(void)
{
	take_all_policies();
}

const struct cli_command registration_command = {
	.name = "registration",
	.purpose = "try policies of the registration cache on a trace",
	CLI_OPTIONS(options),
	.run = cli_registration,
	.prepare = prepare,
};
