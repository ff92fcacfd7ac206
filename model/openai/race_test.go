//go:build race

package openai

const raced = true
