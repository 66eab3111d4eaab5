// Package attest is the signed statement of a run about one host, and the keys
// that sign it.
//
// It stands apart from the report, so that a broker that only verifies carries
// nothing of what made the run: no observer, no schema, no renderer.
//
// What this package does not prove: a signature says who vouched for the bytes,
// not that what they say was found out honestly, nor that it is true still.
package attest
