package e5

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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

func TestCutPrefersGoodBorders(t *testing.T) {
	tok := builtinTokenizer(t)
	for _, c := range []struct {
		text string
		max  int
		want []string
	}{
		{"", 20, nil},
		{"One short text.", 20, []string{"One short text."}},
		{
			"The first sentence of both is here. The second one is a little longer than it.", 18,
			[]string{"The first sentence of both is here. ", "The second one is a little longer than it."},
		},
		{
			"今天我们讨论了北京分公司的提案。下周三再开一次会，请大家准备好材料。", 20,
			[]string{"今天我们讨论了北京分公司的提案。", "下周三再开一次会，请大家准备好材料。"},
		},
	} {
		if diff := cmp.Diff(c.want, tok.cut(c.text, c.max)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestCutKeepsEveryByteAndTheBound(t *testing.T) {
	e := newEncoder(t, plainKernel())
	long := strings.Repeat("abc123/", 600) + "\n" + strings.Repeat("漢字かな交じり文", 200) + strings.Repeat(" word", 400) + "\xff\xfe" + strings.Repeat("\x80", 9000) + strings.Repeat("\u0301", 300)
	for _, size := range []int{1, 16, 60, 0, 9999} {
		pieces, err := e.Cut(long, size)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(pieces, "") != long {
			t.Errorf("max %d: the pieces are not the text", size)
		}
		for _, p := range pieces {
			if n, err := e.Tokens(p); n > limitCut(size, MaxTokens) || err != nil {
				t.Errorf("max %d: a piece of %d tokens: %.50q (error %v)", size, n, p, err)
			}
		}
	}
}

// FuzzTokenizer holds what must be true of any text: known ids, one in each place where pieces could differ, and cuts that
// lose nothing and stay within bounds.
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
		pieces := tok.cut(text, 16)
		if strings.Join(pieces, "") != text || slices.ContainsFunc(pieces, func(p string) bool { return p == "" || utf8.RuneCountInString(p) > 1 && tok.count(p) > 16 }) {
			t.Fatalf("%q is cut to %q", text, pieces)
		}
	})
}
