package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the 32 columns of blocks of 8 rows as rows of padded: dst[d*padded+j] = src[j*stride+d].
func transpose() {
	TEXT("transposeAVX2", NOSPLIT, "func(dst *float32, padded int, src *float32, stride int, blocks int)")
	Pragma("noescape")
	dst, padded, src, stride, blocks := param("dst"), param("padded"), param("src"), param("stride"), param("blocks")
	SHLQ(U8(2), padded)
	SHLQ(U8(2), stride)
	loop("blocks", blocks, func() {
		to := GP64()
		MOVQ(dst, to)
		for part := 0; part < 4*headDim; part += 32 {
			from := GP64()
			LEAQ(at(src, part), from)
			transpose8(from, stride, to, padded)
		}
		LEAQ(Mem{Base: src, Index: stride, Scale: 8}, src)
		ADDQ(I8(32), dst)
	})
	ret()
}

// transpose8 transposes 8 by 8; from is used up and to goes on by 8 rows.
func transpose8(from, stride, to, padded reg.GPVirtual) {
	r, t := registers(unit{"", 32, YMM}, 8), make([]reg.VecVirtual, 8)
	for i := range r {
		VMOVUPS(at(from, 0), r[i])
		if i < 7 {
			ADDQ(stride, from)
		}
	}
	for i := 0; i < 8; i += 2 {
		low := YMM()
		VUNPCKLPS(r[i+1], r[i], low)
		VUNPCKHPS(r[i+1], r[i], r[i+1])
		t[i], t[i+1] = low, r[i+1]
	}
	// Column c of rows 0-3 and of rows 4-7, each in the halves of a register for c and c+4.
	var cols [2][4]reg.VecVirtual
	for h := range 2 {
		for c := range 4 {
			a, b := t[4*h+c/2], t[4*h+2+c/2]
			cols[h][c] = YMM()
			VSHUFPS(U8(0x44+0xaa*(c%2)), b, a, cols[h][c])
		}
	}
	out := YMM()
	for c := range 8 {
		VPERM2F128(U8(0x20+0x11*(c/4)), cols[1][c%4], cols[0][c%4], out)
		VMOVUPS(out, at(to, 0))
		ADDQ(padded, to)
	}
}

// queries is how many queries attend takes at once.
const queries = 4

// attention holds the registers of attend.
type attention struct {
	unit
	q                               [queries]reg.GPVirtual // running
	keys, padded, values, scores, n reg.GPVirtual
	stride                          reg.GPVirtual
	row                             [queries]reg.GPVirtual // of scores
}

// attend computes 4 queries of one head. keys are transposed, 32 rows of padded, and a row to add to the scores; padded is a
// multiple of 32.
func (u unit) attend() {
	TEXT("attend"+u.name, NOSPLIT, "func(out *float32, hidden int, q *float32, keys *float32, padded int, values *float32, stride int, scores *float32, n int)")
	Pragma("noescape")
	a := &attention{unit: u, keys: param("keys"), padded: param("padded"), scores: param("scores")}
	SHLQ(U8(2), a.padded)
	for i := range a.row {
		a.row[i] = GP64()
		if i == 0 {
			MOVQ(a.scores, a.row[0])
		} else {
			LEAQ(Mem{Base: a.row[i-1], Index: a.padded, Scale: 1}, a.row[i])
		}
	}
	tops := a.score()
	sums := a.softmax(tops)
	a.values, a.n, a.stride = param("values"), param("n"), param("stride")
	SHLQ(U8(2), a.stride)
	out, hidden := param("out"), param("hidden")
	SHLQ(U8(2), hidden)
	a.mix(sums, out, hidden)
	ret()
}

// score writes q k for all keys to scores and returns the greatest of each lane.
func (a *attention) score() []reg.VecVirtual {
	stride := param("stride")
	SHLQ(U8(2), stride)
	for i := range a.q {
		a.q[i] = GP64()
		if i == 0 {
			MOVQ(param("q"), a.q[0])
		} else {
			LEAQ(Mem{Base: a.q[i-1], Index: stride, Scale: 1}, a.q[i])
		}
	}
	tops := registers(a.unit, queries)
	for _, v := range tops {
		VMOVUPS(float("least", -3e38), v)
	}
	left, at1 := GP64(), GP64()
	XORQ(at1, at1)
	step := 2 * a.bytes
	MOVQ(a.padded, left)
	Label("keys")
	a.scoreKeys(at1, tops)
	ADDQ(I32(step), at1)
	SUBQ(I32(step), left)
	JNZ(LabelRef("keys"))
	return tops
}

