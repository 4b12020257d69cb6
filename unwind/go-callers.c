/* SPDX-License-Identifier: MIT */
/*
 * Finds the callers of Go's runtime on the stack of a goroutine. systemstack and similar
 * functions switch to the thread's own stack, but do not change the frame pointer: it
 * still belongs to the function that called them, and Go's functions push it. Therefore,
 * the return addresses that the kernel finds along the frame pointers when it takes the
 * sample continue on the goroutine's stack. The caller of systemstack itself is missing
 * among them, because systemstack has no frame. The code of that caller shows its return
 * address.
 */
#include "unwind-parts.h"

#include <string.h>

enum {
	CALL_BYTES = 5, /* e8 rel32 */
	LEA_BYTES = 7, /* lea disp32(%rip), register */
	CODE_BYTES_MAX = 1 << 16, /* of one function; those of the runtime are smaller */
	FUNCTIONS_MAX = 1 << 18, /* searched for one name */
};

/* ---- code -------------------------------------------------------------------------------- */

static int32_t read_displacement(const uint8_t *code)
{
	int32_t ret;

	memcpy(&ret, code, sizeof(ret));
	return ret;
}

/* Returns the target of the direct call before @svma, or 0 if there is none. */
static uint64_t find_target_of_call(struct pm_unw_module *module, uint64_t svma)
{
	uint8_t code[CALL_BYTES];

	if (!pm_unw_module_read(module, svma - CALL_BYTES, code, sizeof(code)) ||
	    code[0] != 0xe8)
		return 0;
	return svma + (uint64_t)(int64_t)read_displacement(code + 1);
}

static bool is_go_function_entry(const struct pm_go_table *table, uint64_t svma)
{
	struct pm_go_function function;

	return pm_go_find(table, svma, &function) == 0 && function.entry == svma;
}

/* Returns the function whose address the instruction loads, directly or as the address of
 * a variable that holds it. Returns 0 if there is none. */
static uint64_t find_function_loaded(struct pm_unw_module *module, const uint8_t *code,
				     uint64_t svma)
{
	uint64_t address, value;

	if ((code[0] & 0xfb) != 0x48 || code[1] != 0x8d || (code[2] & 0xc7) != 0x05)
		return 0;
	address = svma + LEA_BYTES + (uint64_t)(int64_t)read_displacement(code + 3);
	if (is_go_function_entry(&module->go->table, address))
		return address;
	if (pm_unw_module_read(module, address, &value, sizeof(value)) &&
	    is_go_function_entry(&module->go->table, value))
		return value;
	return 0;
}

/*
 * Returns the return address of the call from @caller to @to that runs @run: the only
 * such call where @run is the last function loaded before it or, with @is_certain, the
 * only call to @to. Returns 0 if the code does not show it.
 */
static uint64_t find_go_call(struct pm_unw_module *module,
			     const struct pm_go_function *caller, uint64_t to,
			     uint64_t run, bool is_certain)
{
	size_t len = caller->end - caller->entry, calls = 0, loaded_calls = 0;
	uint64_t last = 0, last_loaded = 0, loaded = 0;
	PM_AUTO_FREE uint8_t *code = NULL;

	if (len > CODE_BYTES_MAX)
		return 0;
	code = calloc(1, len + LEA_BYTES);
	if (!code || !pm_unw_module_read(module, caller->entry, code, len))
		return 0;
	for (size_t i = 0; i + CALL_BYTES <= len; i++) {
		uint64_t svma = caller->entry + i, function;

		function = find_function_loaded(module, code + i, svma);
		if (function != 0)
			loaded = function;
		if (code[i] != 0xe8 ||
		    svma + CALL_BYTES +
				    (uint64_t)(int64_t)read_displacement(code + i + 1) !=
			    to)
			continue;
		last = svma + CALL_BYTES;
		calls++;
		if (run == 0 || loaded != run)
			continue;
		last_loaded = last;
		loaded_calls++;
	}
	if (loaded_calls == 1)
		return last_loaded;
	if (is_certain && calls == 1)
		return last;
	return 0;
}

/* ---- the function that called systemstack ------------------------------------------------- */

/* Returns the length of the outer function's name. Go calls a function within another one
 * OUTER.funcN, and a function within that OUTER.funcN.N. */
static size_t len_of_outer_name(const char *name)
{
	const char *dot = strrchr(name, '.'), *digits;

	if (!dot)
		return 0;
	digits = strncmp(dot, ".func", 5) == 0 ? dot + 5 : dot + 1;
	if (*digits != '\0' && strspn(digits, "0123456789") == strlen(digits))
		return (size_t)(dot - name);
	return 0;
}

/* Finds the function of the runtime that defines @run. */
static bool find_outer_function(const struct pm_go_table *table,
				const struct pm_go_function *run,
				struct pm_go_function *out)
{
	const char *name = pm_go_name(table, run);
	size_t len = name ? len_of_outer_name(name) : 0;

	if (len == 0 || strncmp(name, "runtime.", strlen("runtime.")) != 0)
		return false;
	for (uint64_t i = 0; i < table->functions_len && i < FUNCTIONS_MAX; i++) {
		const char *other;

		if (pm_go_function_at(table, i, out) < 0)
			return false;
		other = pm_go_name(table, out);
		if (other && strncmp(other, name, len) == 0 && other[len] == '\0')
			return true;
	}
	return false;
}

