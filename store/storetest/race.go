//go:build race

package storetest

// raced says that the race detector is on, under which histories are tried with one seed: it makes them ten times slower.
const raced = true
