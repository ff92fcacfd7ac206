package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/storetest"
	"memgpt/tool"
)

// diarist does with a message what its first word says, and folds by quoting all that it is given.
func diarist() *script.Model {
	return script.New(script.Config{
		Func: func(_ int, req *memgpt.Request) script.Reply {
			text, calls := newestOfUser(req)
			word, rest, _ := strings.Cut(text, "\n")
			switch {
			case calls > 0 || rest == "":
				return script.Say("done with it " + strings.Repeat("and more ", 60))
			case word == "keep":
				return script.Calls(script.Call("core_memory_append", "label", "human", "content", "fact: "+rest),
					script.Call("archival_memory_insert", "content", "note: "+rest), script.Say("I keep that "+rest))
			case word == "find":
				return script.Calls(script.Call("conversation_search", "query", rest, "request_heartbeat", true),
					script.Call("archival_memory_search", "query", rest, "request_heartbeat", true))
			}
			return script.Say("heard " + strings.Repeat("and noted ", 60))
		},
		Summary: func(req *memgpt.Request) script.Reply {
			body := req.Messages[len(req.Messages)-1].Said()
			return script.Text("They said: " + body[max(0, len(body)-300):] + "\nSearch for: x")
		},
	})
}

// newestOfUser returns the newest message of the user and how many calls stand after it.
func newestOfUser(req *memgpt.Request) (text string, calls int) {
	for i := range req.Messages {
		m := &req.Messages[i]
		var envelope struct{ Type, Message string }
		if m.Role == memgpt.RoleUser && json.Unmarshal([]byte(m.Said()), &envelope) == nil && envelope.Type == string(memgpt.EventUser) {
			text, calls = envelope.Message, 0
		}
		calls += len(m.Calls())
	}
	return text, calls
}

// fileBytes names the places beside the store where a text stands, in any file.
func (e *env) fileBytes(texts ...string) (found []string) {
	e.t.Helper()
	must(e.t, filepath.WalkDir(filepath.Dir(e.path), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, text := range texts {
			if at := bytes.Index(data, []byte(text)); at >= 0 {
				found = append(found, fmt.Sprintf("%q in %s: %q", text, filepath.Base(path), data[max(0, at-80):min(len(data), at+60)]))
			}
		}
		return err
	}))
	return found
}

func (e *env) forget(what kernel.Forgetting) *kernel.Forgotten {
	e.t.Helper()
	what.Agent = e.agent
	preview, err := e.kernel.PreviewForget(e.t.Context(), what)
	must(e.t, err)
	done, err := e.kernel.Forget(e.t.Context(), what)
	must(e.t, err)
	if d := cmp.Diff(preview, done); d != "" {
		e.t.Errorf("the preview promised other things (-preview +done):\n%s", d)
	}
	return done
}

// finds returns the texts that a search finds.
func (e *env) finds(query string) (texts []string) {
	e.t.Helper()
	search, err := retrieve.New(retrieve.Config{Index: e.base, Store: e.base})
	must(e.t, err)
	hits, err := search.Search(e.t.Context(), tool.Query{Owner: e.agent.ID, Text: query, Size: 50})
	must(e.t, err)
	for _, h := range hits.List {
		texts = append(texts, h.Text)
	}
	return texts
}

// rest is everything that is stored but what holds one of the words, by place.
func (e *env) rest(words ...string) map[string]string {
	e.t.Helper()
	out := map[string]string{}
	put := func(place, text string) {
		for _, w := range words {
			if strings.Contains(text, w) {
				return
			}
		}
		out[place] = text
	}
	ctx := e.t.Context()
	threads, err := e.base.Threads(ctx, "", e.agent.ID)
	must(e.t, err)
	for _, th := range threads {
		entries, err := e.base.Entries(ctx, store.EntryRange{Thread: th.ID})
		must(e.t, err)
		for _, x := range entries {
			put(th.Name+" "+fmt.Sprint(x.Seq), fmt.Sprintf("%s %s %v %+v", x.ID, x.Turn, x.Time, x.Message))
		}
		turns, err := e.base.Turns(ctx, "", th.ID, 0)
		must(e.t, err)
		for _, turn := range turns {
			put(turn.ID, fmt.Sprintf("%+v", turn))
		}
		out["head of "+th.Name] = fmt.Sprint(th.Head, th.Next, th.Alerted)
	}
	passages, err := e.base.PassagesOf(ctx, store.PassageRange{Owner: e.agent.ID, Dead: true})
	must(e.t, err)
	for _, pa := range passages {
		put(pa.ID, fmt.Sprintf("%+v", pa))
	}
	return out
}

