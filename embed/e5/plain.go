package e5

import (
	"encoding/binary"
	"math"
)

// plainKernel is the arithmetic in plain Go, for CPUs without machine code of ours, and what the others are held against.
func plainKernel() kernel {
	return kernel{
		name: "go", tile: 16, multiply: multiplyPlain, quantize: quantizePlain, gelu: geluPlain, addNorm: addNormPlain,
		attend: attendPlain,
	}
}

const lanes = panelRows / 4 // of four weights in one uint64

// lanesOf holds a block of a panel with the weights of four rows, each less 8, side by side in an int64, 16 bits each. A sum of
// 32 products of a weight (-8 to 7) and a byte (-127 to 127) fits in 16 bits, so one multiplication does four.
type lanesOf [blockSize][lanes]int64

func (l *lanesOf) unpack(runs []byte) {
	for g := range 4 {
		for lane := range lanes {
			var low, high [4]int64
			for k := 3; k >= 0; k-- {
				w := binary.LittleEndian.Uint32(runs[g*runBytes+4*(4*lane+k):])
				for i := range 4 {
					low[i] = low[i]<<16 + int64(w>>(8*i)&15) - 8
					high[i] = high[i]<<16 + int64(w>>(8*i+4)&15) - 8
				}
			}
			for i := range 4 {
				l[4*g+i][lane], l[16+4*g+i][lane] = low[i], high[i]
			}
		}
	}
}

// dot multiplies a block with 32 activations.
func (l *lanesOf) dot(q []int8) (sum [lanes]int64) {
	_ = q[blockSize-1]
	var a, b, c, d int64
	for i := range l {
		x := int64(q[i])
		w := &l[i]
		a += w[0] * x
		b += w[1] * x
		c += w[2] * x
		d += w[3] * x
	}
	return [lanes]int64{a, b, c, d}
}

func multiplyPlain(dst []float32, stride int, panels []byte, bias []float32, t tile, blocks int) {
	var l lanesOf
	size := blocks * blockBytes
	for p := range len(panels) / size {
		panel := panels[p*size:][:size]
		out := dst[p*panelRows:]
		for i := range t.n {
			clear(out[i*stride:][:panelRows])
		}
		for b := range blocks {
			l.unpack(panel[blocks*scaleBytes+b*4*runBytes:][:4*runBytes])
			var scale [panelRows]float32
			for r := range scale {
				scale[r] = half(panel, b*panelRows+r)
			}
			for i := range t.n {
				addBlock(out[i*stride:][:panelRows], &scale, l.dot(t.bytes[blockSize*(b*t.n+i):][:blockSize]))
			}
		}
		for i := range t.n {
			row := out[i*stride:][:panelRows]
			for r := range row {
				row[r] = row[r]*t.scale[i] + bias[p*panelRows+r]
			}
		}
	}
}

// addBlock adds the products of one block. A lane below takes one from the lane above when it is negative.
func addBlock(out []float32, scale *[panelRows]float32, sum [lanes]int64) {
	for lane, s := range sum {
		for k := range 4 {
			v := int16(s)
			s = (s - int64(v)) >> 16
			out[4*lane+k] += float32(v) * scale[4*lane+k]
		}
	}
}

func quantizePlain(q []int8, corr []int32, step int, row []float32) float32 {
	var top float32
	for _, x := range row {
		top = max(top, float32(math.Abs(float64(x))))
	}
	factor := float32(0)
	if top > 0 {
		factor = 127 / top
	}
	for b := range len(row) / blockSize {
		sum := int32(0)
		to := q[b*blockSize*step:][:blockSize]
		for i, x := range row[b*blockSize:][:blockSize] {
			v := int32(math.RoundToEven(float64(x * factor)))
			to[i] = int8(v)
			sum += v
		}
		corr[b*step] = -8 * sum
	}
	return top / 127
}

func geluPlain(x []float32) {
	for i, v := range x {
		x[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
}

func addNormPlain(x, y []float32, n lineNorm, epsilon float32) {
	size := len(n.weight)
	for ; len(x) > 0; x, y = x[size:], y[size:] {
		sum, squares := 0.0, 0.0
		for i := range size {
			x[i] += y[i]
			sum += float64(x[i])
		}
		mean := float32(sum / float64(size))
		for _, v := range x[:size] {
			squares += float64((v - mean) * (v - mean))
		}
		factor := float32(1 / math.Sqrt(squares/float64(size)+float64(epsilon)))
		for i := range size {
			x[i] = (x[i]-mean)*factor*n.weight[i] + n.bias[i]
		}
	}
}

func attendPlain(out, qkv []float32, hidden, n int, b *buffers) {
	scores := b.scores[:n]
	for i := range n {
		q := qkv[i*3*hidden:][:headDim]
		top := float32(math.Inf(-1))
		for j := range scores {
			k := qkv[j*3*hidden+hidden:][:headDim]
			sum := float32(0)
			for d := range q {
				sum += q[d] * k[d]
			}
			scores[j] = sum
			top = max(top, sum)
		}
		var acc [headDim]float32
		total := float32(0)
		for j, s := range scores {
			w := float32(math.Exp(float64((s - top) * scoreFactor)))
			total += w
			v := qkv[j*3*hidden+2*hidden:][:headDim]
			for d := range acc {
				acc[d] += w * v[d]
			}
		}
		for d := range acc {
			out[i*hidden+d] = acc[d] / total
		}
	}
}

// scoreFactor is 1 / sqrt(headDim).
const scoreFactor = 0.17677669529663687
