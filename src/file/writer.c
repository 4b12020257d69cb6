/* SPDX-License-Identifier: MIT */
/*
 * One function for each type of line; docs/format.md specifies them.
 */
#include "file-internal.h"

#include <string.h>

enum {
	BUFFER_BYTES = 256 << 10, /* from this size on, whole lines are passed on */
	BUFFER_CAP = 2 * BUFFER_BYTES, /* with some room, so that usual lines do not make
	                                * it grow */
};

static void writer_free(struct pm_file_writer *writer)
{
	pm_str_release(&writer->buffer);
	pm_vec_release(&writer->frames);
	pm_index_release(&writer->frame_index);
	free(writer->stack_slots);
	pm_vec_release(&writer->stack_rows);
	free(writer->path);
	free(writer);
}

/* Returns the name of an output for messages. @path is NULL if the writer stores
 * nothing. */
static const char *name_of_output(const char *path)
{
	if (!path)
		return "nowhere";
	if (strcmp(path, "-") == 0)
		return "standard output";
	return path;
}

int pm_file_writer_open(struct pm_file_writer **out, const char *path,
			struct pm_error *err)
{
	struct pm_file_writer *writer = calloc(1, sizeof(*writer));
	int ret;

	if (!writer)
		return pm_error_set(err, -ENOMEM, "out of memory");
	writer->output.fd = -1;
	writer->path = strdup(name_of_output(path));
	writer->buffer.data = malloc(BUFFER_CAP);
	if (!writer->path || !writer->buffer.data) {
		writer_free(writer);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	writer->buffer.cap = BUFFER_CAP;
	if (path)
		ret = pm_file_output_open(&writer->output, path, err);
	else
		ret = 0;
	if (ret < 0) {
		writer_free(writer);
		return ret;
	}
	*out = writer;
	return 0;
}

int pm_file_writer_background(struct pm_file_writer *writer,
			      pm_file_wants_end_fn wants_end, void *user)
{
	if (writer->output.fd < 0)
		return 0;
	return pm_file_output_background(&writer->output, wants_end, user);
}

void pm_file_writer_tee(struct pm_file_writer *writer, pm_file_tee_fn tee, void *user)
{
	writer->tee = tee;
	writer->tee_user = user;
}

int pm_file_writer_ready(const struct pm_file_writer *writer)
{
	if (writer->output.failed != 0)
		return writer->output.failed;
	if (writer->header && !writer->footer)
		return 0;
	return -EINVAL;
}

static int hand_on(struct pm_file_writer *writer)
{
	int ret = pm_file_output_write(&writer->output, writer->buffer.data,
				       writer->buffer.len);

	writer->buffer.len = 0;
	return ret;
}

/*
 * Ends the line that starts at @start of the buffer: adds the newline and passes a full
 * buffer on. Removes the line if it is too long or memory was short.
 */
static int file_line_end(struct pm_file_writer *writer, size_t start)
{
	struct pm_str *buffer = &writer->buffer;

	if (buffer->len - start > PM_FILE_LINE_MAX) {
		buffer->len = start;
		return -EMSGSIZE;
	}
	pm_str_putc(buffer, '\n');
	if (buffer->failed) {
		/* Later lines may refer to the id in this one, so the file has to end
		 * here. */
		buffer->len = start;
		buffer->failed = false;
		hand_on(writer);
		if (writer->output.failed == 0)
			writer->output.failed = -ENOMEM;
		return writer->output.failed;
	}
	if (buffer->len >= BUFFER_BYTES)
		return hand_on(writer);
	return 0;
}

int pm_file_tell(struct pm_file_writer *writer, enum pm_file_type type,
		 const void *record, size_t len)
{
	struct pm_file_record told = { .type = type };

	if (!writer->tee)
		return 0;
	memcpy(&told.header, record, len);
	return writer->tee(writer->tee_user, &told);
}

/* Calls file_line_end(), and then passes @record, the struct pm_file_* of that type and
 * length, to the tee. */
static int file_record_end(struct pm_file_writer *writer, size_t start,
			   enum pm_file_type type, const void *record, size_t len)
{
	int ret = file_line_end(writer, start);