// same holds that everything of before is still as it was.
func (e *env) same(before map[string]string, words ...string) {
	e.t.Helper()
	after := e.rest(words...)
	for place, text := range before {
		if after[place] != text {
			e.t.Errorf("%s was %s\nand is %s", place, text, after[place])
		}
	}
}

const (
	enSecret = `My locker code is "zeta4711" & it <opens> the boat shed\door.`
	zhSecret = `我的保险箱密码是四七一一号，“别告诉人”。`
)

// keys are the words by which the byte search looks for a secret.
func secretWords(secret string) []string {
	if secret == zhSecret {
		return []string{"保险箱", "四七", "别告诉", `\u4fdd\u9669`}
	}
	return []string{"zeta4711", "boat shed", "locker code"}
}

// talkAbout has a conversation about a secret: it is kept, found again, evicted and folded.
func (e *env) talkAbout(secret string) (id string) {
	e.t.Helper()
	e.say("hello I am a person with a dog called Rex")
	e.say("keep\nthe kettle is blue and stands in the kitchen")
	e.say("keep\n" + secret)
	id = e.said("keep\n" + secret)
	e.say("find\n" + secret)
	for i := range 8 {
		e.say(fmt.Sprintf("talk number%d about the weather %s", i, strings.Repeat("rain and sun ", 40)))
	}
	return id
}

// said returns the id of the user's message.
func (e *env) said(text string) string {
	e.t.Helper()
	for _, x := range e.log() {
		if x.Message.Role == memgpt.RoleUser && x.Message.Said() == text {
			return x.ID
		}
	}
	e.t.Fatalf("nobody said %q", text)
	return ""
}

func TestForgetMessage(t *testing.T) {
	for name, secret := range map[string]string{"english": enSecret, "chinese": zhSecret,
		"long": enSecret + "\n" + strings.Repeat("The shed of zeta4711 is far away behind the boat shed. ", 60)} {
		t.Run(name, func(t *testing.T) {
			m := diarist()
			e := newEnv(t, m, options{window: 3600})
			id := e.talkAbout(secret)
			words := secretWords(secret)
			if len(e.fileBytes(words[:1]...)) == 0 || len(e.finds(words[0])) == 0 {
				t.Fatal("the secret isn't there before")
			}
			before, seqs := e.rest(append(words, id)...), len(e.log())
			outside, err := e.base.Outside(t.Context(), "", e.agent.ID, e.thread)
			must(t, err)
			done := e.forget(kernel.Forgetting{Messages: []string{id}})
			done.Lines = nil
			if blocks := e.block("human"); done.Messages != 1 || done.Summaries != 1 || (done.Blocks == 1) == (name == "long") || done.Quotes+done.Passages < 3 {
				t.Errorf("%+v, the block is %q", done, blocks) // the long one has no room in a block
			}
			if found := e.fileBytes(words...); len(found) > 0 {
				t.Errorf("left: %s", strings.Join(found, "\n"))
			}
			e.same(before, append(words, id)...)
			if log := e.log(); len(log) != seqs {
				t.Errorf("the log has %d entries, and had %d", len(log), seqs)
			}
			after, err := e.base.Outside(t.Context(), "", e.agent.ID, e.thread)
			must(t, err)
			after.Passages, outside.Passages = 0, 0 // a passage that was the secret alone went
			if d := cmp.Diff(outside, after); d != "" {
				t.Error(d)
			}
			for _, text := range e.finds(words[0] + " " + words[1]) {
				for _, w := range words {
					if strings.Contains(text, w) {
						t.Errorf("search finds %q", text)
					}
				}
			}
			e.checkTombstone(id)
			// The summary is made anew, of what is left.
			asked := len(m.Requests())
			e.say("talk on")
			for _, req := range m.Requests()[asked:] {
				if text := fmt.Sprintf("%+v", req.Messages); strings.Contains(text, words[0]) || strings.Contains(text, words[1]) {
					t.Errorf("a request holds the secret: %s", text)
				}
			}
			th, err := e.base.Thread(t.Context(), "", e.thread)
			must(t, err)
			if th.Summary.Text == "" || th.Folded == 0 || th.Folded != th.Head {
				t.Errorf("no summary was made anew: %+v", th)
			}
			if again := e.forget(kernel.Forgetting{Messages: []string{id}}); !again.None() || again.Already != 1 {
				t.Errorf("once more: %+v", again)
			}
		})
	}
}

