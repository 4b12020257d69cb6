/* SPDX-License-Identifier: MIT */
/*
 * From words to places. FILE is resolved to files (files.c, loader.c); in each of them
 * SYMBOL, SOURCE:LINE or PROVIDER:NAME is resolved to addresses (symbols.c, lines.c,
 * stapsdt.c), and these, by the program headers (elf.c), to offsets. Each place becomes a
 * spec of its own.
 *
 * The kernel gets /proc/self/fd/N as the path. By the time the kernel opens a name, it
 * could refer to another file, or, if it is a link in a container, lead out of the
 * container. There would then be a breakpoint at some offset of a file that was never
 * examined.
 */
#include "probe-internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "pm/counters.h"
#include "pm/proc.h"

void pm_probes_release(struct pm_probes *probes)
{
	for (size_t i = 0; i < probes->files.len; i++)
		close(probes->files.data[i]);
	for (size_t i = 0; i < probes->notes.len; i++)
		free(probes->notes.data[i]);
	pm_vec_release(&probes->files);
	pm_vec_release(&probes->notes);
}

void pm_probe_places_release(struct pm_probe_places *places)
{
	for (size_t i = 0; i < places->list.len; i++) {
		free(places->list.data[i].name);
		free(places->list.data[i].symbol);
	}
	pm_vec_release(&places->list);
}

/* The new list of events, and a map to it from the entries of the old list. */
struct resolver {
	struct pm_probes *probes;
	struct pm_event_specs *specs; /* owns the strings */
	const struct pm_probe_context *context;
	PM_VEC(struct pm_event_spec) list;
	PM_VEC(uint32_t) first; /* for each old entry, index of its first new one */
	/* For each new entry: the instruction that the kernel is asked about, if it is
	 * code of our own mode. */
	PM_VEC(struct resolved_insn {
		struct pm_probed_insn insn;
		bool is_asked;
	})
	insns;
};

static int set_probes_memory_error(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "no memory left for the probes");
}

static int resolver_add_note(struct resolver *resolver, struct pm_str *text)
{
	char *copy = NULL;
	int ret = text->failed ? -ENOMEM : 0;

	if (text->len > 0 && ret == 0) {
		copy = strdup(text->data);
		if (copy)
			ret = pm_vec_push(&resolver->probes->notes, copy);
		else
			ret = -ENOMEM;
		if (ret < 0)
			free(copy);
	}
	pm_str_release(text);
	return ret;
}

/* ---- the PMU's field for marker counters ---------------------------------------------------- */

/* Documentation/ABI/testing/sysfs-bus-event_source-devices-format: "config:32-63". */
static unsigned int semaphore_counter_shift(const struct pm_probe_context *context)
{
	enum {
		SHIFT_DEFAULT = 32, /* as in the first kernel that had it */
	};
	PM_AUTO_CLOSE int fd = -1;
	struct pm_str path = { 0 };
	char text[64];
	ssize_t len = -1;
	const char *devices = context->devices;
	unsigned int from = SHIFT_DEFAULT;

	if (!devices)
		devices = "/sys/bus/event_source/devices";
	pm_str_printf(&path, "%s/uprobe/format/ref_ctr_offset", devices);
	if (!path.failed)
		fd = open(path.data, O_RDONLY | O_CLOEXEC);
	pm_str_release(&path);
	if (fd >= 0)
		len = read(fd, text, sizeof(text) - 1);
	if (len > 0) {
		text[len] = '\0';
		if (sscanf(text, "config:%u", &from) != 1 || from > 32)
			from = SHIFT_DEFAULT;
	}
	return from;
}

/* ---- places to specs -------------------------------------------------------------------------- */

struct naming {
	const char *prefix; /* "uprobe" */
	const char *file; /* label, or the path if labels are equal */
};

static bool is_probe_name_taken(const struct resolver *resolver, size_t from,
				const char *name)
{
	for (size_t i = from; i < resolver->list.len; i++)
		if (strcmp(resolver->list.data[i].name, name) == 0)
			return true;
	return false;
}