/*
 * Returns the return address of the call to @to that runs @run. The function that
 * contains this call is the target of the direct call before return address @svma. For
 * the first call of a goroutine of the runtime, the name of @run shows this function.
 */
static uint64_t find_stack_switch(struct pm_unw_module *module, uint64_t to,
				  const struct pm_go_function *run, uint64_t svma,
				  bool is_first)
{
	struct pm_unw_go *go = module->go;
	uint64_t target = is_first ? 0 : find_target_of_call(module, svma);
	struct pm_unw_go_switch *kept =
		&go->switches[pm_hash_mix(target, run->entry) % PM_UNW_GO_SWITCHES];
	struct pm_go_function caller;
	bool is_known;

	if (kept->caller == target && kept->run == run->entry && kept->to == to)
		return kept->call;
	*kept = (struct pm_unw_go_switch){ .caller = target,
					   .run = run->entry,
					   .to = to };
	if (is_first) {
		/* A search compares all names. A file that has more names than the
		 * runtime is not from Go. */
		is_known = go->searches < PM_UNW_GO_SEARCHES_MAX &&
			   find_outer_function(&go->table, run, &caller);
		go->searches++;
	} else {
		is_known = pm_go_find(&go->table, target, &caller) == 0 &&
			   caller.entry == target;
	}
	if (is_known)
		kept->call = find_go_call(module, &caller, to, run->entry, !is_first);
	return kept->call;
}

/* ---- callers ------------------------------------------------------------------------------ */

static bool is_goexit(const struct pm_go_table *table,
		      const struct pm_go_function *function)
{
	const char *name = pm_go_name(table, function);

	return name && (strcmp(name, "runtime.goexit") == 0 ||
			strcmp(name, "runtime.goexit.abi0") == 0);
}

/* Whether the instruction before return address @svma may have called @callee. */
static bool may_instruction_call(struct pm_unw_module *module, uint64_t svma,
				 uint64_t callee)
{
	uint64_t target = find_target_of_call(module, svma);

	return target == callee ||
	       (target == 0 && pm_unw_ends_with_call(module, svma - 1));
}

/*
 * Returns the index in @returns of the goroutine's first return address. It is 0 if none
 * of the addresses belongs to the frame that switched stacks, because no function has
 * pushed a frame pointer since then.
 */
static size_t find_goroutine(const struct pm_unw_frame *last, const uint64_t *returns,
			     size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (returns[i] == last->pc)
			return i + 1;
	return 0;
}

/* Returns the return address as svma, or 0 if it is outside of @map. */
static uint64_t svma_in_map(const struct pm_unw_map *map, uint64_t address)
{
	if (address - map->start < map->end - map->start)
		return address - map->bias;
	return 0;
}

static struct pm_unw_frame make_go_frame(const struct pm_unw_map *map, uint64_t svma,
					 enum pm_unw_how how)
{
	uint64_t pc = svma + map->bias;

	return (struct pm_unw_frame){
		.pc = pc, .lookup = pc - 1, .map = map, .how = how
	};
}

/*
 * Returns the return address in the function that called @to, which switched stacks and
 * has no frame. @below is the frame that @to called, and @svma the goroutine's first
 * return address.
 */
static uint64_t find_hidden_return(const struct pm_unw_map *map, uint64_t to,
				   const struct pm_unw_frame *below, uint64_t svma,
				   bool is_first)
{
	struct pm_go_function run = { 0 };
	struct pm_unw_module *module = map->module;

	/* asmcgocall runs functions of C, not of Go. */
	if (below->map != map ||
	    pm_go_find(&module->go->table, below->lookup - map->bias, &run) < 0)
		run = (struct pm_go_function){ 0 };
	return find_stack_switch(module, to, &run, svma, is_first);
}

size_t pm_unw_go_callers(const struct pm_unw_frame *frames, size_t len,
			 const uint64_t *returns, size_t returns_len,
			 struct pm_unw_frame *out, size_t max, bool *rooted)
{
	const struct pm_unw_frame *last = &frames[len - 1];
	const struct pm_unw_map *map = last->map;
	struct pm_unw_module *module = map ? map->module : NULL;
	struct pm_go_function callee;
	bool is_last = false;
	size_t count = 0;

	*rooted = false;
	if (len < 2 || !module || module->arch != PM_UNW_X86_64 || !module->go ||
	    pm_go_find(&module->go->table, last->lookup - map->bias, &callee) < 0)
		return 0;
	for (size_t i = find_goroutine(last, returns, returns_len);
	     i < returns_len && count + 2 <= max && !is_last; i++) {
		uint64_t svma = svma_in_map(map, returns[i]);
		struct pm_go_function function;

		if (svma == 0 || pm_go_find(&module->go->table, svma - 1, &function) < 0)
			return 0;
		is_last = is_goexit(&module->go->table, &function);
		if (count == 0 && find_target_of_call(module, svma) != callee.entry) {
			uint64_t call = find_hidden_return(map, callee.entry, last - 1,
							   svma, is_last);

			if (call == 0 ||
			    pm_go_find(&module->go->table, call - 1, &callee) < 0)
				return 0;
			out[count++] = make_go_frame(map, call, PM_UNW_HOW_CODE);
		}
		if (!is_last && !may_instruction_call(module, svma, callee.entry))
			return 0;
		out[count++] = make_go_frame(map, svma, PM_UNW_HOW_FP);
		callee = function;
	}
	*rooted = is_last;
	return count;
}
