// SPDX-License-Identifier: MIT

// Spends its time in known shares: alpha 20 %, beta 30 %, gamma 50 %, each of them half in the
// first goroutine (called by main.main) and half in another (called by main.work). gamma's loop
// is in mix, which Go inlines. Arguments: how many rounds; with a second one some of the time
// goes into garbage, too.
package main

import "os"

const step = 400000

var sink uint64

//go:noinline
func alpha(x uint64) uint64 {
	for i := 0; i < 2*step; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func beta(x uint64) uint64 {
	for i := 0; i < 3*step; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func mix(x uint64) uint64 {
	for i := 0; i < 5*step; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func gamma(x uint64) uint64 {
	x = mix(x + 1)
	return x ^ 3
}

//go:noinline
func round(x uint64) uint64 {
	return alpha(x) ^ beta(x) ^ gamma(x)
}

type tree struct {
	left, right *tree
	bytes       [40]byte
}

//go:noinline
func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1)}
}

var kept *tree

//go:noinline
func work(rounds int, done chan uint64) {
	x := uint64(1)
	for i := 0; i < rounds; i++ {
		x = round(x)
		if len(os.Args) > 2 {
			kept = grow(14)
		}
	}
	done <- x
}

func main() {
	rounds := 0
	for _, digit := range os.Args[1] {
		rounds = rounds*10 + int(digit-'0')
	}
	done := make(chan uint64)
	go work(rounds, done)
	x := uint64(2)
	for i := 0; i < rounds; i++ {
		x = round(x)
	}
	sink = x ^ <-done
}
