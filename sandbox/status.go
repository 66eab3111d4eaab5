package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// State describes execution only. Exited does not imply verified correctness.
type State string

// The states of a job: accepted, then perhaps running, then one terminal state.
const (
	StateAccepted  State = "accepted"  // durable and not started
	StateRunning   State = "running"   // started, or about to be: after a crash it may have done anything
	StateExited    State = "exited"    // ended by itself, whatever its exit code
	StateCancelled State = "cancelled" // ended by Cancel
	StateFailed    State = "failed"    // ended by a limit or the runner, or never started
)

// Terminal reports whether no state follows s.
func (s State) Terminal() bool {
	return s == StateExited || s == StateCancelled || s == StateFailed
}

// CanFollow reports whether a job in state previous may enter s. The empty
// previous state is that of a job not yet stored. No state follows itself, an
// unknown or a terminal one.
func (s State) CanFollow(previous State) bool {
	switch previous {
	case "":
		return s == StateAccepted
	case StateAccepted:
		return s == StateRunning || s == StateCancelled || s == StateFailed
	case StateRunning:
		return s.Terminal()
	}
	return false
}

// JobStatus is a durable broker observation. Revision is a monotonic CAS token.
type JobStatus struct {
	Receipt   Receipt   `json:"receipt"`
	State     State     `json:"state"`
	Revision  uint64    `json:"revision"` // 1 for the accepted job, one more for each change
	UpdatedAt time.Time `json:"updated_at"`
}

// CanFollow reports whether s may replace previous in a store by compare and
// swap: the next revision, a state that may follow, and the same receipt. It
// returns an error that says what is wrong. The zero JobStatus stands for no
// stored status. UpdatedAt is for readers and is not compared, since clocks
// are set back.
//
// An observer that polls can miss a status between two; it may demand no more
// than that Revision grows.
func (s JobStatus) CanFollow(previous JobStatus) error {
	first := previous.Revision == 0 && previous.State == ""
	switch {
	case previous.Revision >= maxInteger || s.Revision != previous.Revision+1:
		return fmt.Errorf("replace status: revision %d does not follow %d", s.Revision, previous.Revision)
	case !s.State.CanFollow(previous.State):
		return fmt.Errorf("replace status: state %.32q does not follow %.32q", s.State, previous.State)
	case !first && (s.Receipt.Job.Digest != previous.Receipt.Job.Digest ||
		!bytes.Equal(s.Receipt.Signature, previous.Receipt.Signature)):
		return errors.New("replace status: receipt is another one")
	}
	return nil
}
