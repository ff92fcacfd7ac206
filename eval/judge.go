package eval

import (
	"context"
	_ "embed" // the judge's instructions
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"memgpt"
)

//go:embed prompts/judge.txt
var judgePrompt string

// judgeVersion numbers the judge's instructions. Its fingerprint is added, so that no change of the text keeps its name.
const judgeVersion = "1"

// JudgeVersion names the judge's instructions: a number, and the beginning of their fingerprint. They follow the criteria of
// the paper (section 6.1.2) in words of their own.
func JudgeVersion() string { return judgeVersion + "-" + HashQuestion(judgePrompt)[:8] }

// verdictWord is a verdict on a line of its own.
var verdictWord = regexp.MustCompile(`(?m)^\W*(CORRECT|WRONG)\W*$`)

// judge asks a model whether an answer is right. It returns nil where no answer is expected. An error is the context's, the
// purse's or the cache's.
func (run *runner) judge(ctx context.Context, question string, r *Record, to *bill) (*Judged, error) {
	m := run.cfg.Judge
	if r.Abstain || strings.TrimSpace(r.Expected) == "" {
		return nil, nil
	}
	j := &Judged{Model: m.Capabilities().Name, Prompt: JudgeVersion()}
	if strings.TrimSpace(r.Answer) == "" {
		j.Reason = "there is no answer"
		return j, nil
	}
	asked, err := json.Marshal(map[string]string{"question": question, "expected_answer": r.Expected, "answer": r.Answer})
	if err != nil {
		return nil, err
	}
	reply, err := run.ask(ctx, m, &memgpt.Request{Choice: memgpt.ChoiceNone, MaxTokens: 256, Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, strings.TrimSpace(judgePrompt)),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, string(asked))}}, nil, to)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case to.refused != nil, errors.Is(err, errNotKept):
		return nil, err
	case err != nil:
		j.Failure = err.Error()
		return j, nil
	}
	text := strings.TrimSpace(reply.Message.Said())
	found := verdictWord.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		j.Failure = "there is no verdict in the judge's reply: " + oneLine(memgpt.CutText(text, 200))
		return j, nil
	}
	last := found[len(found)-1]
	j.Right, j.Reason = text[last[2]:last[3]] == "CORRECT", oneLine(memgpt.CutText(text[:last[0]], 400))
	return j, nil
}

// JudgeReport says who judged.
type JudgeReport struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	N      int    `json:"n"`      // verdicts
	Failed int    `json:"failed"` // answers of which the judge gave no verdict; they are in no accuracy
}

func judgeReport(m memgpt.Model, records []Record) *JudgeReport {
	if m == nil {
		return nil
	}
	rep := &JudgeReport{Model: m.Capabilities().Name, Prompt: JudgeVersion()}
	for i := range records {
		switch j := records[i].Verdicts.Judge; {
		case j == nil:
		case j.Failure != "":
			rep.Failed++
		default:
			rep.N++
		}
	}
	return rep
}
