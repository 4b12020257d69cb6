// SPDX-License-Identifier: MIT

// Go that calls C, which works for a while and then calls Go, which does the same. The argument
// says how often.
package main

// #include <stdint.h>
// uint64_t work_in_c(uint64_t x);
import "C"

import "os"

//go:noinline
func spin(x uint64) uint64 {
	for i := 0; i < 2000000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//export workInGo
func workInGo(x uint64) uint64 {
	return spin(x) ^ 1
}

//go:noinline
func call(x uint64) uint64 {
	return uint64(C.work_in_c(C.uint64_t(x))) ^ 1
}

var sink uint64

func main() {
	rounds := 0
	for _, digit := range os.Args[1] {
		rounds = rounds*10 + int(digit-'0')
	}
	for i := 0; i < rounds; i++ {
		sink = call(sink)
	}
}
