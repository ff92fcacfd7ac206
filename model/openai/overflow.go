package openai

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// overflowCodes are codes and types of errors that mean a request over the window: OpenAI and those who follow it,
// llama.cpp (server recordings of 2026-11).
var overflowCodes = []string{"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "model_context_window_exceeded"}

// overflowWords are the words for it where there is no code, in lower case.
var overflowWords = regexp.MustCompile(strings.Join([]string{
	`maximum context length`,                                   // OpenAI, vLLM, DeepSeek, OpenRouter, Mistral, SGLang
	`exceeds? (the )?(available |maximum )?context`,            // llama.cpp, Ollama
	`exceeds? the (model'?s? )?(maximum )?context`,             //
	`exceeds? max(imum)? length`,                               // Zhipu
	`longer than the (maximum model|model'?s? context) length`, // vLLM, SGLang
	`too long to fit into the model`,                           // vLLM
	`greater than the context length`,                          // LM Studio
	`context the overflows`,                                    // LM Studio
	`context length of only`,                                   // LM Studio
	`reached context length`,                                   // LM Studio
	`context (length|window|size)[a-z ]* exceeded`,             //
	`(prompt|input) is too long`,                               // Anthropic, Bedrock
	`input token count .*exceeds`,                              // Google
	`maximum prompt length`,                                    // xAI
	`too many (input )?tokens`,                                 // Cohere, Bedrock
	`token count of \d+ exceeds`,                               // GitHub
	`exceeded model token limit`,                               // Moonshot
	`tokens.* must be <= \d+`,                                  // TGI, Together
	`must have less than \d+ tokens`,                           // TGI
	`reduce the length of (the|your) (messages|prompt|input)`,  // OpenAI, Groq
	`request too large for model`,                              // Groq, when one request is over the limit of a minute
}, "|"))

// overflows reports whether an error means that the request is over the window. text is in lower case.
func (w *wireError) overflows(status int, text string) bool {
	if status == http.StatusRequestEntityTooLarge {
		return true
	}
	for _, code := range overflowCodes {
		if strings.Contains(w.code, code) {
			return true
		}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired, http.StatusTooManyRequests:
		return false // these speak of tokens too, a minute or a day
	}
	return overflowWords.MatchString(text)
}

// promptSizes and windowSizes find the size of the prompt and the window in the words of an error; the first that
// matches counts. Where a provider names prompt and reply apart, the prompt is meant.
var (
	promptSizes = regexps(
		`\((?:about )?(\d+)(?: tokens)? (?:in the messages|in your prompt|of text input)`, // OpenAI, OpenRouter
		`(\d+) tokens from the input messages`,                                            // SGLang
		`resulted in (\d+) tokens`,                                                        // OpenAI
		`(?:has|contains?) (\d+) (?:input )?tokens`,                                       // vLLM, Mistral, xAI
		`given: (\d+)`,                                      // TGI
		`\(total length (\d+)\)`, `prompt \(length (\d+)\)`, // vLLM
		`input \((\d+) tokens\)`, `request \((\d+) tokens\)`, // SGLang, llama.cpp
		`prompt is too long: (\d+)`,         // Anthropic
		`token count \((\d+)\)`,             // Google
		`token count of (\d+)`,              // GitHub
		`\(requested: (\d+)\)`,              // Moonshot
		`requested (\d+)`,                   // Groq
		`received (\d+)`,                    // Cohere
		`keep the first (\d+) tokens`,       // LM Studio
		`requested (?:about )?(\d+) tokens`, // OpenAI
	)
	windowSizes = regexps(
		`(?:context|prompt) length (?:is|of)(?: only)? (\d+)`, // OpenAI, vLLM, LM Studio, SGLang, xAI
		`context length (\d+)`, `model length of (\d+)`,       // vLLM
		`context (?:size|length|window) \((\d+)`,              // llama.cpp, SGLang
		`with (\d+) maximum context length`,                   // Mistral
		`> (\d+) maximum`,                                     // Anthropic
		`tokens allowed \((\d+)\)`,                            // Google
		`(?:token limit|limit of|limit):? (\d+)`,              // Moonshot, GitHub, Groq
		`must be <= (\d+)`, `less than (\d+)`, `exceed (\d+)`, // TGI, Cohere
	)
)

func regexps(patterns ...string) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		list[i] = regexp.MustCompile(p)
	}
	return list
}

// sizes returns the size of the prompt and the window, as far as the server tells.
func (w *wireError) sizes() (prompt, window int) {
	text := strings.ToLower(w.text)
	prompt, window = w.prompt, w.window
	if prompt == 0 {
		prompt = find(promptSizes, text)
	}
	if window == 0 {
		window = find(windowSizes, text)
	}
	return prompt, window
}

func find(list []*regexp.Regexp, text string) int {
	for _, re := range list {
		if m := re.FindStringSubmatch(text); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				return n
			}
		}
	}
	return 0
}

// resets reads how long a rate limit lasts from its headers: x-ratelimit-reset, of OpenAI and Groq with the kind of what is
// limited ("-requests", "-tokens", "-project-tokens"; "6m0s", "20ms"), of Cerebras with a period ("-tokens-minute";
// seconds), of OpenRouter alone (milliseconds since 1970); ratelimit-reset as the IETF has it (seconds); and
// anthropic-ratelimit-requests-reset (a time by RFC 3339). What counts is the longest of those of which nothing remains;
// where none says so, the shortest.
func resets(h http.Header, now time.Time) time.Duration {
	var used, all time.Duration
	for name := range h {
		at := strings.Index(name, "-Reset")
		if at < 0 || !strings.Contains(name[:at], "Ratelimit") {
			continue
		}
		d := reset(h.Get(name), now)
		if d > 0 && (all == 0 || d < all) {
			all = d
		}
		left := name[:at] + "-Remaining" + name[at+len("-Reset"):]
		if n, err := strconv.ParseFloat(h.Get(left), 64); err == nil && n <= 0 {
			used = max(used, d)
		}
	}
	if used > 0 {
		return used
	}
	return all
}

// reset reads a duration, a number of seconds, or a time: of RFC 3339, or since 1970.
func reset(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if d, err := time.ParseDuration(s); err == nil {
		return min(max(d, 0), maxWait)
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return min(max(t.Sub(now), 0), maxWait)
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || !(v > 0):
		return 0
	case v > 1e11 && v < 1e15: // milliseconds since 1970
		return min(max(time.UnixMilli(int64(v)).Sub(now), 0), maxWait)
	case v > 1e8 && v <= 1e11: // seconds since 1970
		return min(max(time.Unix(int64(v), 0).Sub(now), 0), maxWait)
	}
	return number(s, time.Second)
}

// waitWords find a wait in the body: Groq and OpenAI ("Please try again in 7.66s"), Google ("retryDelay": "34s").
var waitWords = regexp.MustCompile(`(?i)(?:try again in|"retrydelay":\s*")\s*((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)`)

func inWords(said string) time.Duration {
	m := waitWords.FindStringSubmatch(said)
	if m == nil {
		return 0
	}
	return reset(strings.ToLower(m[1]), time.Time{})
}
