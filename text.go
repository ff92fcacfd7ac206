package memgpt

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// CleanText returns s as it may be stored: valid UTF-8 without NUL. What is not (lone surrogates among it) becomes
// U+FFFD; NUL is dropped (invariant 10).
func CleanText(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// CutText returns the longest prefix of s that has at most max bytes and ends at a character border.
func CutText(s string, max int) string {
	if len(s) <= max {
		return s
	}
	if max <= 0 {
		return ""
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// Runes counts the characters (code points) of s: the unit of block limits.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// Location returns the zone in which an agent is shown times: UTC where Zone is empty or not known.
func (a *Agent) Location() *time.Location {
	if loc, err := time.LoadLocation(a.Zone); err == nil {
		return loc
	}
	return time.UTC
}

// HashKey returns a key for the joined parts: 128 bits of SHA-256, in hexadecimal digits.
func HashKey(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = io.WriteString(h, p)
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
