package kernel_test

import (
	"memgpt"
	"memgpt/internal/checkv"
	"memgpt/token"
)

// checkV holds what must be true of every request that leaves. factor is what a token of the counter's is worth in those
// of the window. asked is the text with which the newest message of a user begins; "" when there is none yet.
func checkV(req *memgpt.Request, count *token.Counter, factor float64, window int, asked string) error {
	return checkv.Check(req, int(float64(countOf(req, count))*factor), window, asked)
}

// countOf counts a request anew, as its provider would.
func countOf(req *memgpt.Request, count *token.Counter) int {
	total := count.Tools(req.Tools) + 3
	for i := range req.Messages {
		total += count.Message(&req.Messages[i])
	}
	return total
}
