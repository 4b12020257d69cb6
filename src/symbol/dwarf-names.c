/* SPDX-License-Identifier: MIT */
/*
 * The name of a function: DW_AT_linkage_name where it is mangled (it is complete then), else
 * DW_AT_name with the classes and namespaces around it: what C code calls iruserok_af may be
 * linked as __GI_iruserok_af. Both may stand at the entry
 * itself or at what it refers to (DWARF 5 §3.3.8.2, §2.13.2).
 */
#include "dwarf-internal.h"

#include <string.h>

enum {
	HOPS_MAX = 16, /* concrete → abstract → declaration; hostile: in a circle */
	SCOPES_MAX = 64,
};

/* Forms that lead to the file of dwz, where only one that was found may be followed. */
static bool leads_astray(const struct pm_dwarf *dwarf, Dwarf_Attribute *attr)
{
	switch (dwarf_whatform(attr)) {
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_strp_sup:
		return !dwarf->alt || dwarf_cu_getdwarf(attr->cu) != dwarf->dwarf;
	case DW_FORM_ref_sig8:
		return true; /* a type */
	default:
		return false;
	}
}

static const char *text_of(const struct pm_dwarf *dwarf, Dwarf_Die *die,
			   unsigned int name)
{
	Dwarf_Attribute attr;

	if (!dwarf_attr(die, name, &attr) || leads_astray(dwarf, &attr))
		return NULL;
	return dwarf_formstring(&attr);
}

static bool follow(const struct pm_dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die target;

	if ((!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
	     !dwarf_attr(die, DW_AT_specification, &attr)) ||
	    leads_astray(dwarf, &attr) || !dwarf_formref_die(&attr, &target))
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
		if (!(linkage = text_of(dwarf, &die, DW_AT_linkage_name)))
			linkage = text_of(dwarf, &die, DW_AT_MIPS_linkage_name);
		if (!found && hops > 0)
			*origin = die;
		found |= hops > 0;
		if (!follow(dwarf, &die))
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

		/* A unit's numbers are of its own table. */
		if (die.cu == lines->unit->die.cu &&
		    dwarf_attr(&die, DW_AT_decl_line, &attr) &&
		    dwarf_formudata(&attr, &number) == 0 &&
		    dwarf_attr(&die, DW_AT_decl_file, &attr) &&
		    dwarf_formudata(&attr, &of) == 0 && number <= UINT32_MAX &&
		    (*file = pm_lines_path(lines, of, texts))) {
			*line = (uint32_t)number;
			return true;
		}
		if (!follow(dwarf, &die))
			break;
	}
	return false;
}

static uint32_t scope_of(const struct pm_entries *entries, uint64_t offset)
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

static const char *scope_name(const struct pm_entries *entries, uint32_t scope)
{
	struct pm_dwarf *dwarf = entries->dwarf;
	Dwarf_Die die;
	const char *name;

	if (!dwarf_offdie(dwarf->dwarf, entries->scopes.data[scope].offset, &die))
		return NULL;
	name = text_of(dwarf, &die, DW_AT_name);
	if (!name && dwarf_tag(&die) == DW_TAG_namespace)
		name = "(anonymous namespace)";
	return name ? name : "{unnamed}";
}

static const char *qualified(const struct pm_entries *entries, const char *name,
			     uint32_t scope, struct pm_texts *texts)
{
	const char *parts[SCOPES_MAX];
	struct pm_str str = { 0 };
	size_t count = 0;

	for (; scope != PM_SCOPE_NONE && count < SCOPES_MAX;
	     scope = entries->scopes.data[scope].parent) {
		const char *part = scope_name(entries, scope);

		if (part)
			parts[count++] = part;
	}
	if (count == 0)
		return pm_texts_add(texts, name, PM_SYMBOL_TEXT_MAX);
	while (count-- > 0 && str.len < PM_SYMBOL_TEXT_MAX) {
		pm_str_append(&str, parts[count],
			      strnlen(parts[count], PM_SYMBOL_TEXT_MAX));
		pm_str_puts(&str, "::");
	}
	pm_str_append(&str, name, strnlen(name, PM_SYMBOL_TEXT_MAX));
	name = str.failed ? NULL : pm_texts_add(texts, str.data, str.len);
	pm_str_release(&str);
	return name;
}

const char *pm_node_name(const struct pm_entries *entries, const struct pm_node *node,
			 struct pm_texts *texts)
{
	struct pm_dwarf *dwarf = entries->dwarf;
	uint32_t scope = PM_SCOPE_NONE;
	const char *name = NULL, *linkage = NULL;
	Dwarf_Die die;

	if (!dwarf_offdie(dwarf->dwarf, node->offset, &die))
		return NULL;
	for (int hops = 0; hops < HOPS_MAX; hops++) {
		if (!linkage && !(linkage = text_of(dwarf, &die, DW_AT_linkage_name)))
			linkage = text_of(dwarf, &die, DW_AT_MIPS_linkage_name);
		if (linkage &&
		    (strncmp(linkage, "_Z", 2) == 0 || strncmp(linkage, "_R", 2) == 0))
			return pm_texts_add_name(texts, linkage, PM_SYMBOL_TEXT_MAX);
		if (!name)
			name = text_of(dwarf, &die, DW_AT_name);
		/* What is declared in a class may be defined outside of it. */
		if (scope == PM_SCOPE_NONE && dwarf_cu_getdwarf(die.cu) == dwarf->dwarf)
			scope = scope_of(entries, dwarf_dieoffset(&die));
		if (!follow(dwarf, &die))
			break;
	}
	if (name && name[0])
		return qualified(entries, name, scope, texts);
	return linkage ? pm_texts_add(texts, linkage, PM_SYMBOL_TEXT_MAX) : NULL;
}
