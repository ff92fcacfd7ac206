package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// publicConv names the one conversation of a data set whose questions are all asked of the same docs.
const publicConv = "all"

// hasAll reports whether an object has all the keys.
func hasAll(object map[string]json.RawMessage, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { _, ok := object[key]; return !ok })
}

// squadParagraph is a paragraph with its questions, in SQuAD's words or in those of CMRC 2018.
type squadParagraph struct {
	Context  string       `json:"context"`
	CMRCText string       `json:"context_text"`
	QAs      []squadQuery `json:"qas"`
}

// squadQuery is a question in SQuAD's words or in those of CMRC 2018. SQuAD's answers are objects with a text, those of
// CMRC are texts.
type squadQuery struct {
	ID         string            `json:"id"`
	CMRCID     string            `json:"query_id"`
	Question   string            `json:"question"`
	CMRCText   string            `json:"query_text"`
	Answers    []json.RawMessage `json:"answers"`
	Impossible bool              `json:"is_impossible"`
}

// isSquad reports whether a file is in SQuAD's form (XQuAD, CMRC 2018 as converted) or in CMRC 2018's own.
func isSquad(first map[string]json.RawMessage) bool {
	if hasAll(first, "context_text", "qas") {
		return true
	}
	var articles []map[string]json.RawMessage
	return json.Unmarshal(first["data"], &articles) == nil && len(articles) > 0 && hasAll(articles[0], "paragraphs")
}

// readSquad reads
//
//	{"data":[{"paragraphs":[{"context","qas":[{"id","question","answers":[{"text"}]}]}]}]}
//	[{"context_text","qas":[{"query_id","query_text","answers":[text]}]}]
//
// as one conversation: a doc a paragraph (p0, p1, …), which is what its questions need. The first answer counts. A
// question marked is_impossible (SQuAD 2.0) needs no doc.
func readSquad(data []byte) ([]*unified, error) {
	paragraphs, err := squadParagraphs(data)
	if err != nil {
		return nil, fmt.Errorf("it isn't in the form of SQuAD or CMRC 2018: %w", err)
	}
	out := &unified{Conv: publicConv}
	for i, p := range paragraphs {
		id, text := "p"+strconv.Itoa(i), p.Context+p.CMRCText
		if strings.TrimSpace(text) == "" {
			return nil, fmt.Errorf("paragraph %d has no text (context or context_text)", i+1)
		}
		out.Docs = append(out.Docs, unifiedDoc{ID: id, Text: &text})
		for j := range p.QAs {
			q, err := p.QAs[j].unify(id)
			if err != nil {
				return nil, fmt.Errorf("paragraph %d: question %d: %w", i+1, j+1, err)
			}
			out.Queries = append(out.Queries, q)
		}
	}
	return []*unified{out}, nil
}

