package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// fakeEncoder gives each word a direction; words that mean the same share one. All vectors lean one way.
type fakeEncoder struct {
	model string
	same  map[string]string
	fail  error
	slow  bool // waits for the end of its time
	calls atomic.Int64
}

const fakeDim = 384

func (e *fakeEncoder) Model() string { return e.model }

func (e *fakeEncoder) Embed(ctx context.Context, texts []string, _ bool) ([][]float32, error) {
	e.calls.Add(1)
	if e.slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if e.fail != nil {
		return nil, e.fail
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if !utf8.ValidString(text) {
			return nil, errors.New("a text is no UTF-8")
		}
		out[i] = e.vector(text)
	}
	return out, nil
}

func (e *fakeEncoder) vector(text string) []float32 {
	v := make([]float32, fakeDim)
	add(v, "\x00"+e.model, 3)
	for _, w := range strings.Fields(strings.ToLower(text)) {
		w = strings.Trim(w, ".,?!")
		if s, ok := e.same[w]; ok {
			w = s
		} else if len(w) < 4 && w != "cat" && w != "car" {
			continue
		}
		add(v, e.model+w, 1)
	}
	n := 0.
	for _, x := range v {
		n += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(n))
	}
	return v
}

func add(v []float32, seed string, weight float64) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	for i := range v {
		v[i] += float32(weight * r.NormFloat64())
	}
}

func newFake(model string) *fakeEncoder {
	return &fakeEncoder{model: model, same: map[string]string{"feline": "cat", "automobile": "car", "physician": "doctor"}}
}

// embedAll gives the first n documents of owner "a" vectors by an encoder.
func (m *memIndex) embedAll(e *fakeEncoder, texts []string) {
	o := m.owner("", "a")
	for i, text := range texts {
		o.vectors[e.model] = append(o.vectors[e.model], store.Vector{Doc: int64(i + 1), Data: retrieve.PackVector(e.vector(text))})
	}
}

var someTexts = []string{
	"My cat sleeps on the sofa all day", "The car needs new tyres", "An appointment with the doctor on Monday",
	"We planted tomatoes in the garden", "The train was late again", "Bring an umbrella tomorrow",
	"She sings in a choir", "The invoice is still open", "He learns to play chess", "The bakery opens at six",
	"Our neighbours moved to Norway", "The printer is out of paper",
}

func fakeStore(texts []string, encoders ...*fakeEncoder) *memIndex {
	m := newMemIndex()
	for i, text := range texts {
		m.addEntry(message(i+1, text, noon.Add(time.Duration(i)*24*time.Hour)))
	}
	for _, e := range encoders {
		m.embedAll(e, texts)
	}
	return m
}

func hybrid(t testing.TB, m *memIndex, encoders ...tool.Embedder) *retrieve.Searcher {
	t.Helper()
	wait := time.Minute // a busy machine is no slow encoder
	for _, e := range encoders {
		if fake, ok := e.(*fakeEncoder); ok && fake.slow {
			wait = 50 * time.Millisecond
		}
	}
	s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: encoders, Wait: wait,
		Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t testing.TB, s *retrieve.Searcher, q tool.Query) tool.Hits {
	t.Helper()
	q.Owner = "a"
	hits, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	e := newFake("m")
	m := fakeStore(someTexts, e)
	if hits := ask(t, hybrid(t, m), tool.Query{Text: "feline"}); hits.Total != 0 {
		t.Errorf("words alone find %v", hits)
	}
	for q, want := range map[string]string{"feline": "message-1", "automobile": "message-2", "physician": "message-3", "umbrella": "message-6"} {
		hits := ask(t, hybrid(t, m, e), tool.Query{Text: q})
		if len(hits.List) == 0 || hits.List[0].ID != want || hits.Model != "m" || hits.Words != "" || hits.Weak {
			t.Errorf("%s finds %+v, want %s first", q, hits, want)
		}
	}
}

