package offline

import (
	"fmt"
	"strings"

	"memgpt"
)

const (
	maxSearches = 12   // calls of searches a turn
	maxReads    = 3    // calls of memory_read a turn
	maxPages    = 4    // pages of the first query in each store
	goodScore   = 0.85 // a text that scores so is the answer
	fairScore   = 0.7  // below it, other words are tried
	leastScore  = 0.34 // below it, nothing was found
)

// answer answers a question from working context, else from the queue, else by searching.
func (m *Model) answer(t *turn, question string) act {
	want, personal := m.grammar.wants(question)
	if personal {
		if text := m.fromMemory(t, want); text != "" {
			return t.speak(text)
		}
	}
	if text := m.fromLines(t, question); text != "" {
		return t.speak(text)
	}
	terms := t.terms(question, want)
	if len(terms) == 0 {
		return t.speak(t.lang.pick("I'm not sure what to look for. Could you say it in other words?", "我不确定要找什么，能换个说法吗？"))
	}
	if r := rank(terms, t.queued()); len(terms) < 2 || len(r) == 0 || r[0].score < 0.99 {
		if !m.slips("search", m.cfg.ForgetSearch, t) {
			if a, ok := m.look(t, terms, want); ok {
				return a
			}
		}
	}
	return t.speak(m.conclude(t, terms, want))
}

// terms are the words to look for: those of the question, and for a question about the user himself those in which he
// would have said it.
func (t *turn) terms(question string, want fact) []term {
	list := contentTerms(question)
	if words := slotWords[want.slot]; words[english] != "" {
		for _, w := range strings.Fields(words[want.lang]) {
			list = append(list, term{w, dense([]rune(w)[0]), 1})
		}
	}
	return uniqueTerms(list)
}

// fromMemory answers a question about the user from working context, and from what he said in the queue.
func (m *Model) fromMemory(t *turn, want fact) string {
	facts, _ := m.grammar.known(t.blocks)
	for _, it := range t.items {
		if it.kind == heard && it.typ == memgpt.EventUser {
			facts = appendNew(facts, m.grammar.stated(it.text))
		}
	}
	return tellFacts(t.lang, want, facts)
}

