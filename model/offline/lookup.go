package offline

import (
	"regexp"
	"strings"

	"memgpt"
)

// A lookup follows keys to values: where a question names a key and asks for its value, and for the value of that if it
// is a key itself, each is searched in turn until what was found is the key of nothing.

const (
	maxHops      = 30 // searches of one lookup
	maxHopPages  = 4  // pages of one search of it
	minCode      = 4  // characters of the shortest code
	minNumberKey = 3  // digits of the shortest number that is taken for a key
)

var (
	lookupWords = regexp.MustCompile(`(?i)\b(?:keys?|values?|look ?ups?|look(?:s|ed|ing)? up|maps? to|mapped|points? to|leads? to|follow|codes?)\b|键|值|对应|查|映射|指向`)
	followWords = regexp.MustCompile(`(?i)\b(?:follow|itself|also a key|another key|is a key|nested|chain|until|final|ultimate|recursive\w*|again|in turn|lead|leads|keep (?:going|looking)|end of)\b|也是|又是|还是一?个?键|本身|继续|直到|最终|最后|嵌套|一直|再查|接着查|追`)
	namedKey    = regexp.MustCompile(`(?i)(?:\bkey|键)\s*(?:named|called|名为|是)?\s*[:：=]?\s*["'“‘「` + "`" + `]([^"'”’」` + "`" + `\n]{1,80})["'”’」` + "`" + `]`)
	uuidShape   = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	dateShape   = regexp.MustCompile(`^(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.*|\d{1,2}:\d{2}(?::\d{2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})$`)
	codeRun     = regexp.MustCompile(`[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?`)
	labelled    = regexp.MustCompile(`(?i)(?:\bkey|键)["'”]?\s*(?:[:：=]|is|是|为)?\s*["'“]?([^\s"'“”,，;；]+)["'”]?[\s,，;；]*(?:(?:and|with|has|的)\s*)?(?:(?:the|its|a)\s*)?(?:value|值)["'”]?\s*(?:[:：=]|is|是|为)?\s*["'“]?([^\s"'“”,，;；。]+)`)
	arrow       = regexp.MustCompile(`["'“]?([^\s"'“”,，;；{}]+)["'”]?\s*(?:->|=>|→|:|：|=)\s*["'“]?([^\s"'“”,，;；。{}]+)["'”]?`)
)

// shape is the class of a code: what leads on has the shape of what was looked for.
type shape int

const (
	noShape shape = iota
	shapeUUID
	shapeNumber
	shapeCode
)

// shapeOf tells the class of a token; noShape for words and dates.
func shapeOf(s string) shape {
	digits := strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' }) >= 0
	switch {
	case uuidShape.MatchString(s):
		return shapeUUID
	case !digits || dateShape.MatchString(s):
		return noShape
	case strings.Trim(s, "0123456789") == "":
		if len(s) < minNumberKey {
			return noShape
		}
		return shapeNumber
	case len(s) < minCode:
		return noShape
	}
	return shapeCode
}

// lookupStart returns the key at which a lookup begins; false when a text asks for none.
func lookupStart(text string) (string, bool) {
	if !lookupWords.MatchString(text) {
		return "", false
	}
	for _, tok := range codeRun.FindAllString(text, -1) {
		if shapeOf(tok) != noShape {
			return tok, true
		}
	}
	if m := namedKey.FindStringSubmatch(text); m != nil {
		return m[1], true
	}
	return "", false
}

// lookup does the next step of a lookup. It reports false when the key leads nowhere, so that the question is answered as
// any other.
func (m *Model) lookup(t *turn, start string) (act, bool) {
	pages := t.hops()
	at, hops, recall := t.reached(start)
	follow := t.follows()
	if hops > 0 && !follow {
		return t.speak(t.value(at, hops)), true
	}
	bound := maxHops
	if hops == 0 {
		bound = maxSearches // as of any question
	}
	if t.count() < bound && !t.late() && !m.slips("search", m.cfg.ForgetSearch, t) {
		if c, ok := t.hop(at, hops == 0, recall, pages); ok {
			return act{calls: []call{c}, thought: t.think(t.lang.pick("Looking up "+at, "查找 "+at))}, true
		}
	}
	if hops == 0 {
		return act{}, false
	}
	return t.speak(t.value(at, hops)), true
}

// reached tells how far the lookup has come. What came before may have left the context: then it goes on from what was
// noted, else from the first search that is still there.
func (t *turn) reached(start string) (at string, hops int, recall bool) {
	follow := t.follows()
	at, hops, recall = t.walk(start, follow)
	if hops >= t.notes.Hops && (hops > 0 || !follow) {
		return at, hops, recall
	}
	before := t.notes.Hops
	if t.notes.At != "" {
		start = t.notes.At
	} else if pages := t.hops(); len(pages) > 0 {
		first := pages[0].call.str("query")
		if before == 0 && shapeOf(first) != noShape && !strings.EqualFold(first, start) {
			before = 1 // at least: something led to that key
		}
		start = first
	}
	at, hops, recall = t.walk(start, follow)
	return at, hops + before, recall
}

