package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// locomoTalk is a conversation of LoCoMo's locomo10.json (github.com/snap-research/locomo).
type locomoTalk struct {
	ID   string                     `json:"sample_id"`
	Talk map[string]json.RawMessage `json:"conversation"` // session_1, session_1_date_time and so on, beside the speakers
	QA   []struct {
		Question    string      `json:"question"`
		Answer      looseText   `json:"answer"`
		Trap        looseText   `json:"adversarial_answer"`
		Evidence    []string    `json:"evidence"`
		CategoryNum json.Number `json:"category"`
	} `json:"qa"`
}

type locomoTurn struct {
	Who     string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// locomoCategories are the names of LoCoMo's numbers, as its code for measuring answers treats them: the paper lists them in
// another order.
func locomoCategories() map[string]string {
	return map[string]string{"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}
}

// readLocomoPublic reads LoCoMo's conversations. A photo is told by its caption. The expected answer of an adversarial question is
// the trap. Evidence that names no turn stays as it is written, and is counted as a fault.
func readLocomoPublic(data []byte) (all []*unified, err error) {
	err = eachObject(bytes.NewReader(data), func(raw json.RawMessage) error {
		var in locomoTalk
		name := fmt.Sprintf("conversation %d", len(all)+1)
		if err := json.Unmarshal(raw, &in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if in.ID == "" {
			return fmt.Errorf("%s has no sample_id", name)
		}
		u := &unified{Conv: in.ID}
		if u.Docs, err = in.docs(); err != nil {
			return fmt.Errorf("%s (%s): %w", name, in.ID, err)
		}
		for i, q := range in.QA {
			cat, answer := string(q.CategoryNum), q.Answer
			if called, ok := locomoCategories()[cat]; ok {
				cat = called
			}
			if q.Trap != "" {
				answer = q.Trap
			}
			u.Queries = append(u.Queries, unifiedQuery{ID: fmt.Sprintf("%s_q%d", in.ID, i), Q: q.Question, A: string(answer), Cat: cat,
				Gold: locomoEvidence(q.Evidence)})
		}
		all = append(all, u)
		return nil
	})
	return all, err
}

var locomoSession = regexp.MustCompile(`^session_(\d+)$`)

// docs returns the turns in the order of the sessions' numbers.
func (in *locomoTalk) docs() (docs []unifiedDoc, err error) {
	var sessions []int
	for key := range in.Talk {
		if m := locomoSession.FindStringSubmatch(key); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			sessions = append(sessions, n)
		}
	}
	slices.Sort(sessions)
	for _, n := range sessions {
		key := fmt.Sprintf("session_%d", n)
		var turns []locomoTurn
		var at string
		if err := json.Unmarshal(in.Talk[key], &turns); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if raw := in.Talk[key+"_date_time"]; raw != nil {
			if err := json.Unmarshal(raw, &at); err != nil {
				return nil, fmt.Errorf("%s_date_time: %w", key, err)
			}
		}
		for i, t := range turns {
			if t.ID == "" || t.Who == "" {
				return nil, fmt.Errorf("turn %d of %s has no dia_id or no speaker", i+1, key)
			}
			docs = append(docs, unifiedDoc{ID: t.ID, Text: t.told(), Time: at, Who: t.Who, Session: fmt.Sprintf("D%d", n)})
		}
	}
	return docs, nil
}

// told is the turn as one text.
func (t *locomoTurn) told() *string {
	text := t.Who + ": " + t.Text
	if t.Caption != "" {
		text = strings.TrimSuffix(text, " ") + " [shares " + t.Caption + "]"
	}
	return &text
}

// locomoTurnID is a turn's id, also as it is misspelt in some evidence: D:11:26, D30:05.
var locomoTurnID = regexp.MustCompile(`^D:?0*(\d+):0*(\d+)$`)

// locomoEvidence takes ids apart that stand in one text, and spells them as the turns do. Each is there once.
func locomoEvidence(texts []string) []string {
	ids := []string{}
	for _, text := range texts {
		for _, id := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("; ,\t\n", r) }) {
			if m := locomoTurnID.FindStringSubmatch(id); m != nil {
				id = "D" + m[1] + ":" + m[2]
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// longQuestion is an entry of LongMemEval's files (github.com/xiaowu0162/LongMemEval).
type longQuestion struct {
	ID       string    `json:"question_id"`
	Type     string    `json:"question_type"`
	Question string    `json:"question"`
	Answer   looseText `json:"answer"`
	Date     string    `json:"question_date"`
	Names    []string  `json:"haystack_session_ids"`
	Dates    []string  `json:"haystack_dates"`
	Sessions [][]struct {
		Role     string `json:"role"`
		Content  string `json:"content"`
		Evidence bool   `json:"has_answer"`
	} `json:"haystack_sessions"`
}

// readLongMemEvalPublic reads LongMemEval's questions, each with a conversation of its own. Evidence is the turns that has_answer
// marks. Turns without text are left out; they count in the numbers of the others. A session that stands in a haystack twice
// has #2 after its name the second time.
func readLongMemEvalPublic(data []byte) (all []*unified, err error) {
	err = eachObject(bytes.NewReader(data), func(raw json.RawMessage) error {
		var in longQuestion
		name := fmt.Sprintf("question %d", len(all)+1)
		if err := json.Unmarshal(raw, &in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if in.ID == "" {
			return fmt.Errorf("%s has no question_id", name)
		}
		u, err := in.unified()
		if err != nil {
			return fmt.Errorf("%s (%s): %w", name, in.ID, err)
		}
		all = append(all, u)
		return nil
	})
	return all, err
}

func (in *longQuestion) unified() (*unified, error) {
	if len(in.Names) != len(in.Sessions) || len(in.Dates) != len(in.Sessions) {
		return nil, fmt.Errorf("it has %d haystack_sessions, but %d haystack_session_ids and %d haystack_dates",
			len(in.Sessions), len(in.Names), len(in.Dates))
	}
	q := unifiedQuery{ID: in.ID, Q: in.Question, A: string(in.Answer), Cat: in.Type, Gold: []string{}, Time: in.Date}
	if strings.HasSuffix(in.ID, "_abs") {
		q.Cat = "abstention"
	}
	u, times := &unified{Conv: in.ID}, map[string]int{}
	for i, turns := range in.Sessions {
		session := in.Names[i]
		if times[session]++; times[session] > 1 {
			session += "#" + strconv.Itoa(times[session])
		}
		for n, t := range turns {
			if t.Role == "" {
				return nil, fmt.Errorf("turn %d of session %s has no role", n+1, session)
			}
			if strings.TrimSpace(t.Content) == "" {
				continue
			}
			id, text := fmt.Sprintf("%s#%d", session, n), t.Role+": "+t.Content
			u.Docs = append(u.Docs, unifiedDoc{ID: id, Text: &text, Time: in.Dates[i], Who: t.Role, Session: session})
			if t.Evidence {
				q.Gold = append(q.Gold, id)
			}
		}
	}
	u.Queries = []unifiedQuery{q}
	return u, nil
}

// mscTurn is an utterance. Only those of the last session say who speaks.
type mscTurn struct {
	Who  string `json:"id"`
	Text string `json:"text"`
}

// mscRow is a line of MSC-Self-Instruct (huggingface.co/datasets/MemGPT/MSC-Self-Instruct). Its personas and summaries
// aren't read: they hold the answers word for word.
type mscRow struct {
	Previous []struct {
		Dialog []mscTurn `json:"dialog"`
	} `json:"previous_dialogs"`
	Dialog []mscTurn `json:"dialog"`
	Asked  struct {
		Question string `json:"B"`
		Answer   string `json:"A"`
	} `json:"self_instruct"`
}

// readMSCPublic reads the rows of MSC-Self-Instruct, each a conversation of five sessions and one question about them. Its times
// are spans before one another and aren't read. Two speakers take turns, and where an utterance names its own, that one counts.
//
// The file marks no evidence. By rule an utterance is evidence where it holds at least half of the answer's content words, those
// that answerStops doesn't name; an answer without any has none. That is fit for telling runs apart, not for a headline: a
// paraphrase is missed, and a word said in passing is taken.
func readMSCPublic(data []byte) (all []*unified, err error) {
	err = eachObject(bytes.NewReader(data), func(raw json.RawMessage) error {
		var in mscRow
		n := len(all)
		if err := json.Unmarshal(raw, &in); err != nil {
			return fmt.Errorf("row %d: %w", n+1, err)
		}
		if len(in.Previous) == 0 || in.Asked.Question == "" || in.Asked.Answer == "" {
			return fmt.Errorf("row %d: %w", n+1, errNoMSC)
		}
		all = append(all, in.unified(n))
		return nil
	})
	return all, err
}

var errNoMSC = errors.New("it has no previous_dialogs, or no question B or answer A in self_instruct")

// unified brings the n-th row, counted from 0, into the unified format.
func (in *mscRow) unified(n int) *unified {
	name := fmt.Sprintf("dmr%d", n)
	u := &unified{Conv: name}
	q := unifiedQuery{ID: name, Q: in.Asked.Question, A: in.Asked.Answer, Cat: "dmr", Gold: []string{}}
	sessions := make([][]mscTurn, 0, len(in.Previous)+1)
	for _, p := range in.Previous {
		sessions = append(sessions, p.Dialog)
	}
	for s, turns := range append(sessions, in.Dialog) {
		for i, t := range turns {
			if strings.TrimSpace(t.Text) == "" {
				continue
			}
			if t.Who == "" {
				t.Who = fmt.Sprintf("Speaker %d", i%2+1)
			}
			d := unifiedDoc{ID: fmt.Sprintf("%d:%d", n, len(u.Docs)), Text: &t.Text, Who: t.Who, Session: fmt.Sprintf("S%d", s+1)}
			u.Docs = append(u.Docs, d)
			if answersByRule(t.Text, in.Asked.Answer) {
				q.Gold = append(q.Gold, d.ID)
			}
		}
	}
	u.Queries = []unifiedQuery{q}
	return u
}

// answerStops are the words of an answer that say nothing of what was asked for. The list is apart from that of search, so that what
// counts as evidence stays the same when search changes.
const answerStops = ` a about am an and are as at be because been but by did do does for from had has have he her his i if in into is it its
 just like me mentioned my no not of on or our out said she so some that the their them there they this to told up us was we were
 what when where which who will with would yeah yes you your d ll m re s t ve `

// answersByRule reports whether a text holds at least half of the content words of an answer.
func answersByRule(text, answer string) bool {
	said := words(text)
	of, n := 0, 0
	for _, w := range slices.Compact(slices.Sorted(slices.Values(words(answer)))) {
		if slices.Contains(strings.Fields(answerStops), w) {
			continue
		}
		of++
		if slices.Contains(said, w) {
			n++
		}
	}
	return n > 0 && 2*n >= of
}
