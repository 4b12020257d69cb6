/* SPDX-License-Identifier: MIT */
#include "perf-internal.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

enum {
	DEGRADE_STEPS_MAX = 16, /* more steps than there are, for one open */
	PLAIN_RECORD_BYTES = 1536, /* a sample with 127 callchain entries and registers */
	RECORD_BYTES_MAX = 65528, /* header.size is a u16, in steps of 8 */
	RECORDS_MIN = 2,
	RECORDS_COMFORTABLE = 8,
	RECORDS_WANTED = 256,
	MEMORY_SHARE = 16, /* all rings together: at most this part of the memory */
};

#define RING_BYTES_MIN     ((size_t)32 * 1024)
#define RING_BYTES_DEFAULT ((size_t)4 * 1024 * 1024)
#define RING_BYTES_MOST    ((size_t)1024 * 1024 * 1024) /* wakeup_watermark is a u32 */
#define HZ_MAX_DEFAULT     100000 /* DEFAULT_MAX_SAMPLE_RATE, kernel/events/core.c */

struct pm_perf {
	PM_VEC(struct pm_perf_event) events;
	pm_cpu_list cpus;
	int *fds; /* [cpu * events.len + event], -1: none */
	PM_VEC(int) poll_fds;
	struct pm_event_ids ids;
	struct pm_merge merge;
	struct pm_perf_notes notes;
	struct pm_perf_features features;
	struct pm_perf_env env;
	size_t ring_bytes;
	bool nofile_raised, rate_noted;
};

static void add_note(struct pm_perf *perf, const char *format, ...) PM_PRINTF(2, 3);

/* A note that memory has no room for is the least of the troubles then. */
static void add_note(struct pm_perf *perf, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	if (pm_vec_push(&perf->notes.texts, text) < 0)
		free(text);
}