/* Makes names unique: the address is appended to the second of two equal names. */
static void name_probe_place(const struct resolver *resolver, size_t from,
			     const struct naming *naming,
			     const struct pm_probe_place *place, bool repeats,
			     char out[PM_EVENT_NAME_MAX])
{
	char tail[32] = "";
	int room;

	snprintf(out, PM_EVENT_NAME_MAX, "%s:%s:%s", naming->prefix, naming->file,
		 place->name);
	if (!repeats && !is_probe_name_taken(resolver, from, out))
		return;
	snprintf(tail, sizeof(tail), "@0x%llx", (unsigned long long)place->address);
	room = PM_EVENT_NAME_MAX - 1 - (int)strlen(tail);
	snprintf(out, PM_EVENT_NAME_MAX, "%s:%s:%s", naming->prefix, naming->file,
		 place->name);
	if ((int)strlen(out) > room)
		out[room] = '\0';
	strcat(out, tail);
}

/* Appends @spec and, if @fd is not -1, the instruction at its offset in @fd, which the
 * kernel will be asked about. */
static int resolver_add_spec(struct resolver *resolver, const struct pm_event_spec *spec,
			     int fd)
{
	struct resolved_insn insn = { .is_asked = fd >= 0 };

	if (fd >= 0 && pread(fd, insn.insn.bytes, sizeof(insn.insn.bytes),
			     (off_t)spec->config2) <= 0)
		insn.is_asked = false;
	if (pm_vec_reserve(&resolver->insns, resolver->insns.len + 1) < 0 ||
	    pm_vec_push(&resolver->list, *spec) < 0)
		return -ENOMEM;
	resolver->insns.data[resolver->insns.len++] = insn;
	return 0;
}

