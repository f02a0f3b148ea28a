/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * window_turns.c - compares windows on a machine whose speed changes.
 *
 * Separate runs do not answer this: one run sees one speed and the next another. So the
 * windows take turns of 1/20 second within one run of `rdmabox bench`. Comparing a turn with
 * its neighbours compares what the machine did at nearly the same time:
 *
 *	window_turns --turns off,512K,off,auto --pool ADDRESS ...
 *
 * The rest are options of rdmabox-bench(1). To the library all windows together are one
 * policy, the program's own. It returns the fixed window of the present turn, or calls a
 * policy of the core during its turn. Such a policy remembers its state from turn to turn,
 * and its time does not pass during the other turns. Its first turn is as long as it needs to
 * find anything, and does not count.
 *
 * A turn begins with the first completion of what was posted after the window had changed,
 * and its time counts from then on. So nothing of another turn is in it.
 *
 * Prints the rate of each finished turn, as JSON. The report of rdmabox bench is for all
 * windows together; it goes to stderr.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <rdmabox/rdmabox.h>

#include "cli/commands.h"
#include "core/congestion.h"

#define TURN_S 0.05
#define SETTLE_S 1.5
#define ENTRIES_MAX 64u
#define TURNS_MAX 65536u

struct entry {
	const struct rbx_congestion_ops *ops; /* NULL: fixed */
	uint64_t fixed_bytes; /* 0: off */
	uint64_t away_ns; /* how far its clock is behind */
	uint64_t seen_ns; /* when its last turn ended */
	bool settled;
	uint64_t state[RBX_CONGESTION_STATE_BYTES / 8];
};

static struct {
	struct entry entries[ENTRIES_MAX];
	uint32_t entries_count;
	uint64_t turn_ns, settle_ns;
	uint64_t high_bytes; /* off */

	/* Of the present turn. One thread at a time calls a policy. */
	uint32_t entry;
	bool counts; /* completions are of this turn */
	uint64_t changed_ns;
	uint64_t begin_ns;
	uint64_t bytes;

	/* Of the finished turns. */
	double mb_per_s[TURNS_MAX]; /* 0: the turn in which it settles */
	uint64_t window_bytes[TURNS_MAX]; /* at its end */
	uint32_t turns_count;
} turns;

static _Atomic bool measuring;

/* ---- The policy ------------------------------------------------------------ */

static struct entry *whose(void)
{
	return &turns.entries[turns.entry];
}

static uint64_t window_now(void)
{
	const struct entry *entry = whose();

	if (entry->ops)
		return entry->ops->window(entry->state);
	return entry->fixed_bytes ? entry->fixed_bytes : turns.high_bytes;
}

static void turns_init(void *state, uint64_t low_bytes, uint64_t high_bytes)
{
	(void)state;
	turns.high_bytes = high_bytes;
	for (uint32_t i = 0; i < turns.entries_count; i++) {
		struct entry *entry = &turns.entries[i];

		if (entry->ops)
			entry->ops->init(entry->state, low_bytes, high_bytes);
	}
}

static void begin_turn(uint32_t entry, uint64_t now_ns)
{
	turns.entry = entry;
	turns.counts = false;
	turns.changed_ns = now_ns;
}

static void end_turn(uint64_t now_ns)
{
	struct entry *entry = whose();
	double mb_per_s = 1e3 * turns.bytes / (now_ns - turns.begin_ns);

	if (turns.turns_count < TURNS_MAX) {
		turns.mb_per_s[turns.turns_count] =
			entry->settled ? mb_per_s : 0;
		turns.window_bytes[turns.turns_count++] = window_now();
	}
	entry->settled = true;
	entry->seen_ns = now_ns;
	begin_turn((turns.entry + 1) % turns.entries_count, now_ns);
}

/* The first request that was posted in this turn has completed. */
static void begin_counting(uint64_t now_ns)
{
	struct entry *entry = whose();

	turns.counts = true;
	turns.begin_ns = now_ns;
	turns.bytes = 0;
	if (entry->seen_ns)
		entry->away_ns += now_ns - entry->seen_ns;
}

static void turns_on_complete(void *state, uint64_t now_ns, uint64_t rtt_ns,
			      uint64_t bytes)
{
	struct entry *entry = whose();

	(void)state;
	if (!atomic_load(&measuring))
		return;
	if (!turns.changed_ns)
		begin_turn(0, now_ns);
	if (!turns.counts) {
		if (now_ns - rtt_ns >= turns.changed_ns)
			begin_counting(now_ns);
		return;
	}
	turns.bytes += bytes;
	if (entry->ops)
		entry->ops->on_complete(entry->state, now_ns - entry->away_ns,
					rtt_ns, bytes);
	if (now_ns - turns.begin_ns >=
	    (entry->settled ? turns.turn_ns : turns.settle_ns))
		end_turn(now_ns);
}

