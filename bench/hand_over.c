/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hand_over.c - how long it takes until a buffer of one program has arrived in a buffer of
 * another, neither of which was registered before. One at a time. See bench/exchange.
 *
 *	hand_over --serve ADDR			prints "ready ADDR", serves one client
 *	hand_over --connect ADDR --way WAY	prints JSON
 *	both: --fabric F, --device D, --wait (sleep until something comes; else spin)
 *	client: --bytes N, --runtime S
 *
 * The ways (section 6 of the MRRC/FRRWP paper):
 *	classic		its figure 5: register, ask, wait for the key, write, tell. The other
 *			program registers when it is asked
 *	overlapped	the same, but asks before it registers
 *	apart		as overlapped, but key, write and word go over a second endpoint, as a
 *			conditional write does
 *	conditional	ask, rbx_conditional_write(); the other program calls rbx_offer()
 *
 * All ask by the same message over an endpoint for messages. Two times are measured, from before
 * the first step: `written`, until the write has completed and its buffer is not registered any
 * more, and `had`, until the other program has answered that it has the data, and its buffer is
 * not registered any more. Before the next turn both sides give the pages of their buffers back,
 * so each buffer is cold; that is not measured.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rdmabox/endpoint.h>
#include <rdmabox/exchange.h>
#include <rdmabox/rdmabox.h>

#define MESSAGES 8u
#define SAMPLES_MAX 1000000u
#define WARMUPS 20u
#define BATCH 8

enum way { CLASSIC, OVERLAPPED, APART, CONDITIONAL, WAYS };
static const char *const way_names[WAYS] = { "classic", "overlapped", "apart", "conditional" };

enum word { ASK, KEY, DONE, HAVE, READY };

struct message {
	uint32_t word; /* enum word */
	uint32_t length_bytes; /* of ASK */
	uint64_t number; /* of the turn; the tag */
	struct rbx_region_key key; /* of KEY */
};

/* What the client wants, with its first connection. */
struct wish {
	uint32_t bytes, way;
};

struct program {
	const char *fabric, *device;
	int timeout_ms;
	enum way way;
	uint32_t bytes;
	struct rbx_context *ctx;
	struct rbx_queue *queue;
	struct rbx_endpoint *talks;
	struct rbx_endpoint *moves; /* the data; the same, or another one */
	struct message *messages; /* MESSAGES receives for each endpoint */
	struct rbx_region *messages_region;
	uint8_t *buffer;
	struct rbx_region *region; /* of the buffer, in this turn */
	uint64_t number;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void need(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "hand_over: %s: %s\n", what, rbx_last_error());
	exit(1);
}

static void fail(const char *what)
{
	fprintf(stderr, "hand_over: %s\n", what);
	exit(1);
}

/* ---- Both sides ---------------------------------------------------------------------*/

static void option_set(struct rbx_options *options, const char *name, const char *value)
{
	char text[128];

	snprintf(text, sizeof(text), "%s=%s", name, value);
	need(rbx_options_set(options, text), text);
}

static void open_all(struct program *program)
{
	struct rbx_options options;

	rbx_options_defaults(&options);
	option_set(&options, "fabric", program->fabric);
	option_set(&options, "device", program->device);
	need(rbx_open(&program->ctx, &options), "no device");
	need(rbx_queue_create(program->ctx, 1024, &program->queue), "no queue");
	program->messages = calloc(2 * MESSAGES, sizeof(*program->messages));
	need(!program->messages, "no memory");
	need(rbx_region_register(program->ctx, program->messages,
				 2 * MESSAGES * sizeof(*program->messages),
				 &program->messages_region),
	     "no region");
}

static struct rbx_endpoint_options endpoint_options(const struct program *program,
						    bool exchanges)
{
	return (struct rbx_endpoint_options){
		.size_bytes = sizeof(struct rbx_endpoint_options),
		.queue = program->queue,
		.works_when_polled = program->timeout_ms == 0,
		.inline_bytes = sizeof(struct message),
		.exchanges = exchanges,
	};
}

