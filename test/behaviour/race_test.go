//go:build race

package behaviour

const underRaceDetector = true
