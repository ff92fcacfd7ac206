package retrieve

import "reflect"

// PackVector encodes a vector for a store.
func PackVector(v []float32) []byte { return packVector(v) }

// Tune sets a constant of fusion.
func (s *Searcher) Tune(name string, value float64) {
	f := reflect.ValueOf(&s.recipe).Elem().FieldByName(name)
	*(*float32)(f.Addr().UnsafePointer()) = float32(value)
}

// Reset sets the constants as they are.
func (s *Searcher) Reset() { s.recipe = defaultRecipe() }
