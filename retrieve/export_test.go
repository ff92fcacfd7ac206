package retrieve

import (
	"reflect"
	"time"

	"memgpt/tool"
)

// PackVector encodes a vector for a store.
func PackVector(v []float32) []byte { return packVector(v) }

// Tune sets a constant of fusion.
func (s *Searcher) Tune(name string, value float64) {
	f := reflect.ValueOf(&s.recipe).Elem().FieldByName(name)
	f = reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
	f.SetFloat(value)
}

// Reset sets the constants as they are.
func (s *Searcher) Reset() { s.recipe = defaultRecipe() }

// Held returns how many bytes are kept of owners.
func (s *Searcher) Held() int64 { return s.shelf.total }

// CutPieces cuts a text into the pieces that get a vector each.
func CutPieces(text string) []string { return cutPieces(text) }

// Contrast compares the passages of a page.
func Contrast(hits []tool.Hit, now time.Time) []tool.Contradiction { return contrast(hits, now, true) }
