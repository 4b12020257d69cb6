/* SPDX-License-Identifier: MIT */
/*
 * Builds the name of a function. It is DW_AT_linkage_name if that is mangled, because a
 * mangled name is complete. Otherwise it is DW_AT_name, preceded by the classes and
 * namespaces that contain the function: a C function iruserok_af may be linked as
 * __GI_iruserok_af. Both attributes may be in the entry itself or in the entry that it
 * refers to (DWARF 5 §3.3.8.2, §2.13.2).
 */
#include "dwarf-parts.h"

#include <string.h>

enum {
	HOPS_MAX = 16, /* concrete → abstract → declaration; a hostile file has cycles */
	SCOPES_MAX = 64,
};

/* Whether the form refers to dwz's file and that file was not found. Such a reference
 * must not be followed. */
static bool is_attribute_out_of_file(const struct pm_dwarf *dwarf, Dwarf_Attribute *attr)
{
	switch (dwarf_whatform(attr)) {
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_strp_sup:
		return !dwarf->alt || dwarf_cu_getdwarf(attr->cu) != dwarf->dwarf;
	case DW_FORM_ref_sig8:
		return true; /* a type unit */
	default:
		return false;
	}
}

static const char *read_text_attribute(const struct pm_dwarf *dwarf, Dwarf_Die *die,
				       unsigned int name)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr(die, name, &attr) || is_attribute_out_of_file(dwarf, &attr))
		return NULL;
	return dwarf_formstring(&attr);
}

static bool follow_entry_origin(const struct pm_dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die target;

	if ((!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
	     !dwarf_attr(die, DW_AT_specification, &attr)) ||
	    is_attribute_out_of_file(dwarf, &attr) || !dwarf_formref_die(&attr, &target))
		return false;
	*die = target;
	return true;
}

const char *pm_entry_linkage(const struct pm_dwarf *dwarf, uint64_t offset,
			     Dwarf_Die *origin)
{
	const char *linkage = NULL;
	bool found = false;
	Dwarf_Die die;

	if (!dwarf_offdie(dwarf->dwarf, offset, &die))
		return NULL;
	*origin = die;
	for (int hops = 0; hops < HOPS_MAX && !linkage; hops++) {
		if (!(linkage = read_text_attribute(dwarf, &die, DW_AT_linkage_name)))
			linkage =
				read_text_attribute(dwarf, &die, DW_AT_MIPS_linkage_name);
		if (!found && hops > 0)
			*origin = die;
		found |= hops > 0;
		if (!follow_entry_origin(dwarf, &die))
			break;
	}
	return linkage;
}

bool pm_entry_declared(const struct pm_dwarf *dwarf, uint64_t offset,
		       struct pm_lines *lines, struct pm_texts *texts, const char **file,
		       uint32_t *line)
{
	Dwarf_Die die;

	if (!dwarf_offdie(dwarf->dwarf, offset, &die))
		return false;
	for (int hops = 0; hops < HOPS_MAX; hops++) {
		Dwarf_Word number, of;
		Dwarf_Attribute attr;

		/* The file number is an index into the table of the declaration's own
		 * unit. */
		if (die.cu == lines->unit->die.cu &&
		    dwarf_attr(&die, DW_AT_decl_line, &attr) &&
		    dwarf_formudata(&attr, &number) == 0 &&
		    dwarf_attr(&die, DW_AT_decl_file, &attr) &&
		    dwarf_formudata(&attr, &of) == 0 && number <= UINT32_MAX &&
		    (*file = pm_lines_path(lines, of, texts))) {
			*line = (uint32_t)number;
			return true;
		}
		if (!follow_entry_origin(dwarf, &die))
			break;
	}
	return false;
}

static uint32_t find_entry_scope(const struct pm_entries *entries, uint64_t offset)
{
	size_t low = 0, high = entries->members.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (entries->members.data[mid].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == entries->members.len || entries->members.data[low].offset != offset)
		return PM_SCOPE_NONE;
	return entries->members.data[low].scope;
}

