package e5

import "golang.org/x/sys/cpu"

// kernels are all that this CPU can run, the best first. Whatever has AVX2 and FMA has F16C too.
func kernels() []kernel {
	var list []kernel
	x := &cpu.X86
	avx2 := x.HasAVX2 && x.HasFMA
	if avx2 && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512VNNI {
		list = append(list, kernel{
			name: "avx512vnni", tile: 12, multiply: multiplyVNNI, quantize: quantizeVector,
			gelu:    func(v []float32) { geluVNNI(&v[0], len(v)/16) },
			addNorm: normBy(addNormVNNI), attend: attendBy(attendVNNI),
		})
	}
	if avx2 {
		list = append(list, kernel{
			name: "avx2", tile: 6, multiply: multiplyAVX2, quantize: quantizeVector,
			gelu:    func(v []float32) { geluAVX2(&v[0], len(v)/16) },
			addNorm: normBy(addNormAVX2), attend: attendBy(attendAVX2),
		})
	}
	return append(list, plainKernel())
}

func bestKernel() kernel { return kernels()[0] }

func multiplyVNNI(dst []float32, stride int, panels []byte, bias []float32, t tile, blocks int) {
	do := [...]func(*float32, int, *byte, *float32, *int8, *int32, *float32, int, int){
		multiplyVNNIx1, multiplyVNNIx2, multiplyVNNIx3, multiplyVNNIx4, multiplyVNNIx5, multiplyVNNIx6,
		multiplyVNNIx7, multiplyVNNIx8, multiplyVNNIx9, multiplyVNNIx10, multiplyVNNIx11, multiplyVNNIx12,
	}[t.n-1]
	do(&dst[0], stride, &panels[0], &bias[0], &t.bytes[0], &t.corr[0], &t.scale[0], blocks, len(bias)/panelRows)
}

func multiplyAVX2(dst []float32, stride int, panels []byte, bias []float32, t tile, blocks int) {
	do := [...]func(*float32, int, *byte, *float32, *int8, *int32, *float32, int, int){
		multiplyAVX2x1, multiplyAVX2x2, multiplyAVX2x3, multiplyAVX2x4, multiplyAVX2x5, multiplyAVX2x6,
	}[t.n-1]
	do(&dst[0], stride, &panels[0], &bias[0], &t.bytes[0], &t.corr[0], &t.scale[0], blocks, len(bias)/panelRows)
}

func quantizeVector(q []int8, corr []int32, scale []float32, step int, row []float32) {
	quantizeAVX2(&q[0], &corr[0], &scale[0], step, &row[0], len(row)/blockSize)
}

func normBy(do func(x, y, weight, bias *float32, rows, vectors int, epsilon float32)) func(x, y []float32, n lineNorm, epsilon float32) {
	return func(x, y []float32, n lineNorm, epsilon float32) {
		do(&x[0], &y[0], &n.weight[0], &n.bias[0], len(x)/len(n.weight), len(n.weight)/16, epsilon)
	}
}

// attendQueries is how many queries the machine code takes at once, and attendKeys what it wants a multiple of.
const (
	attendQueries = 4
	attendKeys    = 32
)

// attendBy prepares attention for the machine code: the keys transposed, and under them a row that keeps the padding out.
func attendBy(do func(out *float32, hidden int, q, keys *float32, padded int, values *float32, stride int, scores *float32, n int)) func(out, qkv []float32, hidden, n int, b *buffers) {
	return func(out, qkv []float32, hidden, n int, b *buffers) {
		padded := (n + attendKeys - 1) / attendKeys * attendKeys
		stride := qkvWidth(hidden)
		keys, rest := b.scores[:(headDim+1)*padded], b.scores[(headDim+1)*padded:]
		scores := rest[:attendQueries*padded]
		transposeAVX2(&keys[0], padded, &qkv[hidden], stride, (n+7)/8)
		extra := keys[headDim*padded:]
		clear(extra[:n])
		for j := n; j < padded; j++ {
			extra[j] = -1e30
		}
		for i := 0; i < n; i += attendQueries { // rows past the last are the next text's, which overwrites them, or slack
			do(&out[i*hidden], hidden, &qkv[i*stride], &keys[0], padded, &qkv[2*hidden], stride, &scores[0], n)
		}
	}
}
