package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// publicDocForms are the readers of this file by the name of the form.
var publicDocForms = map[string]struct {
	is   func(map[string]json.RawMessage) bool
	read func([]byte) ([]*unified, error)
}{"squad": {isSquad, readSquad}, "nq": {isNQOpen, readNQOpen}, "memdaily": {isMemDaily, readMemDaily}}

const (
	ownSquad = `{"version":"1.1","data":[
		{"title":"Boats","paragraphs":[{"context":"The ferry Alma was built in 1902.","qas":[
			{"id":"a1","question":"When was Alma built?","answers":[{"text":"1902","answer_start":28},{"text":"in 1902","answer_start":25}]}]}]},
		{"title":"Hills","paragraphs":[{"context":"Kell Hill is 310 m high.","qas":[
			{"id":"b1","question":"How high is Kell Hill?","answers":[{"text":"310 m","answer_start":13}]},
			{"id":"b2","question":"Who climbed it first?","answers":[],"is_impossible":true}]}]}]}`
	ownCMRC = `[{"context_id":"T_7","context_text":"阿尔玛号渡轮建于1902年。","title":"船","qas":[
		{"query_id":"T_7_QUERY_0","query_text":"渡轮建于哪一年？","answers":["1902年","1902"]}]}]`
	ownNQ = `{"question":"who built the ferry alma","answers":["Ines Kroll","Kroll"],"ctxs":[
		{"id":null,"title":"Alma","text":"Ines Kroll built it.","score":null,"hasanswer":true,"isgold":true,"original_retrieval_index":null},
		{"id":"12","title":"Kroll","text":"Ines Kroll lived by the sea.","score":"1.5","hasanswer":true,"isgold":false,"original_retrieval_index":3}]}
		{"question":"where did kroll live","answers":["by the sea"],"ctxs":[
		{"id":"7","title":"Hills","text":"Kell Hill is high.","hasanswer":false,"isgold":false},
		{"id":"12","title":"Kroll","text":"Ines Kroll lived by the sea.","hasanswer":true,"isgold":false}]}`
	ownMemDaily = `{"simple":{"roles":null,"events":[{"tid":4,"message_list":[
		{"mid":0,"message":"我下周去划船。","time":"2024年05月06日 周一 09:00","place":"湖边"},
		{"mid":1,"message":"划船的地点是东湖。","time":"2024年05月06日 周一 10:00","place":"湖边"}],
		"QA":{"qid":0,"question":"在哪里划船？","answer":"东湖","target_step_id":[1],"choices":{"A":"东湖","B":"西湖"},"ground_truth":"A","time":"2024年05月07日 周二 08:00"}}]},
		"noisy":{"items":[{"tid":0,"message_list":[{"mid":0,"message":"我有一把伞。","time":""}],"QA":{"qid":2,"question":"我有什么？","answer":"伞","target_step_id":[0],"time":""}}]}}`
)

// ownDocs returns docs of pairs of an id and a text.
func ownDocs(pairs ...string) []unifiedDoc {
	var docs []unifiedDoc
	for i := 0; i < len(pairs); i += 2 {
		docs = append(docs, unifiedDoc{ID: pairs[i], Text: &pairs[i+1]})
	}
	return docs
}

// oneLineEach puts the questions on a line each, as in the published file.
func oneLineEach(lines string) string {
	return strings.ReplaceAll(strings.NewReplacer("\n\t\t{\"id\"", "{\"id\"", "\t", "").Replace(lines), "\n\n", "\n")
}

