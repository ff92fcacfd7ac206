package kernel

import (
	"context"
	"regexp"
	"strings"

	"memgpt"
)

// maxUnsure is how long a reply may be, in characters, that is taken to say above all that it doesn't know.
const maxUnsure = 600

// unsure matches what says in English, Chinese or Japanese that something isn't known or on record.
var unsure = regexp.MustCompile(`(?i)` +
	`\b(?:do(?:es)?n'?t|do(?:es)? not|did(?:n'?t| not)|can(?:'?t|not| not)|could(?:n'?t| not)|am not able to|unable to|not able to|have(?:n'?t| not)|has(?:n'?t| not)|never|no longer|nor)\b` +
	`[^.!?\n]{0,40}?\b(?:know|recall|remember|find|found|see|seen|have (?:any|a|that|this|the|access|info|information|details?|records?|memory|memories|enough)|aware|told|mentioned|shared|said|recorded|stored|tell you|say for sure|determine|access)\b` +
	`|\bno (?:record|records|memory|memories|recollection|mention|info|information|note|notes|trace|idea|details?|data|knowledge|entry|entries|clue)\b` +
	`|\b(?:not|n't) (?:sure|certain|aware|familiar|in my (?:memory|records|notes)|on record|recorded|mentioned|anything about|know)\b` +
	`|\bnothing (?:about|on|in my|stored|recorded)\b` +
	`|不知道|不清楚|不记得|不确定|不了解|不太(?:清楚|确定|记得|了解)|想不起|记不(?:得|清|起|住)|没(?:有)?印象|没(?:有)?(?:任何|相关|关于|找到|查到|提到|提及|提过|说过|告诉|记录|记下|存|这(?:方面|个|条))` +
	`|(?:没有|没|无|未)[^。！？\n]{0,16}(?:记录|信息|记忆|资料|内容|线索|印象)|未(?:找到|查到|提及|提到|记录|曾)|无法(?:确定|得知|回答|找到|查到|告诉|提供|确认)|找不到|查不到|无从` +
	`|わかりません|分かりません|わからない|分からない|知りません|存じません|覚えて(?:い)?(?:ません|ない)|思い出せ|見つか(?:りません|らない|りませんでした)|(?:記録|情報|記憶|データ)(?:が|は|も)?(?:ありません|ない|見つか|ございません)|聞いて(?:い)?(?:ません|ない)`)

// saysUnsure reports whether a reply says that it doesn't know.
func saysUnsure(text string) bool {
	return memgpt.Runes(text) <= maxUnsure && unsure.MatchString(strings.ReplaceAll(text, "’", "'"))
}

// codeLookAgain is why a reply is thrown away for which a second look found something.
const codeLookAgain memgpt.Code = "look_again"

// lookAgain looks once more, with the agent's own words, where its first reply to a user only says that it doesn't know.
// Where that finds something that the model has not seen, it is put at the end of the queue, so that the prefix stays, and
// an error of codeLookAgain says that the reply is to be asked for again. That happens once a turn.
func (r *run) lookAgain(ctx context.Context, reply *memgpt.Response) error {
	if !r.prefetches() || r.spoke() || r.turn.Prefetch == nil || r.turn.Prefetch.Second {
		return nil
	}
	if r.prefetchLeft() < prefetchLeast {
		return nil
	}
	said := r.onlySays(reply)
	if said == "" || !saysUnsure(said) {
		return nil
	}
	before := *r.turn.Prefetch
	own := before
	own.Second = true
	r.turn.Prefetch = &own
	e, ok := r.lookUp(ctx, endsOf(r.asking(), prefetchText/2)+"\n"+said, handedAgainHead)
	if !ok {
		r.turn.Prefetch.Why, r.turn.Prefetch.Query = before.Why, before.Query
		return nil
	}
	r.append(e)
	return memgpt.Errorf(codeLookAgain, "the reply says that it doesn't know, and a second look found something")
}

// asking returns what the newest message of a user says.
func (r *run) asking() string {
	if r.st.Asked != nil {
		return r.st.Asked.Message.Said()
	}
	for i := len(r.st.Queue) - 1; i >= 0; i-- {
		if e := &r.st.Queue[i]; e.Message.Role == memgpt.RoleUser {
			return e.Message.Said()
		}
	}
	return ""
}

// onlySays returns what a reply says to the user where it does nothing else and would end the turn; else "".
func (r *run) onlySays(reply *memgpt.Response) string {
	calls, parts := r.plan(reply)
	for i := range calls {
		c := &calls[i]
		if c.fault != "" || c.heartbeat || c.Name != memgpt.FuncSendMessage && c.Name != memgpt.FuncYield {
			return ""
		}
	}
	return strings.TrimSpace((&memgpt.Message{Role: memgpt.RoleAssistant, Parts: parts}).Said())
}