	if (ret < 0)
		return ret;
	return pm_file_tell(writer, type, record, len);
}

enum {
	NUMBER_MAX = 20, /* digits of 2^64-1; "null" is shorter */
	/* The fixed parts and eight numbers of the longest line that is written often. */
	SAMPLE_MAX = 128 + 8 * NUMBER_MAX,
	RUN_MAX = 128 + PM_FILE_RUN_MAX * 11,
};

/* These append to reserved room without checks: a sample line is written in about 100
 * ns. */
#define PUT_TEXT(at, literal) \
	((char *)memcpy((at), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

static inline char *put_line_u64(char *at, uint64_t value)
{
	char digits[NUMBER_MAX];
	size_t first = NUMBER_MAX;

	do {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	memcpy(at, digits + first, NUMBER_MAX - first);
	return at + NUMBER_MAX - first;
}

static inline char *put_u32_or_null(char *at, uint32_t value)
{
	if (value == PM_FILE_NONE)
		return PUT_TEXT(at, "null");
	return put_line_u64(at, value);
}

/* Reserves @more bytes at the end of the buffer. Returns NULL if memory runs out. */
static char *line_reserve(struct pm_str *out, size_t more)
{
	char *grown = pm_vec_grow(out->data, &out->cap, 1, out->len + more + 1);

	if (!grown) {
		out->failed = true;
		return NULL;
	}
	out->data = grown;
	return grown + out->len;
}

static void key_u64(struct pm_str *out, const char *key, uint64_t value)
{
	pm_str_puts(out, key);
	pm_str_u64(out, value);
}

static void key_u32_or_null(struct pm_str *out, const char *key, uint32_t value)
{
	pm_str_puts(out, key);
	if (value == PM_FILE_NONE)
		pm_str_puts(out, "null");
	else
		pm_str_u64(out, value);
}

static void key_text(struct pm_str *out, const char *key, const char *text)
{
	pm_str_puts(out, key);
	pm_str_json(out, text);
}

/* ---- the header ---------------------------------------------------------------------- */

static void put_header_event(struct pm_str *out, uint32_t id,
			     const struct pm_file_event *event)
{
	key_u64(out, id > 0 ? ",{\"id\":" : "{\"id\":", id);
	key_text(out, ",\"name\":", event->name);
	key_text(out, ",\"requested\":", event->requested);
	key_text(out, ",\"actual\":", event->actual);
	key_text(out, ",\"modifiers\":", event->modifiers);
	key_text(out, ",\"unit\":", event->unit);
	key_u64(out, event->by_frequency ? ",\"freq\":" : ",\"period\":", event->rate);
	if (event->filter)
		key_text(out, ",\"filter\":", event->filter);
	if (event->leader != id)
		key_u64(out, ",\"group\":", event->leader);
	pm_str_putc(out, '}');
}

static void put_host(struct pm_str *out, const struct pm_file_header *header)
{
	key_text(out, ",\"host\":{\"hostname\":", header->host.hostname);
	key_text(out, ",\"kernel\":", header->host.kernel);
	key_text(out, ",\"arch\":", header->host.arch);
	if (header->host.cpus > 0)
		key_u64(out, ",\"cpus\":", header->host.cpus);
	else
		pm_str_puts(out, ",\"cpus\":null");
	key_text(out, ",\"cpu_model\":", header->host.cpu_model);
	key_text(out, ",\"virt\":", header->host.virt);
	if (header->host.boot_id)
		key_text(out, ",\"boot_id\":", header->host.boot_id);
	pm_str_putc(out, '}');
}

static bool header_good(const struct pm_file_header *header)
{
	if (header->version != PM_FILE_VERSION || !header->pmrec || !header->created ||
	    !header->clock || !header->options.call_graph ||
	    header->options.ring_bytes > PM_FILE_INTEGER_MAX ||
	    header->events_len > PM_FILE_EVENTS_MAX)
		return false;
	for (size_t i = 0; i < header->command_len; i++)
		if (!header->command[i])
			return false;
	for (size_t i = 0; i < header->events_len; i++) {
		const struct pm_file_event *event = &header->events[i];

		if (event->id != i || !event->name || !event->requested ||
		    !event->actual || !event->modifiers || !event->unit ||
		    event->rate > PM_FILE_INTEGER_MAX || event->leader > i ||
		    header->events[event->leader].leader != event->leader)
			return false;
	}
	return true;
}

int pm_file_write_header(struct pm_file_writer *writer,
			 const struct pm_file_header *header)
{
	struct pm_str *out = &writer->buffer;
	int ret;

	if (writer->output.failed != 0)
		return writer->output.failed;
	if (writer->header || !header_good(header))
		return -EINVAL;
	key_u64(out, "{\"type\":\"header\",\"format\":\"pmrec\",\"version\":",
		header->version);
	key_text(out, ",\"pmrec\":", header->pmrec);
	key_text(out, ",\"created\":", header->created);
	key_text(out, ",\"clock\":", header->clock);
	put_host(out, header);
	pm_str_puts(out, ",\"command\":[");
	for (size_t i = 0; i < header->command_len; i++)
		key_text(out, i > 0 ? "," : "", header->command[i]);
	pm_str_putc(out, ']');
	if (header->target)
		key_text(out, ",\"target\":", header->target);
	if (header->uid_known)
		key_u64(out, ",\"uid\":", header->uid);
	pm_str_puts(out, ",\"events\":[");
	for (size_t i = 0; i < header->events_len; i++)
		put_header_event(out, (uint32_t)i, &header->events[i]);
	key_text(out, "],\"options\":{\"call_graph\":", header->options.call_graph);
	key_u64(out, ",\"stack_bytes\":", header->options.stack_bytes);
	key_u64(out, ",\"ring_bytes\":", header->options.ring_bytes);
	pm_str_puts(out, "}}");
	ret = file_record_end(writer, 0, PM_FILE_HEADER, header, sizeof(*header));
	if (ret < 0)
		return ret;
	writer->header = true;
	writer->events = (uint32_t)header->events_len;
	return 0;
}

/* ---- modules, frames, stacks, threads ------------------------------------------------ */

int pm_file_write_module(struct pm_file_writer *writer,
			 const struct pm_file_module *module)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (module->id != writer->modules || module->id == PM_FILE_NONE ||
	    !module->path || !module->kind)
		return -EINVAL;
	key_u64(out, "{\"type\":\"module\",\"id\":", module->id);
	key_text(out, ",\"path\":", module->path);
	key_text(out, ",\"build_id\":", module->build_id);
	key_text(out, ",\"kind\":", module->kind);
	pm_str_putc(out, '}');
	ret = file_record_end(writer, start, PM_FILE_MODULE, module, sizeof(*module));
	if (ret == 0)
		writer->modules++;
	return ret;
}

int pm_file_write_frame(struct pm_file_writer *writer, const struct pm_file_frame *frame)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;

	key_u64(out, "{\"type\":\"frame\",\"id\":", frame->id);
	key_u32_or_null(out, ",\"module\":", frame->module);
	pm_str_puts(out, ",\"address\":\"");
	pm_str_hex(out, frame->address);
	key_text(out, "\",\"how\":", frame->how);
	pm_str_putc(out, '}');
	return file_record_end(writer, start, PM_FILE_FRAME, frame, sizeof(*frame));
}

int pm_file_write_run(struct pm_file_writer *writer)
{
	size_t start = writer->buffer.len;
	char *at;

	if (writer->run.len == 0)
		return 0;
	at = line_reserve(&writer->buffer, RUN_MAX);
	if (at) {
		at = PUT_TEXT(at, "{\"type\":\"stack\",\"id\":");
		at = put_line_u64(at, writer->run.id);
		at = PUT_TEXT(at, ",\"parent\":");
		at = put_u32_or_null(at, writer->run.parent);
		at = PUT_TEXT(at, ",\"frames\":");
		for (uint32_t i = 0; i < writer->run.len; i++) {
			*at++ = i == 0 ? '[' : ',';
			at = put_line_u64(at, writer->run.frames[i]);
		}
		at = PUT_TEXT(at, "]}");
		writer->buffer.len = (size_t)(at - writer->buffer.data);
	}
	writer->run.len = 0;
	return file_line_end(writer, start);
}

int pm_file_write_thread(struct pm_file_writer *writer,
			 const struct pm_file_thread *thread)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (!thread->comm)
		return -EINVAL;
	if (thread->time > PM_FILE_INTEGER_MAX)
		return -ERANGE;
	key_u32_or_null(out, "{\"type\":\"thread\",\"pid\":", thread->pid);
	key_u32_or_null(out, ",\"tid\":", thread->tid);
	key_text(out, ",\"comm\":", thread->comm);
	key_u64(out, ",\"time\":", thread->time);
	pm_str_putc(out, '}');
	return file_record_end(writer, start, PM_FILE_THREAD, thread, sizeof(*thread));
}

/* ---- samples, symbols and notes ------------------------------------------------------ */

static bool fields_good(const struct pm_file_sample *sample)
{
	for (size_t i = 0; i < sample->fields_len; i++) {
		const struct pm_file_field *field = &sample->fields[i];

		if (!field->name || (field->kind == PM_FILE_FIELD_TEXT && !field->text))
			return false;
		for (size_t j = 0; j < i; j++)
			if (strcmp(sample->fields[j].name, field->name) == 0)
				return false; /* a key occurs twice */
	}
	return true;
}

static void put_field(struct pm_str *out, const struct pm_file_field *field)
{
	uint64_t number = field->number;

	pm_str_json(out, field->name);
	pm_str_putc(out, ':');
	if (field->kind == PM_FILE_FIELD_TEXT) {
		pm_str_json(out, field->text);
	} else if (field->kind == PM_FILE_FIELD_SIGNED && field->negative_too < 0) {
		pm_str_putc(out, '-');
		pm_str_u64(out, -number);
	} else if (number > PM_FILE_INTEGER_MAX) {
		pm_str_putc(out, '"');
		pm_str_hex(out, number);
		pm_str_putc(out, '"');
	} else {
		pm_str_u64(out, number);
	}
}

static void put_fields(struct pm_str *out, const struct pm_file_sample *sample)
{
	pm_str_puts(out, ",\"fields\":");
	for (size_t i = 0; i < sample->fields_len; i++) {
		pm_str_putc(out, i == 0 ? '{' : ',');
		put_field(out, &sample->fields[i]);
	}
	pm_str_putc(out, '}');
}

static bool counts_good(const struct pm_file_writer *writer,
			const struct pm_file_sample *sample)
{
	uint32_t frames = pm_file_writer_frames_end(writer);

	for (size_t i = 0; i < sample->counts_len; i++)
		if (sample->counts[i].event >= writer->events)
			return false;
	for (size_t i = 0; i < sample->branches_len; i++)
		if (sample->branches[i].from >= frames ||
		    sample->branches[i].to >= frames)
			return false;
	return true;
}

static bool counts_small(const struct pm_file_sample *sample)
{
	for (size_t i = 0; i < sample->counts_len; i++)
		if (sample->counts[i].count > PM_FILE_INTEGER_MAX)
			return false;
	return true;
}

static void put_counts(struct pm_str *out, const struct pm_file_sample *sample)
{
	for (size_t i = 0; i < sample->counts_len; i++) {
		key_u64(out, i == 0 ? ",\"counts\":[" : ",", sample->counts[i].event);
		key_u64(out, ",", sample->counts[i].count);
	}
	pm_str_putc(out, ']');
}

static void put_branches(struct pm_str *out, const struct pm_file_sample *sample)
{
	for (size_t i = 0; i < sample->branches_len; i++) {
		const struct pm_file_branch *branch = &sample->branches[i];

		key_u64(out, i == 0 ? ",\"branches\":[" : ",", branch->from);
		key_u64(out, ",", branch->to);
		key_u64(out, ",", branch->flags);
		key_u32_or_null(out, ",", branch->cycles);
	}
	pm_str_putc(out, ']');
}

int pm_file_write_sample(struct pm_file_writer *writer,
			 const struct pm_file_sample *sample)
{
	int ret = pm_file_writer_ready(writer);
	size_t start;
	char *at;

	if (ret < 0)
		return ret;
	if (sample->event >= writer->events ||
	    (sample->stack != PM_FILE_NONE && sample->stack >= writer->stacks) ||
	    !fields_good(sample) || !counts_good(writer, sample))
		return -EINVAL;
	if (sample->time > PM_FILE_INTEGER_MAX || sample->period > PM_FILE_INTEGER_MAX ||
	    !counts_small(sample))
		return -ERANGE;
	ret = pm_file_write_run(writer);
	if (ret < 0)
		return ret;
	start = writer->buffer.len;
	at = line_reserve(&writer->buffer, SAMPLE_MAX);
	if (at) {
		at = PUT_TEXT(at, "{\"type\":\"sample\",\"time\":");
		at = put_line_u64(at, sample->time);
		at = PUT_TEXT(at, ",\"pid\":");
		at = put_u32_or_null(at, sample->pid);
		at = PUT_TEXT(at, ",\"tid\":");
		at = put_u32_or_null(at, sample->tid);
		at = PUT_TEXT(at, ",\"cpu\":");
		at = put_u32_or_null(at, sample->cpu);
		at = PUT_TEXT(at, ",\"event\":");
		at = put_line_u64(at, sample->event);
		at = PUT_TEXT(at, ",\"period\":");
		at = put_line_u64(at, sample->period);
		at = PUT_TEXT(at, ",\"stack\":");
		at = put_u32_or_null(at, sample->stack);
		writer->buffer.len = (size_t)(at - writer->buffer.data);
	}
	if (sample->stop)
		key_text(&writer->buffer, ",\"stop\":", sample->stop);
	if (sample->fields_len > 0)
		put_fields(&writer->buffer, sample);
	if (sample->counts_len > 0)
		put_counts(&writer->buffer, sample);
	if (sample->branches_len > 0)
		put_branches(&writer->buffer, sample);
	pm_str_putc(&writer->buffer, '}');
	ret = file_record_end(writer, start, PM_FILE_SAMPLE, sample, sizeof(*sample));
	/* The first sample publishes the file. */
	if (ret == 0 && pm_file_output_waits(&writer->output))
		ret = pm_file_writer_publish(writer);
	return ret;
}

int pm_file_write_symbol(struct pm_file_writer *writer,
			 const struct pm_file_symbol *symbol)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (symbol->frame >= pm_file_writer_frames_end(writer) ||
	    symbol->functions_len == 0 || symbol->functions_len > PM_FILE_FUNCTIONS_MAX)
		return -EINVAL;
	key_u64(out, "{\"type\":\"symbol\",\"frame\":", symbol->frame);
	pm_str_puts(out, ",\"functions\":[");
	for (size_t i = 0; i < symbol->functions_len; i++) {
		const struct pm_file_function *function = &symbol->functions[i];

		key_text(out, i > 0 ? ",{\"name\":" : "{\"name\":", function->name);
		if (function->file)
			key_text(out, ",\"file\":", function->file);
		if (function->line > 0)
			key_u64(out, ",\"line\":", function->line);
		if (function->start > 0 && !function->name) {
			pm_str_puts(out, ",\"start\":\"");
			pm_str_hex(out, function->start);
			pm_str_putc(out, '"');
		}
		pm_str_putc(out, '}');
	}
	pm_str_puts(out, "]}");
	return file_record_end(writer, start, PM_FILE_SYMBOL, symbol, sizeof(*symbol));
}

