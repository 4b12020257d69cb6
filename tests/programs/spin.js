// SPDX-License-Identifier: MIT
// outer() calls middle() calls inner(), where all the time goes. Not inlined: eval() is there.
'use strict';

function inner(values, rounds) {
	let sum = 0;
	for (let i = 0; i < rounds; i++)
		sum = (sum + values[i % values.length] * i) % 1000003;
	if (rounds < 0)
		eval('sum');
	return sum;
}

function middle(values, rounds) {
	const sum = inner(values, rounds);
	if (rounds < 0)
		eval('sum');
	return sum;
}

function outer(ms) {
	const values = Array.from({ length: 1000 }, (_, i) => i);
	const end = process.cpuUsage().user + ms * 1000;
	let sum = 0;
	while (process.cpuUsage().user < end)
		for (let i = 0; i < 10; i++)
			sum += middle(values, 20000);
	return sum;
}

console.log(outer(Number(process.argv[2] || 500)));
