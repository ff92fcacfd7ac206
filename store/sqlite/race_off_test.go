//go:build !race

package sqlite

const slowed = false
