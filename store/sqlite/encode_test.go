package sqlite

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/store"
)

// fill sets every field that reflection reaches to something that isn't zero.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(1e9+n), 5).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n+i+1)
		}
	case reflect.String:
		v.SetString("é<&>\u2028\x01\x7f\"\\\n\t\r\b\f" + string(rune('a'+n%26)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n%3 + 1))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		switch v.Type() {
		case reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(`{"a":[1]}`))
		case reflect.TypeFor[memgpt.Parts]():
			v.Set(reflect.ValueOf(parts()))
		default:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), n)
			fill(v.Index(1), n+1)
		}
	case reflect.Uint8:
		v.SetUint(uint64(n%200 + 1))
	}
}

func filledWith[T any](n int) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), n)
	return v
}

// parts is one part of each kind, with every field set, and with none.
func parts() memgpt.Parts {
	return memgpt.Parts{filledWith[memgpt.Text](1), filledWith[memgpt.Image](2), filledWith[memgpt.File](3), filledWith[memgpt.Reasoning](4),
		filledWith[memgpt.Call](5), filledWith[memgpt.Result](6), memgpt.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"x":"<é>"}`)},
		memgpt.Text{}, memgpt.Call{}, memgpt.Result{}}
}

// TestMessageEncoding compares our encoder with encoding/json, so that a field that is added to the vocabulary isn't lost.
func TestMessageEncoding(t *testing.T) {
	es := newEncoders()
	for _, m := range []memgpt.Message{filledWith[memgpt.Message](1), {}, {Role: memgpt.RoleUser, Parts: memgpt.Parts{}},
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "a\xffb\xc3"), memgpt.TextMessage("", "", "👩‍👩‍👧 我叫小林 \u2029")} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(m); err != nil {
			t.Fatal(err)
		}
		got, err := es.message(&m, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal([]byte(got), &a); err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		if err := json.Unmarshal(want.Bytes(), &b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("a message differs from encoding/json's (-want +got):\n%s", diff)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	es := newEncoders()
	m := memgpt.Message{Parts: memgpt.Parts{memgpt.Unknown{Kind: "x", Raw: json.RawMessage(`{broken`)}}}
	if text, err := es.message(&m, "entry", "m1"); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("a broken part is encoded as %s, error %v", text, err)
	}
}

// TestEventEncoding sends events through the encoder and back.
func TestEventEncoding(t *testing.T) {
	es := newEncoders()
	full := filledWith[memgpt.Event](1)
	full.ID, full.Tenant, full.Agent, full.Thread, full.Key, full.Order = "", "", "", "", "", 0 // they have columns
	for _, e := range []memgpt.Event{full, {}} {
		text, err := es.event(&e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeEvent(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if len(e.Message.Parts) == 0 {
			e.Message.Parts = memgpt.Parts{}
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("an event comes back changed (-want +got):\n%s", diff)
		}
	}
}

// TestRowsKeepEveryField sends filled rows through JSON and back.
func TestRowsKeepEveryField(t *testing.T) {
	roundTrip(t, agentRow(filledWith[memgpt.Agent](1)))
	roundTrip(t, threadRow(filledWith[memgpt.Thread](2)))
	roundTrip(t, blockRow(filledWith[memgpt.Block](3)))
	roundTrip(t, editRow(filledWith[store.BlockEdit](4)))
	roundTrip(t, passageRow(filledWith[memgpt.Passage](5)))
	roundTrip(t, turnRow(filledWith[memgpt.Turn](6)))
	roundTrip(t, filledWith[memgpt.Summary](7))
}

func roundTrip[T any](t *testing.T, row T) {
	t.Helper()
	text, err := newEncoders().json(row, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var got T
	if err := decode(text, &got, "row"); err != nil {
		t.Fatal(err)
	}
	v, w := reflect.ValueOf(&row).Elem(), reflect.ValueOf(&got).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		if diff := cmp.Diff(v.Field(i).Interface(), w.Field(i).Interface()); diff != "" {
			t.Errorf("%T.%s comes back changed (-want +got):\n%s", row, f.Name, diff)
		}
	}
}

func TestIDs(t *testing.T) {
	for _, tt := range []struct {
		id   string
		size int
	}{
		{"", 0}, {"message-0198a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", 17}, {"turn-0198a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", 17},
		{"message-0198A1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", 45}, {"x", 2}, {"message-", 9}, {"\x01", 2}, {"名", 4},
		{"other-0198a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", 43}, {"message-0198a1b2-c3d4-7e5f-8a9b_0c1d2e3f4a5b", 45},
	} {
		if p := packID(tt.id); len(p) != tt.size || unpackID(p) != tt.id {
			t.Errorf("id %q is packed in %d bytes, want %d, and comes back as %q", tt.id, len(p), tt.size, unpackID(p))
		}
	}
}

func FuzzPackID(f *testing.F) {
	f.Add("message-0198a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
	f.Fuzz(func(t *testing.T, id string) {
		if got := unpackID(packID(id)); got != id {
			t.Errorf("%q comes back as %q", id, got)
		}
	})
}

// FuzzDecode feeds damaged bytes to what reads blobs: it must end, and not panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{3, 0x12, 'a', 'b', 0x80, 1, 2, 3, 'x', 'y'})
	f.Add(packMeta([]docMeta{{time: 5, length: 3, labels: [labelKinds]string{"t", "a", "s"}}, {time: -7, kind: 1, role: 2}}))
	f.Add(appendVector(nil, 9, store.Vector{Piece: 300, Data: []byte("abc")}))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_ = eachTerm(data, func([]byte, uint32) {})
		_ = appendPostings(nil, 1, data)
		_ = eachVector(codedVectors{1, data}, func(store.Vector) bool { return true })
		var m meta
		_ = m.unpack(data)
		_ = unpackID(data)
	})
}

// TestTerms packs terms with prefixes, lengths and counts of all sizes, out of order and doubled.
func TestTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		want := map[string]int{}
		var list []store.TermCount
		for range rng.IntN(40) {
			term := strings.Repeat("a", rng.IntN(20)) + strings.Repeat("é", rng.IntN(2)) + strings.Repeat("b", rng.IntN(20))
			n := 1
			if rng.IntN(3) == 0 {
				n = rng.IntN(300)
			}
			list = append(list, store.TermCount{Term: term, N: n})
			if n > 0 {
				want[term] += n
			}
		}
		got, last := map[string]int{}, ""
		err := eachTerm(packTerms(list), func(term []byte, n uint32) {
			if string(term) < last {
				t.Errorf("%q comes after %q", term, last)
			}
			last = string(term)
			got[last] += int(n)
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("terms come back changed, error %v (-want +got):\n%s", err, diff)
		}
	}
}

// TestPostingBlocks packs postings with differences and counts of all sizes.
func TestPostingBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		var want []store.Posting
		doc := uint32(0)
		for range 1 + rng.IntN(50) {
			doc += 1 + uint32(rng.IntN(1<<rng.IntN(24)))
			want = append(want, store.Posting{Doc: doc, N: 1 + uint32(rng.IntN(1<<rng.IntN(12)))})
		}
		first := want[0].Doc
		var data []byte
		before := first
		for _, p := range want {
			data = appendPosting(data, before, p)
			before = p.Doc
		}
		if diff := cmp.Diff(want, appendPostings(nil, first, data)); diff != "" {
			t.Fatalf("postings come back changed (-want +got):\n%s", diff)
		}
	}
}