// TestModelsAreNotMixed: the wanted model's vectors lie elsewhere, and it has but a part of the documents.
func TestModelsAreNotMixed(t *testing.T) {
	wanted, old := newFake("wanted"), newFake("old")
	m := fakeStore(someTexts, old)
	m.embedAll(wanted, someTexts[:9])
	m.owner("", "a").through = map[string]int64{"wanted": 9, "old": 12}
	s := hybrid(t, m, wanted, old)
	hits := ask(t, s, tool.Query{Text: "feline"})
	if hits.Model != "old" || len(hits.List) == 0 || hits.List[0].ID != "message-1" || hits.Unembedded != 0 || wanted.calls.Load() != 0 {
		t.Errorf("with a part by the wanted model: %+v, which was asked %d times", hits, wanted.calls.Load())
	}
	m.embedAll(wanted, someTexts)
	m.owner("", "a").vectors["wanted"] = m.owner("", "a").vectors["wanted"][9:]
	m.owner("", "a").through = nil
	calls := old.calls.Load()
	if hits = ask(t, s, tool.Query{Text: "feline"}); hits.Model != "wanted" || hits.List[0].ID != "message-1" || old.calls.Load() != calls {
		t.Errorf("with all by the wanted model: %+v", hits)
	}
	m.owner("", "a").through = map[string]int64{"wanted": 6, "old": 3}
	if hits = ask(t, s, tool.Query{Text: "feline"}); hits.Model != "wanted" || hits.Unembedded != .5 {
		t.Errorf("with parts of both: %+v", hits)
	}
	if hits = ask(t, hybrid(t, m, newFake("third")), tool.Query{Text: "cat"}); hits.Model != "" || hits.Words == "" || hits.Unembedded != 1 || hits.Total != 1 {
		t.Errorf("by a model without vectors: %+v", hits)
	}
}