static int sys_perf_event_open(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/* ---- what this machine has instead ------------------------------------------------------ */

static bool event_exists(const char *name)
{
	struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
	struct perf_event_attr attr;
	int fd PM_AUTO_CLOSE = -1;

	if (pm_event_specs_parse(name, &specs, NULL) < 0)
		return false;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = specs.list.data[0].type;
	attr.config = specs.list.data[0].config;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	fd = sys_perf_event_open(&attr, 0, -1);
	return fd >= 0;
}

static int explain_missing(const struct pm_event_spec *spec, int code,
			   struct pm_error *err)
{
	struct pm_str near PM_CLEANUP(pm_str_release) = { 0 };
	bool software = spec->type == PERF_TYPE_SOFTWARE;
	bool pmu = !software && (event_exists("cycles") || event_exists("instructions"));

	if (software || pmu)
		pm_event_names_near(spec->name, event_exists, 3, &near);
	if (near.len == 0)
		pm_str_puts(&near, "cpu-clock, task-clock, page-faults");
	pm_error_set(err, -code, "%s (%s); events that work here: %s",
		     software || pmu
			     ? "this machine does not have the event"
			     : "this machine has no hardware counters, as is usual in "
			       "virtual machines",
		     strerror(code), near.failed ? "cpu-clock" : near.data);
	pm_error_where(err, spec->requested, -1);
	return -code;
}

/* ---- degrading, one step at a time -------------------------------------------------------- */

static bool happens_in_kernel(const struct pm_event_spec *spec)
{
	return spec->type == PERF_TYPE_SOFTWARE &&
	       (spec->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		spec->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
		spec->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}

static bool clamp_rate(struct pm_perf *perf, struct pm_perf_event *event, uint64_t max_hz)
{
	uint64_t asked = event->rate;

	if (max_hz == 0)
		max_hz = HZ_MAX_DEFAULT;
	if (!event->by_frequency || asked <= max_hz)
		return false;
	event->rate = max_hz;
	if (asked != UINT64_MAX && !perf->rate_noted) {
		add_note(
			perf,
			"%llu Hz are more than the kernel allows, so %llu Hz are sampled "
			"(more: sudo sysctl kernel.perf_event_max_sample_rate=%llu).",
			(unsigned long long)asked, (unsigned long long)max_hz,
			(unsigned long long)asked);
		perf->rate_noted = true;
	}
	return true;
}

/* EINVAL says no more than that something is wrong: leave out the newest thing first. */
static bool degrade_attr(struct pm_perf *perf, struct pm_perf_event *event)
{
	if (clamp_rate(perf, event, pm_perf_env_max_hz()))
		return true;
	if (perf->features.format_lost) {
		perf->features.format_lost = false;
		return true;
	}
	if (perf->features.build_id) {
		perf->features.build_id = false;
		return true;
	}
	if (perf->features.exclude_guest && event->actual.type != PERF_TYPE_SOFTWARE) {
		perf->features.exclude_guest = false;
		return true;
	}
	return false;
}

static bool drop_kernel(struct pm_perf *perf, struct pm_perf_event *event)
{
	const struct pm_event_spec *spec = &event->actual;
	char level[16] = "unknown";

	if (!spec->kernel || !spec->user || spec->explicit_kernel ||
	    event->kernel_dropped || happens_in_kernel(spec))
		return false;
	event->kernel_dropped = true;
	if (perf->env.paranoid_known)
		snprintf(level, sizeof(level), "%d", perf->env.paranoid);
	add_note(
		perf,
		"kernel samples are not allowed here (kernel.perf_event_paranoid is %s): "
		"%s is sampled in user space only (sudo sysctl "
		"kernel.perf_event_paranoid=1 allows both).",
		level, spec->name);
	return true;
}

static bool substitute(struct pm_perf *perf, struct pm_perf_event *event, int code)
{
	if (!pm_event_spec_fallback(&event->actual, code, &event->actual))
		return false;
	add_note(perf,
		 "this machine has no hardware counter for %s (%s): %s is sampled "
		 "instead%s.",
		 event->requested.requested, strerror(code), event->actual.name,
		 event->by_frequency ? "" : ", its period counts nanoseconds");
	return true;
}

static bool raise_nofile(struct pm_perf *perf)
{
	struct rlimit limit;

	if (perf->nofile_raised || getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur >= limit.rlim_max)
		return false;
	perf->nofile_raised = true;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* True when something was changed and another try is worth it. */
static bool degrade(struct pm_perf *perf, struct pm_perf_event *event, int code,
		    bool first_cpu)
{
	switch (code) {
	case EMFILE:
		return raise_nofile(perf);
	case EINVAL:
		return degrade_attr(perf, event);
	case EACCES:
	case EPERM:
		return drop_kernel(perf, event);
	default:
		/* On a later CPU the event is known to exist: no other one then. */
		return first_cpu && substitute(perf, event, code);
	}
}

static int explain_open(struct pm_perf *perf, const struct pm_perf_event *event, int code,
			struct pm_error *err)
{
	struct pm_perf_refusal why = {
		.code = code,
		.event = event->requested.requested,
		.kernel = event->actual.kernel && !event->kernel_dropped,
		.in_kernel_only = happens_in_kernel(&event->actual),
		.fds = perf->events.len * perf->cpus.len,
		.env = &perf->env,
	};

	if (code == ENOENT || code == ENXIO || code == ENODEV || code == EOPNOTSUPP)
		return explain_missing(&event->requested, code, err);
	return pm_perf_explain_open(&why, err);
}

/* ---- opening -------------------------------------------------------------------------------- */

struct place {
	const struct pm_perf_options *options;
	size_t cpu, event; /* indices */
	int *owner; /* the fd that has this CPU's ring, -1 before there is one */
};

/* An fd, or -errno with @err set. */
static int open_event(struct pm_perf *perf, const struct place *at, struct pm_error *err)
{
	struct pm_perf_event *event = &perf->events.data[at->event];

	for (int step = 0; step < DEGRADE_STEPS_MAX; step++) {
		struct pm_attr_request request = {
			.event = event,
			.features = &perf->features,
			.call_graph = at->options->call_graph,
			.stack_bytes = at->options->stack_bytes,
			.ring_bytes = perf->ring_bytes,
			.first = *at->owner < 0,
		};
		struct perf_event_attr attr;
		int fd, code;

		pm_attr_fill(&request, &attr);
		fd = sys_perf_event_open(&attr, at->options->pid,
					 (int)perf->cpus.data[at->cpu]);
		if (fd >= 0)
			return fd;
		code = errno;
		if (!degrade(perf, event, code, at->cpu == 0))
			return explain_open(perf, event, code, err);
	}
	return pm_error_set(err, -EINVAL, "the kernel takes the event in no form");
}

/* The first event of a CPU owns the ring, the others write into it. */
static int attach_ring(struct pm_perf *perf, const struct place *at, int fd,
		       bool *map_failed, struct pm_error *err)
{
	struct pm_ring ring PM_CLEANUP(pm_ring_release) = { 0 };
	int r;

	if (*at->owner >= 0) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, *at->owner) == 0)
			return 0;
		return pm_error_set(err, -errno, "events cannot share a ring: %s",
				    strerror(errno));
	}
	r = pm_ring_map(&ring, fd, perf->ring_bytes / (size_t)sysconf(_SC_PAGESIZE), err);
	if (r < 0) {
		*map_failed = true;
		return r;
	}
	r = pm_vec_push(&perf->poll_fds, fd);
	if (r == 0)
		r = pm_merge_add(&perf->merge, &ring, perf->cpus.data[at->cpu]);
	if (r < 0)
		return pm_error_set(err, r, "no memory for the rings");
	*at->owner = fd;
	return 0;
}

