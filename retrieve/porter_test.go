package retrieve

import "testing"

// The examples of the paper, each through all steps, and words that need more than one.
func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "ties": "ti", "caress": "caress", "cats": "cat", "feed": "feed", "agreed": "agre",
		"plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing", "conflated": "conflat", "troubled": "troubl",
		"sized": "size", "hopping": "hop", "tanned": "tan", "falling": "fall", "hissing": "hiss", "fizzed": "fizz", "failing": "fail",
		"filing": "file", "happy": "happi", "sky": "sky", "relational": "relat", "conditional": "condit", "rational": "ration",
		"valenci": "valenc", "hesitanci": "hesit", "digitizer": "digit", "conformabli": "conform", "radicalli": "radic",
		"differentli": "differ", "vileli": "vile", "analogousli": "analog", "vietnamization": "vietnam", "predication": "predic",
		"operator": "oper", "feudalism": "feudal", "decisiveness": "decis", "hopefulness": "hope", "callousness": "callous",
		"formaliti": "formal", "sensitiviti": "sensit", "sensibiliti": "sensibl", "triplicate": "triplic", "formative": "form",
		"formalize": "formal", "electriciti": "electr", "electrical": "electr", "hopeful": "hope", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "inference": "infer", "airliner": "airlin", "gyroscopic": "gyroscop",
		"adjustable": "adjust", "defensible": "defens", "irritant": "irrit", "replacement": "replac", "adjustment": "adjust",
		"dependent": "depend", "adoption": "adopt", "homologou": "homolog", "communism": "commun", "activate": "activ",
		"angulariti": "angular", "homologous": "homolog", "effective": "effect", "bowdlerize": "bowdler", "probate": "probat",
		"rate": "rate", "cease": "ceas", "controll": "control", "roll": "roll", "generalizations": "gener", "oscillators": "oscil",
		"yes": "ye", "y": "y", "is": "is", "sss": "sss", "ing": "ing", "eed": "eed", "ion": "ion", "archaeology": "archaeolog",
		"possibly": "possibl", "toy": "toi", "say": "sai", "abilities": "abil", "universal": "univers", "nation": "nation", "extension": "extens", "million": "million",
	} {
		if got := string(stem([]byte(word))); got != want {
			t.Errorf("stem(%s) = %s, want %s", word, got, want)
		}
	}
}

func FuzzStem(f *testing.F) {
	for _, w := range []string{"generalizations", "yyyy", "eeeed", "inging", "ousness"} {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, word string) {
		w := []byte(word)
		if !plainLetters(w) {
			t.Skip()
		}
		got := stem([]byte(word))
		if len(got) > len(word) || len(word) > 0 && len(got) == 0 || !plainLetters(got) {
			t.Fatalf("stem(%q) = %q", word, got)
		}
	})
}