static uint64_t read_index_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, &value) == 0)
		return value;
	return 0;
}

/* What the entries of a function contain about its name. */
struct naming {
	const char *name, *linkage; /* each may be NULL */
	uint32_t scope; /* index in the unit of: */
	const struct pm_entries *entries;
	bool artificial; /* not in the source, such as the call operator of a lambda */
};

static bool is_mangled(const struct naming *naming)
{
	return naming->linkage && (strncmp(naming->linkage, "_Z", 2) == 0 ||
				   strncmp(naming->linkage, "_R", 2) == 0);
}

/* A function that is declared in a class may be defined outside of the class, and in
 * another unit. */
static void read_naming_scope(const struct pm_entries *entries, Dwarf_Die *die,
			      struct naming *out)
{
	if (out->scope != PM_SCOPE_NONE || is_mangled(out) ||
	    dwarf_cu_getdwarf(die->cu) != entries->dwarf->dwarf)
		return;
	if (die->cu != entries->unit->die.cu)
		entries = pm_foreign_entries(entries->dwarf, die);
	if (!entries)
		return;
	out->scope = find_entry_scope(entries, dwarf_dieoffset(die));
	out->entries = entries;
}

static void read_naming(const struct pm_entries *entries, uint64_t offset,
			struct naming *out)
{
	struct pm_dwarf *dwarf = entries->dwarf;
	Dwarf_Attribute attr;
	Dwarf_Die die;

	*out = (struct naming){ .scope = PM_SCOPE_NONE };
	if (!dwarf_offdie(dwarf->dwarf, offset, &die))
		return;
	for (int hops = 0; hops < HOPS_MAX && !is_mangled(out); hops++) {
		if (!out->linkage && !(out->linkage = read_text_attribute(
					       dwarf, &die, DW_AT_linkage_name)))
			out->linkage =
				read_text_attribute(dwarf, &die, DW_AT_MIPS_linkage_name);
		if (!out->name)
			out->name = read_text_attribute(dwarf, &die, DW_AT_name);
		out->artificial |= dwarf_attr(&die, DW_AT_artificial, &attr) != NULL;
		read_naming_scope(entries, &die, out);
		if (!follow_entry_origin(dwarf, &die))
			break;
	}
}

/* Names a class that has no name by the place of its declaration, as clang's messages do.
 * No other class in the program has the same place, and it stays the same when the
 * program is rebuilt. */
static void append_nameless_scope(const struct pm_entries *entries, Dwarf_Die *die,
				  const struct naming *member, struct pm_texts *texts,
				  struct pm_str *to)
{
	uint64_t line = read_index_attribute(die, DW_AT_decl_line);
	uint64_t column = read_index_attribute(die, DW_AT_decl_column);
	const char *path = NULL, *base;

	if (entries->lines && line > 0)
		path = pm_lines_path(entries->lines,
				     read_index_attribute(die, DW_AT_decl_file), texts);
	pm_str_puts(to, member && member->artificial ? "{lambda" : "{unnamed");
	if (path) {
		base = strrchr(path, '/');
		base = base && base[1] ? base + 1 : path;
		pm_str_putc(to, ' ');
		pm_str_append(to, base, strlen(base));
		pm_str_printf(to, ":%llu", (unsigned long long)line);
	}
	if (path && column > 0)
		pm_str_printf(to, ":%llu", (unsigned long long)column);
	pm_str_putc(to, '}');
}

/* Appends the name of @scope. @member is the function directly in it; NULL: the scope
 * directly contains another scope. */
static void append_scope_name(const struct pm_entries *entries, uint32_t scope,
			      const struct naming *member, struct pm_texts *texts,
			      struct pm_str *to)
{
	struct pm_dwarf *dwarf = entries->dwarf;
	const char *name;
	Dwarf_Die die;

