package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantize writes blocks of 32 float32 as bytes, with scale and sum of each. It uses 32-byte registers alone, since most of it
// works across a register.
func quantize() {
	TEXT("quantizeAVX2", NOSPLIT, "func(bytes *int8, corr *int32, scale *float32, step int, row *float32, blocks int)")
	Pragma("noescape")
	bytes, corr, scale, step, row, blocks := param("bytes"), param("corr"), param("scale"), param("step"), param("row"), param("blocks")
	far := GP64()
	MOVQ(step, far)
	SHLQ(U8(5), far)
	SHLQ(U8(2), step)
	order, zero := YMM(), YMM()
	VMOVDQU(packOrder(), order)
	VPXOR(zero, zero, zero)
	loop("blocks", blocks, func() {
		v := registers(unit{"", 32, YMM}, 4)
		top, x := YMM(), YMM()
		for i := range v {
			VMOVUPS(at(row, 32*i), v[i])
			VANDPS(constant("absolute", 0x7fffffff), v[i], x)
			if i == 0 {
				VMOVAPS(x, top)
			} else {
				VMAXPS(x, top, top)
			}
		}
		factor := quantizeScale(reduceY(top, VMAXPS), scale)
		for i := range v {
			VMULPS(factor, v[i], v[i])
			VCVTPS2DQ(v[i], v[i])
		}
		VPACKSSDW(v[1], v[0], v[0])
		VPACKSSDW(v[3], v[2], v[2])
		VPACKSSWB(v[2], v[0], v[0])
		VPERMD(v[0], order, v[0])
		VMOVDQU(v[0], at(bytes, 0))
		quantizeSum(v[0], zero, corr)
		ADDQ(far, bytes)
		ADDQ(step, corr)
		ADDQ(step, scale)
		ADDQ(I32(4*blockSize), row)
	})
	ret()
}

// packOrder undoes what packing does to the order of fours of bytes.
func packOrder() Mem {
	m := GLOBL("packOrder", RODATA|NOPTR)
	for i, x := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(4*i, U32(x))
	}
	return m
}

// quantizeScale stores a block's scale, its top / 127, and returns 127 / top.
func quantizeScale(top reg.VecVirtual, scale reg.GPVirtual) reg.VecVirtual {
	VMAXSS(float("tiny", 1e-30), top, top)
	x := XMM()
	VMULSS(float("part127", 1.0/127), top, x)
	VMOVSS(x, at(scale, 0))
	VMOVSS(float("all127", 127), x)
	VDIVSS(top, x, x)
	return unit{"", 32, YMM}.broadcast(x)
}

// quantizeSum stores -8 times the sum of 32 signed bytes. With 128 added to each, VPSADBW sums them in eights.
func quantizeSum(v, zero reg.VecVirtual, corr reg.GPVirtual) {
	VPXOR(constant("signs", 0x80808080), v, v)
	VPSADBW(zero, v, v)
	x, other := XMM(), XMM()
	VEXTRACTI128(U8(1), v, x)
	VPADDQ(v.AsX(), x, x)
	VPSHUFD(U8(0x4e), x, other)
	VPADDQ(other, x, x)
	sum := GP32()
	VMOVD(x, sum)
	SHLL(U8(3), sum)
	NEGL(sum)
	ADDL(U32(8*blockSize*128), sum)
	MOVL(sum, at(corr, 0))
}

// geluTail is the polynomial of package e5's gelu, highest power first.
var geluTail = []float32{
	0.0121132126, 0.0120249307, -0.0805958882, -0.0104821296, 0.221210122, -0.144989982, -0.229324207, 0.421561688,
	-0.196951389, -0.144958392, 0.246050805, -0.133146152, 0.027504988,
}

