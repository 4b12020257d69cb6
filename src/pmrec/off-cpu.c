/* SPDX-License-Identifier: MIT */
#include "off-cpu.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "progress.h"

/* The sample and the record of one switch are written with interrupts off, so only a
 * hypervisor can delay the second one. If they are farther apart, they belong to two
 * switches. */
#define SAME_SWITCH_NS 10000000u

enum {
	ENDED_MAX = 256, /* ended tasks to remember: they may still leave their CPU */
};

static const char requested[] = "--off-cpu";

/* A task and its last switch. */
struct task {
	uint32_t pid, tid;
	uint64_t out_ns, sampled_ns;
	uint64_t losses; /* pm_rec_off_cpu.losses when the task left its CPU */
	struct pm_chain chain;
	bool used; /* this row is in use */
	bool known; /* a record of this task has been seen */
	bool out; /* it has left its CPU */
	bool preempted; /* it left while it was still ready to run */
	bool sampled; /* `chain` belongs to the current switch */
};

struct pm_rec_off_cpu {
	uint32_t event;
	pm_rec_sample_fn write;
	bool stacks;
	PM_VEC(struct task) tasks;
	PM_VEC(uint32_t) unused; /* free rows */
	struct pm_index index;
	/* When all tasks of a CPU are recorded, a task leaves its CPU once more after
	 * its end; that is not blocking. A ring buffer of the last ended tasks; pid 0:
	 * none. */
	struct {
		uint32_t pid, tid;
	} ended[ENDED_MAX];
	size_t next_ended;
	/* Records outside of [begin_ns, end_ns) do not count. Switches are also reported
	 * while the events are disabled, because they come with the mappings. */
	uint64_t begin_ns, end_ns;
	uint64_t last_ns; /* time of the newest record that was processed */
	uint64_t losses; /* times that records were lost */
	/* For the messages at the end. */
	uint64_t preempted, preempted_ns;
	uint64_t begun; /* tasks that were off CPU when the recording began */
	uint64_t incomplete; /* intervals with one end lost */
	uint64_t doubtful, doubtful_ns; /* intervals during which records were lost */
	uint64_t stackless, stackless_ns;
	uint64_t open;
};

int pm_rec_off_cpu_request(struct pm_event_specs *specs, struct pm_error *err)
{
	size_t at = specs->list.len;
	int ret = pm_event_specs_parse("context-switches", specs, err);
	struct pm_event_spec *spec;

	if (ret < 0)
		return ret;
	spec = &specs->list.data[at];
	snprintf(spec->requested, sizeof(spec->requested), "%s", requested);
	spec->leader = (uint32_t)at;
	spec->rate_given = true;
	spec->by_frequency = false;
	spec->rate = 1;
	return 0;
}

bool pm_rec_off_cpu_without_stacks(const struct pm_rec_options *options)
{
	for (size_t i = 0; i < options->specs.list.len; i++) {
		struct pm_event_spec *spec = &options->specs.list.data[i];

		if (strcmp(spec->requested, requested) != 0 ||
		    spec->config == PERF_COUNT_SW_DUMMY)
			continue;
		/* The dummy event never fires; records of switches need no privilege. */
		spec->config = PERF_COUNT_SW_DUMMY;
		snprintf(spec->name, sizeof(spec->name), "dummy");
		spec->kernel = false;
		return true;
	}
	return false;
}

int pm_rec_off_cpu_open(struct pm_rec_session *session, pm_rec_sample_fn write)
{
	size_t len;
	const struct pm_perf_event *events = pm_perf_events(session->perf, &len);
	struct pm_rec_off_cpu *off;

	for (size_t i = 0; i < len; i++) {
		if (strcmp(events[i].requested.requested, requested) != 0)
			continue;
		session->off_cpu = off = calloc(1, sizeof(*off));
		if (!off)
			return -ENOMEM;
		off->event = (uint32_t)i;
		off->write = write;
		off->end_ns = UINT64_MAX;
		if (session->options->delay_ms > 0 || session->options->wait_for_control)
			off->begin_ns = UINT64_MAX; /* until pm_rec_off_cpu_resume() */
		off->stacks = events[i].actual.kernel && !events[i].kernel_dropped;
		return 0;
	}
	return 0;
}

bool pm_rec_off_cpu_is(const struct pm_rec_session *session, size_t index)
{
	return session->off_cpu && index == session->off_cpu->event;
}

void pm_rec_off_cpu_event(const struct pm_rec_session *session,
			  struct pm_file_event *event)
{
	if (!pm_rec_off_cpu_is(session, event->id))
		return;
	/* The user need not know that the event is implemented with context-switches. */
	event->name = event->requested = event->actual = "off-cpu";
	event->modifiers = "";
	event->unit = "ns";
}

