package suites

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"tenwalls.dev/harness/fixtures"
	"tenwalls.dev/harness/hostile"
	"tenwalls.dev/harness/observers"
	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/sandbox"
	"tenwalls.dev/harness/sandbox/runsc"
)

// Mutant is one wall lowered, or one part of the harness broken, on purpose and
// in memory, with what has to be noticed written down beforehand. The
// operator's file is never changed.
type Mutant struct {
	Name   string           // "canary-world-readable"; unique
	Title  string           // what is lowered or broken, in words
	Of     *hostile.Attempt // whose check has to notice
	Part   reports.Part     // what is mutated
	Source string           // the row that lists it

	// Cells sit instead of the row of all attempts; Also sit beside that row.
	Cells, Also []string
	// Alone mutants do something to the machine that would disturb the evidence
	// of another mutant.
	Alone bool
	// Swaps mutants need swap within the guard.
	Swaps bool
	// Answer lets the world's servers answer. Otherwise what is sent to the
	// canary destinations is counted and dropped.
	Answer bool

	Layer fixtures.LayerChange                // of the image
	World func(context.Context, *Scene) error // what stands in the world, before the observers
	Walls func(*Scene, *Cell, *runsc.Walls)   // of every job, after the cell's own change
	Job   func(*sandbox.Job)                  // what the job asks for
	Order map[string]string                   // parameters of the payload
	Keep  []runsc.Kept                        // of the teardown
	Begun func(runsc.Traces) error            // done to a job whose runtime has just been started
	Eyes  func(*Scene, *eyes) error           // the observers, before their controls
	// Blind is an observer that looks where nothing is.
	Blind string
	// Control changes the record of an observer's control; false removes it.
	Control func(observer string, c observers.Control) (observers.Control, bool)
	Forget  func(*reports.Trial) // of the recorded evidence, before it is judged

	// Need tells why this host cannot have the mutant; empty when it can.
	Need func(runsc.Config) string
	// Took tells why the mutation did not take, by what was read back from the
	// sandbox or inside it; empty when it did.
	Took func(*reports.Report) string

	Predicted []Prediction
	// Foretell is for predictions over all trials, which are not all placed yet
	// while mutants are.
	Foretell func() []Prediction
}

// Prediction is what the mutant turns. Whatever asked trial no prediction
// names has to hold.
type Prediction struct {
	Trials  string // pattern of path.Match over trial ids; the last one that matches counts
	Verdict hostile.Verdict
	Basis   []string // all of these have to stand in the trial's [Basis]
	Without []string // and none of these
}

// row is the cells that sit for every mutant which says nothing else: each
// attempt is there with its principal route, and most with all their routes.
var row = []string{
	"credentials", "behind-files", "connection", "disk", "processes", "processor-threads", "memory-anonymous", "outside",
	"neighbour-walk", "metadata", "leftover", "output", "artifacts-honest", "artifacts", "census",
}

// turns predicts that the trials turn to that verdict, on that basis at least.
func turns(to hostile.Verdict, trials string, basis ...string) Prediction {
	return Prediction{Trials: trials, Verdict: to, Basis: basis}
}

// stays takes trials out of an earlier, wider prediction.
func stays(trials string) Prediction { return Prediction{Trials: trials, Verdict: hostile.Held} }

var mutants []*Mutant

// mutate puts a mutant into the matrix. It panics on what only a programmer
// can get wrong.
func mutate(m Mutant) struct{} {
	if m.Name == "" || m.Title == "" || m.Part == "" || m.Source == "" {
		panic("suites: mutant " + m.Name + " lacks its name, title, part or source")
	}
	if slices.ContainsFunc(mutants, func(o *Mutant) bool { return o.Name == m.Name }) {
		panic("suites: mutant " + m.Name + " is there already")
	}
	mutants = append(mutants, &m)
	return struct{}{}
}

// Mutants returns every mutant: the walls' by step, then those of the harness,
// each in the order of their files.
func Mutants() []*Mutant {
	out := slices.Clone(mutants)
	slices.SortStableFunc(out, func(a, b *Mutant) int { return a.rank() - b.rank() })
	return out
}

func (m *Mutant) rank() int {
	step := 99
	if m.Of != nil {
		step = m.Of.Step
		if step == 0 {
			step = 50
		}
	}
	if m.Part != reports.PartWall && m.Part != reports.PartFixture {
		step += 100
	}
	return step
}

// cells are the names of those that sit.
func (m *Mutant) cells() []string {
	if m == nil {
		return row
	}
	if m.Cells != nil {
		return m.Cells
	}
	return append(slices.Clone(row), m.Also...)
}

// sits tells whether the trial is asked under the mutant.
func (m *Mutant) sits(t *Trial) bool { return slices.Contains(m.cells(), t.cell.Name) }

func (m *Mutant) predictions() []Prediction {
	if m.Foretell == nil {
		return m.Predicted
	}
	return append(slices.Clone(m.Predicted), m.Foretell()...)
}

// predicts is what has to come of a trial: held when nothing is said.
func (m *Mutant) predicts(trial string) Prediction {
	for _, p := range slices.Backward(m.predictions()) {
		if ok, err := path.Match(p.Trials, trial); err == nil && ok {
			return p
		}
	}
	return Prediction{Trials: trial, Verdict: hostile.Held}
}

// foretold tells why the judged trial is not as predicted; empty when it is.
func (p Prediction) foretold(t reports.Trial) string {
	if t.Verdict != p.Verdict {
		return fmt.Sprintf("%s, predicted %s", t.Verdict, p.Verdict)
	}
	basis := Basis(t)
	for _, b := range p.Basis {
		if !slices.Contains(basis, b) {
			return fmt.Sprintf("%s, but not by %q: by %q", t.Verdict, b, basis)
		}
	}
	for _, b := range p.Without {
		if slices.Contains(basis, b) {
			return fmt.Sprintf("%s, also by %q, which was to see nothing", t.Verdict, b)
		}
	}
	return ""
}

func (m *Mutant) layer() []fixtures.LayerChange {
	if m == nil || m.Layer == nil {
		return nil
	}
	return []fixtures.LayerChange{m.Layer}
}

// mutate makes the payload play the mutant's part. A deceitful one has to know
// what is expected of it.
func (s *sitting) mutate(order *hostile.Order) {
	m := s.scene.mutant
	if m == nil || s.cell.Witness { // a witness stands there as ever
		return
	}
	maps.Copy(order.Params, m.Order)
	if m.Order[hostile.ParamDeceit] == "" {
		return
	}
	for _, t := range s.want {
		order.Params[hostile.ParamExpected+t.Name()] = t.Under(s.scene.cfg).Expected.Encode()
	}
}

func (s *sitting) keep() []runsc.Kept {
	if s.scene.mutant == nil {
		return nil
	}
	return s.scene.mutant.Keep
}

func (m *Mutant) blinds(observer string) bool { return m != nil && m.Blind == observer }

// Predicted is what one trial has to turn to under a mutant.
type Predicted struct {
	Trial   string          `json:"trial"`
	Verdict hostile.Verdict `json:"verdict"`
	Basis   []string        `json:"basis,omitempty"`
}

// Foretold lists the asked trials that the mutant has to turn, in their order.
func (m *Mutant) Foretold() []Predicted {
	var out []Predicted
	for _, t := range Trials() {
		if p := m.predicts(t.ID()); m.sits(t) && p.Verdict != hostile.Held {
			out = append(out, Predicted{t.ID(), p.Verdict, p.Basis})
		}
	}
	return out
}