int pm_file_write_lost(struct pm_file_writer *writer, const struct pm_file_lost *lost)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (lost->time > PM_FILE_INTEGER_MAX || lost->count > PM_FILE_INTEGER_MAX)
		return -ERANGE;
	key_u64(out, "{\"type\":\"lost\",\"time\":", lost->time);
	key_u32_or_null(out, ",\"cpu\":", lost->cpu);
	key_u64(out, ",\"count\":", lost->count);
	pm_str_putc(out, '}');
	return file_record_end(writer, start, PM_FILE_LOST, lost, sizeof(*lost));
}

int pm_file_write_note(struct pm_file_writer *writer, const struct pm_file_note *note)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (!note->text)
		return -EINVAL;
	key_text(out, "{\"type\":\"note\",\"text\":", note->text);
	pm_str_putc(out, '}');
	return file_record_end(writer, start, PM_FILE_NOTE, note, sizeof(*note));
}

int pm_file_write_title(struct pm_file_writer *writer, const struct pm_file_title *title)
{
	struct pm_str *out = &writer->buffer;
	size_t start = out->len;
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (title->pid == PM_FILE_NONE)
		return -EINVAL;
	if (title->time > PM_FILE_INTEGER_MAX)
		return -ERANGE;
	key_u64(out, "{\"type\":\"title\",\"pid\":", title->pid);
	key_u64(out, ",\"time\":", title->time);
	key_text(out, ",\"text\":", title->text);
	pm_str_putc(out, '}');
	return file_record_end(writer, start, PM_FILE_TITLE, title, sizeof(*title));
}

