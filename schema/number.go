package schema

import (
	"math"
	"strconv"
	"strings"
)

// integer returns a JSON number without its fraction, if that is zero: 2.0 is
// 2 and 1e3 is 1000. Digits are never lost; a number that has more of them than
// a float holds has to be written without exponent.
func integer(s string) (string, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if !strings.ContainsAny(s, "eE") {
		return whole, isNumber(s) && strings.Trim(fraction, "0") == ""
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return s, false
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

// same reports whether two values are equal as JSON Schema means it: numbers by
// what they amount to, objects without regard to order.
func same(a, b value) bool {
	if a.kind != b.kind || len(a.items) != len(b.items) || len(a.fields) != len(b.fields) {
		return false
	}
	switch a.kind {
	case number:
		return a.str == b.str || sameNumber(a.str, b.str)
	case array:
		for i := range a.items {
			if !same(a.items[i], b.items[i]) {
				return false
			}
		}
		return true
	case object:
		for _, f := range a.fields {
			if other := b.get(f.name); other == nil || !same(f.value, *other) {
				return false
			}
		}
		return true
	default:
		return a.str == b.str
	}
}

func sameNumber(a, b string) bool {
	m, wholeM := integer(a)
	n, wholeN := integer(b)
	if wholeM && wholeN {
		return m == n || strings.Trim(m, "-0") == "" && strings.Trim(n, "-0") == ""
	}
	return wholeM == wholeN && float(a) == float(b)
}

func float(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // out of range gives an infinity, which compares well
	return f
}
