package eval

import (
	"fmt"
	"strings"
)

// WrongGold lists questions whose expected answer or evidence is known to be wrong, by their ids.
type WrongGold map[string]bool

// ReadWrongGold reads a list of such ids: one a line, as the data has it or with its case before it ("conv-26/conv-26_q7"),
// and after it whatever says why. Lines that begin with # are left out.
func ReadWrongGold(path string) (WrongGold, error) {
	list := WrongGold{}
	err := readLines(path, nil, func(line []byte) error {
		if fields := strings.Fields(string(line)); !strings.HasPrefix(fields[0], "#") {
			list[fields[0]] = true
		}
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: there is no id in it; write one a line", path)
	}
	return list, err
}

// has reports whether a question is on the list.
func (g WrongGold) has(c, question string) bool { return g[question] || g[c+"/"+question] }

// GoldReport is what is left when questions with wrong gold are taken out.
type GoldReport struct {
	Listed int      `json:"listed"` // ids on the list
	Asked  int      `json:"asked"`  // questions of the run that it names
	Left   Measures `json:"left"`   // of all others
}

func goldReport(list WrongGold, records []Record, by string) *GoldReport {
	if len(list) == 0 {
		return nil
	}
	var left []Record
	for i := range records {
		if !records[i].WrongGold {
			left = append(left, records[i])
		}
	}
	return &GoldReport{Listed: len(list), Asked: len(records) - len(left), Left: Measure(left, by)}
}
