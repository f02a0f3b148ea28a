/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * command.c - parses the texts of a command into the options of a run.
 */
#include "sim/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/nic/generations.h"
#include "sim/nic/on_fibers.h"
#include "sim/process.h"
#include "sim/random.h"
#include "sim/scenarios/figure.h"
#include "sim/sim.h"
#include "sim/tally.h"
#include "sim/world.h"

#define NOTES_BYTES 4096u
#define NAMES_BYTES 1024u

static size_t add(char *text, size_t at, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static size_t add(char *text, size_t at, size_t bytes, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text + at, bytes - at, format, args);
	va_end(args);
	return RBX_MIN(at + (size_t)length, bytes - 1);
}

/* All scenarios by number: first those that check, then those that measure. */
static const char *scenario_name(uint32_t number)
{
	return number < rbx_sim_scenarios_count ?
		       rbx_sim_scenarios[number].name :
		       rbx_figures[number - rbx_sim_scenarios_count].name;
}

static uint32_t scenarios_count(void)
{
	return rbx_sim_scenarios_count + rbx_figures_count;
}

static const char *site_name(uint32_t number)
{
	return rbx_sim_site_name((enum rbx_sim_site)number);
}

/* "a, b, c", or with other text between them and behind each. */
static void list_with(char *text, const char *between, const char *behind,
		      const char *(*name)(uint32_t number), uint32_t count)
{
	size_t at = 0;

	for (uint32_t i = 0; i < count; i++)
		at = add(text, at, NAMES_BYTES, "%s%s%s", i ? between : "",
			 name(i), behind);
}

static void list(char *text, const char *(*name)(uint32_t number),
		 uint32_t count)
{
	list_with(text, ", ", "", name, count);
}

const char *rbx_sim_command_scenario_names(void)
{
	static char names[NAMES_BYTES];

	list_with(names, "|", "", scenario_name, scenarios_count());
	return names;
}

const char *rbx_sim_command_site_names(void)
{
	static char names[NAMES_BYTES];

	list_with(names, "|", "=", site_name, RBX_SIM_SITES_COUNT);
	return names;
}

const char *rbx_sim_command_notes(void)
{
	static char notes[NOTES_BYTES];
	size_t at = add(notes, 0, sizeof(notes),
			"scenarios in which something may go wrong:\n");

	for (uint32_t i = 0; i < rbx_sim_scenarios_count; i++)
		at = add(notes, at, sizeof(notes), "  %-20s%s\n",
			 rbx_sim_scenarios[i].name,
			 rbx_sim_scenarios[i].purpose);
	at = add(notes, at, sizeof(notes),
		 "scenarios that measure, on a modelled NIC:\n");
	for (uint32_t i = 0; i < rbx_figures_count; i++)
		at = add(notes, at, sizeof(notes), "  %-20s%s\n",
			 rbx_figures[i].name, rbx_figures[i].purpose);
	at = add(notes, at, sizeof(notes), "sites:\n");
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++)
		at = add(notes, at, sizeof(notes), "  %-20s%s\n", site_name(i),
			 rbx_sim_site_purpose((enum rbx_sim_site)i));
	notes[at - 1] = '\0';
	return notes;
}

RBX_STATIC_ASSERT(RBX_SIM_SITES_COUNT + RBX_SIM_TALLIES_COUNT <=
			  RBX_SIM_COUNTS_MAX,
		  "a count for each");

const char *rbx_sim_command_count_name(uint32_t index)
{
	static char name[64];

	if (index < RBX_SIM_SITES_COUNT)
		snprintf(name, sizeof(name), "fault %s",
			 rbx_sim_site_name((enum rbx_sim_site)index));
	else if (index < RBX_SIM_SITES_COUNT + RBX_SIM_TALLIES_COUNT)
		snprintf(name, sizeof(name), "proof %s",
			 rbx_sim_tally_name((enum rbx_sim_tally)(
				 index - RBX_SIM_SITES_COUNT)));
	else
		return NULL;
	return name;
}

