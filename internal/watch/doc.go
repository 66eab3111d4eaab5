// Package watch is the daemon of harness watch: it qualifies this host against
// the configuration that production uses, at the start, on a schedule and on every
// change of the [Identity] of what was qualified, and publishes the result as a
// signed file of a short life.
//
// It fails closed. What is published is taken back the moment the identity
// changes, and on any outcome but qualified, on expiry, on a clock that went
// back, on a configuration that is invalid, and at the end of the daemon. A
// daemon that was killed renews nothing: its file expires within its life.
//
// One goroutine owns every decision (see [Daemon.Run]). The suite is a child
// process, of which at most one runs; whatever asks for a run while one is due
// or running is one and the same further run.
//
// What this package does not prove: that the walls stand between two runs, or
// that what is running already was started from the files that are watched. A
// change of a file is seen by its folder's events, else at the next tick by its
// size, times, inode and device; who can set the machine's clock back and write
// the file within one tick of the kernel's clock can hide from both. A published
// file is as trustworthy as the key beside the daemon.
package watch