void pm_rec_off_cpu_free(struct pm_rec_off_cpu *off)
{
	if (!off)
		return;
	pm_vec_release(&off->tasks);
	pm_vec_release(&off->unused);
	pm_index_release(&off->index);
	free(off);
}

/* ---- tasks -------------------------------------------------------------------------------- */

static bool equal_off_cpu_task(const void *table, uint32_t id, const void *key)
{
	const struct task *row = &((const struct pm_rec_off_cpu *)table)->tasks.data[id];
	const struct task *wanted = key;

	return row->pid == wanted->pid && row->tid == wanted->tid;
}

static struct task *find_task(const struct pm_rec_off_cpu *off, uint32_t pid,
			      uint32_t tid)
{
	struct task key = { .pid = pid, .tid = tid };
	uint32_t id = pm_index_find(&off->index, pm_hash_mix(pid, tid),
				    equal_off_cpu_task, off, &key);

	if (id == PM_INDEX_NONE)
		return NULL;
	return &off->tasks.data[id];
}

/* Finds or creates the row. Returns NULL without memory. */
static struct task *get_task(struct pm_rec_off_cpu *off, uint32_t pid, uint32_t tid)
{
	struct task *task = find_task(off, pid, tid);
	struct task row = { .pid = pid, .tid = tid, .used = true };
	uint32_t id;

	if (task)
		return task;
	/* Reserve space for free rows first, so that freeing cannot fail. */
	if (off->unused.len == 0 &&
	    (pm_vec_reserve(&off->unused, off->tasks.len + 1) < 0 ||
	     pm_vec_reserve(&off->tasks, off->tasks.len + 1) < 0))
		return NULL;
	if (off->unused.len > 0)
		id = off->unused.data[off->unused.len - 1];
	else
		id = (uint32_t)off->tasks.len;
	if (pm_index_add(&off->index, pm_hash_mix(pid, tid), id) < 0)
		return NULL;
	if (off->unused.len > 0)
		off->unused.len--;
	else
		off->tasks.len++;
	off->tasks.data[id] = row;
	return &off->tasks.data[id];
}

static void drop_task(struct pm_rec_off_cpu *off, uint32_t pid, uint32_t tid)
{
	struct task *task = find_task(off, pid, tid);
	uint32_t id;

	if (!task)
		return;
	/* A task that ends is on a CPU. If it seems to be off CPU, the record of its
	 * return was lost. */
	off->incomplete += task->out && !task->preempted;
	id = (uint32_t)(task - off->tasks.data);
	pm_index_remove(&off->index, pm_hash_mix(pid, tid), id);
	task->used = false;
	off->unused.data[off->unused.len++] = id;
}

void pm_rec_off_cpu_sweep(struct pm_rec_off_cpu *off)
{
	for (size_t i = 0; off && i < off->tasks.len; i++) {
		const struct task *task = &off->tasks.data[i];

		if (task->used && pm_task_is_gone((pid_t)task->tid))
			drop_task(off, task->pid, task->tid);
	}
}

static bool has_off_cpu_task_ended(const struct pm_rec_off_cpu *off, uint32_t pid,
				   uint32_t tid)
{
	if (find_task(off, pid, tid))
		return false;
	for (size_t i = 0; i < ENDED_MAX; i++)
		if (off->ended[i].pid == pid && off->ended[i].tid == tid && pid != 0)
			return true;
	return false;
}

/* Removes the id from the list of ended tasks. It belongs to another task now: a new one,
 * or the thread that executed a program and replaced the first thread of its process. */
static void forget_end(struct pm_rec_off_cpu *off, uint32_t pid, uint32_t tid)
{
	for (size_t i = 0; i < ENDED_MAX; i++)
		if (off->ended[i].pid == pid && off->ended[i].tid == tid)
			off->ended[i].pid = 0;
}

static void on_end(struct pm_rec_off_cpu *off, const struct pm_record *record)
{
	size_t at = off->next_ended++ % ENDED_MAX;

	/* If it was blocked when the recording ended, its sample is still due. */
	if (record->time < off->end_ns)
		drop_task(off, record->pid, record->tid);
	off->ended[at].pid = record->pid;
	off->ended[at].tid = record->tid;
}

/* ---- records ------------------------------------------------------------------------------ */

enum blocked {
	BLOCKED_UNTIL_RECORD,
	BLOCKED_STILL, /* at the end of the recording */
};

/* Writes a sample for the time that @task was blocked, up to the time of the record @at,
 * which belongs to that task. */
