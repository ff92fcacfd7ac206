package retrieve

import "golang.org/x/sys/cpu"

// apart6 is plainApart6, in pairs where the CPU has AVX2.
func apart6(apart []int32, codes []uint64, aim *aim6) {
	pairs := len(apart) / 2
	if !cpu.X86.HasAVX2 || pairs == 0 {
		plainApart6(apart, codes, aim)
		return
	}
	var planes [4][12]uint64
	for p := range planes {
		for w := range planes[p] {
			planes[p][w] = aim[w%6][p]
		}
	}
	apartAVX2((*[2]int32)(apart), (*[12]uint64)(codes[:6*len(apart)]), &planes, pairs)
	plainApart6(apart[2*pairs:], codes[12*pairs:], aim)
}
