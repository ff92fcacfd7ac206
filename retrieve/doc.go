// Package retrieve finds texts again. It owns the analysis of text into terms and word search over the inverted index
// that a store keeps: scoring (BM25), filters, pages. It stores nothing and writes nothing: postings, statistics and
// originals come from the store through the contracts of package store.
//
// Terms live in one space of strings; the first byte says what kind a term is:
//
//	(none)   the stem of a word without accents, a number, a code, a CJK character or pair, an emoji
//	0x01     a word exactly as written, where that differs from its stem
//	0x02     a date that a text speaks of
//	0x03     the date on which a text was said
//	0x04     a tag
//
// Control characters never stand inside a term otherwise, so no text can forge a term of another kind.
package retrieve