/* ---- the footer ---------------------------------------------------------------------- */

static int footer_check(const struct pm_file_writer *writer,
			const struct pm_file_footer *footer)
{
	uint64_t all = footer->samples | footer->lost | footer->throttled |
		       footer->truncated | footer->stitched | footer->duration_ns;

	if (footer->cpu_known)
		all |= footer->cpu_ns;
	if ((footer->exited && footer->signalled) || footer->events_len > writer->events)
		return -EINVAL;
	for (size_t i = 0; i < footer->stops_len; i++) {
		if (!footer->stops[i].name)
			return -EINVAL;
		for (size_t j = 0; j < i; j++)
			if (strcmp(footer->stops[i].name, footer->stops[j].name) == 0)
				return -EINVAL; /* a key occurs twice */
		all |= footer->stops[i].count;
	}
	for (size_t i = 0; i < footer->events_len; i++) {
		const struct pm_file_footer_event *event = &footer->events[i];

		all |= event->samples | event->period;
		if (event->lost_known)
			all |= event->lost;
		if (event->counted_known)
			all |= event->counted | event->others;
	}
	for (size_t i = 0; i < footer->clock_len; i++) {
		const struct pm_file_clock_cpu *cpu = &footer->clock[i];

		all |= cpu->samples | cpu->period | cpu->longer | cpu->late |
		       cpu->late_ns | cpu->reader_runs | cpu->reader_ns;
	}
	if (footer->stolen_known)
		all |= footer->stolen_ns | footer->stolen_step_ns;
	if (all > PM_FILE_INTEGER_MAX)
		return -ERANGE;
	return 0;
}

