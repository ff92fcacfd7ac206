//go:build race

package kernel_test

// raced says that the race detector is on. It makes tests some ten times slower: those that repeat one thing in many forms
// take a part of the forms then, and all of them without it or in the long form.
const raced = true