func squadParagraphs(data []byte) ([]squadParagraph, error) {
	var paragraphs []squadParagraph
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return paragraphs, json.Unmarshal(data, &paragraphs)
	}
	var in struct {
		Data []struct {
			Paragraphs []squadParagraph `json:"paragraphs"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	for _, article := range in.Data {
		paragraphs = append(paragraphs, article.Paragraphs...)
	}
	return paragraphs, nil
}

func (q *squadQuery) unify(paragraph string) (unifiedQuery, error) {
	out := unifiedQuery{ID: q.ID + q.CMRCID, Q: q.Question + q.CMRCText, Cat: "qa"}
	if out.ID == "" || strings.TrimSpace(out.Q) == "" {
		return out, fmt.Errorf("it has no id or no text (id and question, or query_id and query_text)")
	}
	if q.Impossible {
		return out, nil
	}
	out.Gold = []string{paragraph}
	if len(q.Answers) == 0 {
		return out, fmt.Errorf("%s has no answers", out.ID)
	}
	var answer struct {
		Text string `json:"text"`
	}
	first := q.Answers[0]
	if json.Unmarshal(first, &out.A) == nil {
		return out, nil
	}
	if err := json.Unmarshal(first, &answer); err != nil {
		return out, fmt.Errorf("%s: its first answer is neither a text nor an object with one: %w", out.ID, err)
	}
	out.A = answer.Text
	return out, nil
}

// nqLine is a line of the NQ-open files of "Lost in the Middle".
type nqLine struct {
	Question string   `json:"question"`
	Answers  []string `json:"answers"`
	Docs     []struct {
		Title     string `json:"title"`
		Text      string `json:"text"`
		HasAnswer bool   `json:"hasanswer"`
		Gold      bool   `json:"isgold"`
	} `json:"ctxs"`
}

// isNQOpen reports whether a file is one of the NQ-open files of "Lost in the Middle".
func isNQOpen(first map[string]json.RawMessage) bool {
	return hasAll(first, "question", "answers", "ctxs")
}

// readNQOpen reads lines {"question","answers","ctxs":[{"title","text","hasanswer","isgold"}]} as one conversation. Its
// docs (d0, d1, …) are the passages of all lines, those that are the same once: so each question (q0, q1, …) is asked of
// the passages of all. It needs the passages of its line that are marked isgold; where none is, those that have the
// answer.
func readNQOpen(data []byte) ([]*unified, error) {
	out, ids := &unified{Conv: publicConv}, map[string]string{}
	n := 0
	for raw := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var line nqLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, fmt.Errorf("line %d is no question {\"question\",\"answers\",\"ctxs\"}: %w", n, err)
		}
		q, err := line.unify(out, ids)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out.Queries = append(out.Queries, q)
	}
	return []*unified{out}, nil
}

// unify adds the passages of a line that are new, and returns its question. The ids are those of the docs by their text.
func (l *nqLine) unify(out *unified, ids map[string]string) (unifiedQuery, error) {
	q := unifiedQuery{ID: "q" + strconv.Itoa(len(out.Queries)), Q: l.Question, Cat: "qa"}
	if strings.TrimSpace(l.Question) == "" || len(l.Answers) == 0 {
		return q, fmt.Errorf("it has no question or no answers")
	}
	q.A = l.Answers[0]
	var answering []string
	for i, d := range l.Docs {
		if strings.TrimSpace(d.Text) == "" {
			return q, fmt.Errorf("passage %d of ctxs has no text", i+1)
		}
		text := d.Title + "\n" + d.Text
		id, ok := ids[text]
		if !ok {
			id = "d" + strconv.Itoa(len(out.Docs))
			ids[text] = id
			out.Docs = append(out.Docs, unifiedDoc{ID: id, Text: &text})
		}
		if d.Gold {
			q.Gold = append(q.Gold, id)
		}
		if d.HasAnswer {
			answering = append(answering, id)
		}
	}
	if len(q.Gold) == 0 {
		q.Gold = answering
	}
	return q, nil
}

// memDailyTrack is a trajectory of MemDaily: messages of a user and a question about them.
type memDailyTrack struct {
	TID      *int `json:"tid"`
	Messages []struct {
		MID  *int   `json:"mid"`
		Text string `json:"message"`
		Time string `json:"time"`
	} `json:"message_list"`
	QA *struct {
		QID      int    `json:"qid"`
		Question string `json:"question"`
		Answer   string `json:"answer"`
		Gold     []int  `json:"target_step_id"`
		Time     string `json:"time"`
	} `json:"QA"`
}

// isMemDaily reports whether a file is MemDaily's memdaily.json.
func isMemDaily(first map[string]json.RawMessage) bool {
	for _, raw := range first {
		var scenes map[string][]map[string]json.RawMessage
		if json.Unmarshal(raw, &scenes) != nil {
			return false
		}
		for _, tracks := range scenes {
			if len(tracks) > 0 {
				return hasAll(tracks[0], "tid", "message_list", "QA")
			}
		}
	}
	return false
}

// readMemDaily reads MemDaily, the kinds of questions by scene,
//
//	{kind:{scene:[{"tid","message_list":[{"mid","message","time"}],"QA":{"qid","question","answer","target_step_id":[mid],"time"}}]}}
//
// a conversation (kind_scene_tid) a trajectory, in the order of the names. The question's category is its kind.
func readMemDaily(data []byte) ([]*unified, error) {
	var kinds map[string]map[string][]memDailyTrack
	if err := json.Unmarshal(data, &kinds); err != nil {
		return nil, fmt.Errorf("it isn't in the form of MemDaily: %w", err)
	}
	var out []*unified
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, scene := range slices.Sorted(maps.Keys(kinds[kind])) {
			for i := range kinds[kind][scene] {
				u, err := kinds[kind][scene][i].unify(kind, scene)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: trajectory %d: %w", kind, scene, i+1, err)
				}
				out = append(out, u)
			}
		}
	}
	return out, nil
}

func (t *memDailyTrack) unify(kind, scene string) (*unified, error) {
	if t.TID == nil || t.QA == nil || strings.TrimSpace(t.QA.Question) == "" {
		return nil, fmt.Errorf("it has no tid or no question (QA)")
	}
	out := &unified{Conv: fmt.Sprintf("%s_%s_%d", kind, scene, *t.TID)}
	for i, m := range t.Messages {
		if m.MID == nil || strings.TrimSpace(m.Text) == "" {
			return nil, fmt.Errorf("message %d has no mid or no text", i+1)
		}
		out.Docs = append(out.Docs, unifiedDoc{ID: strconv.Itoa(*m.MID), Text: &t.Messages[i].Text, Time: m.Time})
	}
	q := unifiedQuery{ID: fmt.Sprintf("%s_%d", out.Conv, t.QA.QID), Q: t.QA.Question, A: t.QA.Answer, Cat: kind, Time: t.QA.Time}
	for _, mid := range t.QA.Gold {
		q.Gold = append(q.Gold, strconv.Itoa(mid))
	}
	out.Queries = []unifiedQuery{q}
	return out, nil
}

// madialTurns is how many turns before the assistant's test turn the question of MADial-Bench is made of.
const madialTurns = 3

// readMADialDir reads MADial-Bench from the directory of a language (data/ch or data/en of its repository), which has the
// memories and the dialogues in files of their own, MADial-Bench-LANG-memory.json and MADial-Bench-LANG-dialogue.json.
func readMADialDir(dir string) ([]*unified, error) {
	const prefix, memory, dialogue = "MADial-Bench-", "-memory.json", "-dialogue.json"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var languages []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if language, ok := strings.CutSuffix(name, memory); ok {
				languages = append(languages, language)
			}
		}
	}
	if len(languages) != 1 {
		return nil, fmt.Errorf("%s: there are %d files %sLANG%s in it, MADial-Bench has one in the directory of a language", dir, len(languages), prefix, memory)
	}
	base := filepath.Join(dir, prefix+languages[0])
	memories, err := os.ReadFile(base + memory)
	if err != nil {
		return nil, err
	}
	dialogues, err := os.ReadFile(base + dialogue)
	if err != nil {
		return nil, err
	}
	out := &unified{Conv: publicConv}
	if err := madialMemories(out, memories); err != nil {
		return nil, fmt.Errorf("%s: %w", base+memory, err)
	}
	if err := madialDialogues(out, languages[0], dialogues); err != nil {
		return nil, fmt.Errorf("%s: %w", base+dialogue, err)
	}
	return []*unified{out}, nil
}

// madialMemories adds the memories, lines {id:{"time","scene","emotion","event","user-id"?}}, as docs: scene, emotion and
// event are the text, the user is who.
func madialMemories(out *unified, data []byte) error {
	n := 0
	for raw := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var line map[string]struct {
			Time    string `json:"time"`
			Scene   string `json:"scene"`
			Emotion string `json:"emotion"`
			Event   string `json:"event"`
			User    int    `json:"user-id"`
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("line %d is no memory {id:{\"time\",\"scene\",\"emotion\",\"event\"}}: %w", n, err)
		}
		for _, id := range slices.Sorted(maps.Keys(line)) {
			m := line[id]
			if strings.TrimSpace(m.Event) == "" {
				return fmt.Errorf("line %d: memory %q has no event", n, id)
			}
			text, who := strings.TrimSpace(m.Scene+" "+m.Emotion+" "+m.Event), ""
			if m.User != 0 {
				who = strconv.Itoa(m.User)
			}
			out.Docs = append(out.Docs, unifiedDoc{ID: id, Text: &text, Time: m.Time, Who: who})
		}
	}
	return nil
}

// madialDialogues adds the dialogues, lines {"dialogue":[turn],"test-turn":[index],"relevant-id":[memory]}, as questions:
// the last turns before the first test turn, in which the assistant is to bring up one of the relevant memories. The
// first turn only marks the beginning.
func madialDialogues(out *unified, language string, data []byte) error {
	n := 0
	for raw := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var line struct {
			Turns    []string `json:"dialogue"`
			Tests    []int    `json:"test-turn"`
			Relevant []int    `json:"relevant-id"`
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("line %d is no dialogue {\"dialogue\",\"test-turn\",\"relevant-id\"}: %w", n, err)
		}
		if len(line.Tests) == 0 || line.Tests[0] < 2 || line.Tests[0] > len(line.Turns) {
			return fmt.Errorf("line %d: its first test-turn %v is no turn of its %d that has others before it", n, line.Tests, len(line.Turns))
		}
		test := line.Tests[0]
		q := unifiedQuery{ID: language + strconv.Itoa(len(out.Queries)), Cat: "madial"}
		q.Q = strings.Join(line.Turns[max(1, test-madialTurns):test], "\n")
		if strings.TrimSpace(q.Q) == "" {
			return fmt.Errorf("line %d: the turns before test-turn %d are empty", n, test)
		}
		for _, id := range line.Relevant {
			q.Gold = append(q.Gold, strconv.Itoa(id))
		}
		out.Queries = append(out.Queries, q)
	}
	return nil
}
