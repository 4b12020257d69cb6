# SPDX-License-Identifier: MIT
# Documents of pmstat that tests make themselves. To be loaded.

# document VALUE [CREATED [SUBJECTS [ENGINE]]]: counts of one event, sim.Ir, in one run.
document() {
	local nothing='"hostname":null,"kernel":null,"arch":null,"cpus":null,"cpu_model":null'
	nothing+=',"virt":null,"paranoid":null,"governor":null,"smt":null'
	printf '{"format":"pmstat","version":1,"pmstat":"0.1.0","created":"%s","engine":"%s"' \
		"${2-2026-01-01T00:00:00Z}" "${4-callgrind}"
	printf ',"target":null,"host":{%s},"subjects":[%s]' "$nothing" \
		"${3-{\"argv\":[\"./bench\"],\"build_id\":null\}}"
	printf ',"events":[{"name":"sim.Ir","requested":"sim.Ir","unit":"","scale":1'
	printf ',"source":"simulated","class":"exact","better":"less","group":null'
	printf ',"user_only":false,"default":false,"status":"ok","why":null}]'
	printf ',"warmups":0,"runs":[{"variant":0,"begin_ns":1,"exit_code":0,"signal":null'
	printf ',"stopped":false,"counts":[{"value":%s,"status":"ok"}],"rows":[]' "$1"
	printf ',"intervals":[]}],"scopes":[],"overhead":null,"metrics":[],"warnings":[]'
	printf ',"settings":[]}\n'
}

# suite NAME VALUE...: a suite with such a document for each case.
suite() {
	local comma=
	printf '{"format":"pmstat-suite","version":1,"cases":['
	while [ $# -gt 1 ]; do
		printf '%s{"case":"%s","stat":' "$comma" "$1"
		document "$2"
		printf '}'
		comma=,
		shift 2
	done
	printf ']}\n'
}
