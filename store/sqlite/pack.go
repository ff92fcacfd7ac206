package sqlite

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

// An id is packed as its kind and the 16 bytes of its UUID if it has that form, else as 0 and its text. The position of a
// kind in the list is part of the file format.
var idKinds = [...]string{1: "message-", 2: "passage-", 3: "event-", 4: "turn-", 5: "conv-", 6: "agent-", 7: "block-"}

// packID returns the packed form of an id; that of "" is empty.
func packID(id string) []byte {
	if id == "" {
		return []byte{}
	}
	for kind, prefix := range idKinds {
		if kind == 0 || len(id) != len(prefix)+36 || !strings.HasPrefix(id, prefix) {
			continue
		}
		if u, ok := packUUID(id[len(prefix):]); ok {
			return append([]byte{byte(kind)}, u[:]...)
		}
	}
	return append([]byte{0}, id...)
}

// packUUID takes the canonical form in lower case only, so that unpackID gives the same text again.
func packUUID(s string) (u [16]byte, ok bool) {
	if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if strings.ContainsAny(digits, "ABCDEF") {
		return u, false
	}
	n, err := hex.Decode(u[:], []byte(digits))
	return u, err == nil && n == 16
}

func unpackID(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if b[0] == 0 || int(b[0]) >= len(idKinds) || len(b) != 17 {
		return string(b[1:])
	}
	out := make([]byte, 0, 48)
	out = append(out, idKinds[b[0]]...)
	for i, part := range [][]byte{b[1:5], b[5:7], b[7:9], b[9:11], b[11:]} {
		if i > 0 {
			out = append(out, '-')
		}
		out = hex.AppendEncode(out, part)
	}
	return string(out)
}

// posBits is how much of a row's number is the position below the owner or thread.
const posBits = 32

// maxPos is the last position.
const maxPos = 1<<posBits - 1

func rowNo(owner, pos int64) int64 { return owner<<posBits | pos }

func posOf(no int64) int64 { return no & maxPos }

// The times that fit in nanoseconds; others are kept as text.
var (
	minTime = time.Unix(0, -1<<63)
	maxTime = time.Unix(0, 1<<63-1)
)

// timeValue returns what is stored for a time: nil when it is zero.
func timeValue(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case t.Before(minTime) || t.After(maxTime):
		return t.UTC().Format(time.RFC3339Nano)
	}
	return t.UnixNano()
}

func timeOf(v any) time.Time {
	switch v := v.(type) {
	case int64:
		return time.Unix(0, v).UTC()
	case string:
		t, err := time.Parse(time.RFC3339Nano, v)
		if err == nil {
			return t
		}
	}
	return time.Time{}
}

// packTerms encodes terms in order of their text. A term is stored without what it shares with the one before. Its head
// is one byte (shared<<4 | rest) where shared is at most 7, rest at most 15 and the term occurs once; else 0x80 followed
// by shared, rest and occurrences as varints.
func packTerms(terms []store.TermCount) []byte {
	terms = normalTerms(terms)
	out := make([]byte, 0, 8*len(terms)+8)
	out = binary.AppendUvarint(out, uint64(len(terms)))
	before := ""
	for _, t := range terms {
		shared := sharedPrefix(before, t.Term)
		if t.N == 1 {
			shared = min(shared, 7)
		}
		rest := t.Term[shared:]
		if t.N == 1 && len(rest) <= 15 {
			out = append(out, byte(shared<<4|len(rest)))
		} else {
			out = append(out, 0x80)
			out = binary.AppendUvarint(out, uint64(shared))
			out = binary.AppendUvarint(out, uint64(len(rest)))
			out = binary.AppendUvarint(out, uint64(t.N))
		}
		out = append(out, rest...)
		before = t.Term
	}
	return out
}

// normalTerms returns the terms sorted, each once.
func normalTerms(terms []store.TermCount) []store.TermCount {
	sorted := make([]store.TermCount, 0, len(terms))
	for _, t := range terms {
		if t.N > 0 {
			sorted = append(sorted, t)
		}
	}
	slices.SortFunc(sorted, func(a, b store.TermCount) int { return strings.Compare(a.Term, b.Term) })
	out := sorted[:0]
	for _, t := range sorted {
		if n := len(out); n > 0 && out[n-1].Term == t.Term {
			out[n-1].N += t.N
		} else {
			out = append(out, t)
		}
	}
	return out
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// eachTerm calls f with the terms that packTerms encoded. The term is valid until f returns.
func eachTerm(data []byte, f func(term []byte, n uint32)) error {
	r := reader{data}
	term := make([]byte, 0, 64)
	for range r.uvarint() {
		if len(r.data) == 0 {
			return fmt.Errorf("terms are cut off")
		}
		head := r.byte()
		shared, rest, n := uint64(head>>4), uint64(head&15), uint64(1)
		if head >= 0x80 {
			shared, rest, n = r.uvarint(), r.uvarint(), r.uvarint()
		}
		if shared > uint64(len(term)) || rest > uint64(len(r.data)) {
			return fmt.Errorf("terms are damaged")
		}
		term = append(term[:shared], r.data[:rest]...)
		r.data = r.data[rest:]
		f(term, uint32(n))
	}
	return nil
}

// reader reads varints; past the end it gives zeros.
type reader struct{ data []byte }

func (r *reader) byte() byte {
	if len(r.data) == 0 {
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.data = nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

// appendPosting encodes a posting after one of the doc before: the difference, doubled, plus 1 if occurrences follow.
func appendPosting(out []byte, before uint32, p store.Posting) []byte {
	delta := uint64(p.Doc-before) << 1
	if p.N == 1 {
		return binary.AppendUvarint(out, delta)
	}
	return binary.AppendUvarint(binary.AppendUvarint(out, delta|1), uint64(p.N))
}

// appendPostings decodes a block whose first doc is first. Differences are nearly always one byte, so that case comes
// first.
func appendPostings(out []store.Posting, first uint32, data []byte) []store.Posting {
	doc := first
	for i := 0; i < len(data); {
		d := uint64(data[i])
		i++
		if d >= 0x80 {
			v, n := binary.Uvarint(data[i-1:])
			if n <= 0 {
				return out
			}
			d, i = v, i-1+n
		}
		doc += uint32(d >> 1)
		n := uint32(1)
		if d&1 != 0 {
			v, w := binary.Uvarint(data[i:])
			if w <= 0 {
				return out
			}
			n, i = uint32(v), i+w
		}
		out = append(out, store.Posting{Doc: doc, N: n})
	}
	return out
}

func codeOf[T comparable](list []T, v T, what string) (int64, error) {
	i := slices.Index(list, v)
	if i < 0 {
		return 0, memgpt.Errorf(memgpt.CodeInvalid, "%s %v is not known to the index", what, v)
	}
	return int64(i), nil
}