// gelu replaces x by max(x, 0) - tail(|x|), see package e5.
func (u unit) gelu() {
	TEXT("gelu"+u.name, NOSPLIT, "func(x *float32, vectors int)")
	Doc("gelu" + u.name + " takes vectors of 16.")
	Pragma("noescape")
	to, vectors := param("x"), param("vectors")
	zero := u.zero()
	loop("vectors", vectors, func() {
		for part := 0; part < 64; part += u.bytes {
			x, t, p := u.vec(), u.vec(), u.vec()
			VMOVUPS(at(to, part), x)
			VANDPS(constant("absolute", 0x7fffffff), x, t)
			VMINPS(float("geluEnd", 4.5), t, t)
			VMOVUPS(float("minusOne", -1), p)
			VFMADD132PS(float("geluUnit", 2/4.5), p, t)
			VMOVUPS(float("gelu12", geluTail[0]), p)
			for i, c := range geluTail[1:] {
				VFMADD213PS(float(geluName(11-i), c), t, p)
			}
			VMAXPS(zero, x, x)
			VSUBPS(p, x, x)
			VMOVUPS(x, at(to, part))
		}
		ADDQ(I8(64), to)
	})
	ret()
}

func geluName(power int) string { return "gelu" + string(rune('a'+power)) }

// addNorm replaces rows of x by the layer norm of x + y.
func (u unit) addNorm() {
	TEXT("addNorm"+u.name, NOSPLIT, "func(x *float32, y *float32, weight *float32, bias *float32, rows int, vectors int, epsilon float32)")
	Doc("addNorm" + u.name + " takes rows of vectors of 16.")
	Pragma("noescape")
	x, y, weight, bias, rows, vectors := param("x"), param("y"), param("weight"), param("bias"), param("rows"), param("vectors")
	size, epsilon := XMM(), XMM()
	{
		n := GP64()
		MOVQ(vectors, n)
		SHLQ(U8(4), n)
		VXORPS(size, size, size)
		VCVTSI2SSQ(n, size, size)
	}
	Load(Param("epsilon"), epsilon)
	at1, left := GP64(), GP64()
	each := func(name string, do func(part int)) {
		XORQ(at1, at1)
		MOVQ(vectors, left)
		loop(name, left, func() {
			for part := 0; part < 64; part += u.bytes {
				do(part)
			}
			ADDQ(I8(64), at1)
		})
	}
	loop("rows", rows, func() {
		sum := u.zero()
		each("sum", func(part int) {
			v := u.vec()
			VMOVUPS(Mem{Base: x, Index: at1, Scale: 1, Disp: part}, v)
			VADDPS(Mem{Base: y, Index: at1, Scale: 1, Disp: part}, v, v)
			VMOVUPS(v, Mem{Base: x, Index: at1, Scale: 1, Disp: part})
			VADDPS(v, sum, sum)
		})
		mean := u.reduce(sum, VADDPS)
		VDIVSS(size, mean, mean)
		mean = u.broadcast(mean)
		squares := u.zero()
		each("squares", func(part int) {
			v := u.vec()
			VMOVUPS(Mem{Base: x, Index: at1, Scale: 1, Disp: part}, v)
			VSUBPS(mean, v, v)
			VFMADD231PS(v, v, squares)
		})
		factor := u.reduce(squares, VADDPS)
		VDIVSS(size, factor, factor)
		VADDSS(epsilon, factor, factor)
		VSQRTSS(factor, factor, factor)
		one := XMM()
		VMOVSS(float("one", 1), one)
		VDIVSS(factor, one, factor)
		factor = u.broadcast(factor)
		each("scale", func(part int) {
			v := u.vec()
			VMOVUPS(Mem{Base: x, Index: at1, Scale: 1, Disp: part}, v)
			VSUBPS(mean, v, v)
			VMULPS(factor, v, v)
			b := u.vec()
			VMOVUPS(Mem{Base: bias, Index: at1, Scale: 1, Disp: part}, b)
			VFMADD132PS(Mem{Base: weight, Index: at1, Scale: 1, Disp: part}, b, v)
			VMOVUPS(v, Mem{Base: x, Index: at1, Scale: 1, Disp: part})
		})
		ADDQ(at1, x)
		ADDQ(at1, y)
	})
	ret()
}
