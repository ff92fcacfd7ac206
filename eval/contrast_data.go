package eval

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"

	"memgpt/kernel"
)

// The material of the contrast is made up here, so that it needs no data.

// madePairs are pairs of keys in the form of UUIDs, drawn by seed.
func madePairs(seed uint64, n int) [][2]string {
	chance := rand.New(rand.NewPCG(seed, 1))
	id := func() string {
		var b [16]byte
		for i := range b {
			b[i] = byte(chance.Uint32())
		}
		s := hex.EncodeToString(b[:])
		return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
	}
	pairs := make([][2]string, n)
	for i := range pairs {
		pairs[i] = [2]string{id(), id()}
	}
	return pairs
}

// madeChains is the key-value task on made-up pairs: n questions at each of the levels from to to.
func madeChains(seed uint64, n, from, to int) (*Suite, error) {
	pairs := madePairs(seed, 140)
	chance := rand.New(rand.NewPCG(seed, 2))
	s := &Suite{Name: SuiteNestedKV, Levels: true, Scored: true}
	for level := from; level <= to; level++ {
		for i := range n {
			order := chance.Perm(len(pairs))[:level+1]
			line := "[" + strconv.Itoa(order[0])
			for _, at := range order[1:] {
				line += "," + strconv.Itoa(at)
			}
			c, err := chainCase(pairs, []byte(line+"]"), level+1)
			if err != nil {
				return nil, err
			}
			c.Name = fmt.Sprintf("level %d chain %d", level, i)
			s.Cases = append(s.Cases, c)
		}
	}
	return s, nil
}

// misses are questions whose words stand in many texts, and whose answer stands in one that has another word for the same.
var misses = []struct{ ask, part, other, fact, answer string }{
	{"Who repaired the car?", "repaired the", "The car stood near the",
		"Oke Berg from the yard behind the old mill repaired the vehicle in the second week of a cold and windy spring.", "Oke Berg"},
	{"Who recommended the doctor?", "recommended the", "The doctor passed the",
		"It was Runa Falk, the tall woman from the ferry office, who recommended the physician to all of us that winter.", "Runa Falk"},
	{"Who painted the house?", "painted the", "The house lies behind the",
		"Two brothers by the name of Sund painted the apartment over the summer, white and green, and were paid in apples.", "Sund"},
	{"Who borrowed the photo?", "borrowed the", "The photo shows the",
		"The teacher, Mister Holm, borrowed the picture for his lecture on the old harbour and has not brought it back.", "Holm"},
}

// thingsAround are what the other texts are about.
var thingsAround = []string{"fence", "roof", "bridge", "barrel", "ladder", "kettle", "gate", "bench", "lantern", "well", "stove", "chimney", "mill", "sledge",
	"loom", "anvil", "plough", "cradle", "organ", "clock", "canoe", "wheel", "oven", "shed", "pump"}

func missSuite() *Suite {
	s := &Suite{Name: "misses", Contained: true}
	for i, m := range misses {
		c := Case{Name: fmt.Sprint("miss ", i), Persona: docsPersona, Now: timeless}
		for j, thing := range thingsAround {
			c.Passages = append(c.Passages, Passage{fmt.Sprintf("part-%d-%d", i, j), "Nils " + m.part + " " + thing + "."},
				Passage{fmt.Sprintf("other-%d-%d", i, j), m.other + " " + thing + "."})
		}
		fact := Passage{fmt.Sprint("fact-", i), m.fact}
		c.Passages = append(c.Passages, fact)
		c.Questions = []Question{{ID: fmt.Sprint("miss ", i), Text: m.ask, Answer: m.answer, Group: "miss", Gold: []Evidence{Evidence(fact)}}}
		s.Cases = append(s.Cases, c)
	}
	return s
}

// smallTalk needs no memory.
var smallTalk = []string{"Hello!", "Thanks a lot!", "Good morning!", "Okay, great.", "See you tomorrow.", "How are you?"}

// toldFacts are facts that a user states in one conversation, and what he asks in the next.
var toldFacts = []struct{ state, ask, answer string }{
	{"My boat is called Wagtail.", "What is my boat called?", "Wagtail"},
	{"I am allergic to walnuts.", "What am I allergic to?", "walnuts"},
	{"My sister is called Runa.", "What is my sister called?", "Runa"},
	{"I live in Trondheim.", "Where do I live?", "Trondheim"},
}

// talkCase is what an agent of the contrast has before anything is said.
func talkCase(name string) *Case {
	c := &Case{Name: name, Persona: talkPersona, Now: timeless}
	for i, thing := range thingsAround {
		c.Lines = append(c.Lines, kernel.Line{ID: fmt.Sprint("line-", i), Speaker: "Nils", Time: timeless.AddDate(0, 0, i-60), Text: "I saw a " + thing + " at the fair today."})
	}
	return c
}

// longTalk is a conversation that is longer than a window: a fact at its beginning, chatter of about so many tokens, and the
// question.
func longTalk(window int) (fact, ask, answer string, chatter []string) {
	for i := 0; i*70 < 2*window; i++ {
		a, b := thingsAround[i%len(thingsAround)], thingsAround[(i*7+3)%len(thingsAround)]
		chatter = append(chatter, fmt.Sprintf("On walk number %d we came by the %s and then by the %s, and after that it rained so hard that we went"+
			" home the long way round, past the fields and the little wood, where nobody was to be seen for hours.", i+1, a, b))
	}
	return "The spare key of the boathouse hangs behind the blue barometer.", "Where does the spare key of the boathouse hang?", "blue barometer", chatter
}
