package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// relayPersona gives the rule of the task in other words than those of the key-value task, and alone: no question repeats it.
const relayPersona = "I trace parcels. My archival storage has a note for each depot that passes its parcels on, and to which depot." +
	" I look up the depot I am asked about by its code, then the one it passes on to, and so on, until there is no note about a depot:" +
	" there the parcels stay, and that code is my answer."

const relayPlain = "It has a note for each depot that passes its parcels on, and to which depot. Look up the depot by its code, then" +
	" the one it passes on to, and so on, until there is no note about a depot: there the parcels stay, and that code is the answer."

// Relay reads the files of the nested key-value task and asks the same chains in other words: depots with short codes that pass
// parcels on. That the chain is to be followed to its end stands in the agent's persona alone. So a model that knows the
// published task by heart gains nothing.
func Relay(dir string) (*Suite, error) {
	pairs, err := readPairs(dir)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for i := range pairs {
		for j := range pairs[i] {
			pairs[i][j] = depotCode(pairs[i][j], taken)
		}
	}
	return readChains(SuiteRelay, dir, pairs, relayCase)
}

// depotCode is a short code that no other depot has.
func depotCode(id string, taken map[string]bool) string {
	id = strings.ReplaceAll(id, "-", "")
	code := "DP-" + strings.ToUpper(id[:min(6, len(id))])
	for n := 0; taken[code]; n++ {
		code = code[:min(9, len(code))] + strconv.Itoa(n)
	}
	taken[code] = true
	return code
}

func relayCase(pairs [][2]string, line []byte, n int) (Case, error) {
	order, next, err := readOrder(pairs, line, n)
	if err != nil {
		return Case{}, err
	}
	c := Case{Persona: relayPersona, Plain: relayPlain, Now: timeless}
	for i, p := range pairs {
		to := p[1]
		if v, ok := next[i]; ok {
			to = v
		}
		c.Passages = append(c.Passages, Passage{"passage-" + strconv.Itoa(i), "What reaches depot " + p[0] + " is passed on to depot " + to + "."})
	}
	q := Question{ID: fmt.Sprint(order), Group: strconv.Itoa(n - 1), Answer: pairs[order[n-1]][1],
		Text: "A parcel has reached the depot with the code " + pairs[order[0]][0] + ". Where does it stay?"}
	for _, at := range order {
		q.Gold = append(q.Gold, Evidence(c.Passages[at]))
	}
	c.Questions = []Question{q}
	return c, nil
}