static int resolver_add_specs(struct resolver *resolver,
			      const struct pm_event_spec *asked,
			      const struct pm_probe_file *file,
			      const struct naming *naming,
			      const struct pm_probe_places *places, size_t from)
{
	unsigned int shift = 0;
	char path[32];
	const char *kept;
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0 || pm_vec_push(&resolver->probes->files, fd) < 0) {
		pm_cleanup_close(&fd);
		if (fd < 0)
			return -errno;
		return -ENOMEM;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	kept = pm_event_specs_keep(resolver->specs, path, strlen(path));
	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < places->list.len; i++) {
		const struct pm_probe_place *place = &places->list.data[i];
		struct pm_event_spec spec = *asked;
		bool repeats =
			i > 0 && strcmp(places->list.data[i - 1].name, place->name) == 0;

		spec.place.wanted = false;
		spec.path = kept;
		spec.config2 = place->offset;
		if (place->semaphore > 0) {
			if (shift == 0)
				shift = semaphore_counter_shift(resolver->context);
			spec.config |= place->semaphore << shift;
		}
		name_probe_place(resolver, from, naming, place, repeats, spec.name);
		/* set_group_leaders() sets its leader when all entries are there. */
		if (resolver_add_spec(resolver, &spec, places->is_ours ? fd : -1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_requested_places(const struct pm_probe_search *search,
				 struct pm_probe_places *places, struct pm_error *err)
{
	const struct pm_event_place *asked = &search->spec->place;

	if (asked->usdt)
		return pm_probe_find_markers(search, places, err);
	if (asked->source)
		return pm_probe_find_lines(search, places, err);
	return pm_probe_find_symbols(search, places, err);
}

/* Leaves out places where a probe would break the program, and reports them. */
static int remove_unsafe_places(struct resolver *resolver,
				const struct pm_probe_search *search,
				struct pm_probe_places *places, struct pm_error *err)
{
	size_t kept = 0, found = places->list.len;
	struct pm_str text = { 0 };

	places->is_ours = pm_probe_is_ours(search->elf->machine);
	for (size_t i = 0; i < found; i++) {
		struct pm_probe_place place = places->list.data[i];
		uint8_t bytes[16];
		ssize_t len =
			pread(search->elf->fd, bytes, sizeof(bytes), (off_t)place.offset);

		if (pm_probe_harms(search->elf->machine, bytes, (size_t)PM_MAX(len, 0))) {
			free(place.name);
			free(place.symbol);
		} else {
			places->list.data[kept++] = place;
		}
	}
	places->list.len = kept;
	if (kept == 0 && found > 0)
		return pm_error_set(
			err, -EINVAL,
			"an instruction is there that loads what lies beside "
			"the code: with a probe on it, kernels let the program "
			"load something else");
	if (kept < found)
		pm_str_printf(&text,
			      "%s: %zu places were left out, where with a probe kernels "
			      "let the program load wrong values",
			      search->spec->requested, found - kept);
	if (resolver_add_note(resolver, &text) < 0)
		return set_probes_memory_error(err);
	return 0;
}

/* Finds the places in one file. */
static int find_places_in_file(struct resolver *resolver,
			       const struct pm_event_spec *spec,
			       const struct pm_probe_file *file,
			       struct pm_probe_places *places, struct pm_error *err)
{
	struct pm_debug_search debug = { .dir = resolver->context->debug_dir,
					 .pid = file->pid,
					 .path = file->path };
	PM_AUTO_CLOSE int debug_fd = pm_debug_find(file->fd, &debug);
	struct pm_str text = { 0 };
	struct pm_probe_elf elf;
	struct pm_probe_search search = { .spec = spec,
					  .context = resolver->context,
					  .file = file,
					  .elf = &elf,
					  .debug_fd = debug_fd,
					  .note = &text };
	int ret = pm_probe_elf_open(&elf, file->fd);

	if (ret < 0)
		ret = pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
	else
		ret = find_requested_places(&search, places, err);
	if (ret == 0)
		ret = remove_unsafe_places(resolver, &search, places, err);
	pm_probe_elf_close(&elf);
	pm_error_where(err, file->path, -1);
	if (resolver_add_note(resolver, &text) < 0 && ret == 0)
		ret = set_probes_memory_error(err);
	return ret;
}

/* If there are several files, at least one of them must have the place. */
static int resolve_uprobe_event(struct resolver *resolver,
				const struct pm_event_spec *spec, struct pm_error *err)
{
	struct naming naming = { .prefix = "uprobe" };

	size_t from = resolver->list.len;
	struct pm_probe_files files = { 0 };
	int ret = pm_probe_files_find(&files, resolver->context, spec->place.file, err);
	int first = 0;

	if (spec->place.usdt)
		naming.prefix = "usdt";
	else if (spec->place.on_return)
		naming.prefix = "uretprobe";
	for (size_t i = 0; i < files.list.len && ret == 0; i++) {
		const struct pm_probe_file *file = &files.list.data[i];
		struct pm_probe_places places = { 0 };
		int one = find_places_in_file(resolver, spec, file, &places,
					      first == 0 ? err : NULL);

		if (i > 0 && strcmp(file->label, files.list.data[0].label) == 0)
			naming.file = file->path;
		else
			naming.file = file->label;
		if (one == 0 &&
		    resolver->list.len - from + places.list.len > PM_PROBE_PLACES_MAX) {
			ret = pm_error_set(err, -E2BIG,
					   "\"%s\" means more than %d places in all %zu "
					   "files",
					   spec->place.file, PM_PROBE_PLACES_MAX,
					   files.list.len);
		} else if (one == 0) {
			ret = resolver_add_specs(resolver, spec, file, &naming, &places,
						 from);
			if (ret < 0)
				pm_error_set(err, ret, "cannot keep a file: %s",
					     strerror(-ret));
		} else if (first == 0) {
			first = one;
		}
		pm_probe_places_release(&places);
	}
	pm_probe_files_release(&files);
	if (ret == 0 && resolver->list.len == from)
		return first;
	return ret;
}

static int resolve_kprobe_event(struct resolver *resolver,
				const struct pm_event_spec *asked, struct pm_error *err)
{
	struct pm_event_spec spec = *asked;

	/* tracefs lists the names that may be probed, but only for root, and globs of
	 * kernel functions can halt a machine. */
	if (strpbrk(spec.place.symbol, "*?["))
		return pm_error_set(err, -EINVAL,
				    "\"%s\": kernel functions are probed one by one, not "
				    "by a glob",
				    spec.place.symbol);
	spec.place.wanted = false;
	spec.path = spec.place.symbol;
	spec.config2 = spec.place.offset;
	if (resolver_add_spec(resolver, &spec, -1) < 0)
		return set_probes_memory_error(err);
	return 0;
}

static int resolve_data_event(struct resolver *resolver,
			      const struct pm_event_spec *asked, struct pm_error *err)
{
	struct pm_event_spec spec = *asked;
	uint64_t address;
	int ret = pm_probe_find_data(resolver->context, asked, &address, err);

	if (ret < 0)
		return ret;
	spec.place.wanted = false;
	spec.config1 = address;
	ret = pm_event_check_address(&spec, err);
	if (ret < 0)
		return ret;
	if (resolver_add_spec(resolver, &spec, -1) < 0)
		return set_probes_memory_error(err);
	return 0;
}

static int resolve_event(struct resolver *resolver, size_t index, struct pm_error *err)
{
	const struct pm_event_spec spec = resolver->specs->list.data[index];

	if (pm_vec_push(&resolver->first, (uint32_t)resolver->list.len) < 0)
		return set_probes_memory_error(err);
	if (!spec.place.wanted) {
		if (resolver_add_spec(resolver, &spec, -1) < 0)
			return set_probes_memory_error(err);
		return 0;
	}
	if (spec.kind == PM_EVENT_UPROBE)
		return resolve_uprobe_event(resolver, &spec, err);
	if (spec.kind == PM_EVENT_KPROBE)
		return resolve_kprobe_event(resolver, &spec, err);
	return resolve_data_event(resolver, &spec, err);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Asks the kernel which instructions it refuses. If the user may not use probes, nothing
 * is asked: opening the probes will report that. */
static int refuse_insns_of_kernel(struct resolver *resolver, struct pm_error *err)
{
	PM_AUTO_FREE struct pm_probed_insn *asked =
		calloc(resolver->insns.len + 1, sizeof(*asked));
	struct pm_error why = { 0 };
	struct pm_str text = { 0 };
	size_t len = 0;
	int ret;

	if (!asked)
		return set_probes_memory_error(err);
	for (size_t i = 0; i < resolver->insns.len; i++)
		if (resolver->insns.data[i].is_asked)
			asked[len++] = resolver->insns.data[i].insn;
	if (len == 0 || pm_hits_check(NULL) < 0)
		return 0;
	ret = pm_hits_ask(asked, len, &why);
	if (ret == -ENOMEM)
		return set_probes_memory_error(err);
	if (ret < 0) {
		pm_str_printf(&text,
			      "%s: a probe without hits may be one that it refused",
			      why.text);
		if (resolver_add_note(resolver, &text) < 0)
			return set_probes_memory_error(err);
		return 0;
	}
	len = 0;
	for (size_t i = 0; i < resolver->insns.len; i++)
		if (resolver->insns.data[i].is_asked)
			resolver->insns.data[i].insn = asked[len++];
	return 0;
}

/* Returns the end of the new entries of old entry @index. */
static size_t resolved_specs_end(const struct resolver *resolver, size_t index)
{
	if (index + 1 < resolver->first.len)
		return resolver->first.data[index + 1];
	return resolver->list.len;
}

static int note_refused_places(struct resolver *resolver, size_t index, size_t refused,
			       size_t found)
{
	const char *asked = resolver->specs->list.data[index].requested;
	struct pm_str text = { 0 };

	if (refused > 0 && refused == found)
		pm_str_printf(&text,
			      "%s: the kernel takes no probe on the instruction that is "
			      "there: how often it was passed is not known",
			      asked);
	else if (refused > 0)
		pm_str_printf(
			&text,
			"%s: the kernel takes no probe on the instruction of %zu of "
			"%zu places: these were left out",
			asked, refused, found);
	return resolver_add_note(resolver, &text);
}

/* Leaves out places that the kernel refuses. If all places of an event are refused, a
 * note says that its hits are not known; it is an error if no event has any places
 * left. */
static int remove_refused_places(struct resolver *resolver, struct pm_error *err)
{
	size_t kept = 0, all = resolver->list.len;

	for (size_t i = 0; i < resolver->first.len; i++) {
		size_t from = resolver->first.data[i],
		       end = resolved_specs_end(resolver, i);
		size_t refused = 0;

		resolver->first.data[i] = (uint32_t)kept;
		for (size_t n = from; n < end; n++) {
			if (resolver->insns.data[n].insn.refused) {
				refused++;
				continue;
			}
			resolver->list.data[kept++] = resolver->list.data[n];
		}
		if (note_refused_places(resolver, i, refused, end - from) < 0)
			return set_probes_memory_error(err);
	}
	resolver->list.len = kept;
	if (kept > 0 || all == 0)
		return 0;
	pm_error_set(err, -EINVAL,
		     "the kernel takes no probe on the instruction that is there");
	pm_error_where(err, resolver->specs->list.data[0].requested, -1);
	return -EINVAL;
}

/* ---- groups ------------------------------------------------------------------------------------ */

/* Whether the event leads others or has another leader. */
static bool is_event_grouped(const struct pm_event_specs *specs, size_t index)
{
	uint32_t leader = specs->list.data[index].leader;

	if (leader != index)
		return true;
	for (size_t i = 0; i < specs->list.len; i++)
		if (i != index && specs->list.data[i].leader == index)
			return true;
	return false;
}

/* Returns the first event of the group that remains: the leader may have been left
 * out. */
static uint32_t find_remaining_leader(const struct resolver *resolver, uint32_t leader)
{
	const struct pm_event_specs *specs = resolver->specs;

	if (resolver->first.data[leader] < resolved_specs_end(resolver, leader))
		return resolver->first.data[leader];
	for (size_t i = 0; i < specs->list.len; i++)
		if (specs->list.data[i].leader == leader &&
		    resolver->first.data[i] < resolved_specs_end(resolver, i))
			return resolver->first.data[i];
	return 0;
}

static void set_group_leaders(struct resolver *resolver)
{
	const struct pm_event_specs *specs = resolver->specs;

	for (size_t i = 0; i < specs->list.len; i++) {
		uint32_t leader = specs->list.data[i].leader;
		bool grouped = is_event_grouped(specs, i) && leader < specs->list.len;

		for (size_t n = resolver->first.data[i];
		     n < resolved_specs_end(resolver, i); n++) {
			if (grouped)
				resolver->list.data[n].leader =
					find_remaining_leader(resolver, leader);
			else
				resolver->list.data[n].leader = (uint32_t)n;
		}
	}
}

int pm_probes_resolve(struct pm_probes *probes, struct pm_event_specs *specs,
		      const struct pm_probe_context *context, struct pm_error *err)
{
	struct resolver resolver = { .probes = probes,
				     .specs = specs,
				     .context = context };
	bool any = false;
	int ret = 0;

	for (size_t i = 0; i < specs->list.len; i++)
		any |= specs->list.data[i].place.wanted;
	for (size_t i = 0; any && i < specs->list.len && ret == 0; i++)
		ret = resolve_event(&resolver, i, err);
	if (any && ret == 0)
		ret = refuse_insns_of_kernel(&resolver, err);
	if (any && ret == 0)
		ret = remove_refused_places(&resolver, err);
	if (any && ret == 0) {
		set_group_leaders(&resolver);
		pm_vec_release(&specs->list);
		specs->list.data = PM_TAKE_PTR(resolver.list.data);
		specs->list.len = resolver.list.len;
		specs->list.cap = resolver.list.cap;
	}
	pm_vec_release(&resolver.list);
	pm_vec_release(&resolver.first);
	pm_vec_release(&resolver.insns);
	return ret;
}
