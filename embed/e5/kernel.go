package e5

// kernel is the arithmetic for one kind of CPU. All kernels give the same whole numbers, and floating-point numbers that
// differ in rounding alone.
type kernel struct {
	name string
	tile int // tokens that multiply takes at once

	// multiply writes to dst, in rows of stride, the product of a tile of quantized tokens and some panels of a matrix.
	multiply func(dst []float32, stride int, panels []byte, bias []float32, t tile, blocks int)
	// quantize writes a row as bytes, a block of 32 every 32*step bytes, and for each block to every step-th place -8 times the
	// sum of its bytes (corr) and what a byte of 1 stands for (scale): its greatest absolute value / 127.
	quantize func(q []int8, corr []int32, scale []float32, step int, row []float32)
	// gelu replaces each x by x/2 (1 + erf(x / sqrt 2)).
	gelu func(x []float32)
	// addNorm replaces each row of x by the layer norm of x + y. Rows are as long as the norm's weight.
	addNorm func(x, y []float32, n lineNorm, epsilon float32)
	// attend computes one head of a text of n tokens: out (rows of hidden) = softmax(q k / sqrt 32) v. q, k and v lie in
	// rows of qkvWidth, hidden apart.
	attend func(out, qkv []float32, hidden, n int, b *buffers)
}

// quantized are rows of activations as bytes with a scale for each block, in tiles of some tokens. Within a tile the blocks
// of all its tokens lie side by side, as multiply reads them.
type quantized struct {
	bytes []int8
	corr  []int32 // -8 times each block's sum: weights are stored with 8 added
	scale []float32
}

// tile is the part of quantized that holds n tokens. Block b of token t is at bytes[32*(b*n+t)], its
// sum at corr[b*n+t], its scale at scale[b*n+t].
type tile struct {
	bytes []int8
	corr  []int32
	scale []float32
	n     int
}

func (q *quantized) resize(tokens, cols int) {
	q.bytes = sized(q.bytes, tokens*cols, 0)
	q.corr = sized(q.corr, tokens*cols/blockSize, 0)
	q.scale = sized(q.scale, tokens*cols/blockSize, 0)
}

// tile returns the tile of tokens from to to, of rows of cols.
func (q *quantized) tile(from, to, cols int) tile {
	blocks := cols / blockSize
	return tile{q.bytes[from*cols : to*cols], q.corr[from*blocks : to*blocks], q.scale[from*blocks : to*blocks], to - from}
}

// panelChunk is how many bytes of panels are multiplied with all tokens before the next: they stay in the first cache.
const panelChunk = 28 << 10

// multiply writes the product of rows x and the matrix to dst, whose rows are stride apart.
func (b *buffers) multiply(k kernel, dst []float32, stride int, m *matrix, x []float32) {
	tiles := (b.tokens + k.tile - 1) / k.tile
	border := func(i int) int { return b.tokens * i / tiles } // tiles of nearly the same size
	for i := range tiles {
		b.quantizeTile(k, b.quant.tile(border(i), border(i+1), m.cols), x[border(i)*m.cols:], m.cols)
	}
	blocks := m.cols / blockSize
	panel := blocks * blockBytes
	chunk := max(1, panelChunk/panel)
	for p := 0; p < m.rows/panelRows; p += chunk {
		end := min(p+chunk, m.rows/panelRows)
		for i := range tiles {
			k.multiply(dst[border(i)*stride+p*panelRows:], stride, m.panels[p*panel:end*panel], m.bias[p*panelRows:end*panelRows],
				b.quant.tile(border(i), border(i+1), m.cols), blocks)
		}
	}
}

func (b *buffers) quantizeTile(k kernel, t tile, x []float32, cols int) {
	for i := range t.n {
		k.quantize(t.bytes[blockSize*i:], t.corr[i:], t.scale[i:], t.n, x[i*cols:(i+1)*cols])
	}
}