static void put_footer_clock(struct pm_str *out, const struct pm_file_footer *footer)
{
	if (footer->stolen_known) {
		key_u64(out, ",\"clock\":{\"stolen_ns\":", footer->stolen_ns);
		key_u64(out, ",\"stolen_step_ns\":", footer->stolen_step_ns);
	} else {
		pm_str_puts(out, ",\"clock\":{\"stolen_ns\":null");
	}
	pm_str_puts(out, ",\"cpus\":[");
	for (size_t i = 0; i < footer->clock_len; i++) {
		const struct pm_file_clock_cpu *cpu = &footer->clock[i];

		key_u64(out, i > 0 ? ",{\"event\":" : "{\"event\":", cpu->event);
		key_u64(out, ",\"cpu\":", cpu->cpu);
		key_u64(out, ",\"samples\":", cpu->samples);
		key_u64(out, ",\"period\":", cpu->period);
		key_u64(out, ",\"longer\":", cpu->longer);
		key_u64(out, ",\"late\":", cpu->late);
		key_u64(out, ",\"late_ns\":", cpu->late_ns);
		key_u64(out, ",\"reader_runs\":", cpu->reader_runs);
		key_u64(out, ",\"reader_ns\":", cpu->reader_ns);
		pm_str_putc(out, '}');
	}
	pm_str_puts(out, "]}");
}

