package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// publicLocomo is made up in the form of locomo10.json: sessions out of order, one with a time but no turns, evidence in one text
// and misspelt, a number for an answer, a trap, a photo.
const publicLocomo = `[{"sample_id":"conv-7","conversation":{"speaker_a":"Ana","speaker_b":"Ben",
"session_10_date_time":"9:15 am on 3 June, 2023","session_10":[{"speaker":"Ben","dia_id":"D10:1","text":"I sold the boat."}],
"session_2_date_time":"1:56 pm on 8 May, 2023","session_2":[
 {"speaker":"Ana","dia_id":"D2:1","text":"I planted a plum tree. ","blip_caption":"a photo of a small tree","img_url":["x"]},
 {"speaker":"Ben","dia_id":"D2:2","text":"My boat is called Wagtail."}],
"session_11_date_time":"9:15 am on 4 June, 2023"},
"qa":[{"question":"When did Ana plant?","answer":2023,"evidence":["D2:1; D2:2","D2:1"],"category":2},
{"question":"What was sold?","answer":"the boat","evidence":["D:10:01"],"category":4},
{"question":"Why did Ana sell her boat?","evidence":["D10:1"],"category":5,"adversarial_answer":"To buy a tree"},
{"question":"Who sails?","answer":"Ben","evidence":["D"],"category":3}],"event_summary":{},"observation":{}}]`

const unifiedLocomo = `{"conv":"conv-7","docs":[
{"id":"D2:1","text":"Ana: I planted a plum tree. [shares a photo of a small tree]","time":"1:56 pm on 8 May, 2023","who":"Ana","session":"D2"},
{"id":"D2:2","text":"Ben: My boat is called Wagtail.","time":"1:56 pm on 8 May, 2023","who":"Ben","session":"D2"},
{"id":"D10:1","text":"Ben: I sold the boat.","time":"9:15 am on 3 June, 2023","who":"Ben","session":"D10"}],"queries":[
{"id":"conv-7_q0","q":"When did Ana plant?","a":"2023","cat":"temporal","gold":["D2:1","D2:2"]},
{"id":"conv-7_q1","q":"What was sold?","a":"the boat","cat":"single-hop","gold":["D10:1"]},
{"id":"conv-7_q2","q":"Why did Ana sell her boat?","a":"To buy a tree","cat":"adversarial","gold":["D10:1"]},
{"id":"conv-7_q3","q":"Who sails?","a":"Ben","cat":"open-domain","gold":["D"]}]}`

// publicLong is made up in the form of longmemeval_s.json: a session twice, a turn without text, a question without an answer.
const publicLong = `[{"question_id":"q1","question_type":"single-session-user","question":"How old is my kite?","answer":4,
"question_date":"2023/05/30 (Tue) 23:40","haystack_session_ids":["s1","s2","s1"],
"haystack_dates":["2023/05/20 (Sat) 02:21","2023/05/21 (Sun) 02:21","2023/05/22 (Mon) 10:00"],"haystack_sessions":[
[{"role":"user","content":"My kite is four."},{"role":"assistant","content":""},{"role":"user","content":"It flies.","has_answer":false}],
[{"role":"user","content":"Kites age well."},{"role":"assistant","content":"Four is young.","has_answer":true}],
[{"role":"user","content":"My kite is four, as I said.","has_answer":true}]],"answer_session_ids":["s2"]},
{"question_id":"q2_abs","question_type":"multi-session","question":"Who is my vet?","answer":"You did not say.","question_date":"2023/05/30 (Tue) 23:40",
"haystack_session_ids":["s9"],"haystack_dates":["2023/05/20 (Sat) 02:21"],"haystack_sessions":[[{"role":"user","content":"I have no pets."}]],
"answer_session_ids":["s9"]}]`

