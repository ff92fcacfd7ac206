package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Closest returns the known name that name was probably meant to be, or "". It
// overlooks case, "-", "." and blanks for "_", camelCase, and what models put
// before the names of functions ("functions.", "memgpt."); beyond that it takes
// names with few slips of the pen, and then those that contain one another.
func Closest(name string, known []string) string {
	if len(name) > 200 {
		return ""
	}
	for _, form := range []string{plain(name), plain(unprefixed(name))} {
		for _, k := range known {
			if form != "" && (plain(k) == form || plain(unprefixed(k)) == form) {
				return k
			}
		}
	}
	if near := nearest(plain(unprefixed(name)), known); near != "" {
		return near
	}
	return containing(plain(unprefixed(name)), known)
}

// unprefixed drops a namespace: all up to the last ".", ":" or "/".
func unprefixed(name string) string {
	name = strings.ReplaceAll(strings.TrimSpace(name), `\`, "")
	if i := strings.LastIndexAny(name, ".:/"); i >= 0 && i+1 < len(name) {
		return name[i+1:]
	}
	return name
}

// plain brings a name to the form in which names are compared: snake_case.
func plain(name string) string {
	var b strings.Builder
	small := false
	for _, r := range strings.TrimSpace(name) {
		switch {
		case r == '-' || r == ' ' || r == '.' || r == '_':
			b.WriteByte('_')
			small = false
			continue
		case unicode.IsUpper(r) && small:
			b.WriteByte('_')
		case r == '\\':
			continue
		}
		small = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// nearest returns the name with the fewest edits, if they are at most a third
// of its length.
func nearest(form string, known []string) string {
	best, found := utf8.RuneCountInString(form)/3+1, ""
	for _, k := range known {
		other := plain(k)
		if d := edits(form, other); d < best && d <= utf8.RuneCountInString(other)/3 {
			best, found = d, k
		}
	}
	return found
}

// containing returns the shortest name that contains form or is contained in it.
func containing(form string, known []string) string {
	found := ""
	for _, k := range known {
		other := plain(k)
		if min(len(form), len(other)) < 4 || !strings.Contains(form, other) && !strings.Contains(other, form) {
			continue
		}
		if found == "" || len(k) < len(found) {
			found = k
		}
	}
	return found
}

// edits counts the insertions, deletions, replacements and swaps of neighbours
// that make b of a (optimal string alignment).
func edits(from, to string) int {
	a, b := []rune(from), []rune(to)
	if len(a) > 200 || len(b) > 200 {
		return 200
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
