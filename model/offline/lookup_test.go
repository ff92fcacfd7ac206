package offline

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// uuid makes a code that looks like a UUID from a number.
func uuid(n int) string {
	h := func(k int) uint32 { return uint32(n*2654435761 + k*40503*(n+7)) }
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%08x%04x", h(1), h(2)&0xffff, h(3)&0xfff, h(4)&0xfff, h(5), h(6)&0xffff)
}

func TestLookupChains(t *testing.T) {
	codes := func(n int) string { return fmt.Sprintf("K-%04d", n*37) }
	for _, form := range []string{"key: %s, value: %s", "%s -> %s", "%s %s", "{\"%s\": \"%s\"}", "键：%s，值：%s"} {
		for _, name := range []func(int) string{uuid, codes} {
			for hops := 1; hops <= 7; hops++ {
				s := newSim(t)
				for i := range hops {
					s.insert(fmt.Sprintf(form, name(100+i), name(101+i)))
				}
				for i := range 30 {
					s.insert(fmt.Sprintf(form, name(900+2*i), name(901+2*i)))
				}
				got := s.user("Look up the value of the key " + name(100) + ". If that value is itself a key, follow it until it is not.")
				wants(t, got, name(100+hops))
				if len(s.asked) > hops+3 {
					t.Errorf("%d searches for %d hops", len(s.asked), hops)
				}
			}
		}
	}
}

func (s *sim) insert(text string) {
	s.archive = append(s.archive, hit{ID: fmt.Sprint("passage-", len(s.archive)), Kind: "passage", Time: "2024-01-01T00:00:00Z", Text: text})
}

func TestLookupInChinese(t *testing.T) {
	s := newSim(t)
	s.insert("key: " + uuid(1) + ", value: " + uuid(2))
	s.insert("key: " + uuid(2) + ", value: " + uuid(3))
	wants(t, s.user("请查一下键 "+uuid(1)+" 的值。如果这个值也是键，就继续查下去。"), "最终", uuid(3))
	wants(t, s.user("键 "+uuid(1)+" 对应的值是什么？"), uuid(2))
}

func TestLookupOfWords(t *testing.T) {
	s := newSim(t)
	s.insert("key: alpha, value: beta")
	s.insert("key: beta, value: gamma")
	wants(t, s.user(`What is the value of key "alpha"? Follow it if the value is itself a key.`), "gamma")
	s.insert(`key: "two words", value: beta`)
	if got := s.user(`What is the value of key "two wordz"? Follow it.`); got == "" || s.steps > 20 {
		t.Errorf("got %q in %d steps", got, s.steps)
	}
}

func TestLookupEnds(t *testing.T) {
	s := newSim(t)
	s.insert("key: " + uuid(1) + ", value: " + uuid(2))
	s.insert("key: " + uuid(2) + ", value: " + uuid(1))
	wants(t, s.user("Follow the key "+uuid(1)+" to its final value"), uuid(2))
	if got := s.user("Follow the key " + uuid(77) + " to its final value"); !admits(got) {
		t.Errorf("got %q", got)
	}
	if n := len(s.asked); n > maxSearches+4 {
		t.Errorf("%d searches for a key that leads nowhere", n)
	}
}

