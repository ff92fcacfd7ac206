//go:build race

package sqlite

// slowed says that the race detector runs: SQLite, which is Go code here, is then some fifteen times slower, so tests
// that are about amounts do less.
const slowed = true