/* "0.01" or "1" as millionths, without a float. */
static bool chance_parse(const char *text, uint32_t *of_a_million)
{
	uint64_t scale = RBX_SIM_MILLION, value = 0;
	bool is_fraction = false;

	if (*text == '\0')
		return false;
	for (; *text; text++) {
		if (*text == '.' && !is_fraction) {
			is_fraction = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			return false;
		if (is_fraction)
			scale /= 10;
		else if (value != 0)
			return false; /* more than one digit: above 1 */
		value = is_fraction ? value + (uint64_t)(*text - '0') * scale :
				      (uint64_t)(*text - '0') * scale;
	}
	*of_a_million = (uint32_t)value;
	return value <= RBX_SIM_MILLION;
}

static int fault_take(const char *text, struct rbx_sim_options *options,
		      char *reason, size_t bytes)
{
	const char *equals = strchr(text, '=');
	enum rbx_sim_site site;
	uint32_t chance;
	char name[64], names[NAMES_BYTES];

	snprintf(name, sizeof(name), "%.*s",
		 (int)(equals ? equals - text : (long)strlen(text)), text);
	if (!rbx_sim_site_find(name, &site)) {
		list(names, site_name, RBX_SIM_SITES_COUNT);
		snprintf(reason, bytes, "no site \"%s\"; there are %s", name,
			 names);
		return -EINVAL;
	}
	if (!equals || !chance_parse(equals + 1, &chance)) {
		snprintf(reason, bytes,
			 "%s: give a chance from 0 to 1, as in %s=0.01", text,
			 name);
		return -EINVAL;
	}
	options->is_forced[site] = true;
	options->chances[site] = chance;
	return 0;
}

static int scenario_take(const struct rbx_sim_command *command,
			 struct rbx_sim_options *options, char *reason,
			 size_t bytes)
{
	char names[NAMES_BYTES];

	for (uint32_t i = 0; i < scenarios_count(); i++) {
		if (strcmp(scenario_name(i), command->scenario))
			continue;
		if (i < rbx_sim_scenarios_count)
			options->scenario = &rbx_sim_scenarios[i];
		else
			options->figure =
				&rbx_figures[i - rbx_sim_scenarios_count];
		return 0;
	}
	list(names, scenario_name, scenarios_count());
	snprintf(reason, bytes, "no scenario \"%s\"; there are %s",
		 command->scenario, names);
	return -EINVAL;
}

/* The NIC that was named, or that of the figure. */
static int nic_take(const struct rbx_sim_command *command,
		    struct rbx_sim_options *options, char *reason, size_t bytes)
{
	static struct rbx_nic_params params;
	const char *name = command->nic ? command->nic : "";
	char error[RBX_NIC_ERROR_MAX];
	int err;

	if (options->figure && !options->figure->generation) {
		if (*name == '\0')
			return 0;
		snprintf(reason, bytes, "%s is about messages, on plain devices: --nic is not for it",
			 options->figure->name);
		return -EINVAL;
	}
	if (*name == '\0' && options->figure)
		name = options->figure->generation;
	if (*name == '\0')
		return 0;
	err = rbx_nic_generation_find(name, &params, error);
	if (err) {
		snprintf(reason, bytes, "%s", error);
		return err;
	}
	options->nic = &params;
	rbx_sim_nic_choose(&params);
	return 0;
}

/* Checks options that only one kind of scenario has. */
static int check_kind(const struct rbx_sim_command *command,
		      const struct rbx_sim_options *options, char *reason,
		      size_t bytes)
{
	const struct rbx_figure *figure = options->figure;
	uint32_t nodes_max = figure ? figure->nodes_max : RBX_SIM_SERVERS_MAX;

	if (figure && (command->faults_count || command->events_max ||
		       command->hunts)) {
		snprintf(reason, bytes,
			 "%s measures: --fault, --events and --hunt are not for it",
			 figure->name);
		return -EINVAL;
	}
	if (command->nodes_count && nodes_max == 0) {
		snprintf(reason, bytes, "%s has as many nodes as it has",
			 command->scenario);
		return -EINVAL;
	}
	if (command->nodes_count > nodes_max) {
		snprintf(reason, bytes, "%u nodes: give 1 to %u",
			 command->nodes_count, nodes_max);
		return -EINVAL;
	}
	return 0;
}

/* ThreadSanitizer knows neither the stacks of fibers nor the addresses that are the same in
 * every run (host/memory.c); and there is only one thread. */
static int check_build(char *reason, size_t bytes)
{
#ifdef __SANITIZE_THREAD__
	snprintf(reason, bytes, "not with the thread sanitizer: use another build");
	return -ENOTSUP;
#else
	(void)reason;
	(void)bytes;
	return 0;
#endif
}

static int options_take(const struct rbx_sim_command *command,
			struct rbx_sim_options *options, char *reason,
			size_t bytes)
{
	int err = check_build(reason, bytes);

	if (err)
		return err;
	*options = (struct rbx_sim_options){
		.seed = command->seed,
		.nodes_count = command->nodes_count,
		.events_max = command->events_max,
		.trace = command->trace,
	};
	err = scenario_take(command, options, reason, bytes);
	if (!err)
		err = nic_take(command, options, reason, bytes);
	if (!err)
		err = check_kind(command, options, reason, bytes);
	for (uint32_t i = 0; i < command->faults_count && !err; i++)
		err = fault_take(command->faults[i], options, reason, bytes);
	return err;
}

int rbx_sim_command_check(const struct rbx_sim_command *command, char *reason,
			  size_t reason_bytes)
{
	struct rbx_sim_options options;

	return options_take(command, &options, reason, reason_bytes);
}

int rbx_sim_command_run(const struct rbx_sim_command *command,
			struct rbx_sim_outcome *outcome)
{
	struct rbx_sim_process process;
	struct rbx_sim_options options;
	char reason[RBX_SIM_TEXT_BYTES];
	int err = options_take(command, &options, reason, sizeof(reason));

	if (!err)
		err = rbx_sim_process_start(&process, &options,
					    command->silent);
	if (!err)
		rbx_sim_process_wait(&process, outcome);
	return err;
}

int64_t rbx_sim_command_hunt(const struct rbx_sim_command *command,
			     uint32_t seconds, uint64_t seeds_max,
			     uint32_t processors_count,
			     void (*ended)(uint64_t seed,
					   const struct rbx_sim_outcome *outcome))
{
	struct rbx_sim_command many = *command;
	struct rbx_sim_options options;
	char reason[RBX_SIM_TEXT_BYTES];
	int err;

	many.hunts = true;
	err = options_take(&many, &options, reason, sizeof(reason));
	return err ? err :
		     rbx_sim_processes_run(&options, seconds, seeds_max,
					   processors_count, command->goes_on,
					   ended);
}
