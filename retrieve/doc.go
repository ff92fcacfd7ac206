// Package retrieve finds texts again. It owns the analysis of text into terms, search by words over the inverted index
// that a store keeps (BM25), search by vectors, and how both are fused: filters, pages, a floor under which nothing is a
// hit. It stores nothing and writes nothing: postings, statistics, vectors and originals come from the store through the
// contracts of package store. docs/retrieval.md has the formula and what it was measured to reach.
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
