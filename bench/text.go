package bench

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
)

// Shape of the texts. The length of a chat's messages is about log-normal; the frequency of words follows Zipf's law.
const (
	vocabulary  = 50_000
	zipfS       = 1.07
	zipfV       = 4.0
	lengthMu    = 2.6 // a median of 13 words
	lengthSigma = 0.8
	longest     = 400 // words of a message
	stopWords   = 30  // ranks that no question is made of
	chinese     = 0.25
)

// writer makes texts like those of a conversation, in English or Chinese, the same ones for the same seed. It is safe for
// concurrent use.
type writer struct {
	mu    sync.Mutex
	rng   *rand.Rand
	ranks *rand.Zipf
}

func newWriter(seed uint64) *writer {
	rng := rand.New(rand.NewPCG(seed, 20_231_012))
	return &writer{rng: rng, ranks: rand.NewZipf(rng, zipfS, zipfV, vocabulary-1)}
}

// message returns a message.
func (w *writer) message() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int(math.Exp(lengthMu + lengthSigma*w.rng.NormFloat64()))
	return w.words(min(max(n, 1), longest), 0)
}

// question returns some words to search for, none of which is among the commonest.
func (w *writer) question() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.words(3+w.rng.IntN(3), stopWords)
}

func (w *writer) words(n, from int) string {
	var b strings.Builder
	han := w.rng.Float64() < chinese
	for i := range n {
		rank := w.ranks.Uint64()
		for rank < uint64(from) {
			rank = w.ranks.Uint64()
		}
		switch {
		case i == 0:
		case han && i%9 == 0:
			b.WriteString("，")
		case !han && i%11 == 0:
			b.WriteString(", ")
		case !han:
			b.WriteByte(' ')
		}
		if han {
			b.WriteString(hanWord(rank))
		} else {
			b.WriteString(latinWord(rank))
		}
	}
	return b.String()
}

// latinWord returns a word for a rank; common words are short.
func latinWord(rank uint64) string {
	const consonants, vowels = "tnsrlhdcmfpgwybvkjxz", "eaoiu"
	var b []byte
	for n := rank + 1; n > 0; n /= 100 {
		syllable := n % 100
		b = append(b, consonants[syllable/5], vowels[syllable%5])
	}
	return string(append(b, "nsrt"[rank%4]))
}

// hanWord returns a word of two characters for a rank, as most Chinese words have.
func hanWord(rank uint64) string {
	const first, common = 0x4E00, 2500 // Unicode's block of Han; characters in daily use
	mixed := rank * 2_654_435_761
	return string([]rune{first + rune(mixed%common), first + rune(mixed/common%common)})
}

// texts returns a function that gives n messages again and again, so that making them takes no time of a measurement.
func texts(seed uint64, n int) func() string {
	w := newWriter(seed)
	list := make([]string, n)
	for i := range list {
		list[i] = w.message()
	}
	var mu sync.Mutex
	next := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		next++
		return list[next%n]
	}
}