static int write_blocked(struct pm_rec_session *session, const struct task *task,
			 const struct pm_record *at, enum blocked blocked)
{
	static const struct pm_file_field open = { .name = "still_blocked",
						   .kind = PM_FILE_FIELD_UNSIGNED,
						   .number = 1 };
	struct pm_rec_off_cpu *off = session->off_cpu;
	struct pm_record record = *at;
	struct pm_chain chain = { .stack = PM_FILE_NONE,
				  .stop = PM_CHAIN_STOP_NOT_SAMPLED };
	uint64_t period = at->time > task->out_ns ? at->time - task->out_ns : 0;

	if (task->sampled) {
		chain = task->chain;
	} else {
		off->stackless++;
		off->stackless_ns += period;
	}
	if (task->losses != off->losses) {
		off->doubtful++;
		off->doubtful_ns += period;
	}
	record.event = off->event;
	record.sample.period = period;
	return off->write(
		session, &record, &chain,
		&(struct pm_rec_said){ .fields = &open,
				       .fields_len = blocked == BLOCKED_STILL });
}

static int on_off_cpu_sample(struct pm_rec_session *session,
			     const struct pm_record *record)
{
	struct pm_rec_off_cpu *off = session->off_cpu;
	struct pm_chain chain;
	struct task *task;
	int ret;

	if (record->time >= off->end_ns ||
	    has_off_cpu_task_ended(off, record->pid, record->tid))
		return 0;
	ret = pm_chains_add(session->chains, record, &chain);
	if (ret < 0)
		return ret;
	task = get_task(off, record->pid, record->tid);
	if (!task)
		return -ENOMEM;
	if (task->out &&
	    (task->sampled || record->time > task->out_ns + SAME_SWITCH_NS)) {
		off->incomplete += !task->preempted; /* its return was lost */
		task->out = false;
	}
	task->known = true;
	task->sampled = true;
	task->sampled_ns = record->time;
	task->chain = chain;
	return 0;
}

static void on_out(struct pm_rec_off_cpu *off, struct task *task,
		   const struct pm_record *record)
{
	off->incomplete += task->out && !task->preempted;
	if (record->time > task->sampled_ns + SAME_SWITCH_NS)
		task->sampled = false; /* the record of its switch was lost */
	task->known = true;
	task->out = true;
	task->preempted = record->switched.preempted;
	task->out_ns = record->time;
	task->losses = off->losses;
}

static int on_switch(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_rec_off_cpu *off = session->off_cpu;
	struct task *task;
	int ret = 0;

	if (record->tid == 0 || record->tid == PM_FILE_NONE)
		return 0; /* the idle task and ended tasks are not blocked */
	if (record->time < off->begin_ns || record->time >= off->end_ns ||
	    has_off_cpu_task_ended(off, record->pid, record->tid))
		return 0;
	task = get_task(off, record->pid, record->tid);
	if (!task)
		return -ENOMEM;
	if (record->switched.out) {
		on_out(off, task, record);
		return 0;
	}
	if (!task->out) {
		off->begun += !task->known;
		off->incomplete += task->sampled;
	} else if (task->preempted) {
		off->preempted++;
		if (record->time > task->out_ns)
			off->preempted_ns += record->time - task->out_ns;
	} else {
		ret = write_blocked(session, task, record, BLOCKED_UNTIL_RECORD);
	}
	task->known = true;
	task->out = task->sampled = false;
	return ret;
}

/* Adds a new task. It starts in the kernel and waits for its first CPU: it is not
 * blocked. */
static int on_off_cpu_fork(struct pm_rec_off_cpu *off, const struct pm_record *record)
{
	struct task *task;

	drop_task(off, record->pid, record->tid);
	forget_end(off, record->pid, record->tid);
	task = get_task(off, record->pid, record->tid);
	if (!task)
		return -ENOMEM;
	task->known = true;
	return 0;
}

int pm_rec_off_cpu_record(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_rec_off_cpu *off = session->off_cpu;
	int ret;

	if (!off)
		return 0;
	if (record->time > off->last_ns)
		off->last_ns = record->time;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		if (record->event != off->event)
			return 0;
		ret = on_off_cpu_sample(session, record);
		if (ret < 0)
			return ret;
		return 1;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		ret = on_switch(session, record);
		if (ret < 0)
			return ret;
		return 1;
	case PERF_RECORD_FORK:
		return on_off_cpu_fork(off, record);
	case PERF_RECORD_EXIT:
		on_end(off, record);
		return 0;
	case PERF_RECORD_COMM:
		forget_end(off, record->pid, record->tid);
		return 0;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		off->losses++;
		return 0;
	default:
		return 0;
	}
}

/* Writes a sample for each thread that is blocked now, up to @end_ns. */
static int write_all_blocked(struct pm_rec_session *session, uint64_t end_ns)
{
	struct pm_rec_off_cpu *off = session->off_cpu;
	int ret = 0;

	for (size_t i = 0; off && i < off->tasks.len && ret == 0; i++) {
		struct task *task = &off->tasks.data[i];
		struct pm_record record = { .time = end_ns,
					    .pid = task->pid,
					    .tid = task->tid,
					    .cpu = PM_FILE_NONE };

		if (!task->used || !task->out || task->preempted ||
		    task->out_ns >= end_ns)
			continue;
		off->open++;
		ret = write_blocked(session, task, &record, BLOCKED_STILL);
		task->out = false;
	}
	return ret;
}

