package retrieve

import "math/bits"

//go:generate go run -C ../embed/e5/internal/asm ./signs -out ../../../../retrieve/asm_amd64.s -stubs ../../../../retrieve/asm_amd64.go -pkg retrieve

// code6 is a sign code of 384 dimensions, aim6 the planes of an aim of as many.
type (
	code6 = [6]uint64
	aim6  = [6][4]uint64
)

// plainApart6 sets apart to how many bits of each code differ from the four planes of the aim, weighted by 1, 2, 4 and 8.
func plainApart6(apart []int32, codes []uint64, aim *aim6) {
	for i := range apart {
		code := (*code6)(codes[6*i:])
		var n [4]int
		for w, x := range code {
			p := &aim[w]
			n[0] += bits.OnesCount64(x ^ p[0])
			n[1] += bits.OnesCount64(x ^ p[1])
			n[2] += bits.OnesCount64(x ^ p[2])
			n[3] += bits.OnesCount64(x ^ p[3])
		}
		apart[i] = int32(n[0] + 2*n[1] + 4*n[2] + 8*n[3])
	}
}