static uint64_t turns_window(const void *state)
{
	(void)state;
	return atomic_load(&measuring) ? window_now() : turns.high_bytes;
}

static const struct rbx_congestion_ops turns_ops = {
	.name = "turns",
	.init = turns_init,
	.on_complete = turns_on_complete,
	.window = turns_window,
};

/* ---- In front of the library -----------------------------------------------*/

int __real_rbx_open(struct rbx_context **ctx, const struct rbx_options *options);
int __wrap_rbx_open(struct rbx_context **ctx, const struct rbx_options *options);
void __real_rbx_stats_reset(struct rbx_context *ctx);
void __wrap_rbx_stats_reset(struct rbx_context *ctx);

int __wrap_rbx_open(struct rbx_context **ctx, const struct rbx_options *options)
{
	struct rbx_options own = *options;

	own.congestion = &turns_ops;
	return __real_rbx_open(ctx, &own);
}

/* The measurement begins here. */
void __wrap_rbx_stats_reset(struct rbx_context *ctx)
{
	__real_rbx_stats_reset(ctx);
	atomic_store(&measuring, true);
}

/* ---- The program -----------------------------------------------------------*/

static int usage(void)
{
	fputs("usage: window_turns --turns WINDOW[,WINDOW...] "
	      "[--turn S] [--settle S] [OPTION of rdmabox-bench(1)...]\n"
	      "a WINDOW is off, aimd, delay, auto, or a size such as 512K\n",
	      stderr);
	return CLI_EXIT_USAGE;
}

static bool parse_size(const char *word, uint64_t *bytes)
{
	char *end;

	*bytes = strtoull(word, &end, 10);
	if (*end == 'K' || *end == 'M')
		*bytes <<= *end++ == 'K' ? 10 : 20;
	return *bytes && !*end;
}

static bool parse_entry(const char *word, struct entry *entry)
{
	static const struct rbx_congestion_ops *const policies[] = {
		&rbx_congestion_aimd,
		&rbx_congestion_delay,
		&rbx_congestion_auto,
	};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (!strcmp(word, policies[i]->name)) {
			entry->ops = policies[i];
			return true;
		}
	}
	entry->settled = true;
	return !strcmp(word, "off") || parse_size(word, &entry->fixed_bytes);
}

static bool parse_turns(char *words)
{
	char *word;

	while ((word = strsep(&words, ","))) {
		if (turns.entries_count == ENTRIES_MAX ||
		    !parse_entry(word, &turns.entries[turns.entries_count++]))
			return false;
	}
	return true;
}

static bool parse_seconds(const char *word, uint64_t *time_ns)
{
	char *end;
	double seconds = strtod(word, &end);

	*time_ns = (uint64_t)(seconds * 1e9);
	return !*end && seconds > 0 && seconds < 1e6;
}

/* Parses the options of this program, which come first; returns how many words they are; 0:
 * they are wrong. */
static int parse(int argc, char **argv)
{
	int i;

	turns.turn_ns = (uint64_t)(TURN_S * 1e9);
	turns.settle_ns = (uint64_t)(SETTLE_S * 1e9);
	for (i = 1; i + 1 < argc; i += 2) {
		bool right;

		if (!strcmp(argv[i], "--turns"))
			right = parse_turns(argv[i + 1]);
		else if (!strcmp(argv[i], "--turn"))
			right = parse_seconds(argv[i + 1], &turns.turn_ns);
		else if (!strcmp(argv[i], "--settle"))
			right = parse_seconds(argv[i + 1], &turns.settle_ns);
		else
			break;
		if (!right)
			return 0;
	}
	return turns.entries_count ? i - 1 : 0;
}

/* Prints to the original stdout, since the report of rdmabox bench was redirected. */
static int print_turns(int fd)
{
	json_t *rates = json_array(), *windows = json_array(), *report;
	int rc;

	for (uint32_t i = 0; i < turns.turns_count; i++) {
		json_array_append_new(rates, json_real(turns.mb_per_s[i]));
		json_array_append_new(
			windows,
			json_integer((json_int_t)turns.window_bytes[i]));
	}
	report = json_pack("{so so}", "mb_per_s", rates, "window_bytes", windows);
	rc = json_dumpfd(report, fd, 0);
	json_decref(report);
	return rc ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

int main(int argc, char **argv)
{
	int out = dup(STDOUT_FILENO);
	int taken = parse(argc, argv);
	int rc;

	if (!taken)
		return usage();
	dup2(STDERR_FILENO, STDOUT_FILENO);
	rc = bench_command.run(argc - taken, argv + taken);
	return rc ? rc : print_turns(out);
}
