package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// product holds the registers of a multiply function. It writes n rows (tokens) of dst for each panel.
type product struct {
	n                                 int
	dst, stride, panel, bias          reg.GPVirtual
	bytes, corr, scale                reg.GPVirtual // of the tile's tokens
	blocks, panels                    reg.GPVirtual
	a, c, s, weights, scales, blocks1 reg.GPVirtual // running
}

func newProduct(name string, n int) *product {
	TEXT(fmt.Sprintf("multiply%sx%d", name, n), NOSPLIT, "func(dst *float32, stride int, panel *byte, bias *float32, bytes *int8, corr *int32, scale *float32, blocks int, panels int)")
	Pragma("noescape")
	p := &product{
		n: n, dst: param("dst"), stride: param("stride"), panel: param("panel"), bias: param("bias"),
		bytes: param("bytes"), corr: param("corr"), scale: param("scale"), blocks: param("blocks"), panels: param("panels"),
		a: GP64(), c: GP64(), s: GP64(), weights: GP64(), scales: GP64(), blocks1: GP64(),
	}
	SHLQ(U8(2), p.stride)
	return p
}

// start points to the first block, part bytes into the rows of each run.
func (p *product) start(part int) {
	MOVQ(p.bytes, p.a)
	MOVQ(p.corr, p.c)
	MOVQ(p.scale, p.s)
	MOVQ(p.blocks, p.blocks1)
	MOVQ(p.blocks, p.weights)
	SHLQ(U8(5), p.weights) // the scales of a block
	LEAQ(Mem{Base: p.panel, Index: p.weights, Scale: 1, Disp: part}, p.weights)
	LEAQ(at(p.panel, part/2), p.scales)
}

// fetch asks for the weights of the next panel: the CPU's own guesses end at each page.
func (p *product) fetch() {
	for g := range 4 {
		PREFETCHT0(at(p.weights, ahead+g*runBytes))
	}
}

// ahead is the size of a panel of 384 columns.
const ahead = 384 / blockSize * (scaleBytes + 4*runBytes)

// next goes on to the next block.
func (p *product) next() {
	ADDQ(I32(blockSize*p.n), p.a)
	ADDQ(I8(4*p.n), p.c)
	ADDQ(I8(4*p.n), p.s)
	ADDQ(I8(scaleBytes), p.scales)
	ADDQ(I32(4*runBytes), p.weights)
}

// store writes a register for each token.
func (p *product) store(acc []reg.VecVirtual, part int) {
	to := GP64()
	MOVQ(p.dst, to)
	for t, v := range acc {
		VMOVUPS(v, at(to, part))
		if t < len(acc)-1 {
			ADDQ(p.stride, to)
		}
	}
}

// nextPanel follows a panel's last block, where the next panel begins. part is what start was given.
func (p *product) nextPanel(part int) {
	LEAQ(at(p.weights, -part), p.panel)
	ADDQ(I8(4*panelRows), p.dst)
	ADDQ(I8(4*panelRows), p.bias)
}

// multiplyVNNI keeps the sums of 16 rows for each of n tokens in two registers: the block's, and the whole.
func multiplyVNNI(n int) {
	p := newProduct("VNNI", n)
	u := unit{"VNNI", 64, ZMM}
	mask := u.vec()
	VMOVUPS(constant("nibbles", 0x0f0f0f0f), mask)
	acc, sum := registers(u, n), registers(u, n)
	low, high, scale := ZMM(), ZMM(), ZMM()
	loop("panels", p.panels, func() {
		p.start(0)
		for _, v := range acc {
			VMOVUPS(at(p.bias, 0), v)
		}
		loop("blocks", p.blocks1, func() {
			p.fetch()
			for t, v := range sum {
				VPBROADCASTD(at(p.c, 4*t), v)
			}
			for g := range 4 {
				VMOVDQU32(at(p.weights, g*runBytes), high)
				VPANDD(mask, high, low)
				VPSRLW(U8(4), high, high)
				VPANDD(mask, high, high)
				for t, v := range sum {
					vpdpbusd(at(p.a, blockSize*t+4*g), low, v)
				}
				for t, v := range sum {
					vpdpbusd(at(p.a, blockSize*t+16+4*g), high, v)
				}
			}
			VCVTPH2PS(at(p.scales, 0), scale)
			for t, v := range sum {
				VCVTDQ2PS(v, v)
				VMULPS_BCST(at(p.s, 4*t), v, v)
				VFMADD231PS(v, scale, acc[t])
			}
			p.next()
		})
		p.store(acc, 0)
		p.nextPanel(0)
	})
	ret()
}

// multiplyAVX2 takes the panel in two halves of 8 rows. A block's sums are of 16 bits: 8 products of two pairs each, at most
// 8*2*15*127, fit.
func multiplyAVX2(n int) {
	p := newProduct("AVX2", n)
	u := unit{"AVX2", 32, YMM}
	mask := u.vec()
	VMOVUPS(constant("nibbles", 0x0f0f0f0f), mask)
	loop("panels", p.panels, func() {
		for part := range 2 {
			p.start(32 * part)
			acc := registers(u, n)
			for _, v := range acc {
				VMOVUPS(at(p.bias, 32*part), v)
			}
			loop(fmt.Sprintf("blocks%d", part), p.blocks1, func() {
				if part == 0 {
					p.fetch()
				}
				sum := p.pairsAVX2(u, mask)
				p.addAVX2(sum, acc)
				p.next()
			})
			p.store(acc, 32*part)
		}
		p.nextPanel(32)
	})
	ret()
}

// pairsAVX2 sums the products of a block, in pairs of neighbours.
func (p *product) pairsAVX2(u unit, mask reg.VecVirtual) []reg.VecVirtual {
	sum := registers(u, p.n)
	raw, low, x := YMM(), YMM(), YMM()
	for g := range 4 {
		VMOVDQU(at(p.weights, g*runBytes), raw)
		VPAND(mask, raw, low)
		for t, v := range sum {
			if g == 0 {
				VPBROADCASTD(at(p.a, blockSize*t), v)
				VPMADDUBSW(v, low, v)
				continue
			}
			VPBROADCASTD(at(p.a, blockSize*t+4*g), x)
			VPMADDUBSW(x, low, x)
			VPADDW(x, v, v)
		}
		VPSRLW(U8(4), raw, raw)
		VPAND(mask, raw, raw)
		for t, v := range sum {
			VPBROADCASTD(at(p.a, blockSize*t+16+4*g), x)
			VPMADDUBSW(x, raw, x)
			VPADDW(x, v, v)
		}
	}
	return sum
}

// addAVX2 adds a block's sums, scaled, to acc.
func (p *product) addAVX2(sum, acc []reg.VecVirtual) {
	ones := constant("ones", 1<<16+1)
	scale, x := YMM(), YMM()
	VCVTPH2PS(at(p.scales, 0), scale)
	for t, v := range sum {
		VPMADDWD(ones, v, v)
		VPBROADCASTD(at(p.c, 4*t), x)
		VPADDD(x, v, v)
		VCVTDQ2PS(v, v)
		VBROADCASTSS(at(p.s, 4*t), x)
		VMULPS(x, v, v)
		VFMADD231PS(v, scale, acc[t])
	}
}

func registers(u unit, n int) []reg.VecVirtual {
	list := make([]reg.VecVirtual, n)
	for i := range list {
		list[i] = u.vec()
	}
	return list
}