func TestPublicDocs(t *testing.T) {
	memTime := ownDocs("0", "我下周去划船。", "1", "划船的地点是东湖。")
	memTime[0].Time, memTime[1].Time = "2024年05月06日 周一 09:00", "2024年05月06日 周一 10:00"
	for name, c := range map[string]struct {
		form, data string
		want       []*unified
	}{
		"SQuAD": {"squad", ownSquad, []*unified{{Conv: "all", Docs: ownDocs("p0", "The ferry Alma was built in 1902.", "p1", "Kell Hill is 310 m high."),
			Queries: []unifiedQuery{{ID: "a1", Q: "When was Alma built?", A: "1902", Cat: "qa", Gold: []string{"p0"}},
				{ID: "b1", Q: "How high is Kell Hill?", A: "310 m", Cat: "qa", Gold: []string{"p1"}},
				{ID: "b2", Q: "Who climbed it first?", Cat: "qa"}}}}},
		"CMRC": {"squad", ownCMRC, []*unified{{Conv: "all", Docs: ownDocs("p0", "阿尔玛号渡轮建于1902年。"),
			Queries: []unifiedQuery{{ID: "T_7_QUERY_0", Q: "渡轮建于哪一年？", A: "1902年", Cat: "qa", Gold: []string{"p0"}}}}}},
		"NQ": {"nq", oneLineEach(ownNQ), []*unified{{Conv: "all",
			Docs: ownDocs("d0", "Alma\nInes Kroll built it.", "d1", "Kroll\nInes Kroll lived by the sea.", "d2", "Hills\nKell Hill is high."),
			Queries: []unifiedQuery{{ID: "q0", Q: "who built the ferry alma", A: "Ines Kroll", Cat: "qa", Gold: []string{"d0"}},
				{ID: "q1", Q: "where did kroll live", A: "by the sea", Cat: "qa", Gold: []string{"d1"}}}}}},
		"MemDaily": {"memdaily", ownMemDaily, []*unified{
			{Conv: "noisy_items_0", Docs: ownDocs("0", "我有一把伞。"), Queries: []unifiedQuery{{ID: "noisy_items_0_2", Q: "我有什么？", A: "伞", Cat: "noisy", Gold: []string{"0"}}}},
			{Conv: "simple_events_4", Docs: memTime, Queries: []unifiedQuery{
				{ID: "simple_events_4_0", Q: "在哪里划船？", A: "东湖", Cat: "simple", Gold: []string{"1"}, Time: "2024年05月07日 周二 08:00"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			first := firstPublicObject(t, c.data)
			for form, f := range publicDocForms {
				if f.is(first) != (form == c.form) {
					t.Errorf("the file is taken for %s: %v", form, f.is(first))
				}
			}
			got, err := publicDocForms[c.form].read([]byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %s\nwant %s", publicText(t, got), publicText(t, c.want))
			}
			for _, u := range got {
				if _, _, err := u.lines(); err != nil {
					t.Errorf("%s can't be imported: %v", u.Conv, err)
				}
			}
		})
	}
}

// firstPublicObject is the first object of a file: of its array, or of its lines.
func firstPublicObject(t *testing.T, data string) map[string]json.RawMessage {
	t.Helper()
	var first map[string]json.RawMessage
	if err := json.NewDecoder(strings.NewReader(strings.TrimPrefix(data, "["))).Decode(&first); err != nil {
		t.Fatal(err)
	}
	return first
}

func publicText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPublicDocsTakeNoOtherForm(t *testing.T) {
	for _, data := range []string{`{}`, `{"conv":"a","docs":[],"queries":[]}`, `{"data":[]}`, `{"data":"x","question":"y"}`,
		`{"simple":{"events":[]}}`, `{"question":"q","answers":[]}`, `{"sample_id":"c","conversation":{"session_1":[{"text":"hi"}]},"qa":[]}`} {
		for form, f := range publicDocForms {
			if f.is(firstPublicObject(t, data)) {
				t.Errorf("%s is taken for %s", data, form)
			}
		}
	}
}

func TestPublicDocsBroken(t *testing.T) {
	for _, c := range []struct{ form, data, want string }{
		{"squad", ownSquad[:200], "SQuAD or CMRC 2018"},
		{"squad", strings.Replace(ownSquad, "Kell Hill is 310 m high.", " ", 1), "paragraph 2 has no text"},
		{"squad", strings.Replace(ownSquad, `"id":"b1",`, "", 1), "paragraph 2: question 1: it has no id"},
		{"squad", strings.Replace(ownSquad, `"is_impossible":true`, `"is_impossible":false`, 1), "question 2: b2 has no answers"},
		{"squad", strings.Replace(ownCMRC, `"1902年"`, `1902`, 1), "paragraph 1: question 1: T_7_QUERY_0: its first answer"},
		{"squad", strings.Replace(ownCMRC, `渡轮建于哪一年？`, "", 1), "paragraph 1: question 1: it has no id or no text"},
		{"nq", oneLineEach(ownNQ)[:580], "line 2 is no question"},
		{"nq", strings.Replace(oneLineEach(ownNQ), "Kell Hill is high.", "", 1), "line 2: passage 1 of ctxs has no text"},
		{"nq", strings.Replace(oneLineEach(ownNQ), `["by the sea"]`, "[]", 1), "line 2: it has no question or no answers"},
		{"memdaily", ownMemDaily[:300], "form of MemDaily"},
		{"memdaily", strings.Replace(ownMemDaily, `"mid":1,`, "", 1), "simple, events: trajectory 1: message 2 has no mid"},
		{"memdaily", strings.Replace(ownMemDaily, `"question":"我有什么？",`, "", 1), "noisy, items: trajectory 1: it has no tid or no question"},
	} {
		if _, err := publicDocForms[c.form].read([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.form, err, c.want)
		}
	}
}

const (
	ownMemories = `{"2": {"time": "2023-04-01", "scene": "活动类", "emotion": "开心", "event": "Nora放了风筝。", "user-id": 1, "id": "2"}}` + "\n" +
		`{"9": {"time": "2023-05-01", "scene": "Activity", "emotion": "Happy", "event": "Nora sailed."}}` + "\n"
	ownDialogues = `{"dialogue": ["<BOD>\n", "<Nora>:one\n", "<Assistant>:two\n", "<Nora>:three\n", "<Assistant>:four\n", "<Nora>:five\n", "<Assistant>:six\n"], "test-turn": [6, 8], "relevant-id": [9, 2, 40], "user-id": 1, "id": 0}` + "\n" +
		`{"dialogue": ["<BOD>\n", "<Nora>:wind\n", "<Assistant>:kite\n"], "test-turn": [2], "relevant-id": [2], "user-id": 1}` + "\n"
)

// madialFolder writes the files of MADial-Bench to a new directory.
func madialFolder(t *testing.T, memories, dialogues string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"memory": memories, "dialogue": dialogues, "dialogue-setting2": "not read"} {
		if err := os.WriteFile(filepath.Join(dir, "MADial-Bench-zh-"+name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMADialDir(t *testing.T) {
	docs := ownDocs("2", "活动类 开心 Nora放了风筝。", "9", "Activity Happy Nora sailed.")
	docs[0].Time, docs[0].Who, docs[1].Time = "2023-04-01", "1", "2023-05-01"
	want := []*unified{{Conv: "all", Docs: docs, Queries: []unifiedQuery{
		{ID: "zh0", Q: "<Nora>:three\n\n<Assistant>:four\n\n<Nora>:five\n", Cat: "madial", Gold: []string{"9", "2", "40"}},
		{ID: "zh1", Q: "<Nora>:wind\n", Cat: "madial", Gold: []string{"2"}}}}}
	got, err := readMADialDir(madialFolder(t, ownMemories, ownDialogues))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", publicText(t, got), publicText(t, want))
	}
}

func TestMADialDirBroken(t *testing.T) {
	for _, c := range []struct{ memories, dialogues, want string }{
		{ownMemories + "{", ownDialogues, "memory.json: line 3 is no memory"},
		{strings.Replace(ownMemories, "Nora sailed.", "", 1), ownDialogues, `line 2: memory "9" has no event`},
		{ownMemories, ownDialogues + "[]", "dialogue.json: line 3 is no dialogue"},
		{ownMemories, strings.Replace(ownDialogues, "[2], \"relevant", "[5], \"relevant", 1), "line 2: its first test-turn [5]"},
		{ownMemories, strings.Replace(ownDialogues, `"test-turn": [2], `, "", 1), "line 2: its first test-turn []"},
		{ownMemories, strings.Replace(ownDialogues, `<Nora>:wind\n`, " ", 1), "line 2: the turns before test-turn 2 are empty"},
	} {
		if _, err := readMADialDir(madialFolder(t, c.memories, c.dialogues)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if _, err := readMADialDir(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there are 0 files MADial-Bench-LANG-memory.json") {
		t.Errorf("an empty directory gives %v", err)
	}
	dir := madialFolder(t, ownMemories, ownDialogues)
	if err := os.Remove(filepath.Join(dir, "MADial-Bench-zh-dialogue.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := readMADialDir(dir); !os.IsNotExist(err) {
		t.Errorf("without the dialogues it gives %v", err)
	}
}

// TestPublicDocsAreLoaded: each form is found out by its content, packed or not.
func TestPublicDocsAreLoaded(t *testing.T) {
	for _, c := range []struct {
		suite, name, data string
		questions         int
	}{
		{SuiteDocQA, "xquad.en.json", ownSquad, 3}, {SuiteDocQA, "cmrc2018_dev.json", ownCMRC, 1},
		{SuiteDocQA, "nq.jsonl", oneLineEach(ownNQ), 2}, {SuiteMemDaily, "memdaily.json", ownMemDaily, 2},
	} {
		for _, text := range []string{c.data, "\ufeff" + c.data, zip(c.data)} {
			s, err := Load(c.suite, write(t, c.name, text), false)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			asked := 0
			for i := range s.Cases {
				asked += len(s.Cases[i].Questions)
			}
			if asked != c.questions {
				t.Errorf("%s: %d questions, want %d", c.name, asked, c.questions)
			}
		}
	}
	if _, err := Load("madial", t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "MADial-Bench") {
		t.Errorf("an empty directory: %v", err)
	}
}
