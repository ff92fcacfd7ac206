package kernel_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt/kernel"
)

func TestIDsReplayAndSort(t *testing.T) {
	var now time.Time
	ids := func() []string {
		now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		next := kernel.NewIDs(byteSource{rand.New(rand.NewPCG(1, 2))}, func() time.Time {
			now = now.Add(time.Millisecond)
			return now
		})
		var out []string
		for range 50 {
			out = append(out, next("message"))
		}
		return out
	}
	a := ids()
	if d := cmp.Diff(a, ids()); d != "" {
		t.Errorf("ids don't replay: %s", d)
	}
	if !slices.IsSorted(a) {
		t.Error("ids don't sort by time")
	}
	form := regexp.MustCompile(`^message-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !form.MatchString(a[0]) {
		t.Errorf("%q is no UUID of version 7", a[0])
	}
}
