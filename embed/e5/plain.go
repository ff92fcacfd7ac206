package e5

import (
	"encoding/binary"
	"math"
)

// plainKernel is the arithmetic in plain Go, for CPUs without machine code of ours, and what the others are held against.
func plainKernel() kernel {
	return kernel{
		name: "go", tile: 32, multiply: multiplyPlain, quantize: quantizePlain, gelu: geluPlain, addNorm: addNormPlain,
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
			copy(out[i*stride:][:panelRows], bias[p*panelRows:])
		}
		for b := range blocks {
			l.unpack(panel[blocks*scaleBytes+b*4*runBytes:][:4*runBytes])
			var scale [panelRows]float32
			for r := range scale {
				scale[r] = half(panel, b*panelRows+r)
			}
			for i := range t.n {
				addBlock(out[i*stride:][:panelRows], &scale, t.scale[b*t.n+i], l.dot(t.bytes[blockSize*(b*t.n+i):][:blockSize]))
			}
		}
	}
}

// addBlock adds the products of one block. A lane below takes one from the lane above when it is negative.
func addBlock(out []float32, scale *[panelRows]float32, ts float32, sum [lanes]int64) {
	for lane, s := range sum {
		for k := range 4 {
			v := int16(s)
			s = (s - int64(v)) >> 16
			out[4*lane+k] += float32(v) * scale[4*lane+k] * ts
		}
	}
}

func quantizePlain(q []int8, corr []int32, scale []float32, step int, row []float32) {
	for b := range len(row) / blockSize {
		from, to := row[b*blockSize:][:blockSize], q[b*blockSize*step:][:blockSize]
		top := float32(1e-30)
		for _, x := range from {
			top = max(top, x, -x)
		}
		factor, sum := 127/top, int32(0)
		for i, x := range from {
			v := int32(math.RoundToEven(float64(x * factor)))
			to[i] = int8(v)
			sum += v
		}
		corr[b*step] = -8 * sum
		scale[b*step] = top * (1.0 / 127)
	}
}

// geluTail are the factors of x (1 - Phi(x)), Phi being the normal distribution, as a polynomial of x/geluEnd*2 - 1 for x from
// 0 to geluEnd, lowest power first: fitted to be off by less than 3e-6.
var geluTail = [...]float32{
	0.027504988, -0.133146152, 0.246050805, -0.144958392, -0.196951389, 0.421561688, -0.229324207,
	-0.144989982, 0.221210122, -0.0104821296, -0.0805958882, 0.0120249307, 0.0121132126,
}

const geluEnd = 4.5

func geluPlain(x []float32) {
	for i, v := range x {
		t := min(max(v, -v), geluEnd)*(2/geluEnd) - 1
		p := geluTail[len(geluTail)-1]
		for k := len(geluTail) - 2; k >= 0; k-- {
			p = p*t + geluTail[k]
		}
		x[i] = max(v, 0) - p
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
	scores, stride := b.scores[:n], qkvWidth(hidden)
	for i := range n {
		q := (*[headDim]float32)(qkv[i*stride:])
		top := float32(math.Inf(-1))
		for j := range scores {
			scores[j] = dot(q, (*[headDim]float32)(qkv[j*stride+hidden:]))
			top = max(top, scores[j])
		}
		var acc [headDim]float32
		total := float32(0)
		for j, s := range scores {
			w := exp2((s - top) * (scoreFactor * math.Log2E))
			total += w
			v := (*[headDim]float32)(qkv[j*stride+2*hidden:])
			for d := range acc {
				acc[d] += w * v[d]
			}
		}
		for d := range acc {
			out[i*hidden+d] = acc[d] / total
		}
	}
}

func dot(q, k *[headDim]float32) float32 {
	var a, b, c, d float32
	for i := 0; i < headDim; i += 4 {
		a += q[i] * k[i]
		b += q[i+1] * k[i+1]
		c += q[i+2] * k[i+2]
		d += q[i+3] * k[i+3]
	}
	return a + b + (c + d)
}

// exp2 is 2^x for x from -126 (what is less counts as that) to 0: the whole part by the exponent, and for the rest a
// polynomial that is off by less than 1e-7.
func exp2(x float32) float32 {
	x = max(x, -126)
	whole := int32(x - .5) // to the nearest, since x is not over 0
	t := x - float32(whole)
	p := ((((.0013410001*t+.009676036)*t+.055502973)*t+.24022107)*t+.69314724)*t + 1.0000001
	return math.Float32frombits(math.Float32bits(p) + uint32(whole)<<23)
}

// scoreFactor is 1 / sqrt(headDim).
const scoreFactor = 0.17677669529663687
