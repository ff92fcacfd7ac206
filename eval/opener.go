package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"memgpt"
	"memgpt/tool"
)

// openerPersona is the standing instruction of the paper's conversation opener (section 3.1.2).
const openerPersona = "I greet the person I know when they log in: I open the conversation myself, warmly, with what I have noted of them."

// loginText is what the agent is told when its user comes.
const loginText = "The user has logged in."

// Variants of the opener: whose lines stand in working context.
const (
	WorkingOwn   = "own"   // of the person who logs in
	WorkingNone  = "none"  // nobody's
	WorkingOther = "other" // of another person
)

// speakers is an element of Multi-Session Chat's personas: lines by speaker, and what a human wrote as the first message of
// the next session, where a file has that.
type speakers struct {
	One    []string `json:"Speaker 1"`
	Two    []string `json:"Speaker 2"`
	Opener string   `json:"opener"`
}

// Opener reads the paper's conversation opener from a file of Multi-Session Chat's personas,
//
//	{"test":[{"Speaker 1":[lines],"Speaker 2":[lines],"opener"?: text}],…}
//
// Of files with splits the test split is taken, else all. Speaker 1 is the user who logs in; the agent opens the
// conversation. Each is asked three times: with that person's lines in working context, without any, and with those of
// another person, drawn by seed. Whose lines they are is the question's group.
//
// The paper does not say which encoder it used, nor how SIM-3 is made of three similarities: ours is their mean.
func Opener(path string, seed uint64) (*Suite, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	splits := map[string][]speakers{}
	if err := json.Unmarshal(text, &splits); err != nil {
		return nil, fmt.Errorf("%s: it is no file of personas {\"test\":[{\"Speaker 1\":[lines]}]}: %w", path, err)
	}
	list := splits["test"]
	if len(list) == 0 {
		for _, name := range slices.Sorted(maps.Keys(splits)) {
			list = append(list, splits[name]...)
		}
	}
	list = slices.DeleteFunc(list, func(s speakers) bool { return len(s.One) == 0 })
	if len(list) < 2 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "%s: there are %d personas in it, and another person's lines take two", path, len(list))
	}
	s := &Suite{Name: SuiteOpener, Variants: true}
	chance := rand.New(rand.NewPCG(seed, 0))
	for i := range list {
		other := chance.IntN(len(list) - 1)
		if other >= i {
			other++
		}
		for _, variant := range []string{WorkingOwn, WorkingNone, WorkingOther} {
			s.Cases = append(s.Cases, openerCase(i, variant, list[i], list[other].One))
		}
	}
	return s, nil
}

func openerCase(i int, variant string, who speakers, other []string) Case {
	c := Case{Name: fmt.Sprintf("persona %d %s", i, variant), Persona: openerPersona, Now: timeless}
	q := Question{ID: fmt.Sprint("opener ", i), Text: loginText, Group: variant, Login: true, Persona: cleanLines(who.One), Opener: memgpt.CleanText(who.Opener)}
	switch variant {
	case WorkingOwn:
		c.Human = openerNotes(who.One)
	case WorkingOther:
		c.Human = openerNotes(other)
	}
	c.Questions = []Question{q}
	return c
}

func cleanLines(lines []string) (out []string) {
	for _, l := range lines {
		if l = oneLine(memgpt.CleanText(l)); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// openerNotes are the lines of a block, as many as it holds.
func openerNotes(lines []string) string {
	text := ""
	for _, l := range cleanLines(lines) {
		if memgpt.Runes(text)+1+memgpt.Runes(l) > blockLimit {
			break
		}
		text = strings.TrimPrefix(text+"\n"+l, "\n")
	}
	return text
}

// similar measures an opener: SIM-1 and SIM-3 against the lines of the persona, SIM-H against what a human wrote.
func similar(ctx context.Context, e tool.Embedder, q *Question, answer string, v *Verdicts) error {
	if strings.TrimSpace(answer) == "" {
		zero := 0.0
		v.Sim1, v.Sim3 = &zero, &zero
		return nil
	}
	texts := append([]string{answer}, q.Persona...)
	if q.Opener != "" {
		texts = append(texts, q.Opener)
	}
	vectors, err := e.Embed(ctx, texts, false)
	if err != nil {
		return fmt.Errorf("measure an opener: %w", err)
	}
	near := make([]float64, 0, len(q.Persona))
	for i := range q.Persona {
		near = append(near, cosine(vectors[0], vectors[1+i]))
	}
	slices.SortFunc(near, func(a, b float64) int { return cmp.Compare(b, a) })
	sim1, sim3 := places4(near[0]), places4(average64(near[:min(3, len(near))]))
	v.Sim1, v.Sim3 = &sim1, &sim3
	if q.Opener != "" {
		simH := places4(cosine(vectors[0], vectors[len(vectors)-1]))
		v.SimH = &simH
	}
	return nil
}

// cosine is that of two vectors of length 1.
func cosine(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
