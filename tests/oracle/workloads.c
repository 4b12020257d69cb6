/* SPDX-License-Identifier: MIT */
#include "tests/oracle/workloads.h"

#include "pm/base.h"

enum {
	CXX_FUNCTIONS = 6,
	TEXT_LINES = 10000,
};

const struct workload workloads[] = {
	{ "cc1plus", { "g++", "-O2", "-c", "big.cpp", "-o", "big.o" } },
	{ "python3", { "python3", "work.py" } },
	{ "sqlite3", { "sqlite3", ":memory:", ".read work.sql" } },
	{ "xz", { "xz", "-9", "-k", "-f", "text" } },
	{ NULL, { NULL } },
};

static void write_cxx(FILE *file)
{
	fputs("#include <algorithm>\n#include <functional>\n#include <map>\n"
	      "#include <regex>\n#include <string>\n#include <vector>\n",
	      file);
	for (int i = 0; i < CXX_FUNCTIONS; i++)
		fprintf(file,
			"template <int N> struct key%d { long v[N %% 7 + 1]; };\n"
			"long work%d(std::vector<std::string> &names, long x)\n{\n"
			"	std::map<std::string, std::vector<key%d<%d>>> seen;\n"
			"	std::sort(names.begin(), names.end(), [x](auto &a, auto &b) {\n"
			"		return a.size() * x < b.size() + %d; });\n"
			"	for (auto &name : names)\n"
			"		seen[name].push_back({ { x + %d } });\n"
			"	std::function<long(long)> f = [&](long n) {\n"
			"		return n < %d ? n : f(n - 1) + seen.size(); };\n"
			"	for (auto &[name, keys] : seen)\n"
			"		for (auto &key : keys)\n"
			"			x = x * %d + key.v[0] / (f(x & 7) | 1);\n"
			"	return x;\n}\n",
			i, i, i, i, i, i, i + 2, i + 3);
}

static void write_python(FILE *file)
{
	fputs("import json, re\n"
	      "def walk(tree):\n"
	      "    return 1 + sum(walk(t) for t in tree) if tree else 1\n"
	      "def grow(n):\n"
	      "    return [grow(n - 1), grow(n - 2)] if n > 1 else []\n"
	      "for i in range(25):\n"
	      "    tree = grow(16)\n"
	      "    walk(tree)\n"
	      "    text = json.dumps(tree)\n"
	      "    json.loads(text)\n"
	      "    re.sub(r'(\\[\\])+|,', lambda m: m.group(0).upper(), text)\n"
	      "    sorted((str(n * 7919 % 10007) for n in range(20000)),\n"
	      "           key=lambda s: s[::-1])\n",
	      file);
}

static void write_sql(FILE *file)
{
	fputs("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INT);\n"
	      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n\n"
	      "  WHERE i < 200000)\n"
	      "INSERT INTO t SELECT i, hex(i * 7919 % 104729), i % 997 FROM n;\n"
	      "CREATE INDEX t_b ON t(b);\n"
	      "SELECT count(*), max(b) FROM t WHERE b LIKE '%3A%';\n"
	      "SELECT c, count(DISTINCT b), group_concat(a) FROM t GROUP BY c\n"
	      "  ORDER BY 2 DESC, 1 LIMIT 5;\n"
	      "SELECT count(*) FROM t x JOIN t y ON x.b = y.b AND x.c < y.c;\n",
	      file);
}

/* Words that repeat like those of a language, so that there is something to match. */
static void write_text(FILE *file)
{
	uint64_t x = 88172645463325252;

	for (int line = 0; line < TEXT_LINES; line++) {
		for (int word = 0; word < 8; word++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			fprintf(file, "%llx ",
				(unsigned long long)((x & 0xff) * (x >> 8 & 0xf) *
						     0x9e37));
		}
		fputc('\n', file);
	}
}

static int write_file(const char *name, void (*write_to)(FILE *file))
{
	PM_AUTO_FCLOSE FILE *file = fopen(name, "we");

	if (!file)
		return -errno;
	write_to(file);
	return fflush(file) == 0 ? 0 : -errno;
}

int workloads_prepare(void)
{
	int rc = write_file("big.cpp", write_cxx);

	if (rc == 0)
		rc = write_file("work.py", write_python);
	if (rc == 0)
		rc = write_file("work.sql", write_sql);
	if (rc == 0)
		rc = write_file("text", write_text);
	return rc;
}