const unifiedLong = `{"conv":"q1","docs":[
{"id":"s1#0","text":"user: My kite is four.","time":"2023/05/20 (Sat) 02:21","who":"user","session":"s1"},
{"id":"s1#2","text":"user: It flies.","time":"2023/05/20 (Sat) 02:21","who":"user","session":"s1"},
{"id":"s2#0","text":"user: Kites age well.","time":"2023/05/21 (Sun) 02:21","who":"user","session":"s2"},
{"id":"s2#1","text":"assistant: Four is young.","time":"2023/05/21 (Sun) 02:21","who":"assistant","session":"s2"},
{"id":"s1#2#0","text":"user: My kite is four, as I said.","time":"2023/05/22 (Mon) 10:00","who":"user","session":"s1#2"}],
"queries":[{"id":"q1","q":"How old is my kite?","a":"4","cat":"single-session-user","gold":["s2#1","s1#2#0"],"time":"2023/05/30 (Tue) 23:40"}]}
{"conv":"q2_abs","docs":[{"id":"s9#0","text":"user: I have no pets.","time":"2023/05/20 (Sat) 02:21","who":"user","session":"s9"}],
"queries":[{"id":"q2_abs","q":"Who is my vet?","a":"You did not say.","cat":"abstention","time":"2023/05/30 (Tue) 23:40"}]}`

// publicMSC is made up in the form of msc_self_instruct.jsonl. The persona holds the answer, and must not be loaded.
const publicMSC = `{"personas":[["I keep seven geese."]],"previous_dialogs":[
{"dialog":[{"text":"Hi, any animals?"},{"text":"I keep geese, they are loud."},{"text":"Mine is a quiet cat."}],"time_num":2,"time_unit":"days"},
{"dialog":[{"text":"How is the cat?"},{"text":" "},{"text":"Asleep as always."}]}],
"dialog":[{"id":"Speaker 2","text":"The geese are seven now!"},{"id":"Speaker 1","text":"Seven is plenty."}],
"self_instruct":{"B":"How many birds did you say you have?","A":"I said that I have seven geese!"},"summary_speaker_1":["I keep seven geese."]}
`

const unifiedMSC = `{"conv":"dmr0","docs":[
{"id":"0:0","text":"Hi, any animals?","who":"Speaker 1","session":"S1"},
{"id":"0:1","text":"I keep geese, they are loud.","who":"Speaker 2","session":"S1"},
{"id":"0:2","text":"Mine is a quiet cat.","who":"Speaker 1","session":"S1"},
{"id":"0:3","text":"How is the cat?","who":"Speaker 1","session":"S2"},
{"id":"0:4","text":"Asleep as always.","who":"Speaker 1","session":"S2"},
{"id":"0:5","text":"The geese are seven now!","who":"Speaker 2","session":"S3"},
{"id":"0:6","text":"Seven is plenty.","who":"Speaker 1","session":"S3"}],
"queries":[{"id":"dmr0","q":"How many birds did you say you have?","a":"I said that I have seven geese!","cat":"dmr","gold":["0:1","0:5","0:6"]}]}`

