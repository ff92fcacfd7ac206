package script

import (
	"bytes"
	"slices"

	"memgpt"
)

// Clone returns a deep copy of a request.
func Clone(req *memgpt.Request) *memgpt.Request {
	c := *req
	c.Messages = slices.Clone(req.Messages)
	for i := range c.Messages {
		c.Messages[i].Parts = cloneParts(c.Messages[i].Parts)
	}
	c.Schema = bytes.Clone(req.Schema)
	c.Tools = slices.Clone(req.Tools)
	for i := range c.Tools {
		c.Tools[i].Parameters = bytes.Clone(c.Tools[i].Parameters)
	}
	return &c
}

func cloneParts(parts memgpt.Parts) memgpt.Parts {
	parts = slices.Clone(parts)
	for i, p := range parts {
		switch p := p.(type) {
		case memgpt.Image:
			p.Data = bytes.Clone(p.Data)
			parts[i] = p
		case memgpt.File:
			p.Data = bytes.Clone(p.Data)
			parts[i] = p
		case memgpt.Reasoning:
			p.Data = bytes.Clone(p.Data)
			parts[i] = p
		case memgpt.Unknown:
			p.Raw = bytes.Clone(p.Raw)
			parts[i] = p
		}
	}
	return parts
}