// scoreKeys takes the keys of two registers.
func (a *attention) scoreKeys(at1 reg.GPVirtual, tops []reg.VecVirtual) {
	key, d := GP64(), GP64()
	LEAQ(Mem{Base: a.keys, Index: at1, Scale: 1}, key)
	acc := [2][]reg.VecVirtual{registers(a.unit, queries), registers(a.unit, queries)}
	for _, list := range acc {
		for _, v := range list {
			if a.bytes == 64 {
				VPXORD(v, v, v)
			} else {
				VXORPS(v, v, v)
			}
		}
	}
	XORQ(d, d)
	Label("dims")
	k := registers(a.unit, 2)
	q := a.vec()
	for u := range 4 {
		VMOVUPS(at(key, 0), k[0])
		VMOVUPS(at(key, a.bytes), k[1])
		ADDQ(a.padded, key)
		for i := range a.q {
			VBROADCASTSS(Mem{Base: a.q[i], Index: d, Scale: 1, Disp: 4 * u}, q)
			VFMADD231PS(k[0], q, acc[0][i])
			VFMADD231PS(k[1], q, acc[1][i])
		}
	}
	ADDQ(I8(16), d)
	CMPQ(d, I32(4*headDim))
	JNE(LabelRef("dims"))
	for i := range a.q {
		for h := range acc { // key is at the row to add
			VADDPS(at(key, h*a.bytes), acc[h][i], acc[h][i])
			VMOVUPS(acc[h][i], Mem{Base: a.row[i], Index: at1, Scale: 1, Disp: h * a.bytes})
			VMAXPS(acc[h][i], tops[i], tops[i])
		}
	}
}

// softmax replaces scores s by exp((s-top)/sqrt(32)) and returns 1/sum for each query.
func (a *attention) softmax(tops []reg.VecVirtual) []reg.VecVirtual {
	sums := make([]reg.VecVirtual, queries)
	for i := range sums {
		top := a.broadcast(a.reduce(tops[i], VMAXPS))
		sum := a.zero()
		at1 := GP64()
		XORQ(at1, at1)
		name := fmt.Sprintf("exp%d", i)
		Label(name)
		a.exp(Mem{Base: a.row[i], Index: at1, Scale: 1}, top, sum)
		ADDQ(I8(a.bytes), at1)
		CMPQ(at1, a.padded)
		JNE(LabelRef(name))
		x, one := a.reduce(sum, VADDPS), XMM()
		VMOVSS(float("one", 1), one)
		VDIVSS(x, one, x)
		sums[i] = x
	}
	return sums
}

// exp does softmax for one register: 2^t as 2^whole by the exponent, and a polynomial for the fraction, good to 1e-7.
func (a *attention) exp(m Mem, top, sum reg.VecVirtual) {
	t, whole, p := a.vec(), a.vec(), a.vec()
	VMOVUPS(m, t)
	VSUBPS(top, t, t)
	VMULPS(float("scoreUnit", 1.4426950408889634*0.17677669529663687), t, t)
	VMAXPS(float("expLeast", -126), t, t)
	VCVTPS2DQ(t, whole)
	VCVTDQ2PS(whole, p)
	VSUBPS(p, t, t)
	VMOVUPS(float("exp5", 0.0013410000829026103), p)
	for i, c := range []float32{0.009676036424934864, 0.05550297349691391, 0.2402210682630539, 0.6931472420692444, 1.0000001192092896} {
		VFMADD213PS(float(fmt.Sprintf("exp%d", 4-i), c), t, p)
	}
	VPSLLD(U8(23), whole, whole)
	VPADDD(whole, p, p)
	VMOVUPS(p, m)
	VADDPS(p, sum, sum)
}

// mix writes the sums of the values, weighted by scores.
func (a *attention) mix(sums []reg.VecVirtual, out, hidden reg.GPVirtual) {
	width := 2 * a.bytes // of the columns done at once
	for part := 0; part < 4*headDim; part += width {
		name := fmt.Sprintf("values%d", part)
		acc := [2][]reg.VecVirtual{registers(a.unit, queries), registers(a.unit, queries)}
		for _, list := range acc {
			for i := range list {
				list[i] = a.zero()
			}
		}
		value, j := GP64(), GP64()
		LEAQ(at(a.values, part), value)
		XORQ(j, j)
		Label(name)
		v := registers(a.unit, 2)
		w := a.vec()
		VMOVUPS(at(value, 0), v[0])
		VMOVUPS(at(value, a.bytes), v[1])
		ADDQ(a.stride, value)
		for i := range queries {
			VBROADCASTSS(Mem{Base: a.row[i], Index: j, Scale: 4}, w)
			VFMADD231PS(v[0], w, acc[0][i])
			VFMADD231PS(v[1], w, acc[1][i])
		}
		INCQ(j)
		CMPQ(j, a.n)
		JNE(LabelRef(name))
		to := GP64()
		LEAQ(at(out, part), to)
		for i := range queries {
			factor := a.broadcast(sums[i])
			for h := range acc {
				VMULPS(factor, acc[h][i], acc[h][i])
				VMOVUPS(acc[h][i], at(to, h*a.bytes))
			}
			if i < queries-1 {
				ADDQ(hidden, to)
			}
		}
	}
}
