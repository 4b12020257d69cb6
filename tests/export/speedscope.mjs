// SPDX-License-Identifier: MIT
// speedscope.mjs PACKAGE NAME FILE: what speedscope's own importer makes of a file of that name,
// as JSON: [{name, unit, total, frames: {NAME: [self, total]}}].
//
// The package has no entry for programs, only the page's script. It is run here up to where it
// would draw, in a world that answers everything with nothing, and its importer taken out.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';

const [folder, name, path] = process.argv.slice(2);
const release = join(folder, 'dist', 'release');
const script = readdirSync(release).find(file => /^speedscope-.*\.js$/.test(file));
let code = readFileSync(join(release, script), 'utf8');

// Promise.resolve().then(()=>(INIT(),EXPORTS)) loads a module; one of them is the importer.
const exported = /(\w+),\{importFromFileSystemDirectoryEntry:/.exec(code)[1];
const loads = new RegExp(`Promise\\.resolve\\(\\)\\.then\\(\\(\\)=>\\((\\w+)\\(\\),${exported}\\)\\)`);
const init = loads.exec(code)[1];
code = code.replace(loads, found =>
	`(globalThis.loadImporter=()=>(${init}(),${exported}),${found})`);

const nothing = () => new Proxy(function () {}, {
	get: (target, key) => (key === Symbol.toPrimitive ? () => '' : nothing()),
	apply: nothing,
	construct: nothing,
});
for (const key of ['location', 'document', 'localStorage', 'navigator', 'matchMedia'])
	if (!(key in globalThis))
		globalThis[key] = nothing();
globalThis.window = globalThis;
console.log = () => {};
try {
	vm.runInThisContext(code);
} catch (error) {
	if (!globalThis.loadImporter)
		throw error; // drawing may fail here, what comes before it may not
}

const bytes = readFileSync(path);
const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
const group = await globalThis.loadImporter().importProfilesFromArrayBuffer(name, buffer);
if (!group)
	throw new Error('speedscope does not know what this is');
const profiles = group.profiles.map(profile => {
	const frames = {};

	profile.forEachFrame(frame => {
		const sum = frames[frame.name] ?? [0, 0];

		frames[frame.name] = [sum[0] + frame.getSelfWeight(),
			sum[1] + frame.getTotalWeight()];
	});
	return { name: profile.getName(), unit: profile.getWeightUnit(),
		total: profile.getTotalWeight(), frames };
});
process.stdout.write(JSON.stringify(profiles) + '\n');