// tellFacts words the facts that a question wants; "" when there are none. Of single facts the newest counts.
func tellFacts(l lang, want fact, facts []fact) string {
	var told []string
	for _, f := range facts {
		if want.slot != slotAll && !answers(f, want) {
			continue
		}
		if want.slot != slotAll && f.single() && !isKind(f.thing, want.thing) {
			told = nil
		}
		told = append(told, f.tell(l))
	}
	if len(told) == 0 {
		return ""
	}
	text := strings.Join(told, l.pick("; ", "；")) + l.pick(".", "。")
	if l == english {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text
}

// answers tells whether a fact is what a question wants. What something is called also answers what it is.
func answers(f, want fact) bool {
	if f.same(want) {
		return true
	}
	called := f.slot == slotCalled && (want.slot == slotOf || want.slot == slotCalled) || f.slot == slotOf && want.slot == slotCalled
	return called && (sameThing(f.thing, want.thing) || isKind(f.thing, want.thing))
}

// fromLines answers a question that speaks of the user by a line of working context that has its words.
func (m *Model) fromLines(t *turn, question string) string {
	terms := contentTerms(question)
	if !aboutSpeaker(question) || len(terms) == 0 {
		return ""
	}
	_, lines := m.grammar.known(t.blocks)
	var hits []hit
	for _, line := range lines {
		hits = append(hits, hit{ID: line, Text: line})
	}
	r := rank(terms, hits)
	if len(r) == 0 || r[0].score < goodScore {
		return ""
	}
	text := strings.TrimRight(r[0].hit.Text, ".。")
	if f, ok := m.grammar.read(r[0].hit.Text); ok {
		text = f.tell(t.lang)
	}
	return t.lang.pick("As I have noted, "+text+".", "我记着："+text+"。")
}

// queued returns what was said in the queue before the newest message, newest first.
func (t *turn) queued() []hit {
	var hits []hit
	newest := true
	for i := len(t.items) - 1; i >= 0; i-- {
		it := t.items[i]
		switch {
		case it.kind == heard && it.typ == memgpt.EventUser && newest:
			newest = false
		case it.kind == heard && it.typ == memgpt.EventUser:
			hits = append(hits, hit{ID: fmt.Sprint("queue ", i), Time: it.when, Role: string(memgpt.RoleUser), Name: it.name, Text: it.text})
		case it.kind == said && !newest && it.text != "":
			hits = append(hits, hit{ID: fmt.Sprint("queue ", i), Role: string(memgpt.RoleAssistant), Text: it.text})
		}
	}
	return hits
}

// look chooses the next search, or the next piece of a cut text. It reports false when enough was seen.
func (m *Model) look(t *turn, terms []term, want fact) (act, bool) {
	pages, hits := t.pages(), t.found()
	best := ranked{}
	if r := rank(terms, hits); len(r) > 0 {
		best = r[0]
	}
	if best.score >= goodScore && breaksOff(best.hit, terms) {
		if a, ok := t.readFurther(best, pages); ok {
			return a, true
		}
	}
	if best.score >= goodScore || t.fromHits(m, want, hits) != "" {
		return act{}, false
	}
	if a, ok := t.readFurther(best, pages); ok {
		return a, true
	}
	if t.count() >= maxSearches || t.late() {
		return act{}, false
	}
	all := unique(append([]string{asked(t.question)}, t.queries(terms, hits)...))
	if m.slips("query", m.cfg.BadQuery, t) {
		all = []string{worst(terms)}
	}
	stop := m.slips("paging", m.cfg.StopPaging, t)
	if calls := t.nextPages(all[0], pages); len(calls) > 0 && !stop {
		return t.searching(all[0], calls), true
	}
	for i, q := range all {
		if i > 0 && (stop || best.score >= fairScore) {
			break
		}
		if calls := t.newSearch(q, pages); len(calls) > 0 {
			return t.searching(q, calls), true
		}
	}
	return act{}, false
}

// longQuery bounds in bytes what of a message is searched for as it stands.
const longQuery = 400

// asked is a message as a query: in its own words, by which a search by meaning finds most.
func asked(message string) string {
	return memgpt.CutText(strings.Join(strings.Fields(message), " "), longQuery)
}

func worst(terms []term) string {
	least := terms[0]
	for _, x := range terms {
		if x.weight < least.weight {
			least = x
		}
	}
	return least.text
}

func (t *turn) searching(query string, calls []call) act {
	calls = calls[:min(len(calls), maxSearches-t.count())]
	return act{calls: calls, thought: t.think(t.lang.pick("Looking for: "+query, "查找："+query))}
}

func searches(pages []page) int {
	n := 0
	for _, p := range pages {
		if p.call.name != toolRead {
			n++
		}
	}
	return n
}

// newSearch looks for a query in both stores, where that was not done yet.
func (t *turn) newSearch(query string, pages []page) []call {
	var calls []call
	for _, store := range []string{toolRecall, toolArchive} {
		if t.has(store) && !searched(pages, store, query, 0) {
			calls = append(calls, t.call(store, true, "query", query, "page", 0))
		}
	}
	return calls
}

// nextPages pages on in both stores, as far as pages were announced and the bound allows.
func (t *turn) nextPages(query string, pages []page) []call {
	var calls []call
	for _, p := range pages {
		if p.call.name == toolRead || !p.more || p.call.str("query") != query || p.next >= maxPages || p.misses(query) {
			continue
		}
		if !searched(pages, p.call.name, query, p.next) && t.has(p.call.name) {
			calls = append(calls, t.call(p.call.name, true, "query", query, "page", p.next))
		}
	}
	return calls
}

func searched(pages []page, store, query string, number int) bool {
	for _, p := range pages {
		if p.call.name == store && p.call.str("query") == query && p.number() == number {
			return true
		}
	}
	return false
}

// breaksOff reports whether a text was cut inside its best sentence, which stands at the end of what is shown.
func breaksOff(h hit, terms []term) bool {
	all := sentences(h.Text)
	if !h.Cut || len(all) == 0 {
		return false
	}
	last := strings.TrimSpace(all[len(all)-1])
	if last == "" || strings.ContainsRune(".!?。！？…\"”」)", []rune(last)[len([]rune(last))-1]) {
		return false
	}
	r := rank(terms, []hit{{ID: "last", Text: last}})
	return len(r) > 0 && r[0].score > 0
}

// readFurther reads on in the best text where it was cut and has a part of what is looked for.
func (t *turn) readFurther(best ranked, pages []page) (act, bool) {
	if !best.hit.Cut || best.score < 0.2 || t.reads() >= maxReads || t.late() || !t.has(toolRead) {
		return act{}, false
	}
	offset := best.hit.shown()
	for _, p := range pages {
		n, _ := p.call.args["offset"].(float64)
		if p.call.name == toolRead && p.call.str("id") == best.hit.ID && int(n) == offset {
			return act{}, false
		}
	}
	c := t.call(toolRead, true, "id", best.hit.ID, "offset", offset)
	return act{calls: []call{c}, thought: t.think(t.lang.pick("Reading on.", "继续读下去。"))}, true
}

// fromHits answers a question about the user from what users said in the texts found.
func (t *turn) fromHits(m *Model, want fact, hits []hit) string {
	if want.slot == "" || want.slot == slotAll {
		return ""
	}
	var from hit
	var found []fact
	for _, h := range hits {
		if h.Name != "" || h.Role != string(memgpt.RoleUser) && !strings.HasPrefix(h.Text, "The user") && !strings.HasPrefix(h.Text, "用户") {
			continue
		}
		if f, ok := m.grammar.read(h.Text); ok && answers(f, want) && len(found) == 0 {
			found, from = []fact{f}, h
		}
		for _, f := range m.grammar.stated(h.Text) {
			if answers(f, want) && (len(found) == 0 || f.single() && h.Time > from.Time) {
				found, from = []fact{f}, h
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return tellFacts(t.lang, want, found) + " " + t.quote(from, nil)
}