// oneALine puts each object of made-up data on a line of its own.
func oneALine(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	err := eachObject(strings.NewReader(text), func(raw json.RawMessage) error {
		out.WriteString(strings.ReplaceAll(string(raw), "\n", " ") + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPublicFormsGiveWhatTheUnifiedFormGives(t *testing.T) {
	tests := map[string]struct{ suite, public, unified string }{
		"locomo": {SuiteLocomo, publicLocomo, unifiedLocomo},
		"long":   {SuiteLongMemEval, publicLong, unifiedLong},
		"msc":    {SuiteDMR, publicMSC, unifiedMSC},
	}
	for name, test := range tests {
		lines := oneALine(t, test.public)
		forms := map[string]string{"as published": test.public, "packed": zip(test.public), "marked": "\ufeff" + test.public, "one a line": lines,
			"an array": "\n [" + strings.ReplaceAll(strings.TrimSpace(lines), "\n", ",") + "]\n", "unified and packed": zip(oneALine(t, test.unified))}
		for _, pooled := range []bool{false, true} {
			want, err := Talks(test.suite, write(t, "unified.jsonl", oneALine(t, test.unified)), pooled)
			if err != nil {
				t.Fatal(err)
			}
			for form, text := range forms {
				got, err := Talks(test.suite, write(t, "public.json", text), pooled)
				if err != nil {
					t.Errorf("%s %s: %v", name, form, err)
				} else if !reflect.DeepEqual(got, want) {
					t.Errorf("%s %s, pooled %v: got\n%+v\nwant\n%+v", name, form, pooled, got, want)
				}
			}
		}
	}
}

func TestBrokenPublicFilesSayWhereAndWhat(t *testing.T) {
	cut := func(text, old, replacement string) string {
		out := strings.Replace(text, old, replacement, 1)
		if out == text {
			t.Fatalf("%q isn't in the data", old)
		}
		return out
	}
	tests := map[string]struct{ text, want string }{
		"another form":   {`{"rows":[]}`, "LoCoMo (locomo10.json), LongMemEval"},
		"a web page":     {"<html>", "what is read: lines"},
		"cut off":        {publicLong[:len(publicLong)-40], "it ends in the middle, after 1 whole entries"},
		"cut off packed": {zip(publicLong)[:300], "it ends in the middle"},
		"cut off early":  {publicLong[:200], "it ends in the middle, after 0 whole entries"},
		"no comma":       {strings.Replace(publicLong, "},\n{", "}\n{", 1), "it is no JSON after 1 whole entries"},
		"no sample_id":   {cut(publicLocomo, "sample_id", "id"), "conversation 1 has no sample_id"},
		"no dia_id":      {cut(publicLocomo, `"dia_id":"D2:2"`, `"x":1`), "conversation 1 (conv-7): turn 2 of session_2 has no dia_id"},
		"same dia_id":    {cut(publicLocomo, `"dia_id":"D2:2"`, `"dia_id":"D2:1"`), `conv-7: two docs have the id "D2:1"`},
		"no list":        {cut(publicLocomo, `"session_11_date_time":`, `"session_11":`), "conversation 1 (conv-7): session_11: json"},
		"answer":         {cut(publicLocomo, `"answer":2023`, `"answer":["x"]`), `conversation 1: ["x"] is neither a text nor a number`},
		"no question":    {cut(publicLocomo, "What was sold?", ""), "conv-7: query 2 is empty"},
		"dates":          {cut(publicLong, `"haystack_dates":["2023/05/20 (Sat) 02:21"]`, `"haystack_dates":[]`), "question 2 (q2_abs): it has 1 haystack_sessions"},
		"role":           {cut(publicLong, `"role":"assistant","content":"Four`, `"content":"Four`), "question 1 (q1): turn 2 of session s2 has no role"},
		"no id":          {cut(publicLong, `"question_id":"q2_abs"`, `"q":1`), "question 2 has no question_id"},
		"wrong type":     {cut(publicLong, `"question_id":"q2_abs"`, `"question_id":[]`), "question 2: json"},
		"second row":     {publicMSC + cut(publicMSC, `"A":`, `"C":`), "row 2: it has no previous_dialogs, or no question B"},
		"row no object":  {publicMSC + "[]", "row 2: json"},
	}
	for name, test := range tests {
		path := write(t, "data.json", test.text)
		_, err := Load(SuiteLocomo, path, false)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// TestRuleOfDMRAgreesWithLabels holds the rule for evidence against the labels of the part of MSC-Self-Instruct in shared data.
func TestRuleOfDMRAgreesWithLabels(t *testing.T) {
	file := filepath.Join("..", "..", "shared", "data", "memory", "dmr_a.jsonl")
	if _, err := os.Stat(file); err != nil {
		t.Skip("no shared data: ", err)
	}
	both, ruled, labelled := 0, 0, 0
	err := readUnified(file, func(u *unified) error {
		for _, d := range u.Docs {
			rule, label := answersByRule(*d.Text, u.Queries[0].A), slices.Contains(u.Queries[0].Gold, d.ID)
			if rule {
				ruled++
			}
			if label {
				labelled++
			}
			if rule && label {
				both++
			}
			if testing.Verbose() && rule != label {
				t.Logf("rule %v, label %v: %q in %q", rule, label, u.Queries[0].A, *d.Text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d by rule, %d labelled, %d both", ruled, labelled, both)
	if share := 2 * float64(both) / float64(ruled+labelled); share < .9 {
		t.Errorf("rule and labels agree by F1 %.3f: %d by rule, %d labelled, %d both", share, ruled, labelled, both)
	}
}