	if (!dwarf_offdie(dwarf->dwarf, entries->scopes.data[scope].offset, &die))
		return;
	name = read_text_attribute(dwarf, &die, DW_AT_name);
	if (name)
		pm_str_append(to, name, strnlen(name, PM_SYMBOL_TEXT_MAX));
	else if (dwarf_tag(&die) == DW_TAG_namespace)
		pm_str_puts(to, "(anonymous namespace)");
	else
		append_nameless_scope(entries, &die, member, texts, to);
}

/* Appends the name of the function that contains a class. Returns true if the name was
 * mangled and is therefore complete. */
static bool append_enclosing_function(const struct naming *function, struct pm_str *to)
{
	PM_AUTO_FREE char *whole = NULL;
	PM_AUTO_FREE char *mangled = NULL;

	if (is_mangled(function) &&
	    (mangled = strndup(function->linkage, PM_SYMBOL_TEXT_MAX)) &&
	    (whole = pm_demangle_full(mangled))) {
		pm_str_append(to, whole, strnlen(whole, PM_SYMBOL_TEXT_MAX));
		return true;
	}
	if (function->name)
		pm_str_append(to, function->name,
			      strnlen(function->name, PM_SYMBOL_TEXT_MAX));
	return false;
}

/* Appends the names of the enclosing scopes, innermost first, each with a NUL. Returns
 * their number. */
static size_t append_scope_names(const struct naming *of, struct pm_texts *texts,
				 struct pm_str *to)
{
	const struct pm_entries *entries = of->entries;
	const struct naming *member = of;
	struct naming function;
	uint32_t scope = of->scope;
	size_t count = 0;

	while (scope != PM_SCOPE_NONE && count < SCOPES_MAX &&
	       to->len < PM_SYMBOL_TEXT_MAX) {
		const struct pm_scope *at = &entries->scopes.data[scope];

		append_scope_name(entries, scope, member, texts, to);
		pm_str_append(to, "", 1);
		count++;
		member = NULL;
		scope = at->parent;
		if (at->function == 0)
			continue;
		read_naming(entries, at->function, &function);
		if (!function.name && !is_mangled(&function))
			continue;
		bool complete = append_enclosing_function(&function, to);

		pm_str_append(to, "", 1);
		count++;
		member = &function;
		scope = complete ? PM_SCOPE_NONE : function.scope;
		entries = function.entries;
	}
	return count;
}

static const char *make_qualified_name(const struct naming *naming,
				       struct pm_texts *texts)
{
	struct pm_str parts = { 0 }, str = { 0 };
	size_t count = append_scope_names(naming, texts, &parts);
	const char *name = naming->name;

	/* Joins the parts from last to first. */
	for (size_t end = parts.len; !parts.failed && count-- > 0;) {
		size_t begin = end - 1;

		while (begin > 0 && parts.data[begin - 1] != '\0')
			begin--;
		if (end - 1 > begin && str.len < PM_SYMBOL_TEXT_MAX) {
			pm_str_append(&str, parts.data + begin, end - 1 - begin);
			pm_str_puts(&str, "::");
		}
		end = begin;
	}
	pm_str_append(&str, name, strnlen(name, PM_SYMBOL_TEXT_MAX));
	if (str.failed || parts.failed)
		name = NULL;
	else
		name = pm_texts_add(texts, str.data, str.len);
	pm_str_release(&parts);
	pm_str_release(&str);
	return name;
}

const char *pm_node_name(const struct pm_entries *entries, const struct pm_node *node,
			 struct pm_texts *texts)
{
	struct naming naming;

	read_naming(entries, node->offset, &naming);
	if (is_mangled(&naming))
		return pm_texts_add_name(texts, naming.linkage, PM_SYMBOL_TEXT_MAX);
	if (naming.name && naming.name[0])
		return make_qualified_name(&naming, texts);
	if (!naming.linkage)
		return NULL;
	return pm_texts_add(texts, naming.linkage, PM_SYMBOL_TEXT_MAX);
}