static void buffer_make(struct program *program)
{
	program->buffer = mmap(NULL, program->bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (program->buffer == MAP_FAILED)
		fail("no memory for a buffer");
}

static void buffer_cool(struct program *program)
{
	if (madvise(program->buffer, program->bytes, MADV_DONTNEED))
		fail("cannot give the pages of the buffer back");
}

static void receive(struct program *program, uintptr_t index)
{
	const struct rbx_segment segment = { &program->messages[index], sizeof(struct message),
					     program->messages_region };
	const struct rbx_receive receive = { &segment, 1, (void *)index };

	need(rbx_endpoint_receive(index < MESSAGES ? program->talks : program->moves, &receive, 1),
	     "cannot receive");
}

static void receive_all(struct program *program)
{
	for (uintptr_t i = 0; i < (program->way == APART ? 2 : 1) * MESSAGES; i++)
		receive(program, i);
}

static struct rbx_operation say_operation(struct rbx_segment *segment,
					  const struct message *message)
{
	*segment = (struct rbx_segment){ message, sizeof(*message), NULL };
	return (struct rbx_operation){
		.kind = RBX_OPERATION_SEND,
		.flags = RBX_OPERATION_INLINE | RBX_OPERATION_SILENT,
		.segments = segment,
		.segments_count = 1,
		.user = NULL,
	};
}

static void say(struct program *program, enum word word)
{
	struct message message = { .word = word,
				   .length_bytes = program->bytes,
				   .number = program->number };
	struct rbx_segment segment;
	struct rbx_operation operation = say_operation(&segment, &message);

	if (word == KEY)
		rbx_region_key(program->region, &message.key);
	need(rbx_endpoint_post(word == KEY ? program->moves : program->talks, &operation, 1),
	     "cannot send");
}

static void buffer_register(struct program *program, uint32_t rights)
{
	need(rbx_region_export(program->ctx, NULL, program->buffer, program->bytes, rights,
			       &program->region),
	     "cannot register");
}

static void buffer_release(struct program *program)
{
	rbx_region_release(program->region);
	program->region = NULL;
}

/* Calls back for the completions that have come. */
static void poll_once(struct program *program,
		      void (*completed)(struct program *, const struct rbx_completion *))
{
	struct rbx_completion completions[BATCH];
	int count = rbx_queue_poll(program->queue, completions, BATCH, program->timeout_ms);

	need(count < 0, "cannot poll");
	for (int i = 0; i < count; i++)
		completed(program, &completions[i]);
}

/* ---- The program that has the data -----------------------------------------------------*/

static struct {
	bool is_written, is_had, is_ready;
	uint64_t written_ns; /* when */
} client;

/* The write and the word that it is there, with one doorbell. */
static void write_by(struct program *program, const struct rbx_region_key *key)
{
	const struct message message = { .word = DONE, .number = program->number };
	const struct rbx_segment data = { program->buffer, program->bytes, program->region };
	struct rbx_segment segment;
	struct rbx_operation operations[2] = {
		{
			.kind = RBX_OPERATION_WRITE,
			.segments = &data,
			.segments_count = 1,
			.key = key->key,
			.address = key->address,
			.user = program,
		},
		say_operation(&segment, &message),
	};

	need(rbx_endpoint_post(program->moves, operations, 2), "cannot write");
}

static void client_hears(struct program *program, uintptr_t index)
{
	const struct message message = program->messages[index];

	receive(program, index);
	if (message.number != program->number)
		fail("a message of another turn");
	if (message.word == KEY)
		write_by(program, &message.key);
	else if (message.word == HAVE)
		client.is_had = true;
	else if (message.word == READY)
		client.is_ready = true;
}

static void client_completed(struct program *program, const struct rbx_completion *completion)
{
	if (completion->status)
		fail(strerror(-completion->status));
	if (completion->kind == RBX_COMPLETION_RECEIVED) {
		client_hears(program, (uintptr_t)completion->user);
	} else if (completion->user) {
		if (program->region)
			buffer_release(program);
		client.is_written = true;
		client.written_ns = now_ns();
	}
}

static void client_begin(struct program *program)
{
	const struct rbx_segment data = { program->buffer, program->bytes, NULL };

	if (program->way == CLASSIC)
		buffer_register(program, 0);
	say(program, ASK);
	if (program->way == OVERLAPPED || program->way == APART)
		buffer_register(program, 0);
	if (program->way == CONDITIONAL)
		need(rbx_conditional_write(program->moves, program->number, &data, 0, program),
		     "cannot write");
}

struct times {
	uint64_t *written_ns, *had_ns;
};

static void turn(struct program *program, const struct times *times, uint32_t index)
{
	uint64_t begin_ns, end_ns;

	program->number++;
	buffer_cool(program);
	memset(program->buffer, (int)program->number, program->bytes);
	client.is_written = client.is_had = client.is_ready = false;
	begin_ns = now_ns();
	client_begin(program);
	while (!client.is_written || !client.is_had)
		poll_once(program, client_completed);
	end_ns = now_ns();
	while (!client.is_ready)
		poll_once(program, client_completed);
	times->written_ns[index] = client.written_ns - begin_ns;
	times->had_ns[index] = end_ns - begin_ns;
}

static int earlier(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return *one < *other ? -1 : *one > *other;
}

static void print_times(const char *name, uint64_t *times_ns, uint32_t count)
{
	qsort(times_ns, count, sizeof(*times_ns), earlier);
	printf(", \"%s_us\": {\"p50\": %.3f, \"p99\": %.3f}", name,
	       (double)times_ns[count / 2] / 1000,
	       (double)times_ns[count - 1 - count / 100] / 1000);
}

static void print(const struct program *program, const struct times *times, uint32_t count)
{
	printf("{\"way\": \"%s\", \"bytes\": %u, \"turns\": %u", way_names[program->way],
	       program->bytes, count);
	print_times("written", times->written_ns, count);
	print_times("had", times->had_ns, count);
	printf("}\n");
}

static void ask(struct program *program, const char *address, double runtime_s)
{
	struct rbx_endpoint_options options = endpoint_options(program, false);
	struct wish wish = { program->bytes, program->way };
	const struct rbx_endpoint_data data = { &wish, sizeof(wish) };
	const struct times times = { calloc(SAMPLES_MAX, sizeof(uint64_t)),
				     calloc(SAMPLES_MAX, sizeof(uint64_t)) };
	uint32_t count = 0;
	uint64_t end_ns;

	need(!times.written_ns || !times.had_ns, "no memory");
	need(rbx_endpoint_connect(program->ctx, address, &options, &data, NULL, &program->talks),
	     "cannot connect");
	options = endpoint_options(program, program->way == CONDITIONAL);
	program->moves = program->talks;
	if (program->way >= APART)
		need(rbx_endpoint_connect(program->ctx, address, &options, NULL, NULL,
					  &program->moves),
		     "cannot connect");
	receive_all(program);
	buffer_make(program);
	for (uint32_t i = 0; i < WARMUPS; i++)
		turn(program, &times, 0);
	end_ns = now_ns() + (uint64_t)(runtime_s * 1e9);
	do
		turn(program, &times, count++);
	while (count < SAMPLES_MAX && now_ns() < end_ns);
	print(program, &times, count);
	free(times.written_ns);
	free(times.had_ns);
}

/* ---- The program that gets them -----------------------------------------------------------*/

static bool client_has_left;

/* All of it is looked at, so the pages are there in each way. */
static void contents_check(const struct program *program)
{
	const uint8_t byte = (uint8_t)program->number;

	if (program->buffer[0] != byte ||
	    memcmp(program->buffer, program->buffer + 1, program->bytes - 1) != 0)
		fail("the data are not what was written");
}

static void have(struct program *program)
{
	contents_check(program);
	say(program, HAVE);
	buffer_cool(program);
	say(program, READY);
}

static void server_hears(struct program *program, uintptr_t index)
{
	const struct message message = program->messages[index];

	receive(program, index);
	if (message.word == DONE) {
		buffer_release(program);
		have(program);
		return;
	}
	program->number = message.number;
	if (program->way == CONDITIONAL) {
		need(rbx_offer(program->moves, program->number, program->buffer,
			       program->bytes, RBX_OFFER_TO_WRITE, 0, program),
		     "cannot offer");
		return;
	}
	buffer_register(program, RBX_REGION_WRITE);
	say(program, KEY);
}

static void server_completed(struct program *program, const struct rbx_completion *completion)
{
	if (completion->status)
		client_has_left = true;
	else if (completion->kind == RBX_COMPLETION_RECEIVED)
		server_hears(program, (uintptr_t)completion->user);
	else if (completion->kind == RBX_COMPLETION_OFFERED)
		have(program);
}

static void serve(struct program *program, const char *address)
{
	struct rbx_endpoint_options options = endpoint_options(program, false);
	struct rbx_endpoint_listener *listener;
	struct rbx_endpoint_request *request;
	struct wish wish;
	size_t length;

	need(rbx_endpoint_listen(program->ctx, address, &listener), "cannot listen");
	printf("ready %s\n", rbx_endpoint_listener_address(listener));
	fflush(stdout);
	need(rbx_endpoint_next_request(listener, -1, &request), "no connection request came");
	memcpy(&wish, rbx_endpoint_request_data(request, &length), sizeof(wish));
	if (length < sizeof(wish) || wish.way >= WAYS || !wish.bytes)
		fail("no valid options came from the client");
	program->bytes = wish.bytes;
	program->way = (enum way)wish.way;
	buffer_make(program);
	need(rbx_endpoint_accept(request, &options, NULL, &program->talks), "cannot accept");
	program->moves = program->talks;
	if (program->way >= APART) {
		options = endpoint_options(program, program->way == CONDITIONAL);
		need(rbx_endpoint_next_request(listener, -1, &request), "no second connection");
		need(rbx_endpoint_accept(request, &options, NULL, &program->moves),
		     "cannot accept");
	}
	receive_all(program);
	while (!client_has_left)
		poll_once(program, server_completed);
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "serve", required_argument, NULL, 's' },
		{ "connect", required_argument, NULL, 'c' },
		{ "way", required_argument, NULL, 'w' },
		{ "fabric", required_argument, NULL, 'f' },
		{ "device", required_argument, NULL, 'd' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "runtime", required_argument, NULL, 'r' },
		{ "wait", no_argument, NULL, 'W' },
		{ NULL, 0, NULL, 0 },
	};
	struct program program = { .fabric = "soft:tcp", .device = "", .bytes = 4096,
				   .way = WAYS };
	const char *serves = NULL, *connects = NULL;
	double runtime_s = 1;
	int letter;

	while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (letter) {
		case 's':
			serves = optarg;
			break;
		case 'c':
			connects = optarg;
			break;
		case 'w':
			for (uint32_t way = 0; way < WAYS; way++)
				if (!strcmp(optarg, way_names[way]))
					program.way = (enum way)way;
			break;
		case 'f':
			program.fabric = optarg;
			break;
		case 'd':
			program.device = optarg;
			break;
		case 'b':
			program.bytes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'r':
			runtime_s = strtod(optarg, NULL);
			break;
		case 'W':
			program.timeout_ms = -1;
			break;
		default:
			return 2;
		}
	}
	if (!serves && (!connects || program.way == WAYS || !program.bytes))
		fail("give --serve ADDR, or --connect ADDR with --way and --bytes");
	open_all(&program);
	if (serves)
		serve(&program, serves);
	else
		ask(&program, connects, runtime_s);
	if (program.moves != program.talks)
		rbx_endpoint_close(program.moves);
	rbx_endpoint_close(program.talks);
	return 0;
}