// value words the end of a lookup.
func (t *turn) value(v string, hops int) string {
	if hops == 1 {
		return t.lang.pick("The value is "+v+".", "对应的值是 "+v+"。")
	}
	return t.lang.pick("The final value is "+v+". I followed the keys until what I found was the key of nothing else.",
		"最终的值是 "+v+"。我沿着键一直查到它不再是别的键为止。")
}

// follows tells whether the lookup is to go on from values that are keys: the user says so, or the persona.
func (t *turn) follows() bool {
	if followWords.MatchString(t.question) {
		return true
	}
	for _, b := range t.blocks {
		if lookupWords.MatchString(b.value) && followWords.MatchString(b.value) {
			return true
		}
	}
	return false
}

// hops returns the pages of the turn's searches. Those of a lookup come first.
func (t *turn) hops() []page {
	var list []page
	for _, p := range t.pages() {
		if p.call.name != toolRead && p.call.str("query") != "" {
			list = append(list, p)
		}
	}
	return list
}

// walk follows what was found from a key: where it leads, in how many hops, and whether talk led there and no passage.
func (t *turn) walk(start string, follow bool) (at string, hops int, recall bool) {
	texts := t.lookupTexts()
	been := map[string]bool{strings.ToLower(start): true}
	at = start
	for {
		next := ""
		for _, h := range texts {
			if v, ok := valueOf(h.Text, at); ok && !been[strings.ToLower(v)] {
				next, recall = v, recall || h.Kind != string(memgpt.KindPassage)
				break
			}
		}
		if next == "" {
			return at, hops, recall
		}
		at, hops = next, hops+1
		been[strings.ToLower(at)] = true
		if !follow {
			return at, hops, recall
		}
	}
}

// lookupTexts are the texts in which keys are looked up: passages first, then what users said.
func (t *turn) lookupTexts() []hit {
	var list []hit
	for _, h := range t.found() {
		if !h.own() {
			list = append(list, h)
		}
	}
	for _, h := range t.queued() {
		if !h.own() {
			list = append(list, h)
		}
	}
	return list
}

// hop chooses the next search for a key: the archive, its next page as long as pages are full of the key, then the
// conversations, at the beginning and where talk had the keys so far.
func (t *turn) hop(key string, first, recall bool, pages []page) (call, bool) {
	stores := []string{toolArchive}
	if first || recall || !t.has(toolArchive) {
		stores = append(stores, toolRecall)
	}
	for _, store := range stores {
		if !t.has(store) {
			continue
		}
		number := 0
		var last page
		for searched(pages, store, key, number) {
			last = pageAt(pages, store, key, number)
			number++
		}
		if number == 0 || last.more && number < maxHopPages && (last.noted || last.fullOf(key)) {
			return t.call(store, true, "query", key, "page", number), true
		}
	}
	return call{}, false
}

func pageAt(pages []page, store, query string, number int) page {
	for _, p := range pages {
		if searched([]page{p}, store, query, number) {
			return p
		}
	}
	return page{}
}

// fullOf tells whether every hit has the key, so that a next page may have more of it.
func (p page) fullOf(key string) bool {
	for _, h := range p.hits {
		if !holdsWhole(h.Text, key) {
			return false
		}
	}
	return len(p.hits) > 0
}

// valueOf returns what stands beside a key in a text, line by line: by its label, else the code of the same shape that
// follows it, else what an arrow, colon or equals sign leads to.
func valueOf(text, key string) (string, bool) {
	for _, line := range strings.Split(text, "\n") {
		if !strings.Contains(strings.ToLower(line), strings.ToLower(key)) {
			continue
		}
		if found := labelled.FindAllStringSubmatch(line, -1); len(found) > 0 {
			if v, ok := pairIn(found, key); ok {
				return v, true
			}
			continue
		}
		if v, ok := nextCode(line, key); ok {
			return v, true
		}
		if v, ok := pairIn(arrow.FindAllStringSubmatch(line, -1), key); ok && shapeOf(key) == noShape {
			return v, true
		}
	}
	return "", false
}

func pairIn(found [][]string, key string) (string, bool) {
	for _, m := range found {
		if v := strings.TrimRight(m[2], ".。!"); strings.EqualFold(m[1], key) && v != "" {
			return v, true
		}
	}
	return "", false
}

// nextCode pairs the codes of a line that have the key's shape, and returns the partner of the key.
func nextCode(line, key string) (string, bool) {
	class := shapeOf(key)
	if class == noShape {
		return "", false
	}
	var codes []string
	for _, tok := range codeRun.FindAllString(line, -1) {
		if shapeOf(tok) == class {
			codes = append(codes, tok)
		}
	}
	for i := 0; i+1 < len(codes); i += 2 {
		if strings.EqualFold(codes[i], key) {
			return codes[i+1], true
		}
	}
	return "", false
}