func TestLookupWhenStepsLeftContext(t *testing.T) {
	s := newSim(t)
	for i := range 6 {
		s.insert("key: " + uuid(i) + ", value: " + uuid(i+1))
	}
	s.turnLog = 0
	question := envelope("user_message", "Follow the key "+uuid(0)+" until the value is no key", "2024-05-01T00:00:00Z", "")
	s.queue = append(s.queue, question)
	for range 12 {
		res, err := s.m.Generate(t.Context(), s.request(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !s.execute(&res.Message) {
			break
		}
		s.queue = append(s.queue[:1:1], s.queue[max(1, len(s.queue)-4):]...) // the last two steps stay
	}
	wants(t, strings.Join(s.said, ""), uuid(6))
}

// alike is a UUID that shares all but its last part with those of other n.
func alike(n int) string { return fmt.Sprintf("0a1b2c3d-1111-4222-8333-%012x", n*2654435761%(1<<40)) }

func TestLookupDoesNotPageThroughPartsOfAKey(t *testing.T) {
	for _, press := range []bool{false, true} {
		s := newSim(t)
		for i := range 40 {
			s.insert("key: " + alike(100+2*i) + ", value: " + alike(101+2*i))
		}
		for i := range 3 {
			s.insert("key: " + alike(i) + ", value: " + alike(i+1))
		}
		question, got := "Look up the key "+alike(0)+". If the value is itself a key, follow it.", ""
		if s.window = 2500; press {
			got = s.press(question, -1)
		} else {
			got = s.user(question)
		}
		wants(t, got, alike(3))
		for _, c := range s.calls {
			if n, _ := c.args["page"].(float64); n > 0 {
				t.Errorf("press %v: paged on: %v", press, c.args)
			}
		}
		if question = "What is the value of the key " + alike(9999) + "?"; press {
			s.press(question, -1)
		} else {
			s.user(question)
		}
		for _, c := range s.calls {
			if n, _ := c.args["page"].(float64); n > 0 {
				t.Errorf("paged on for a key that is nowhere: %v", c.args)
			}
		}
	}
}

func TestLookupPagesOnWhereAKeyFillsThePage(t *testing.T) {
	s := newSim(t)
	for i := range 12 {
		s.insert(fmt.Sprintf("note %d speaks of %s and of nothing else", i, alike(1)))
	}
	s.insert("key: " + alike(1) + ", value: " + alike(2))
	wants(t, s.press("What is the value of the key "+alike(1)+"?", -1), alike(2))
}

func TestNotedPagesLeadOnOnlyWhereTheyWereFull(t *testing.T) {
	s := newSim(t)
	full := page{call: call{name: toolArchive, args: map[string]any{"query": uuid(1), "page": 0.0}}, more: true, next: 1, ok: true,
		hits: []hit{{ID: "a", Text: "of " + uuid(1)}}}
	partly, none := full, full
	partly.hits = []hit{{ID: "a", Text: "of " + uuid(1)}, {ID: "b", Text: "of " + uuid(2)}}
	none.hits = nil
	for i, p := range []page{full, partly, none} {
		n := notes{Searched: searchedIn([]page{p})}
		for _, pages := range [][]page{{p}, n.pages()} {
			tr := &turn{scene: readScene(s.request())}
			if c, ok := tr.hop(uuid(1), false, false, pages); ok != (i == 0) || ok && c.args["page"] != 1 {
				t.Errorf("page %d, noted %v: %v %v", i, pages[0].noted, ok, c)
			}
		}
	}
}

func TestHoldsWhole(t *testing.T) {
	for _, x := range []struct {
		text, code string
		want       bool
	}{
		{"key: K-37, value: x", "k-37", true}, {"K-370", "K-37", false}, {"K-370 K-37", "K-37", true}, {"AK-37", "K-37", false},
		{"K-37-b", "K-37", false}, {"键K-37的值", "K-37", true}, {"", "K-37", false}, {"K-3", "K-37", false}, {"“K-37”.", "K-37", true},
	} {
		if got := holdsWhole(x.text, x.code); got != x.want {
			t.Errorf("holdsWhole(%q, %q) = %v", x.text, x.code, got)
		}
	}
}

func TestNestedKeyValueFiles(t *testing.T) {
	dir := shared(t, "data/nested_kv")
	m := newSim(t).m
	pairs := firstPairs(t, filepath.Join(dir, "kv-retrieval-140_keys.jsonl.gz"))
	for level := 1; level <= 6; level++ {
		f, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("random_orderings_100_samples_140_indices_%d_levels.jsonl", level)))
		if err != nil {
			t.Fatal(err)
		}
		right, tried := 0, 0
		for i, row := range strings.Split(strings.TrimSpace(string(f)), "\n") {
			if i%4 > 0 { // all take a minute under the race detector
				continue
			}
			tried++
			var at []int
			if err := json.Unmarshal([]byte(row), &at); err != nil {
				t.Fatal(err)
			}
			s := &sim{t: t, m: m, limit: 2000, tools: allTools, size: 5, window: 8192}
			table := append([][2]string(nil), pairs...)
			for i := 0; i+1 < len(at); i++ {
				table[at[i]][1] = table[at[i+1]][0]
			}
			for _, p := range table {
				s.insert("key: " + p[0] + ", value: " + p[1])
			}
			got := s.user("What is the value of key " + table[at[0]][0] + "? If the value is itself a key, look that up too, until it is not.")
			if strings.Contains(got, table[at[len(at)-1]][1]) {
				right++
			}
		}
		if right != tried || tried < 20 {
			t.Errorf("level %d: %d of %d", level, right, tried)
		}
	}
}

func firstPairs(t *testing.T, name string) [][2]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReaderSize(z, 1<<20).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Records [][2]string `json:"ordered_kv_records"`
	}
	if err := json.Unmarshal(line, &o); err != nil {
		t.Fatal(err)
	}
	return o.Records
}

// shared returns a folder of the shared data beside the repository; the test is skipped where there is none.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Join(dir, "..")
	}
	dir = filepath.Join(dir, "..", "shared", filepath.FromSlash(name))
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the shared data is not there: " + name)
	}
	return dir
}
