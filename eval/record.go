package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"memgpt"
)

// RecordVersion is the version of [Record]'s form. A change that a reader of older lines must know of raises it.
const RecordVersion = 1

// Record is how one question went: one line of a run's results. Together, Suite, Variant, Case, Question and K name a
// question in a run, and a reader may compare two runs by them; QuestionHash says whether its words are the same. Shares
// and similarities in a record are 0 to 1, tokens are counted by our own counter.
type Record struct {
	Version int    `json:"v"`
	Suite   string `json:"suite"`
	Mode    Mode   `json:"mode"`
	Model   string `json:"model"`
	Window  int    `json:"window"`
	Seed    uint64 `json:"seed"`
	// Policy says in which policies the run differed from the default ones, see Policy.String, after the word live where the
	// material was held as a conversation; "" where in none.
	Policy string `json:"policy,omitempty"`

	Case     string `json:"case"`
	Question string `json:"question"` // id in the data
	// Variant is what was done to the material, where a suite asks the same in several ways: whose working context.
	Variant string `json:"variant,omitempty"`
	// K is how many texts a search was to bring, where the mode has one search.
	K            int    `json:"k,omitempty"`
	Group        string `json:"group"`         // category or level
	QuestionHash string `json:"question_hash"` // see HashQuestion
	Expected     string `json:"expected"`      // "" when none is known
	// Abstain says that the material doesn't hold the answer, so that saying so is right.
	Abstain bool `json:"abstain,omitempty"`
	// WrongGold says that the expected answer or the evidence is known to be wrong.
	WrongGold bool `json:"wrong_gold,omitempty"`

	Answer   string   `json:"answer"`
	Spoke    bool     `json:"spoke"` // the agent said something
	Verdicts Verdicts `json:"verdicts"`

	Evidence []Piece `json:"evidence"`
	Faults   int     `json:"faults,omitempty"` // pieces of evidence that the data names and doesn't have
	Lost     Loss    `json:"lost"`

	Input    int     `json:"input"`            // tokens of all requests
	Output   int     `json:"output"`           // tokens of all replies
	Cached   int     `json:"cached,omitempty"` // tokens of Input that the provider says it had in its cache; 0 where it doesn't say
	Prefix   int     `json:"prefix"`           // tokens of Input with which the request before began too, so that a cache could serve them
	Searches int     `json:"searches"`         // searches in stored texts, of the model or of the mode
	Steps    int     `json:"steps"`            // requests that were answered
	Seconds  float64 `json:"seconds"`          // 0 where nobody timed it
	// Cost is what the replies cost, in dollars, when they were asked for; nil where the price of one isn't known. Summaries
	// that several questions share and the judge are not in it.
	Cost *float64 `json:"cost,omitempty"`

	Pressure Pressure          `json:"pressure,omitzero"` // what the queue manager did in the question's turn
	Prefetch Lookup            `json:"prefetch,omitzero"` // what the system looked up
	Stop     memgpt.StopReason `json:"stop,omitempty"`
	Failure  string            `json:"failure,omitempty"` // why the model failed; "" when it did not

	// Ranks are the ranks, from 1, at which a search with the question's words brings the sessions that hold evidence, and
	// RankedGold is how many such sessions there are; in suites of sessions.
	Ranks      []int `json:"ranks,omitempty"`
	RankedGold int   `json:"ranked_gold,omitempty"`
}

// Lookup is what the system looked up before a question, see [memgpt.Prefetched].
type Lookup struct {
	Why    string      `json:"why,omitempty"`
	Query  string      `json:"query,omitempty"`
	Hits   []LookupHit `json:"hits,omitempty"`
	Tokens int         `json:"tokens,omitempty"`
	Second bool        `json:"second,omitempty"`
	Used   int         `json:"used,omitempty"`
}

// LookupHit is a text that was handed over.
type LookupHit struct {
	ID    string  `json:"id"`
	Score float64 `json:"score"`
}

