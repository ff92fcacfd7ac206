package retrieve

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"memgpt"
)

func TestPackedVectors(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for range 200 {
		a, b := make([]float32, 384), make([]float32, 384)
		for i := range a {
			a[i] = float32(rnd.NormFloat64())
			b[i] = a[i] + float32(rnd.NormFloat64())
		}
		x, err := unpackVector(packVector(a), nil)
		if err != nil {
			t.Fatal(err)
		}
		y, err := unpackVector(packVector(b), make([]float32, 2))
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, math.Abs(cosine(a, b)-cosine(x, y)))
	}
	if worst == 0 || worst > .002 {
		t.Errorf("a cosine is off by %v", worst)
	}
	if v, err := unpackVector(packVector(make([]float32, 3)), nil); err != nil || len(v) != 3 || v[0] != 0 {
		t.Errorf("the vector of zeros is %v, %v", v, err)
	}
	for _, damaged := range [][]byte{nil, {1, 2, 3, 4}} {
		if v, err := unpackVector(damaged, nil); err == nil {
			t.Errorf("%v is the vector %v", damaged, v)
		}
	}
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

func TestEmbeddedNamesTheAuthor(t *testing.T) {
	m := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "I adopted a dog")
	if got := embedded(&m); got != "I adopted a dog" {
		t.Error(got)
	}
	m.Author = "Caroline"
	if got := embedded(&m); got != "Caroline: I adopted a dog" {
		t.Error(got)
	}
	m.Parts = memgpt.Parts{memgpt.Text{Text: " \n"}}
	if got := embedded(&m); strings.TrimSpace(got) != "" {
		t.Errorf("%q is embedded of a message without text", got)
	}
}
