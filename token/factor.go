package token

import (
	"math"
	"sync"
)

// How a factor follows reports.
const (
	minFactor = 0.5
	maxFactor = 8.0
	fall      = 0.1 // share of the way down that one report moves the factor
	minCount  = 100 // counts under this say nothing: templates and rounding outweigh them
	truncated = 0.6 // reports under this share of our count mean that the provider cut the request
	maxModels = 256 // models remembered at once
)

// factors holds, by model, the ratio of reported to counted tokens. A model that is not in it has the factor 1.
type factors struct {
	mu      sync.RWMutex
	byModel map[string]float64
}

// Factor is what a count of this Counter is to be multiplied with for the model: 1 until a report was observed.
func (c *Counter) Factor(model string) float64 {
	c.factors.mu.RLock()
	defer c.factors.mu.RUnlock()
	if f, ok := c.factors.byModel[model]; ok {
		return f
	}
	return 1
}

// Observe learns from a request that counts as counted by this Counter, without any factor, and as reported by the
// provider. The factor follows upwards at once, since too low a count overflows a window, and downwards by a tenth of the
// way. It stays between 0.5 and 8. Reports that look truncated, and counts too small to tell anything, change nothing.
func (c *Counter) Observe(model string, counted, reported int) {
	if counted < minCount || reported <= 0 || c.Truncated(counted, reported) {
		return
	}
	ratio := float64(reported) / float64(counted)
	c.factors.mu.Lock()
	defer c.factors.mu.Unlock()
	f, known := c.factors.byModel[model]
	if !known {
		f = 1
		c.factors.room()
	}
	if ratio < f {
		ratio = f + (ratio-f)*fall
	}
	c.factors.byModel[model] = min(max(ratio, minFactor), maxFactor)
}

// Calibrate takes over a factor that was learned before this Counter was made. It is bounded as those that are observed,
// and changes nothing where one was observed, which is newer.
func (c *Counter) Calibrate(model string, factor float64) {
	c.factors.mu.Lock()
	defer c.factors.mu.Unlock()
	if _, known := c.factors.byModel[model]; known || math.IsNaN(factor) {
		return
	}
	c.factors.room()
	c.factors.byModel[model] = min(max(factor, minFactor), maxFactor)
}

// room makes sure that one more model can be remembered; any other is forgotten for it.
func (f *factors) room() {
	if f.byModel == nil {
		f.byModel = map[string]float64{}
	}
	for model := range f.byModel {
		if len(f.byModel) < maxModels {
			return
		}
		delete(f.byModel, model)
	}
}

// Truncated reports whether a provider's count lies so far under ours (without any factor) that it must have cut the
// request silently, as some local servers do. No report at all (0) is not a cut.
func (c *Counter) Truncated(counted, reported int) bool {
	return counted >= minCount && reported > 0 && float64(reported) < truncated*float64(counted)
}
