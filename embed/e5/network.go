package e5

import (
	"encoding/binary"
	"math"
	"runtime/debug"
	"sync"
)

// network is a loaded model: the file, read in place, and the matrices of its layers in panels.
type network struct {
	header
	kernel   kernel
	tok      *tokenizer
	emb      quarter // rows of pieces, read in place
	position []byte  // float16
	embNorm  lineNorm
	layers   []layer
	buffers  chan *buffers // idle ones
}

type layer struct {
	qkv, ao, fi, fo matrix
	ln1, ln2        lineNorm
}

// lineNorm holds the factors and summands of a layer norm.
type lineNorm struct{ weight, bias []float32 }

// quarter is a matrix of 4-bit weights as it lies in the file.
type quarter struct {
	scale, nibble []byte
	cols          int
}

// matrix is a matrix of 4-bit weights in panels of panelRows rows. A panel holds first the float16 scales, block by block
// those of its rows; then the weights, for each block four runs: run g holds bytes 4g to 4g+3 of the file's block, row by
// row. So one load gives a vector unit the weights 4g to 4g+3 of many rows in its low four bits, 16+4g to 19+4g in the high.
type matrix struct {
	rows, cols int
	panels     []byte
	bias       []float32
}

const (
	panelRows  = 16
	scaleBytes = panelRows * 2           // of a block of a panel
	runBytes   = panelRows * 4           // one of the four runs of a block of a panel
	blockBytes = scaleBytes + 4*runBytes // of a block of a panel, both parts together
)

// load makes the panels; it uses the file from then on.
func load(f *file, k kernel, threads int) *network {
	n := &network{
		header: f.header, kernel: k, tok: newTokenizer(f),
		emb:      quarter{f.section["emb.scale"], f.section["emb.nibble"], f.hidden},
		position: f.section["pos"],
		embNorm:  f.lineNorm("emb.ln"),
		layers:   make([]layer, f.header.layers),
		buffers:  make(chan *buffers, threads),
	}
	var wg sync.WaitGroup
	for from := range threads {
		wg.Go(func() {
			for l := from; l < len(n.layers); l += threads {
				n.layers[l] = f.layer(layerName(l))
			}
		})
	}
	wg.Wait()
	return n
}

func (f *file) layer(p string) layer {
	qkv := f.matrix(p+"qkv", 3*f.hidden, f.hidden)
	copy(qkv.bias, f.floats(p+"q.bias")) // keys and values have none
	l := layer{
		qkv: qkv, ao: f.matrix(p+"ao", f.hidden, f.hidden),
		fi: f.matrix(p+"fi", f.ffn, f.hidden), fo: f.matrix(p+"fo", f.hidden, f.ffn),
		ln1: f.lineNorm(p + "ln1"), ln2: f.lineNorm(p + "ln2"),
	}
	copy(l.ao.bias, f.floats(p+"ao.bias"))
	copy(l.fi.bias, f.floats(p+"fi.bias"))
	copy(l.fo.bias, f.floats(p+"fo.bias"))
	return l
}

func (f *file) lineNorm(name string) lineNorm {
	return lineNorm{f.floats(name + ".w"), f.floats(name + ".b")}
}

// matrix lays a matrix out in panels. Its bias is zero.
func (f *file) matrix(name string, rows, cols int) matrix {
	scale, nibble := f.section[name+".scale"], f.section[name+".nibble"]
	blocks := cols / blockSize
	m := matrix{rows: rows, cols: cols, panels: make([]byte, rows/panelRows*blocks*blockBytes), bias: make([]float32, rows)}
	for p := range rows / panelRows {
		panel := m.panels[p*blocks*blockBytes:][:blocks*blockBytes]
		scales, weights := panel[:blocks*scaleBytes], panel[blocks*scaleBytes:]
		for r := range panelRows {
			row := p*panelRows + r
			for b := range blocks {
				copy(scales[b*scaleBytes+2*r:][:2], scale[2*(row*blocks+b):][:2])
				from, to := nibble[16*(row*blocks+b):][:16], weights[b*4*runBytes+4*r:][:3*runBytes+4]
				binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(from))
				binary.LittleEndian.PutUint32(to[runBytes:], binary.LittleEndian.Uint32(from[4:]))
				binary.LittleEndian.PutUint32(to[2*runBytes:], binary.LittleEndian.Uint32(from[8:]))
				binary.LittleEndian.PutUint32(to[3*runBytes:], binary.LittleEndian.Uint32(from[12:]))
			}
		}
	}
	return m
}

// row writes a row of weights to dst.
func (q *quarter) row(dst []float32, row int) {
	blocks := q.cols / blockSize
	for b := range blocks {
		d := half(q.scale, row*blocks+b)
		for j, x := range q.nibble[16*(row*blocks+b):][:16] {
			dst[b*blockSize+j] = float32(int(x&15)-8) * d
			dst[b*blockSize+16+j] = float32(int(x>>4)-8) * d
		}
	}
}

