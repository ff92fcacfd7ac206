// Command asm writes the machine code of package e5 for amd64. It is a module of its own, so that the product does not
// depend on avo. Run it by go generate in embed/e5.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unit is a vector unit: its name in the functions' names, bytes of a register, and a new register.
type unit struct {
	name  string
	bytes int
	vec   func() reg.VecVirtual
}

// Bytes of a panel, see network.go.
const (
	panelRows  = 16
	scaleBytes = 2 * panelRows
	runBytes   = 4 * panelRows
	blockSize  = 32
	headDim    = 32
)

func main() {
	vnni := unit{"VNNI", 64, ZMM}
	avx2 := unit{"AVX2", 32, YMM}
	for n := 1; n <= 12; n++ {
		multiplyVNNI(n)
	}
	for n := 1; n <= 6; n++ {
		multiplyAVX2(n)
	}
	quantize()
	transpose()
	for _, u := range []unit{vnni, avx2} {
		u.gelu()
		u.addNorm()
		u.attend()
	}
	Generate()
}

// constant returns 64 bytes of a 32-bit word in read-only memory, made once for each name.
func constant(name string, word uint32) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(word))
	}
	constants[name] = m
	return m
}

var constants = map[string]Mem{}

func float(name string, x float32) Mem { return constant(name, math.Float32bits(x)) }

func (u unit) zero() reg.VecVirtual {
	v := u.vec()
	if u.bytes == 64 {
		VPXORD(v, v, v)
	} else {
		VPXOR(v, v, v)
	}
	return v
}

// reduce leaves in all lanes of a 16-byte register the result of op over the lanes of v.
func (u unit) reduce(v reg.VecVirtual, op func(...Op)) reg.VecVirtual {
	half := YMM()
	if u.bytes == 64 {
		VEXTRACTF64X4(U8(1), v, half)
		op(v.AsY(), half, half)
	} else {
		VMOVAPS(v, half)
	}
	return reduceY(half, op)
}

func reduceY(y reg.VecVirtual, op func(...Op)) reg.VecVirtual {
	x, other := XMM(), XMM()
	VEXTRACTF128(U8(1), y, x)
	op(x, y.AsX(), x)
	VPSHUFD(U8(0x4e), x, other)
	op(x, other, x)
	VPSHUFD(U8(0xb1), x, other)
	op(x, other, x)
	return x
}

// broadcast spreads the low lane of x.
func (u unit) broadcast(x reg.VecVirtual) reg.VecVirtual {
	v := u.vec()
	VBROADCASTSS(x.AsX(), v)
	return v
}

// vpdpbusd adds to acc the products of unsigned bytes w and the signed bytes at m, four neighbours each, m in all lanes.
// avo does not know the instruction.
func vpdpbusd(m Mem, w, acc reg.VecVirtual) {
	Instruction(&ir.Instruction{
		Opcode: "VPDPBUSD", Suffixes: []string{"BCST"},
		Operands: []Op{m, w, acc}, Inputs: []Op{m, w, acc}, Outputs: []Op{acc},
		ISA: []string{"AVX512_VNNI"},
	})
}

// loop repeats body until count, which it uses up, is zero. It must not begin at zero.
func loop(name string, count reg.GPVirtual, body func()) {
	Label(name)
	body()
	DECQ(count)
	JNZ(LabelRef(name))
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

func at(base reg.GPVirtual, disp int) Mem { return Mem{Base: base, Disp: disp} }

// ret leaves the registers as Go's own code wants them.
func ret() {
	VZEROUPPER()
	RET()
}