static void put_footer_event(struct pm_str *out, uint32_t id,
			     const struct pm_file_footer_event *event)
{
	key_u64(out, id > 0 ? ",{\"id\":" : "{\"id\":", id);
	key_u64(out, ",\"samples\":", event->samples);
	key_u64(out, ",\"period\":", event->period);
	if (event->lost_known)
		key_u64(out, ",\"lost\":", event->lost);
	else
		pm_str_puts(out, ",\"lost\":null");
	if (event->counted_known)
		key_u64(out, ",\"counted\":", event->counted);
	if (event->counted_known && event->others > 0)
		key_u64(out, ",\"others\":", event->others);
	pm_str_putc(out, '}');
}

static void put_footer(struct pm_str *out, const struct pm_file_footer *footer)
{
	key_u64(out, "{\"type\":\"footer\",\"samples\":", footer->samples);
	key_u64(out, ",\"lost\":", footer->lost);
	key_u64(out, ",\"throttled\":", footer->throttled);
	key_u64(out, ",\"truncated\":", footer->truncated);
	key_u64(out, ",\"stitched\":", footer->stitched);
	pm_str_puts(out, ",\"stops\":{");
	for (size_t i = 0; i < footer->stops_len; i++) {
		key_text(out, i > 0 ? "," : "", footer->stops[i].name);
		key_u64(out, ":", footer->stops[i].count);
	}
	key_u64(out, "},\"duration_ns\":", footer->duration_ns);
	if (footer->cpu_known)
		key_u64(out, ",\"cpu_ns\":", footer->cpu_ns);
	else
		pm_str_puts(out, ",\"cpu_ns\":null");
	if (footer->exited || footer->signalled) {
		key_u64(out,
			footer->exited ? ",\"exit\":{\"code\":"
				       : ",\"exit\":{\"signal\":",
			footer->exit);
		pm_str_putc(out, '}');
	} else {
		pm_str_puts(out, ",\"exit\":null");
	}
	pm_str_puts(out, ",\"events\":[");
	for (size_t i = 0; i < footer->events_len; i++)
		put_footer_event(out, (uint32_t)i, &footer->events[i]);
	pm_str_putc(out, ']');
	if (footer->clock_len > 0)
		put_footer_clock(out, footer);
	pm_str_putc(out, '}');
}