// maxTokens is how many ids of a text the network takes, without the two ends.
func (n *network) maxTokens() int { return min(MaxTokens, n.positions-2) }

// run computes the vectors of a group of texts.
func (n *network) run(ids [][]uint32, vectors [][]float32, g span) {
	b := n.takeBuffers()
	defer n.returnBuffers(b)
	tokens := 0
	b.texts = b.texts[:0]
	for _, list := range ids[g.from:g.to] {
		b.texts = append(b.texts, span{tokens, tokens + len(list)})
		tokens += len(list)
	}
	b.resize(&n.header, tokens)
	for i, s := range b.texts {
		n.embed(b, s, ids[g.from+i])
	}
	for l := range n.layers {
		n.forward(&n.layers[l], b)
	}
	for i, s := range b.texts {
		vectors[g.from+i] = n.mean(b.x[s.from*n.hidden : s.to*n.hidden])
	}
}

// embed writes the rows of a text's tokens: piece plus position, normed.
func (n *network) embed(b *buffers, s span, ids []uint32) {
	for t, id := range ids {
		at := (s.from + t) * n.hidden
		x, y := b.x[at:][:n.hidden], b.y[at:][:n.hidden]
		n.emb.row(x, int(id))
		for i := range y {
			y[i] = half(n.position, t*n.hidden+i)
		}
	}
	from, to := s.from*n.hidden, s.to*n.hidden
	n.kernel.addNorm(b.x[from:to], b.y[from:to], n.embNorm, n.epsilon)
}

// forward runs a layer over all tokens; only attention looks at each text alone.
func (n *network) forward(l *layer, b *buffers) {
	k, h := n.kernel, n.hidden
	b.multiply(k, b.qkv, qkvWidth(h), &l.qkv, b.x)
	for _, s := range b.texts {
		for head := range n.heads {
			k.attend(b.y[s.from*h+head*headDim:], b.qkv[s.from*qkvWidth(h)+head*headDim:], h, s.to-s.from, b)
		}
	}
	b.multiply(k, b.wide, h, &l.ao, b.y)
	k.addNorm(b.x, b.wide[:len(b.x)], l.ln1, n.epsilon)
	b.multiply(k, b.wide, n.ffn, &l.fi, b.x)
	k.gelu(b.wide)
	b.multiply(k, b.y, h, &l.fo, b.wide)
	k.addNorm(b.x, b.y, l.ln2, n.epsilon)
}

// mean is the mean of rows, brought to length 1.
func (n *network) mean(rows []float32) []float32 {
	v := make([]float32, n.hidden)
	for ; len(rows) > 0; rows = rows[n.hidden:] {
		for i := range v {
			v[i] += rows[i]
		}
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	f := float32(1 / math.Sqrt(max(sum, math.SmallestNonzeroFloat64)))
	for i := range v {
		v[i] *= f
	}
	return v
}

// buffers are the activations of one group. Rows are tokens.
type buffers struct {
	texts  []span
	x, y   []float32 // hidden wide
	qkv    []float32 // qkvWidth wide
	wide   []float32 // as wide as the feed-forward layer
	quant  quantized
	scores []float32 // four rows of scores for attention, and what else a kernel wants there
	tokens int
}

// slack is how many rows a kernel may write past the last token.
const slack = 16

func (b *buffers) resize(h *header, tokens int) {
	b.tokens = tokens
	longest := 0
	for _, s := range b.texts {
		longest = max(longest, s.to-s.from)
	}
	b.x = sized(b.x, tokens*h.hidden, slack*h.hidden)
	b.y = sized(b.y, tokens*h.hidden, slack*h.hidden)
	b.qkv = sized(b.qkv, tokens*qkvWidth(h.hidden), slack*qkvWidth(h.hidden))
	b.wide = sized(b.wide, tokens*max(h.ffn, h.hidden), slack*h.hidden)
	b.quant.resize(tokens, max(h.ffn, h.hidden))
	b.scores = sized(b.scores, (headDim+1+4)*(longest+32), 0)
}

// qkvWidth is how far rows of queries, keys and values are apart: an odd number of cache lines, so that the rows of one head
// spread over the whole cache.
func qkvWidth(hidden int) int { return 3*hidden + 16 }

// sized returns a slice of n with room for more behind it, s itself where that is large enough.
func sized[T any](s []T, n, more int) []T {
	if cap(s) < n+more {
		s = make([]T, n+more)
	}
	return s[:n]
}

func (n *network) takeBuffers() *buffers {
	select {
	case b := <-n.buffers:
		return b
	default:
		return new(buffers)
	}
}

func (n *network) returnBuffers(b *buffers) {
	select {
	case n.buffers <- b:
	default:
	}
}

// giveBack returns freed memory to the system.
func giveBack() { debug.FreeOSMemory() }