// Verdicts is what each measure says of an answer; nil where the measure does not apply or was not taken.
type Verdicts struct {
	// Right is the suite's own verdict where it has one that needs no judge: the expected answer was said, and all evidence
	// was in context. Where the material doesn't hold the answer: the agent said that it doesn't know.
	Right     *bool    `json:"right,omitempty"`
	Contains  *bool    `json:"contains,omitempty"`  // the answer holds the expected one word for word
	F1        *float64 `json:"f1,omitempty"`        // of the words that the answer shares with the expected one
	RougeL    *float64 `json:"rouge_l,omitempty"`   // recall: share of the expected answer's words in their longest common sequence
	Abstained bool     `json:"abstained,omitempty"` // the agent said that it doesn't know, or nothing
	Judge     *Judged  `json:"judge,omitempty"`
	Sim1      *float64 `json:"sim1,omitempty"` // similarity of an opener to the nearest line of the persona
	Sim3      *float64 `json:"sim3,omitempty"` // mean of the three nearest
	SimH      *float64 `json:"simh,omitempty"` // similarity to what a human wrote
}

// Judged is the verdict of a model that judges answers.
type Judged struct {
	Right  bool   `json:"right"`
	Model  string `json:"model"`
	Prompt string `json:"prompt"` // version of the judge's instructions
	Reason string `json:"reason,omitempty"`
	// Failure says why there is no verdict; then Right is false and counts for nothing.
	Failure string `json:"failure,omitempty"`
}

// Piece is how far one piece of evidence came. Each step but Used needs the one before, with one exception: where a mode
// puts texts into the prompt without a search, what is Shown need not have been Found.
type Piece struct {
	ID     string `json:"id"`
	Stored bool   `json:"stored"`           // the store has it under its id, word for word
	Found  bool   `json:"found"`            // it was a hit of a search
	Shown  bool   `json:"shown"`            // it stood in a request, see the package comment
	Handed bool   `json:"handed,omitempty"` // the system, not the model, brought it
	Used   bool   `json:"used"`             // the answer holds what it says
}

// Loss says where the evidence of a question was lost.
type Loss string

// Losses, in the order in which evidence passes. The first that any piece of it met is the question's. Nothing is lost
// where the answer is right.
const (
	LostNothing     Loss = ""
	LostNeverStored Loss = "never_stored" // a piece is not in the store
	LostNotSearched Loss = "not_searched" // a piece is not in context, and nobody searched
	LostNotFound    Loss = "not_found"    // there was a search, and a piece was no hit of any
	LostNotUsed     Loss = "not_used"     // all was found; some was not read whole, or the answer has nothing of it
)

// Losses returns the losses but LostNothing, in order.
func Losses() []Loss { return []Loss{LostNeverStored, LostNotSearched, LostNotFound, LostNotUsed} }

// Gold counts the pieces of evidence.
func (r *Record) Gold() int { return len(r.Evidence) }

// Seen counts the pieces of evidence that were in context.
func (r *Record) Seen() (n int) {
	for i := range r.Evidence {
		if r.Evidence[i].Shown {
			n++
		}
	}
	return n
}

// Handed counts the pieces of evidence that the system brought.
func (r *Record) Handed() (n int) {
	for i := range r.Evidence {
		if r.Evidence[i].Handed {
			n++
		}
	}
	return n
}

// HashQuestion is the fingerprint of a question's words, 16 hexadecimal digits.
func HashQuestion(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// WriteRecords writes records as lines of JSON.
func WriteRecords(w io.Writer, records []Record) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range records {
		if err := enc.Encode(&records[i]); err != nil {
			return err
		}
	}
	return nil
}

// ReadRecords reads the records of a file of JSON lines. It fails at lines that are none, and at those of a version that
// it doesn't know.
func ReadRecords(path string) (records []Record, err error) {
	err = readLines(path, nil, func(line []byte) error {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("it is no record of a question: %w", err)
		}
		if r.Version != RecordVersion {
			return fmt.Errorf("the record has version %d, this program reads %d", r.Version, RecordVersion)
		}
		records = append(records, r)
		return nil
	})
	return records, err
}
