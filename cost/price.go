// Package cost knows what models cost: a table of prices, with the source and date of each, and a model that reports what
// its calls cost. It keeps no sums and holds no budget; the kernel does.
package cost

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"memgpt"
)

// ProviderLocal is the provider of what runs on the user's own machine, which costs nothing.
const ProviderLocal = "local"

// Price is what a token costs, in pico-dollars (a millionth of a dollar a million tokens).
type Price struct {
	Input, Cached, Written, Output int64

	Date, Source string // when and where it was read
}

// Nano returns what a usage costs, in nano-dollars, rounded up, so that a sum is never under what was spent; at most
// math.MaxInt64. Reasoning is part of Output.
func (p *Price) Nano(u memgpt.Usage) int64 {
	input := max(u.Input, 0)
	cached := min(max(u.Cached, 0), input)
	written := min(max(u.Written, 0), input-cached)
	var hi, lo uint64
	for _, part := range [][2]int64{{int64(input - cached - written), p.Input}, {int64(cached), p.Cached}, {int64(written), p.Written},
		{int64(max(u.Output, 0)), p.Output}, {1, 999}} {
		h, l := bits.Mul64(uint64(part[0]), uint64(part[1]))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	if hi >= 500 { // the quotient would not fit
		return math.MaxInt64
	}
	nano, _ := bits.Div64(hi, lo, 1000)
	return int64(min(nano, math.MaxInt64))
}

// Table is a list of prices. It doesn't change.
type Table struct{ rows []row }

// row is a price as it is written down, in dollars a million tokens.
type row struct {
	Provider string      `json:"provider"` // "" or "*" is any
	Model    string      `json:"model"`    // in small letters; one that ends with "*" is the beginning of names
	Over     int         `json:"over"`     // holds for requests of more input tokens than that
	Input    json.Number `json:"input"`
	Cached   json.Number `json:"cached"`  // "" is Input
	Written  json.Number `json:"written"` // "" is Input
	Output   json.Number `json:"output"`
	Date     string      `json:"date"`   // "" is that of the file
	Source   string      `json:"source"` // "" is that of the file

	price Price
}

//go:embed prices.json
var builtin []byte

// Builtin returns the table that comes with the program.
func Builtin() (*Table, error) {
	t, err := new(Table).With(builtin)
	if err != nil {
		return nil, fmt.Errorf("read the built-in prices: %w", err)
	}
	return t, nil
}

// With returns a table in which the prices of a file come before those of t. The file is a JSON object:
//
//	{"date": "2026-11-30", "source": "https://…", "prices": [
//	  {"provider": "openai", "model": "gpt-4o*", "input": 2.5, "cached": 1.25, "output": 10}]}
//
// with dollars a million tokens, of six digits after the point at most. It fails for what it can't read, naming the row.
func (t *Table) With(file []byte) (*Table, error) {
	var f struct {
		Date   string `json:"date"`
		Source string `json:"source"`
		Prices []row  `json:"prices"`
	}
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more after the end of the object")
	}
	if len(f.Prices) == 0 {
		return nil, errors.New(`it has no prices: they stand in a list named "prices"`)
	}
	for i := range f.Prices {
		r := &f.Prices[i]
		if r.Date == "" {
			r.Date = f.Date
		}
		if r.Source == "" {
			r.Source = f.Source
		}
		if err := r.read(); err != nil {
			return nil, fmt.Errorf("price %d, of model %q: %w", i+1, r.Model, err)
		}
	}
	return &Table{append(f.Prices, t.rows...)}, nil
}

func (r *row) read() (err error) {
	r.Model, r.Provider = strings.ToLower(strings.TrimSpace(r.Model)), strings.ToLower(strings.TrimSpace(r.Provider))
	switch {
	case r.Model == "" || r.Model == "*" && r.Provider == "":
		return errors.New("it names no model")
	case r.Input == "" || r.Output == "":
		return errors.New("it needs input and output, in dollars a million tokens; 0 is free")
	case r.Over < 0:
		return errors.New("over is a number of tokens")
	}
	if r.Cached == "" {
		r.Cached = r.Input
	}
	if r.Written == "" {
		r.Written = r.Input
	}
	r.price = Price{Date: r.Date, Source: r.Source}
	for _, f := range []struct {
		text json.Number
		to   *int64
	}{{r.Input, &r.price.Input}, {r.Cached, &r.price.Cached}, {r.Written, &r.price.Written}, {r.Output, &r.price.Output}} {
		if *f.to, err = decimal(f.text.String(), 6); err != nil {
			return err
		}
		if *f.to > maxPrice {
			return fmt.Errorf("%s dollars a million tokens can't be meant", f.text)
		}
	}
	return nil
}

// maxPrice is far above all prices: a dollar a token.
const maxPrice = 1_000_000_000_000

// Price returns what a model of a provider costs in a request with so many tokens of input; false where it isn't known.
// The row that names most of the model counts, and of two alike the one that names the provider, and then the first. A
// name with a date at its end that no row has is looked for without it.
func (t *Table) Price(provider, model string, input int) (Price, bool) {
	return t.priceOf(provider, input, model)
}

// priceOf returns the price by the first of the names that has one. What is local costs nothing only where no name has.
func (t *Table) priceOf(provider string, input int, models ...string) (Price, bool) {
	for _, model := range models {
		model = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(model)), "models/")
		r := t.find(provider, model, input)
		if bare := dated.ReplaceAllString(model, ""); r == nil && bare != model {
			r = t.find(provider, bare, input)
		}
		if r != nil {
			return r.price, true
		}
	}
	return Price{Source: "it runs on this machine"}, provider == ProviderLocal
}

// dated is the end of a name that pins a version by its date.
var dated = regexp.MustCompile(`-(20\d\d-?[01]\d-?[0-3]\d)$`)

// find returns the best row.
func (t *Table) find(provider, model string, input int) (best *row) {
	var rank [3]int
	for i := range t.rows {
		r := &t.rows[i]
		begins, wild := strings.CutSuffix(r.Model, "*")
		own := r.Provider == provider
		if model == "" || r.Over > 0 && input <= r.Over || !own && r.Provider != "" && r.Provider != "*" ||
			!(wild && strings.HasPrefix(model, begins) || model == r.Model) {
			continue
		}
		at := [3]int{2 * len(begins), 0, r.Over}
		if !wild {
			at[0]++
		}
		if own {
			at[1] = 1
		}
		if best == nil || slices.Compare(at[:], rank[:]) > 0 {
			best, rank = r, at
		}
	}
	return best
}

// ParseDollars reads an amount such as 2.50 or $2.50, of nine digits after the point at most, in nano-dollars.
func ParseDollars(s string) (int64, error) {
	return decimal(strings.TrimPrefix(strings.TrimSpace(s), "$"), 9)
}

// decimal reads a decimal number that isn't negative, times ten to the power of digits, without rounding.
func decimal(s string, digits int) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if len(fraction) > digits || whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, fmt.Errorf("%q is no amount in dollars such as 2.50, of %d digits after the point at most", s, digits)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q dollars are too many", s)
	}
	return n, nil
}
