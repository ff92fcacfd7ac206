// Command signs writes the machine code of package retrieve for amd64. Run it by go generate in retrieve.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Bytes of two codes of 384 bits, in registers of 32.
const (
	register  = 32
	registers = 3
	planes    = 4
)

func main() {
	TEXT("apartAVX2", NOSPLIT, "func(apart *[2]int32, codes *[12]uint64, planes *[4][12]uint64, pairs int)")
	Doc("apartAVX2 counts how many bits of each code differ from the four planes, weighted by 1, 2, 4 and 8. It takes two codes",
		"at a time; planes holds each plane twice, one after the other. pairs must not be 0.")
	Pragma("noescape")
	apart, codes, aim, pairs := pointer("apart"), pointer("codes"), pointer("planes"), pointer("pairs")
	low, zero := YMM(), YMM()
	VMOVDQU(bytes("low", func(int) byte { return 15 }), low)
	VPXOR(zero, zero, zero)
	var counts [planes]reg.VecVirtual
	for p := range counts {
		counts[p] = YMM()
		VMOVDQU(bytes("counts"+string(rune('0'+p)), func(i int) byte { return ones(i%16) << p }), counts[p])
	}
	Label("pair")
	var sums [registers]reg.VecVirtual
	for k := range sums {
		code, sum := YMM(), YMM()
		VMOVDQU(Mem{Base: codes, Disp: k * register}, code)
		for p := range counts {
			differ, high := YMM(), YMM()
			VPXOR(Mem{Base: aim, Disp: (p*registers + k) * register}, code, differ)
			VPSRLW(U8(4), differ, high)
			VPAND(low, differ, differ)
			VPAND(low, high, high)
			VPSHUFB(differ, counts[p], differ)
			VPSHUFB(high, counts[p], high)
			VPADDB(differ, high, high)
			if p == 0 {
				sum = high
			} else {
				VPADDB(high, sum, sum) // 120 at most
			}
		}
		sums[k] = YMM()
		VPSADBW(zero, sum, sums[k])
	}
	store(apart, sums)
	ADDQ(U8(8), apart)
	ADDQ(U8(registers*register), codes)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	VZEROUPPER()
	RET()
	Generate()
}

func pointer(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// bytes returns 32 bytes in read-only memory.
func bytes(name string, at func(i int) byte) Mem {
	m := GLOBL("signs_"+name, RODATA|NOPTR)
	for i := range register {
		DATA(i, U8(at(i)))
	}
	return m
}

func ones(n int) (count byte) {
	for ; n > 0; n /= 2 {
		count += byte(n & 1)
	}
	return count
}

// store adds up the eight sums of each code and writes both. The first code has the low half of the middle register.
func store(apart reg.GPVirtual, sums [registers]reg.VecVirtual) {
	first, second, half, other := XMM(), XMM(), XMM(), XMM()
	VEXTRACTI128(U8(1), sums[0], half)
	VPADDQ(sums[0].AsX(), half, first)
	VPADDQ(sums[1].AsX(), first, first)
	VEXTRACTI128(U8(1), sums[1], half)
	VPADDQ(sums[2].AsX(), half, second)
	VEXTRACTI128(U8(1), sums[2], half)
	VPADDQ(half, second, second)
	VPUNPCKLQDQ(second, first, half)
	VPUNPCKHQDQ(second, first, other)
	VPADDQ(half, other, half)
	VPSHUFD(U8(0x08), half, half) // the low words of both
	VMOVQ(half, Mem{Base: apart})
}