static int open_at(struct pm_perf *perf, const struct place *at, bool *map_failed,
		   struct pm_error *err)
{
	int fd PM_AUTO_CLOSE = open_event(perf, at, err);
	uint64_t id;
	int r;

	if (fd < 0)
		return fd;
	r = attach_ring(perf, at, fd, map_failed, err);
	if (r < 0)
		return r;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
		return pm_error_set(err, -errno, "an event has no id: %s",
				    strerror(errno));
	r = pm_event_ids_add(&perf->ids, id, (uint32_t)at->event);
	if (r < 0)
		return pm_error_set(err, r, "no memory for the events");
	perf->fds[at->cpu * perf->events.len + at->event] = pm_take_fd(&fd);
	return 0;
}

static void close_all(struct pm_perf *perf)
{
	pm_merge_release(&perf->merge);
	pm_event_ids_release(&perf->ids);
	pm_vec_clear(&perf->poll_fds);
	for (size_t i = 0; perf->fds && i < perf->cpus.len * perf->events.len; i++) {
		if (perf->fds[i] >= 0)
			close(perf->fds[i]);
		perf->fds[i] = -1;
	}
}

static int open_all(struct pm_perf *perf, const struct pm_perf_options *options,
		    bool *map_failed, struct pm_error *err)
{
	*map_failed = false;
	perf->merge.layout = pm_attr_layout(options->call_graph);
	perf->merge.layout.ids = &perf->ids;
	for (size_t cpu = 0; cpu < perf->cpus.len; cpu++) {
		int owner = -1;

		for (size_t event = 0; event < perf->events.len; event++) {
			struct place at = { options, cpu, event, &owner };
			int r = open_at(perf, &at, map_failed, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* ---- size of the rings ---------------------------------------------------------------------- */

static size_t power_of_two_above(size_t value)
{
	size_t power = 1;

	while (power < value)
		power *= 2;
	return power;
}

static size_t record_bytes(const struct pm_perf_options *options)
{
	size_t bytes = PLAIN_RECORD_BYTES;

	if (options->call_graph == PM_CALL_GRAPH_DWARF)
		bytes += options->stack_bytes;
	return bytes < RECORD_BYTES_MAX ? bytes : RECORD_BYTES_MAX;
}

static size_t ring_bytes_min(const struct pm_perf_options *options)
{
	size_t bytes = power_of_two_above(RECORDS_MIN * record_bytes(options));

	return bytes > RING_BYTES_MIN ? bytes : RING_BYTES_MIN;
}

/*
 * What perf_mmap() of kernel/events/core.c will allow, so that the first try mostly fits:
 * perf_event_mlock_kb for each online CPU, then RLIMIT_MEMLOCK, both counted with the
 * control page. Other recordings of the same user are not known here.
 */
static size_t allowed_bytes(const struct pm_perf *perf)
{
	const struct pm_perf_env *env = &perf->env;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t share;

	if (pm_perf_env_unlimited_rings(env) || env->memlock_bytes == UINT64_MAX)
		return RING_BYTES_MOST;
	share = env->mlock_kb * 1024 + env->memlock_bytes / perf->cpus.len;
	return share > page ? share - page : 0;
}

static size_t memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 ? (size_t)pages * (size_t)page : RING_BYTES_MOST;
}

static size_t choose_ring_bytes(const struct pm_perf *perf,
				const struct pm_perf_options *options)
{
	size_t min = ring_bytes_min(options), want = RING_BYTES_DEFAULT;
	size_t share = memory_bytes() / MEMORY_SHARE / perf->cpus.len;
	size_t allowed = allowed_bytes(perf);

	if (pm_perf_env_unlimited_rings(&perf->env) &&
	    options->call_graph == PM_CALL_GRAPH_DWARF) {
		size_t roomy = power_of_two_above(
			RECORDS_WANTED / 2 * record_bytes(options) + 1);

		if (roomy > want)
			want = roomy;
	}
	while (want > min && (want > share || want > allowed))
		want /= 2;
	return want > min ? want : min;
}

static int plan_ring(struct pm_perf *perf, const struct pm_perf_options *options,
		     size_t *explicit_bytes, struct pm_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = options->ring_pages;

	*explicit_bytes = 0;
	if (pages == 0) {
		perf->ring_bytes = choose_ring_bytes(perf, options);
		return 0;
	}
	if ((pages & (pages - 1)) != 0 || pages > RING_BYTES_MOST / page)
		return pm_error_set(
			err, -EINVAL,
			"a ring of %zu pages: the number must be a power of two, "
			"at most %zu",
			pages, RING_BYTES_MOST / page);
	perf->ring_bytes = pages * page;
	if (options->ring_pages_explicit)
		*explicit_bytes = perf->ring_bytes;
	if (perf->ring_bytes < ring_bytes_min(options)) {
		perf->ring_bytes = ring_bytes_min(options);
		add_note(
			perf,
			"a ring of %zu pages has no room for two samples, so it has %zu.",
			pages, perf->ring_bytes / page);
		*explicit_bytes = 0;
	}
	return 0;
}

static void note_ring(struct pm_perf *perf, const struct pm_perf_options *options,
		      size_t explicit_bytes)
{
	size_t fit = perf->ring_bytes / record_bytes(options);
	size_t wanted = explicit_bytes;

	if (explicit_bytes <= perf->ring_bytes && fit >= RECORDS_COMFORTABLE)
		return;
	/* A small ring that was asked for is no surprise. */
	if (explicit_bytes == perf->ring_bytes)
		return;
	if (wanted <= perf->ring_bytes)
		wanted = power_of_two_above(RECORDS_COMFORTABLE * 4 *
					    record_bytes(options));
	add_note(
		perf,
		"the rings are %zu KiB for each CPU, room for %zu samples, because locked "
		"memory is limited (more: sudo sysctl kernel.perf_event_mlock_kb=%llu).",
		perf->ring_bytes / 1024, fit,
		(unsigned long long)pm_perf_mlock_kb_for(wanted));
}

/* The watermark is a part of the attr: a smaller ring means to open all again. */
static int open_with_room(struct pm_perf *perf, const struct pm_perf_options *options,
			  struct pm_error *err)
{
	size_t explicit_bytes;
	bool map_failed;
	int r = plan_ring(perf, options, &explicit_bytes, err);

	if (r < 0)
		return r;
	for (;;) {
		r = open_all(perf, options, &map_failed, err);
		if (r == 0)
			break;
		if (!map_failed || (r != -EPERM && r != -ENOMEM))
			return r;
		if (perf->ring_bytes / 2 < ring_bytes_min(options))
			return pm_perf_explain_map(-r, &perf->env, perf->ring_bytes,
						   perf->cpus.len, err);
		close_all(perf);
		perf->ring_bytes /= 2;
	}
	note_ring(perf, options, explicit_bytes);
	return 0;
}

/* ---- public ----------------------------------------------------------------------------------- */

static int check_options(const struct pm_perf_options *options, struct pm_error *err)
{
	if (options->specs_len == 0)
		return pm_error_set(err, -EINVAL, "no event was asked for");
	if (options->rate == 0)
		return pm_error_set(err, -EINVAL, "a %s of 0 gives no samples",
				    options->by_frequency ? "frequency" : "period");
	if (options->pid <= 0)
		return pm_error_set(err, -EINVAL, "no process to follow");
	if (options->call_graph != PM_CALL_GRAPH_DWARF)
		return 0;
	if (!pm_regs_native())
		return pm_error_set(
			err, -ENOTSUP,
			"stacks cannot be unwound with DWARF on this processor");
	if (options->stack_bytes == 0 || options->stack_bytes % 8 != 0 ||
	    options->stack_bytes > PM_STACK_BYTES_MAX)
		return pm_error_set(
			err, -EINVAL,
			"%u bytes of stack: the number must be a multiple of 8, "
			"at most %u",
			options->stack_bytes, PM_STACK_BYTES_MAX);
	return 0;
}

static int prepare(struct pm_perf *perf, const struct pm_perf_options *options)
{
	size_t fds;
	int r;

	pm_perf_env_read(&perf->env);
	perf->features = (struct pm_perf_features){ true, true, true };
	for (size_t i = 0; i < options->specs_len; i++) {
		struct pm_perf_event event = {
			.requested = options->specs[i],
			.actual = options->specs[i],
			.by_frequency = options->by_frequency,
			.rate = options->rate,
		};

		clamp_rate(perf, &event, perf->env.max_hz);
		r = pm_vec_push(&perf->events, event);
		if (r < 0)
			return r;
	}
	r = pm_cpu_list_online(&perf->cpus);
	if (r < 0)
		return r;
	if (perf->cpus.len == 0)
		return -ENODEV;
	fds = perf->cpus.len * perf->events.len;
	perf->fds = malloc(fds * sizeof(*perf->fds));
	if (!perf->fds)
		return -ENOMEM;
	for (size_t i = 0; i < fds; i++)
		perf->fds[i] = -1;
	return 0;
}

void pm_perf_free(struct pm_perf *perf)
{
	if (!perf)
		return;
	close_all(perf);
	for (size_t i = 0; i < perf->notes.texts.len; i++)
		free(perf->notes.texts.data[i]);
	pm_vec_release(&perf->notes.texts);
	pm_vec_release(&perf->poll_fds);
	pm_vec_release(&perf->events);
	pm_vec_release(&perf->cpus);
	free(perf->fds);
	free(perf);
}

static void cleanup_perf(struct pm_perf **perf)
{
	pm_perf_free(*perf);
}

int pm_perf_open(struct pm_perf **ret, const struct pm_perf_options *options,
		 struct pm_error *err)
{
	struct pm_perf *perf PM_CLEANUP(cleanup_perf) = NULL;
	int r = check_options(options, err);

	if (r < 0)
		return r;
	perf = calloc(1, sizeof(*perf));
	if (!perf)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	r = prepare(perf, options);
	if (r < 0)
		return pm_error_set(err, r, "cannot prepare the events: %s",
				    strerror(-r));
	r = open_with_room(perf, options, err);
	if (r < 0)
		return r;
	if (!perf->features.format_lost)
		add_note(perf,
			 "this kernel (before Linux 6.0) does not count the lost samples "
			 "of each event: the last ones of a recording may be missing in "
			 "the count.");
	*ret = PM_TAKE_PTR(perf);
	return 0;
}

const struct pm_perf_event *pm_perf_events(const struct pm_perf *perf, size_t *len)
{
	*len = perf->events.len;
	return perf->events.data;
}

const struct pm_perf_notes *pm_perf_notes(const struct pm_perf *perf)
{
	return &perf->notes;
}

size_t pm_perf_ring_pages(const struct pm_perf *perf)
{
	return perf->ring_bytes / (size_t)sysconf(_SC_PAGESIZE);
}

const int *pm_perf_poll_fds(const struct pm_perf *perf, size_t *len)
{
	*len = perf->poll_fds.len;
	return perf->poll_fds.data;
}

int pm_perf_disable(struct pm_perf *perf)
{
	int r = 0;

	for (size_t i = 0; i < perf->cpus.len * perf->events.len; i++) {
		if (perf->fds[i] >= 0 &&
		    ioctl(perf->fds[i], PERF_EVENT_IOC_DISABLE, 0) < 0)
			r = -errno;
	}
	return r;
}

void pm_perf_begin(struct pm_perf *perf, bool final)
{
	uint64_t limit = UINT64_MAX;

	/*
	 * The clock before the heads. A record on one CPU that is a consequence of a record
	 * on another one (a sample in a mapping that another thread made) is stamped after
	 * that one was written. So when the heads are read after `limit`, a consequence
	 * with a time up to `limit` has its cause in front of the head that we read. With
	 * the heads first, the cause could lie behind the one, the consequence in front of
	 * the other.
	 */
	if (!final) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		limit = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	pm_merge_begin(&perf->merge, limit);
}

int pm_perf_next(struct pm_perf *perf, struct pm_record *ret, struct pm_error *err)
{
	return pm_merge_next(&perf->merge, ret, err);
}

int pm_perf_lost(const struct pm_perf *perf, size_t index, uint64_t *ret)
{
	uint64_t sum = 0;

	if (index >= perf->events.len)
		return -EINVAL;
	if (!perf->features.format_lost)
		return -ENOTSUP;
	for (size_t cpu = 0; cpu < perf->cpus.len; cpu++) {
		int fd = perf->fds[cpu * perf->events.len + index];
		uint64_t values[3]; /* { value; id; lost; }, PERF_FORMAT_ID | _LOST */

		if (fd < 0)
			continue;
		if (read(fd, values, sizeof(values)) != (ssize_t)sizeof(values))
			return -EIO;
		sum += values[2];
	}
	*ret = sum;
	return 0;
}
