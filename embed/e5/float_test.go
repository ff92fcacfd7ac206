package e5

import (
	"math"
	"sync"
)

// floatForward computes the vector of one text by the formulas of the model's description, in float64 and without thought
// for speed.
func floatForward(f *file, ids []uint32) []float32 {
	h := f.hidden
	x := make([][]float64, len(ids))
	row := make([]float32, h)
	emb := quarter{f.section["emb.scale"], f.section["emb.nibble"], h}
	for t, id := range ids {
		x[t] = make([]float64, h)
		emb.row(row, int(id))
		for i := range h {
			x[t][i] = float64(row[i]) + float64(half(f.section["pos"], t*h+i))
		}
	}
	floatNorm(f, "emb.ln", x)
	for l := range f.header.layers {
		p := layerName(l)
		qkv := floatProduct(f, p+"qkv", 3*h, x)
		floatAdd(f, p+"q.bias", qkv)
		add(x, floatLinear(f, p+"ao", h, floatAttend(qkv, h)))
		floatNorm(f, p+"ln1", x)
		wide := floatLinear(f, p+"fi", f.ffn, x)
		for _, r := range wide {
			for i, v := range r {
				r[i] = v / 2 * (1 + math.Erf(v/math.Sqrt2))
			}
		}
		add(x, floatLinear(f, p+"fo", h, wide))
		floatNorm(f, p+"ln2", x)
	}
	return floatMean(x, h)
}

func floatLinear(f *file, name string, rows int, x [][]float64) [][]float64 {
	y := floatProduct(f, name, rows, x)
	floatAdd(f, name+".bias", y)
	return y
}

func floatProduct(f *file, name string, rows int, x [][]float64) [][]float64 {
	cols := len(x[0])
	q := quarter{f.section[name+".scale"], f.section[name+".nibble"], cols}
	y := make([][]float64, len(x))
	for t := range y {
		y[t] = make([]float64, rows)
	}
	var wg sync.WaitGroup
	const part = 96
	for from := 0; from < rows; from += part {
		wg.Go(func() {
			w := make([]float32, cols)
			for r := from; r < from+part; r++ {
				q.row(w, r)
				for t := range x {
					sum := 0.0
					for c, v := range x[t] {
						sum += v * float64(w[c])
					}
					y[t][r] = sum
				}
			}
		})
	}
	wg.Wait()
	return y
}

func floatAdd(f *file, bias string, y [][]float64) {
	for i, b := range f.floats(bias) {
		for t := range y {
			y[t][i] += float64(b)
		}
	}
}

func add(x, y [][]float64) {
	for t := range x {
		for i := range x[t] {
			x[t][i] += y[t][i]
		}
	}
}

func floatNorm(f *file, name string, x [][]float64) {
	weight, bias := f.floats(name+".w"), f.floats(name+".b")
	for _, r := range x {
		mean, variance := 0.0, 0.0
		for _, v := range r {
			mean += v / float64(len(r))
		}
		for _, v := range r {
			variance += (v - mean) * (v - mean) / float64(len(r))
		}
		for i, v := range r {
			r[i] = (v-mean)/math.Sqrt(variance+float64(f.epsilon))*float64(weight[i]) + float64(bias[i])
		}
	}
}

func floatAttend(qkv [][]float64, h int) [][]float64 {
	out := make([][]float64, len(qkv))
	for t := range out {
		out[t] = make([]float64, h)
		for head := 0; head < h; head += headDim {
			total := 0.0
			for _, other := range qkv {
				score := 0.0
				for d := head; d < head+headDim; d++ {
					score += qkv[t][d] * other[h+d]
				}
				w := math.Exp(score / math.Sqrt(headDim))
				total += w
				for d := head; d < head+headDim; d++ {
					out[t][d] += w * other[2*h+d]
				}
			}
			for d := head; d < head+headDim; d++ {
				out[t][d] /= total
			}
		}
	}
	return out
}

func floatMean(x [][]float64, h int) []float32 {
	mean, squares := make([]float64, h), 0.0
	for i := range mean {
		for t := range x {
			mean[i] += x[t][i]
		}
		squares += mean[i] * mean[i]
	}
	v := make([]float32, h)
	for i := range v {
		v[i] = float32(mean[i] / math.Sqrt(squares))
	}
	return v
}
