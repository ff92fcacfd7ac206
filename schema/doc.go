// Package schema stands between the JSON that a language model writes and the
// functions that it wants to call.
//
// It makes the schema of a function's arguments from a Go struct or reads one
// that somebody else wrote ([For], [Parse]), turns what a model wrote into
// arguments that fit it ([Schema.Decode]), tells arguments that were cut off
// from arguments that are merely untidy ([Truncated]), finds calls that a model
// wrote as prose ([FindCalls]), and names what was probably meant ([Closest]).
//
// One rule goes before all others: the text inside a string belongs to the
// model. However broken the JSON around it is, a string arrives as it was
// written; only what is not Unicode, and U+0000, is taken out. The other rule
// is that an error is written for the model, since the model reads it: it says
// what is wrong and how the call is written right.
//
// The package does no I/O, calls no function and knows nothing about agents.
package schema
