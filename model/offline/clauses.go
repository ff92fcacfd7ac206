package offline

import (
	"regexp"
	"strings"
)

var (
	// "I have a cat, it's called Mimi" and 我养了一只猫，叫咪咪 are one clause each.
	joinEnglish = regexp.MustCompile(`(?i)((?:i have|i've got|i own) an? [\w ]{2,30}?)(?:,| and)? (?:(?:it|he|she|who|which|that)(?: is|'s)? )?(?:its name is|her name is|his name is|called|named) `)
	joinChinese = regexp.MustCompile(`(我(?:们)?(?:家)?(?:养了?|有)[^，。,]{1,10})[，,](?:它|他|她)?(?:的)?(?:名字)?叫`)
	// Borders of clauses: in English before a new subject, in Chinese at any comma.
	newSubject = regexp.MustCompile(`(?i)(?:,? and |,? but |, so |, )(i'm|i am|i|i've|i'll|my|we|please|call me|the name of my)\b`)
	newVerb    = regexp.MustCompile(`(?i)(?:,? and |,? but )((?:live|work|like|love|hate|enjoy|prefer|have|am|can't|cannot|don't|never) )`)
	mixed      = regexp.MustCompile(`([^A-Za-z0-9'])\s*[，,]\s*`)
	fillers    = regexp.MustCompile(`(?i)^(?:(?:hi there|hello there|hi|hello|hey|good (?:morning|evening|afternoon)|actually|no|nope|well|oh|ok|okay|yes|by the way|btw|and|but|so|also|correction|sorry|please note|please|anyway|fyi)\b|in fact|你好呀?|您好|嗨|哈喽|其实|不对|对了|顺便说一下|顺便说|更正一下|更正|另外|还有|而且|哦|嗯|那么|因为|所以|但是|不过)[\s,，.!！。:：—-]*`)
	chineseVP  = regexp.MustCompile(`^(?:也|还|而且|现在)*(?:住在|住|喜欢|爱|不喜欢|讨厌|今年|来自|是|对.+过敏|不能|不吃|不喝|在.+(?:工作|上班)$|养了|有[一两三])`)
)

// joinClauses joins clauses that make one statement only together.
func joinClauses(s string) string {
	s = joinEnglish.ReplaceAllString(s, "$1 called ")
	return joinChinese.ReplaceAllString(s, "${1}叫")
}

// splitClauses splits a sentence where a new statement begins.
func splitClauses(sentence string) []string {
	sentence = strings.ReplaceAll(sentence, "，", "\n")
	sentence = mixed.ReplaceAllString(sentence, "$1\n")
	sentence = newSubject.ReplaceAllString(sentence, "\n$1")
	if startsWithI(sentence) {
		sentence = newVerb.ReplaceAllString(sentence, "\ni $1")
		sentence = strings.ReplaceAll(sentence, "\ni am ", "\ni'm ")
	}
	return strings.Split(sentence, "\n")
}

func startsWithI(s string) bool {
	low := strings.ToLower(strip(s))
	return strings.HasPrefix(low, "i ") || strings.HasPrefix(low, "i'm ") || strings.HasPrefix(low, "my ")
}

// dropsSubject tells whether a Chinese clause goes on with the subject of the one before.
func dropsSubject(clause string) bool { return chineseVP.MatchString(clause) }

// strip takes the fillers off the beginning of a clause.
func strip(s string) string {
	s = strings.TrimSpace(s)
	for range 6 {
		t := strings.TrimSpace(fillers.ReplaceAllString(s, ""))
		if t == s || t == "" {
			break
		}
		s = t
	}
	return s
}

var speaker = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:i|i'm|i've|my|me|mine|we|our)(?:[^a-z]|$)|我|咱`)

// aboutSpeaker tells whether a text speaks of its speaker.
func aboutSpeaker(s string) bool { return speaker.MatchString(s) }
