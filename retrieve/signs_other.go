//go:build !amd64

package retrieve

// apart6 is plainApart6: the compiler counts bits as fast as the CPU can.
func apart6(apart []int32, codes []uint64, aim *aim6) { plainApart6(apart, codes, aim) }
