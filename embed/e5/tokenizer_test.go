package e5

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"unicode/utf8"
)

func builtinTokenizer(t testing.TB) *tokenizer {
	t.Helper()
	f, err := readModel("")
	if err != nil {
		t.Fatal(err)
	}
	return newTokenizer(f)
}

// TestEqualScoresKeepTheFirst has a vocabulary in which ab is as probable as a and b.
func TestEqualScoresKeepTheFirst(t *testing.T) {
	tok := &tokenizer{mask: 7, longest: 5, unkScore: -9}
	tok.hash = make(words, 4*8)
	tok.offset = append(tok.offset, 0, 0, 0, 0)
	for id, p := range []string{mark, "a", "b", "ab"} {
		tok.bytes = append(tok.bytes, p...)
		tok.offset = binary.LittleEndian.AppendUint32(tok.offset, uint32(len(tok.bytes)))
		tok.score = binary.LittleEndian.AppendUint32(tok.score, math.Float32bits([]float32{-1, -1, -1, -2}[id]))
		h := uint64(hashBasis)
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * hashPrime
		}
		slot := h & tok.mask
		for tok.hash.at(int(slot)) != 0 {
			slot = (slot + 1) & tok.mask
		}
		binary.LittleEndian.PutUint32(tok.hash[4*slot:], uint32(id+1))
	}
	if got := new(splitter).split(tok, nil, mark+"abb"); !slices.Equal(got, []uint32{0, 3, 2}) {
		t.Errorf("split to %v, want [0 3 2]: the mark, ab and b", got)
	}
}

// FuzzTokenizer holds what must be true of any text: known ids, one in each place where pieces could differ.
func FuzzTokenizer(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.Text)
	}
	f.Add("\xff\xc0\x80 a\u0301\u2581\u200b\ufeff")
	tok := builtinTokenizer(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.encode(storedPrefix+text, MaxTokens)
		if len(ids) < 2 || len(ids) > MaxTokens+2 || ids[0] != tok.start || ids[len(ids)-1] != tok.end {
			t.Fatalf("ids %v of %q", ids, text)
		}
		for i, id := range ids[1 : len(ids)-1] {
			if int(id) >= len(tok.score)/4 || id == tok.start || id == tok.end || id == tok.unk && ids[i] == tok.unk {
				t.Fatalf("id %d at %d of %q", id, i+1, text)
			}
		}
		if n := tok.normalize(text); !utf8.ValidString(n) {
			t.Fatalf("%q normalizes to %q", text, n)
		}
	})
}
