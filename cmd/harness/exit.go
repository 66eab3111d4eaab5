package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

// exitCode is what the program tells a script. The list is closed.
type exitCode int

const (
	exitQualified   exitCode = 0
	exitRefused     exitCode = 1   // a wall fell or was misnamed
	exitUsage       exitCode = 2   // usage or configuration
	exitUnproven    exitCode = 3   // silent, blind or broken, or it could not run at all
	exitInvalid     exitCode = 4   // attestation invalid or expired
	exitInterrupted exitCode = 130 // 128 + SIGINT, for SIGTERM and SIGHUP too
)

// exitError is an error that knows the exit code. With no err inside, all that
// had to be said was said.
type exitError struct {
	code exitCode
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error    { return &exitError{exitUsage, err} }
func unproven(err error) error { return &exitError{exitUnproven, err} }
func invalid(err error) error  { return &exitError{exitInvalid, err} }

// exitOf is how the outcome of a run ends the program.
func exitOf(o hostile.Outcome) error {
	switch o {
	case hostile.Qualified:
		return nil
	case hostile.Refused:
		return &exitError{code: exitRefused}
	default: // unproven, and whatever is not known to be good
		return &exitError{code: exitUnproven}
	}
}

// signalError is why the context was cancelled.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string {
	if s, ok := e.signal.(unix.Signal); ok {
		return "interrupted by " + unix.SignalName(s)
	}
	return "interrupted"
}

// interruptible returns a context that SIGINT, SIGTERM and SIGHUP cancel. A second
// signal changes nothing: the clean-up that the first one began would be cut
// short, and what it had not yet removed would stay on the host.
func interruptible(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	// Without this a reader of stdout that goes away would end the program in
	// the middle of a run (os/signal, "SIGPIPE"). The write fails instead.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, unix.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if ctx.Err() != nil {
					fmt.Fprintln(stderr, fresh(stderr)+"harness: still cleaning up: a second signal does not cut that short")
					continue
				}
				fmt.Fprintf(stderr, "%sharness: %s: cleaning up\n", fresh(stderr), signalError{s})
				cancel(signalError{s})
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		cancel(nil)
	}
}