int pm_file_write_footer(struct pm_file_writer *writer,
			 const struct pm_file_footer *footer)
{
	int ret = pm_file_writer_ready(writer);
	size_t start;

	if (ret == 0)
		ret = footer_check(writer, footer);
	if (ret == 0)
		ret = pm_file_write_run(writer);
	if (ret < 0)
		return ret;
	start = writer->buffer.len;
	put_footer(&writer->buffer, footer);
	ret = file_record_end(writer, start, PM_FILE_FOOTER, footer, sizeof(*footer));
	if (ret == 0)
		writer->footer = true;
	return ret;
}

/* ---- the file ------------------------------------------------------------------------ */

int pm_file_writer_flush(struct pm_file_writer *writer)
{
	if (writer->output.failed != 0)
		return writer->output.failed;
	pm_file_write_run(writer);
	hand_on(writer);
	return pm_file_output_flush(&writer->output);
}

int pm_file_writer_append(struct pm_file_writer *writer, const char *lines, size_t len)
{
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (len == 0)
		return 0;
	/* file_line_end() adds the last newline. */
	pm_str_append(&writer->buffer, lines, len - 1);
	return file_line_end(writer, writer->buffer.len - (len - 1));
}

void pm_file_writer_redirect(struct pm_file_writer *writer, int fd)
{
	writer->output = (struct pm_file_output){ .fd = fd };
	writer->buffer.len = 0;
	writer->run.len = 0;
	writer->tee = NULL;
}

