package tool_test

import (
	"math"
	"testing"

	"memgpt/tool"
)

func TestPages(t *testing.T) {
	for _, c := range []struct{ total, size, want int }{
		{0, 10, 0}, {1, 10, 1}, {10, 10, 1}, {11, 10, 2}, {2, math.MaxInt, 1}, {math.MaxInt, 1, math.MaxInt}, {5, 0, 0},
	} {
		if got := (tool.Hits{Total: c.total, Size: c.size}).Pages(); got != c.want {
			t.Errorf("%d results by %d are %d pages, want %d", c.total, c.size, got, c.want)
		}
	}
}