// TestWordsCarryOn: whatever befalls the encoder, words find and the result says why alone.
func TestWordsCarryOn(t *testing.T) {
	broken, slow, other, empty := newFake("m"), newFake("m"), newFake("m"), newFake("m")
	broken.fail = errors.New("the endpoint is down")
	slow.slow = true
	m := fakeStore(someTexts, other)
	want := ask(t, hybrid(t, m), tool.Query{Text: "late train"})
	wrong := fakeStore(someTexts, empty)
	wrong.owner("", "a").vectors["m"][2].Data = []byte{1}
	for name, c := range map[string]struct {
		m *memIndex
		e *fakeEncoder
		w string
	}{"down": {m, broken, "the endpoint is down"}, "slow": {m, slow, "deadline"}, "damaged": {wrong, other, "damaged"}} {
		got := ask(t, hybrid(t, c.m, c.e), tool.Query{Text: "late train"})
		if !strings.Contains(got.Words, c.w) || got.Model != "" || got.Total != want.Total || got.List[0].ID != want.List[0].ID {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestFiltersComeBeforeTheCut hides 10,000 nearer texts by each filter.
func TestFiltersComeBeforeTheCut(t *testing.T) {
	e := newFake("m")
	m := newMemIndex()
	near, far := e.vector("feline feline feline"), e.vector("a feline and a dog at the lake")
	o := m.owner("", "a")
	place := func(entry memgpt.Entry, v []float32) {
		m.addEntry(entry)
		o.vectors["m"] = append(o.vectors["m"], store.Vector{Doc: int64(len(o.ids)), Data: retrieve.PackVector(v)})
	}
	for i := range 10_000 {
		en := message(i+1, "noise", noon)
		en.Message.Role = memgpt.RoleAssistant
		place(en, near)
		for k := range 2 {
			en.ID += "x"
			place(en, e.vector(fmt.Sprintf("topic%d matter%d", i%50, i%77+k)))
		}
	}
	wanted := message(77_777, "dog at the lake", noon.Add(time.Hour))
	wanted.Thread = "conv-other"
	place(wanted, far)
	p := passage(1, "dog at the sea", noon.Add(-time.Hour), "pets")
	m.addPassage(p)
	o.vectors["m"] = append(o.vectors["m"], store.Vector{Doc: int64(len(o.ids)), Data: retrieve.PackVector(far)})
	s := hybrid(t, m, e)
	for name, c := range map[string]struct {
		q    tool.Query
		want string
	}{
		"time": {tool.Query{From: noon.Add(time.Minute)}, wanted.ID}, "role": {tool.Query{Roles: []memgpt.Role{memgpt.RoleUser}}, wanted.ID},
		"conversation": {tool.Query{Threads: []string{"conv-other"}}, wanted.ID}, "tags": {tool.Query{Tags: []string{"Pets"}}, p.ID},
		"kind": {tool.Query{Kinds: []memgpt.DocKind{memgpt.KindPassage}}, p.ID}, "end": {tool.Query{To: noon.Add(-time.Minute)}, p.ID},
	} {
		c.q.Text, m.asked = "cat", nil
		if hits := ask(t, s, c.q); hits.Total != 1 || hits.List[0].ID != c.want {
			t.Errorf("by %s: %d found, %+v", name, hits.Total, hits.List)
		}
		if !slices.Contains(m.asked, o.numbers[c.want]) {
			t.Errorf("by %s: the wanted is not compared by its true vector", name)
		}
	}
	m.asked = nil
	if hits := ask(t, s, tool.Query{Text: "cat"}); hits.Total < 10_000 {
		t.Errorf("without a filter %d are found", hits.Total)
	}
	slices.Sort(m.asked)
	if n := len(m.asked); n < 400 || len(slices.Compact(m.asked)) < n {
		t.Errorf("%d vectors are read, some of them more than once", n)
	}
}

func TestDeadTextsNeverAppear(t *testing.T) {
	e := newFake("m")
	m := fakeStore(someTexts, e)
	s := hybrid(t, m, e)
	if hits := ask(t, s, tool.Query{Text: "feline"}); hits.Total == 0 {
		t.Fatal("the cat is not found")
	}
	m.kill("message-1")
	for _, q := range []string{"feline", "cat", "My cat sleeps on the sofa all day", ""} {
		hits := ask(t, s, tool.Query{Text: q, Size: 100})
		if slices.ContainsFunc(hits.List, func(h tool.Hit) bool { return h.ID == "message-1" }) {
			t.Errorf("%q finds what is dead", q)
		}
	}
}

// TestTheDeadGiveNothing: a dead message lends its neighbours no score.
func TestTheDeadGiveNothing(t *testing.T) {
	e := newFake("m")
	m := newMemIndex()
	for i, text := range someTexts {
		m.addEntry(message(i+1, text, noon.Add(time.Duration(i)*time.Minute)))
	}
	m.embedAll(e, someTexts)
	m.kill("message-4")
	for _, h := range ask(t, hybrid(t, m, e), tool.Query{Text: "tomatoes garden doctor", Explain: true, Size: 20}).List {
		if words, around := h.Parts[0].Value, h.Parts[1].Value; h.ID == "message-5" && (words != 0 || around > 3) || h.ID == "message-3" && around != words {
			t.Errorf("%s has %v by words, %v with neighbours", h.ID, words, around)
		}
	}
}

// TestNewTextsAreSeen adds to an owner that is in memory already.
func TestNewTextsAreSeen(t *testing.T) {
	e := newFake("m")
	m := fakeStore(someTexts, e)
	s := hybrid(t, m, e)
	ask(t, s, tool.Query{Text: "feline"})
	text := "The dentist fixed a tooth"
	e.same["tandarts"] = "dentist"
	m.addEntry(message(13, text, noon.Add(300*time.Hour)))
	m.owner("", "a").vectors["m"] = append(m.owner("", "a").vectors["m"], store.Vector{Doc: 13, Data: retrieve.PackVector(e.vector(text))})
	if hits := ask(t, s, tool.Query{Text: "tandarts"}); hits.Total == 0 || hits.List[0].ID != "message-13" {
		t.Errorf("found %+v", hits)
	}
}

// TestOwnersAreDroppedAndLoadedAgain gives the shelf room for one owner at most.
func TestOwnersAreDroppedAndLoadedAgain(t *testing.T) {
	e := newFake("m")
	m := newMemIndex()
	for _, owner := range []string{"a", "b"} {
		for i, text := range someTexts {
			en := message(i+1, text+" "+owner, noon.Add(time.Duration(i)*24*time.Hour))
			en.Agent = owner
			m.addEntry(en)
			o := m.owner("", owner)
			o.vectors["m"] = append(o.vectors["m"], store.Vector{Doc: int64(i + 1), Data: retrieve.PackVector(e.vector(text))})
		}
	}
	s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: []tool.Embedder{e}, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, owner := range []string{"a", "b"} {
			hits, err := s.Search(t.Context(), tool.Query{Owner: owner, Text: "feline"})
			if err != nil || hits.Total == 0 || hits.List[0].ID != "message-1" || !strings.HasSuffix(hits.List[0].Text, " "+owner) {
				t.Fatalf("owner %s: %+v, %v", owner, hits, err)
			}
		}
	}
}

// TestNeverAnError asks with whatever people and machines may type, with vectors and without.
func TestNeverAnError(t *testing.T) {
	e := newFake("m")
	texts := append(slices.Clone(someTexts), "我家的猫叫咪咪", "ผมชอบกินข้าวผัด", "مرحبا بالعالم", "नमस्ते दुनिया", "안녕하세요 세계", "ｆｕｌｌ ｗｉｄｔｈ １２３")
	for range 10_000 {
		texts = append(texts, "the same words again")
	}
	m := fakeStore(texts, e)
	with, without := hybrid(t, m, e), hybrid(t, m)
	for _, q := range []string{"猫", "我家的猫", "ข้าวผัด", "مرحبا", "दुनिया", "세계", "Ｆｕｌｌ　ｗｉｄｔｈ", "naïve café", "👩‍👩‍👧 🍷", "🏳️‍🌈", "\xed\xa0\x80 half",
		"\xff\xfe", "\x00", strings.Repeat("x", 1<<20), strings.Repeat("猫", 1<<18), "the same words again", "'; DROP TABLE docs; --",
		`"unclosed AND (NEAR`, "foo* OR bar^2 NOT", "title:x", "SELECT * FROM docs WHERE a='b'", "%_\\", "()[]{}", "-", "?", " ", "\n\n", "e\u0301\u0301\u0301",
		strings.Repeat("a b ", 5000), strings.Repeat("?", 5000), "\u202eRTL\u202c", "\u200b"} {
		for name, s := range map[string]*retrieve.Searcher{"hybrid": with, "words": without} {
			hits, err := s.Search(t.Context(), tool.Query{Owner: "a", Text: q, Explain: true, Context: 1})
			if err != nil {
				t.Errorf("%s, %.40q: %v", name, q, err)
			}
			for _, h := range hits.List {
				if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
					t.Errorf("%s, %.40q: %s scores %v", name, q, h.ID, h.Score)
				}
			}
		}
	}
	if hits := ask(t, with, tool.Query{Text: "the same words again", Page: 3}); hits.Total < 10_000 || len(hits.List) != 5 {
		t.Errorf("of 10,000 equal texts %d are found", hits.Total)
	}
}

// TestTurnsAround brings what stands before and after, of the same conversation and alive.
func TestTurnsAround(t *testing.T) {
	m := newMemIndex()
	for i, text := range []string{"one", "two", "three", "four", "five", "six"} {
		en := message(i+1, text, noon)
		if i == 3 {
			en.Thread = "conv-other"
		}
		m.addEntry(en)
	}
	m.addPassage(passage(1, "seven", noon))
	m.kill("message-2")
	s := hybrid(t, m)
	hit := ask(t, s, tool.Query{Text: "five", Context: 2}).List[0]
	texts := func(list []tool.Hit) (out []string) {
		for _, h := range list {
			out = append(out, h.Text)
		}
		return out
	}
	if b, a := texts(hit.Before), texts(hit.After); !slices.Equal(b, []string{"one", "three"}) || !slices.Equal(a, []string{"six"}) {
		t.Errorf("around five stand %v and %v", b, a)
	}
	if hit = ask(t, s, tool.Query{Text: "five"}).List[0]; hit.Before != nil || hit.After != nil {
		t.Errorf("unasked: %+v", hit)
	}
	if hit = ask(t, s, tool.Query{Text: "seven", Context: 2}).List[0]; hit.Before != nil || hit.After != nil {
		t.Errorf("a passage has turns around: %+v", hit)
	}
}

// TestPartsAddUp: the parts of a hit's score that are its summands add up to it.
func TestPartsAddUp(t *testing.T) {
	e := newFake("m")
	s := hybrid(t, fakeStore(someTexts, e), e)
	for _, hit := range ask(t, s, tool.Query{Text: `"sleeps on the sofa" feline`, Explain: true}).List {
		sum := 0.
		for _, p := range hit.Parts {
			if slices.Contains([]string{"words", "meaning", "session", "speaker", "date", "verbatim"}, p.Name) {
				sum += p.Value
			}
		}
		if len(hit.Parts) < 8 || math.Abs(sum-hit.Score) > 1e-3 {
			t.Errorf("%s scores %v: %v", hit.ID, hit.Score, hit.Parts)
		}
	}
	if ask(t, s, tool.Query{Text: "feline"}).List[0].Parts != nil {
		t.Error("parts come unasked")
	}
}

// TestSpeakerAndDate: of equal texts, that of whom and when the question names stands first.
func TestSpeakerAndDate(t *testing.T) {
	e := newFake("m")
	m := newMemIndex()
	var texts []string
	for i := range 20 {
		en := message(i+1, someTexts[i%10], noon.Add(time.Duration(i-40)*24*time.Hour))
		en.Message.Author = []string{"Ann Lee", "Bob"}[i/10]
		texts = append(texts, someTexts[i%10])
		m.addEntry(en)
	}
	m.embedAll(e, texts)
	s := hybrid(t, m, e)
	for q, want := range map[string]string{"Did Ann mention the invoice?": "message-8", "Bob's invoice": "message-18"} {
		if hits := ask(t, s, tool.Query{Text: q}); len(hits.List) == 0 || hits.List[0].ID != want {
			t.Errorf("%s: %+v, want %s", q, hits.List, want)
		}
	}
	for at, want := range map[int]string{7: "message-8", 17: "message-18"} {
		now := noon.Add(time.Duration(at-40+1) * 24 * time.Hour)
		if hits := ask(t, s, tool.Query{Text: "the invoice of yesterday", Now: now}); hits.List[0].ID != want {
			t.Errorf("yesterday before %v: %+v, want %s", now, hits.List, want)
		}
	}
	for i, want := range map[int]string{7: "message-8", 17: "message-18"} {
		day := noon.Add(time.Duration(i-40) * 24 * time.Hour).Format("January 2")
		for text, block := range map[string]string{"the invoice on my birthday": "Likes tea.\nBirthday: " + day + ".",
			"结婚纪念日的 invoice": "Their wedding anniversary is on " + day} {
			if hits := ask(t, s, tool.Query{Text: text, Now: noon, Known: []string{"nothing", block}}); hits.List[0].ID != want {
				t.Errorf("%s, where a block says %q: %+v, want %s", text, block, hits.List, want)
			}
		}
	}
	// A date alone is enough.
	if hits := ask(t, s, tool.Query{Text: "what happened yesterday?", Now: noon.Add((7 - 40 + 1) * 24 * time.Hour), Size: 30}); !slices.ContainsFunc(hits.List, func(h tool.Hit) bool { return h.ID == "message-8" }) {
		t.Errorf("yesterday: %+v", hits)
	}
}

// TestLiteralHitsStandAlone: who quotes a sentence or gives a code that a text holds is not shown what is only like it; who
// asks about one is.
func TestLiteralHitsStandAlone(t *testing.T) {
	e := newFake("m")
	texts := append(slices.Clone(someTexts), "The feline expert wrote to vet@example.org", "His car has the plate KX-4471")
	m := fakeStore(texts, e)
	s := hybrid(t, m, e)
	for q, want := range map[string]string{`"sleeps on the sofa"`: "1", "vet@example.org": "13", "KX-4471": "14", "“needs new tyres”": "2"} {
		if got := ids(ask(t, s, tool.Query{Text: q, Size: 20})); got != want {
			t.Errorf("%s finds %q, want %q", q, got, want)
		}
	}
	for q, want := range map[string]string{`feline "expert wrote"`: "message-1", "automobile KX-4471": "message-2"} {
		if hits := ask(t, s, tool.Query{Text: q, Size: 20}); rankOf(hits, want) == 0 {
			t.Errorf("%s does not find %s by meaning: %s", q, want, ids(hits))
		}
	}
	if got := ids(ask(t, s, tool.Query{Text: "?!", Size: 20})); got != "" {
		t.Errorf("punctuation alone finds %s", got)
	}
}