int pm_rec_off_cpu_finish(struct pm_rec_session *session)
{
	const struct pm_rec_off_cpu *off = session->off_cpu;
	uint64_t end_ns = session->end_ns;

	/* If the file is full, it ends before all records have been read. */
	if (off &&
	    (session->end == PM_REC_END_SAMPLES || session->end == PM_REC_END_SIZE))
		end_ns = PM_MIN(off->last_ns, end_ns);
	return write_all_blocked(session, end_ns);
}

void pm_rec_off_cpu_until(struct pm_rec_session *session, uint64_t end_ns)
{
	if (session->off_cpu)
		session->off_cpu->end_ns = end_ns;
}

int pm_rec_off_cpu_pause(struct pm_rec_session *session)
{
	struct pm_rec_off_cpu *off = session->off_cpu;
	int ret = off ? write_all_blocked(session, off->end_ns) : 0;

	if (!off)
		return 0;
	off->begin_ns = UINT64_MAX;
	pm_vec_clear(&off->tasks);
	pm_vec_clear(&off->unused);
	pm_index_release(&off->index);
	return ret;
}

void pm_rec_off_cpu_resume(struct pm_rec_session *session, uint64_t begin_ns)
{
	if (!session->off_cpu)
		return;
	session->off_cpu->begin_ns = begin_ns;
	session->off_cpu->end_ns = UINT64_MAX;
}

/* ---- messages ----------------------------------------------------------------------------- */

static void write_off_cpu_note(struct pm_rec_session *session, const char *text)
{
	pm_file_write_note(session->writer, &(struct pm_file_note){ .text = text });
}

void pm_rec_off_cpu_tell(struct pm_rec_session *session)
{
	if (!session->off_cpu || session->off_cpu->stacks)
		return;
	pm_rec_warn(session,
		    "off-CPU: where threads block is seen inside the kernel only, which "
		    "may not be sampled here: blocked time is told by thread, without "
		    "stacks; try: sudo, or sysctl kernel.perf_event_paranoid=1");
}

static void tell_incomplete(struct pm_rec_session *session)
{
	const struct pm_rec_off_cpu *off = session->off_cpu;
	char text[320];

	if (off->incomplete > 0) {
		snprintf(text, sizeof(text),
			 "off-CPU: %" PRIu64
			 " times that a thread was away were left out, "
			 "for the record of one end was lost",
			 off->incomplete);
		pm_rec_warn(session, text);
	}
	if (off->doubtful > 0) {
		snprintf(text, sizeof(text),
			 "off-CPU: records were lost while threads were away: %" PRIu64
			 " times, %.3f s in all, may hold time on a CPU",
			 off->doubtful, (double)off->doubtful_ns / 1e9);
		pm_rec_warn(session, text);
	}
	if (off->stacks && off->stackless > 0) {
		snprintf(
			text, sizeof(text),
			"off-CPU: %" PRIu64 " times that a thread was blocked, %.3f s in "
			"all, have no stack: it was lost, or they began before all events did",
			off->stackless, (double)off->stackless_ns / 1e9);
		pm_rec_warn(session, text);
	}
}

void pm_rec_off_cpu_tell_end(struct pm_rec_session *session)
{
	const struct pm_rec_off_cpu *off = session->off_cpu;
	char text[320];

	if (!off)
		return;
	tell_incomplete(session);
	if (off->begun > 0) {
		snprintf(text, sizeof(text),
			 "off-CPU: %" PRIu64
			 " threads were away when the recording began or went on: "
			 "how long, and where, is not known until they came back",
			 off->begun);
		write_off_cpu_note(session, text);
	}
	if (off->preempted > 0) {
		/* A short time should not be shown as 0.000 s. */
		bool seconds = off->preempted_ns >= UINT64_C(1000000000);

		snprintf(
			text, sizeof(text),
			"off-CPU: not in it are %.3f %s in which threads were ready to run "
			"on and others had the CPU (preempted %" PRIu64 " times)",
			(double)off->preempted_ns / (seconds ? 1e9 : 1e6),
			seconds ? "s" : "ms", off->preempted);
		write_off_cpu_note(session, text);
	}
	if (off->open > 0) {
		snprintf(text, sizeof(text),
			 "off-CPU: %" PRIu64 " threads were blocked when the recording "
			 "ended or was interrupted; their time up to then counts",
			 off->open);
		write_off_cpu_note(session, text);
	}
}