int pm_file_writer_sync(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_flush(writer);

	if (ret < 0)
		return ret;
	return pm_file_output_settle(&writer->output);
}

uint64_t pm_file_writer_bytes(const struct pm_file_writer *writer)
{
	return writer->output.bytes;
}

static void explain_write_failure(struct pm_error *err, int code, const char *path)
{
	pm_error_set(err, code, "could not be written to its end: %s", strerror(-code));
	if (code == -EPIPE)
		pm_error_set(err, code, "the program that reads this pipe has ended");
	if (code == -ENOSPC || code == -EDQUOT)
		pm_error_fix(err, "pmrec -o /another/disk/samples.json.zst");
	if (code == -ETIMEDOUT)
		pm_error_set(err, code,
			     "could not be written to its end: nobody took more bytes");
	if (code == -EFBIG)
		pm_error_fix(err, "ulimit -f unlimited");
	pm_error_where(err, path, -1);
}

int pm_file_writer_publish(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_flush(writer);

	if (ret == 0)
		pm_file_output_publish(&writer->output);
	return ret;
}

int pm_file_writer_settle(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_flush(writer);
	int settled = pm_file_output_settle(&writer->output);

	if (ret == 0)
		ret = settled;
	/* A file that could not be published is kept, even if something else fails. */
	if (!writer->output.partial || writer->output.unpublished < 0)
		return ret;
	if (ret < 0) {
		pm_file_output_discard(&writer->output);
		return ret;
	}
	/* The first sample publishes a file immediately; this file therefore has no
	 * samples. */
	if (pm_file_partial_replaces(writer->output.path))
		return 0;
	pm_file_output_publish(&writer->output);
	return pm_file_output_settle(&writer->output);
}

const char *pm_file_writer_place(const struct pm_file_writer *writer)
{
	if (writer->output.partial)
		return writer->output.partial;
	return writer->path;
}

void pm_file_writer_stay_beside(struct pm_file_writer *writer)
{
	writer->output.beside = true;
}

bool pm_file_writer_kept_old(const struct pm_file_writer *writer)
{
	return writer->output.kept_old;
}

void pm_file_writer_discard(struct pm_file_writer *writer)
{
	if (!writer)
		return;
	pm_file_output_discard(&writer->output);
	pm_file_writer_close(writer, NULL);
}

int pm_file_writer_close(struct pm_file_writer *writer, struct pm_error *err)
{
	int ret, unpublished;

	if (!writer)
		return 0;
	pm_file_writer_settle(writer);
	unpublished = writer->output.unpublished;
	if (unpublished < 0)
		pm_file_output_explain_unpublished(&writer->output, err);
	ret = pm_file_output_close(&writer->output);
	/* The place of the file is more important than the reason why it ends early. */
	if (ret < 0 && unpublished == 0)
		explain_write_failure(err, ret, writer->path);
	writer_free(writer);
	if (ret < 0)
		return ret;
	return unpublished;
}