// checkTombstone holds that a dated notice stands where the message was.
func (e *env) checkTombstone(id string) {
	e.t.Helper()
	found, err := e.base.EntriesByID(e.t.Context(), "", e.agent.ID, []string{id})
	must(e.t, err)
	if len(found) != 1 {
		e.t.Fatalf("%d entries have the id", len(found))
	}
	m := found[0].Message
	if m.Said() != "forgotten by the owner on 2026-04-06" || m.Type != memgpt.EventNotice || m.Role != memgpt.RoleSystem {
		e.t.Errorf("in place of the message stands %+v", m)
	}
}

// TestForgetShowsTheModel: what is forgotten while it is in the queue is a notice in the next request, and each call has its
// result.
func TestForgetShowsTheModel(t *testing.T) {
	m := diarist()
	e := newEnv(t, m, options{})
	e.say("hello there")
	e.say("keep\n" + enSecret)
	e.say("find\nthe locker")
	var ids []string
	for _, x := range e.log() {
		if strings.Contains(fmt.Sprintf("%+v", x.Message), "keep") || x.Message.Role == memgpt.RoleAssistant && len(x.Message.Calls()) > 2 {
			ids = append(ids, x.ID)
		}
	}
	e.forget(kernel.Forgetting{Messages: ids})
	e.say("go on please")
	req := m.Last()
	must(t, checkV(req, e.count, 1, 16384, ""))
	notices := count(req, memgpt.EventNotice)
	if text := fmt.Sprintf("%+v", req.Messages); notices < 4 || strings.Contains(text, "zeta4711") {
		t.Errorf("%d notices in %s", notices, text)
	}
	if found := e.fileBytes("zeta4711"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestForgetTerm(t *testing.T) {
	for term, words := range map[string][]string{"ZETA4711": {"zeta4711"}, "ｚｅｔａ4711": {"zeta4711"}, "保险箱": {"保险箱"}, "locker code": {"locker code"}} {
		t.Run(term, func(t *testing.T) {
			e := newEnv(t, diarist(), options{window: 3600})
			e.config.Normalize = retrieve.SameKey
			k, err := kernel.New(e.config)
			must(t, err)
			e.kernel = k
			e.talkAbout(enSecret)
			e.talkAbout(zhSecret)
			before := e.rest(append(words, "message-", "passage-")...) // pages of results go where they name what goes
			done := e.forget(kernel.Forgetting{Term: term})
			done.Lines = nil
			if done.Messages < 3 || done.Passages != 1 || done.Summaries != 1 || done.Blocks != 1 {
				t.Errorf("%+v", done)
			}
			if found := e.fileBytes(words...); len(found) > 0 {
				t.Errorf("left: %s", strings.Join(found, "\n"))
			}
			e.same(before, append(words, "message-", "passage-")...)
			if got := e.block("human"); !strings.Contains(got, "kettle") {
				t.Errorf("other lines of the block went: %q", got)
			}
			if other := e.finds("kettle"); len(other) == 0 {
				t.Error("what doesn't hold the term isn't found any more")
			}
			e.say("go on")
		})
	}
}

// TestForgetTermInWords keeps to whole words, and says what else there is.
func TestForgetTermInWords(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	e.say("talk of the annual report")
	e.say("talk of Ann, who runs")
	e.say("talk of running Anns")
	done := e.forget(kernel.Forgetting{Term: "ann"})
	if done.Messages != 1 || done.Related != 2 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("of Ann,"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if done = e.forget(kernel.Forgetting{Term: "ann", Forms: true}); done.Messages != 2 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("annual", "Anns"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	for _, empty := range []string{" ", "\x00", ".", "“…” -"} {
		if _, err := e.kernel.Forget(t.Context(), kernel.Forgetting{Agent: e.agent, Term: empty}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestForgetPassages(t *testing.T) {
	e := newEnv(t, diarist(), options{window: 3600})
	var list []memgpt.Passage
	for i := range 40 {
		source := "novel of sue.txt"
		if i%2 == 1 {
			source = "other.txt"
		}
		list = append(list, memgpt.Passage{Text: fmt.Sprintf("Chapter%d: the captain of ship%d saw an island called Ysla%d.", i, i, i), Source: source, Tags: []string{fmt.Sprint("tag", i)}})
	}
	_, err := e.load("the book", list)
	must(t, err)
	e.system(memgpt.EventDocument, fmt.Sprintf("The document %q was loaded", "novel of sue.txt"))
	e.say("find\nthe captain of ship4 and ship5")
	stored, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	done := e.forget(kernel.Forgetting{Passages: []string{stored[5].ID}})
	if done.Passages != 1 || done.Quotes != 1 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("Ysla5", "ship5 saw", "Chapter5:", "ysla5", "tag5"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if strings.Contains(fmt.Sprint(e.finds("Ysla5")), "Ysla5") || !strings.Contains(fmt.Sprint(e.finds("Ysla7")), "Ysla7") {
		t.Errorf("%v %v", e.finds("Ysla5"), e.finds("Ysla7"))
	}
	done = e.forget(kernel.Forgetting{Source: "novel of sue.txt"})
	if done.Passages != 20 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("Ysla4.", "novel of sue", "Ysla20"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	sources, err := e.base.Sources(t.Context(), "", e.agent.ID)
	must(t, err)
	if len(sources) != 1 || sources[0].Name != "other.txt" || sources[0].Passages != 19 {
		t.Errorf("%+v", sources)
	}
	if len(e.finds("Ysla7")) == 0 {
		t.Error("the other document isn't found any more")
	}
	if none := e.forget(kernel.Forgetting{Source: "novel of sue.txt"}); !none.None() {
		t.Errorf("%+v", none)
	}
	if _, err := e.kernel.Forget(t.Context(), kernel.Forgetting{Agent: e.agent, Passages: []string{"passage-x"}}); memgpt.CodeOf(err) != memgpt.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// TestForgetEarlierVersions takes what a passage replaced with it.
func TestForgetEarlierVersions(t *testing.T) {
	m := script.Of(script.Calls(script.Call("archival_memory_insert", "content", "Uma lives in Quito"), script.Say("ok")))
	e := newEnv(t, m, options{})
	e.say("hello")
	first, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	m.Add(script.Calls(script.Call("archival_memory_update", "id", first[0].ID, "content", "Uma lives in Lima"), script.Say("ok")))
	e.say("she moved")
	now, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	if len(now) != 1 || now[0].ID == first[0].ID {
		t.Fatalf("%+v %+v", now, e.log())
	}
	if done := e.forget(kernel.Forgetting{Passages: []string{now[0].ID}}); done.Passages != 2 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("Quito", "Lima", "quito", "lima"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// otherThread makes another conversation current and returns the one before.
func (e *env) otherThread(name string) (before string) {
	e.t.Helper()
	before = e.thread
	th := memgpt.Thread{ID: e.newID("conv"), Agent: e.agent.ID, Name: name, Next: 1, Created: e.now}
	_, err := e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Threads: []memgpt.Thread{th}})
	must(e.t, err)
	e.thread = th.ID
	return before
}

func TestForgetThread(t *testing.T) {
	e := newEnv(t, diarist(), options{window: 3600})
	e.talkAbout("something harmless about the garden")
	main := e.otherThread("secret plans")
	e.talkAbout(enSecret)
	th, err := e.base.Thread(t.Context(), "", e.thread)
	must(t, err)
	e.thread = main
	e.say("find\nthe locker of zeta4711 please")
	log := len(e.log())
	done := e.forget(kernel.Forgetting{Thread: &th})
	if done.Threads != 1 || done.Messages < 20 {
		t.Errorf("%+v", done)
	}
	// The user's own question of it in the other conversation, and what was kept of it, are no part of the conversation:
	// what was kept verbatim is gone, the question stays.
	for _, found := range e.fileBytes(`"zeta4711`, "zeta4711\\", "boat shed", "locker code", "secret plans") {
		t.Error(found)
	}
	if len(e.log()) != log || len(e.finds("garden")) == 0 {
		t.Error("the other conversation changed")
	}
	if _, err := e.base.Thread(t.Context(), "", th.ID); memgpt.CodeOf(err) != memgpt.CodeNotFound {
		t.Errorf("%v", err)
	}
	records, err := e.base.Records(t.Context(), "", "forgotten")
	must(t, err)
	if len(records) != 1 || !strings.Contains(string(records[0].Data), `"time":"2026-04-06`) {
		t.Errorf("%+v", records)
	}
	e.say("go on")
}

// shareBlock makes a second agent that has the first one's block human.
func (e *env) shareBlock() memgpt.Agent {
	e.t.Helper()
	a, err := e.base.Agent(e.t.Context(), "", e.agent.ID)
	must(e.t, err)
	own := memgpt.Block{ID: e.newID("block"), Label: "persona", Limit: 100, Value: "I am the other."}
	other := memgpt.Agent{ID: e.newID("agent"), Name: "other", Blocks: []string{own.ID, a.Blocks[1]}, Created: e.now}
	_, err = e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{other}, Blocks: []memgpt.Block{own},
		Threads: []memgpt.Thread{{ID: e.newID("conv"), Agent: other.ID, Name: "main", Next: 1, Created: e.now}}})
	must(e.t, err)
	return other
}

func TestForgetSharedBlock(t *testing.T) {
	e := newEnv(t, diarist(), options{window: 3600})
	other := e.shareBlock()
	threads, err := e.base.Threads(t.Context(), "", other.ID)
	must(t, err)
	id := e.talkAbout(enSecret)
	lease := &store.Lease{Thread: threads[0].ID, Until: e.now.Add(time.Hour)}
	got, err := e.base.Commit(t.Context(), &store.Commit{Now: e.now, Acquire: lease})
	must(t, err)
	done := e.forget(kernel.Forgetting{Messages: []string{id}})
	if len(done.Shared) != 1 || done.Shared[0] != "human (also of other)" {
		t.Errorf("%+v", done.Shared)
	}
	if strings.Contains(e.block("human"), "zeta4711") || !strings.Contains(e.block("human"), "kettle") {
		t.Errorf("%q", e.block("human"))
	}
	_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Lease: got.Lease})
	if memgpt.CodeOf(err) != memgpt.CodeLeaseLost {
		t.Errorf("the other agent goes on with what it has read: %v", err)
	}
}

func TestForgetAgent(t *testing.T) {
	e := newEnv(t, diarist(), options{window: 3600})
	other := e.shareBlock()
	e.talkAbout(enSecret)
	done := e.forget(kernel.Forgetting{Whole: true})
	if done.Threads != 1 || done.Blocks != 1 || len(done.Kept) != 1 || !strings.Contains(done.Kept[0], `"human" stays`) {
		t.Errorf("%+v", done)
	}
	if _, err := e.base.Agent(t.Context(), "", e.agent.ID); memgpt.CodeOf(err) != memgpt.CodeNotFound {
		t.Errorf("%v", err)
	}
	if found := e.fileBytes("weather", "note: ", "I am a test"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	must(t, errOf(e.base.Blocks(t.Context(), "", other.Blocks)))
}

func errOf[T any](_ T, err error) error { return err }

// TestForgetImported: a line that was forgotten does not come back with the file that it came from.
func TestForgetImported(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	lines := []kernel.Line{{Speaker: "user", Text: "I keep bees"}, {Speaker: "Ann", Text: enSecret}, {Speaker: "assistant", Text: "Nice."},
		{Speaker: "user", Text: zhSecret, ID: "line 4"}}
	load := func() kernel.Imported {
		done, err := e.importLines(lines)
		must(t, err)
		return done
	}
	load()
	ids := []string{e.said(enSecret), e.said(zhSecret)}
	e.forget(kernel.Forgetting{Messages: ids})
	if done := load(); done.Added != 0 || done.Skipped != 4 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes(append(secretWords(enSecret), secretWords(zhSecret)...)...); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if len(e.finds("bees")) != 1 {
		t.Errorf("%v", e.finds("bees"))
	}
}

func (e *env) importLines(lines []kernel.Line) (kernel.Imported, error) {
	ctx := e.t.Context()
	e.now = e.now.Add(time.Hour)
	got, err := e.store.Commit(ctx, &store.Commit{Now: e.now, Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}})
	if err != nil {
		return kernel.Imported{}, err
	}
	st, err := store.Load(ctx, e.store, "", e.thread)
	if err != nil {
		return kernel.Imported{}, err
	}
	return e.kernel.Import(ctx, &store.Work{State: st, Lease: *got.Lease, TTL: time.Minute}, lines)
}

// TestForgetWhileItRuns forgets at each commit of a turn that has read the text, and that quotes it. The turn goes on from
// the start with what is left, and nothing of the text comes back.
func TestForgetWhileItRuns(t *testing.T) {
	for at := 1; at < 4; at++ {
		m := diarist()
		o := options{}
		e := newEnv(t, m, o)
		e.say("hello there")
		e.say("keep\n" + enSecret)
		id := e.said("keep\n" + enSecret)
		plain := e.kernel
		commits := 0
		e.store = &before{Store: e.base, do: func() {
			if commits++; commits == at {
				done, err := plain.Forget(t.Context(), kernel.Forgetting{Agent: e.agent, Messages: []string{id}})
				if err != nil || done.Messages != 1 {
					t.Errorf("%+v %v", done, err)
				}
			}
		}}
		e.configure(m, o)
		ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "find\nmy locker"))
		must(t, err)
		_, err = e.handle(t.Context(), ev)
		if at > 1 && memgpt.CodeOf(err) != memgpt.CodeLeaseLost {
			t.Fatalf("at %d the turn goes on: %v", at, err)
		}
		e.now = e.now.Add(time.Hour)
		got, err := e.base.Commit(t.Context(), &store.Commit{Now: e.now, Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}})
		must(t, err)
		e.lease = got.Lease
		pending, err := e.base.Events(t.Context(), store.EventRange{Thread: e.thread})
		must(t, err)
		for _, ev := range pending {
			if turn, err := e.handle(t.Context(), ev); err != nil || turn.State != memgpt.TurnDone {
				t.Fatalf("at %d: %+v, %v", at, turn, err)
			}
		}
		if found := e.fileBytes(secretWords(enSecret)...); len(found) > 0 {
			t.Errorf("at %d: %v", at, found)
		}
		if e.said("find\nmy locker") == "" || at > 1 && len(pending) != 1 { // the first commit is the acceptance
			t.Errorf("at %d the message was lost, or %d are pending", at, len(pending))
		}
	}
}

// before is a store on which something happens before each commit.
type before struct {
	store.Store
	do func()
}

func (b *before) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	b.do()
	return b.Store.Commit(ctx, c)
}

// TestForgetFaulty lets the store die at every call of a forgetting: nothing is done where it died before the erasure, all
// where it died after, and a second try does or finds all.
func TestForgetFaulty(t *testing.T) {
	for _, after := range []bool{false, true} {
		e := newEnv(t, diarist(), options{})
		e.say("keep\n" + enSecret)
		what := kernel.Forgetting{Agent: e.agent, Messages: []string{e.said("keep\n" + enSecret)}}
		before := e.rest()
		for at := int64(1); ; at++ {
			faulty := &storetest.Faulty{Inner: e.base, At: at, After: after, Commits: after}
			cfg := e.config
			cfg.Store = faulty
			k, err := kernel.New(cfg)
			must(t, err)
			if _, err = k.Forget(t.Context(), what); (err != nil) != faulty.Dead() {
				t.Fatalf("at %d: error %v, dead %v", at, err, faulty.Dead())
			}
			left := e.fileBytes("zeta4711")
			if !faulty.Dead() || after {
				if len(left) > 0 {
					t.Errorf("at %d: %v", at, left)
				}
				break
			}
			if len(left) == 0 { // it died as it looked whether anything is left
				break
			}
			if e.same(before); t.Failed() {
				t.Fatalf("at %d: something was done, not all", at)
			}
		}
		if done, err := e.kernel.Forget(t.Context(), what); err != nil || !done.None() || done.Already != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
	}
}

// TestForgetPendingAndFailed takes texts out of events that wait and of errors of turns.
func TestForgetPendingAndFailed(t *testing.T) {
	e := newEnv(t, script.Of(script.Fail(memgpt.Errorf(memgpt.CodeModelRequest, "refused: %q", enSecret))), options{})
	e.say("talk about " + enSecret)
	_, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "again: zeta4711"))
	must(t, err)
	done := e.forget(kernel.Forgetting{Term: "zeta4711"})
	if done.Others != 2 || done.Messages != 1 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("zeta4711"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestTheModelCannotForget: nothing that functions are handed can erase, and none is named so.
func TestTheModelCannotForget(t *testing.T) {
	memory := reflect.TypeFor[tool.Memory]()
	for i := range memory.NumMethod() {
		if name := memory.Method(i).Name; strings.Contains(name, "Forget") || strings.Contains(name, "Erase") {
			t.Errorf("functions may call %s", name)
		}
	}
	e := newEnv(t, diarist(), options{})
	e.say("keep\n" + enSecret)
	tools, err := memtool.System(false, false)
	must(t, err)
	for _, f := range tools {
		if strings.Contains(f.Spec.Name, "forget") || strings.Contains(f.Spec.Name, "erase") {
			t.Errorf("the model is offered %s", f.Spec.Name)
		}
	}
}

// TestForgetUnderAHost forgets while the model is at work on a request that holds the text. The answer that it gives of it
// is thrown away, and the host runs the turn again with what is left.
func TestForgetUnderAHost(t *testing.T) {
	gate := script.NewGate()
	asked := 0
	m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		text := fmt.Sprintf("%+v", req.Messages)
		switch {
		case !strings.Contains(text, "zeta4711"):
			return script.Say("I know of nothing")
		case asked == 0:
			asked++
			return script.Say("noted")
		}
		return script.Say("you said " + enSecret).Held(gate)
	}})
	e := newEnv(t, m, options{})
	h, err := host.New(host.Config{Store: e.base, Kernel: e.kernel, NewID: e.newIDs()})
	must(t, err)
	defer func() { must(t, h.Close(context.WithoutCancel(t.Context()))) }()
	tell := func(text string) *host.Turn {
		turn, err := h.Send(t.Context(), host.Message{Agent: e.agent.ID, Thread: e.thread, Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
		must(t, err)
		return turn
	}
	_, err = tell(enSecret).Wait(t.Context())
	must(t, err)
	turn := tell("what did I say?")
	<-gate.Entered()
	e.forget(kernel.Forgetting{Messages: []string{e.said(enSecret)}})
	gate.Open()
	record, err := turn.Wait(t.Context())
	must(t, err)
	if said := turn.Said(); record.State != memgpt.TurnDone || len(said) != 1 || said[0] != "I know of nothing" {
		t.Errorf("%+v: %q", record, said)
	}
	if found := e.fileBytes("zeta4711"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// newIDs returns a source of ids that many may draw from.
func (e *env) newIDs() func(string) string {
	var mu sync.Mutex
	return func(kind string) string {
		mu.Lock()
		defer mu.Unlock()
		return e.newID(kind)
	}
}

// TestForgetCutQuotations: pages of results that quote what goes, or what quotes it, go whole, since they may be cut
// anywhere. Results that only name it stay.
func TestForgetCutQuotations(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	half := enSecret[:34] // "My locker code is "zeta4711" & it <"
	long := strings.Repeat(" and so on", 10)
	call := func(id, args string) memgpt.Message {
		return memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: id, Name: "f", Arguments: args}}}
	}
	result := func(id, text string) memgpt.Message {
		return memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: id, Name: "f", Text: text}}}
	}
	prefetch := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "message-2: "+half+long)
	prefetch.Type = memgpt.EventPrefetch
	reasoned := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Text{Text: "I think"},
		memgpt.Reasoning{Text: "because " + enSecret, Data: json.RawMessage(`{"signed":"x"}`)}}}
	list := []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, enSecret),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "I repeat: "+enSecret),
		call("a", `{"query":"x"}`), result("a", `{"id":"message-1","text":"`+half+long+`"}`),
		call("b", `{"query":"x"}`), result("b", `{"id":"message-2","text":"`+half+long+`"}`),
		call("c", `{"id":"message-2","offset":3}`), result("c", half+long),
		call("d", `{"id":"x"}`), result("d", "Stored as message-1."), prefetch, reasoned,
		call("e", `{"text":"\u004dy locker code is \"zeta4711\" & it <opens> the boat shed\\door","n":12345678901234567890}`), result("e", "OK"),
	}
	th, err := e.base.Thread(t.Context(), "", e.thread)
	must(t, err)
	c := &store.Commit{Threads: []memgpt.Thread{th}}
	for i, m := range list {
		c.Entries = append(c.Entries, memgpt.Entry{ID: fmt.Sprint("message-", i+1), Agent: e.agent.ID, Thread: e.thread, Seq: int64(i + 1), Turn: "turn", Time: e.now, Message: m})
	}
	c.Threads[0].Next, c.Threads[0].Asked = int64(len(list)+1), 1
	c.Threads[0].Open = []memgpt.OpenCall{{Entry: "message-1", CallID: "z"}, {Entry: "message-13", CallID: "y"}}
	_, err = e.base.Commit(t.Context(), c)
	must(t, err)
	e.forget(kernel.Forgetting{Messages: []string{"message-1"}})
	if found := e.fileBytes("zeta4711", "locker code"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	log := e.log()
	for i, want := range map[int]string{1: "I repeat: [forgotten].", 3: "forgotten by the owner on 2026-04-06", 5: "forgotten by the owner on 2026-04-06",
		7: "forgotten by the owner on 2026-04-06", 9: "Stored as message-1.", 10: "forgotten by the owner on 2026-04-06", 11: "I think", 13: "OK"} {
		if got := log[i].Message.Said(); got != want {
			t.Errorf("message %d says %q, want %q", i+1, got, want)
		}
	}
	if args := log[12].Message.Calls()[0].Arguments; args != `{"n":12345678901234567890,"text":"[forgotten]"}` {
		t.Errorf("arguments %s", args)
	}
	th, err = e.base.Thread(t.Context(), "", e.thread)
	must(t, err)
	if th.Asked != 0 || len(th.Open) != 1 || th.Open[0].CallID != "y" {
		t.Errorf("%+v", th)
	}
}
