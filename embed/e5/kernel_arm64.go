package e5

import "golang.org/x/sys/cpu"

// kernels are all that this CPU can run, the best first.
func kernels() []kernel {
	plain := plainKernel()
	if !cpu.ARM64.HasASIMD || !cpu.ARM64.HasASIMDDP {
		return []kernel{plain}
	}
	neon := plain
	neon.name, neon.tile, neon.multiply = "neon", 4, multiplyNEON
	factors := []float32{geluEnd, 2.0 / geluEnd}
	for i := range geluTail {
		factors = append(factors, geluTail[len(geluTail)-1-i])
	}
	neon.gelu = func(x []float32) { geluNEON(&x[0], len(x)/16, &factors[0], len(geluTail)) }
	return []kernel{neon, plain}
}

func bestKernel() kernel { return kernels()[0] }

func multiplyNEON(dst []float32, stride int, panels []byte, bias []float32, t tile, blocks int) {
	do := [...]func(*float32, int, *byte, *float32, *int8, *int32, *float32, int, int){
		multiplyNEONx1, multiplyNEONx2, multiplyNEONx3, multiplyNEONx4,
	}[t.n-1]
	do(&dst[0], stride, &panels[0], &bias[0], &t.bytes[0], &t.corr[0], &t.scale[0], blocks, len(bias)/panelRows)
}
